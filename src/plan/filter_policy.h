// Which system calls each process inside a sandbox may make, and why. Pure tables; compiled by
// isolation/seccomp, installed by the guest as the last step before foreign code runs.
//
// Three lists, each an allow-list: the program (anything a tenant runs), init (pid 1, a loop that
// reaps), the courier (carries files in and out). A call that our tables know and do not allow is
// answered with EPERM; one that they do not know, with ENOSYS, as an older kernel would, so that
// what a future kernel adds stays shut and libraries fall back.
#pragma once

#include <linux/filter.h>

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/seccomp.h"

namespace hutch::plan {

// The machine that this binary is built for.
isolation::Arch native_arch();

// The lists as values, for any architecture that we have a table of.
isolation::FilterPolicy program_policy(isolation::Arch arch);
isolation::FilterPolicy init_policy(isolation::Arch arch);
isolation::FilterPolicy courier_policy(isolation::Arch arch);

// The same, compiled for the machine this binary is built for. Fails only with internal, when the
// tables contradict themselves: nothing may then be started.
Result<std::vector<sock_filter>> program_filter();
Result<std::vector<sock_filter>> init_filter();
Result<std::vector<sock_filter>> courier_filter();

// One entry of the program's table, for documents and tests: calls that share a verdict, and why.
struct PolicyLine {
  isolation::Verdict verdict;  // for a call with argument rules: what holds when none matches
  std::string_view reason;
  std::string_view calls;  // names, separated by single spaces
};
std::span<const PolicyLine> program_lines();

}  // namespace hutch::plan
