// The readers that gather_host_facts() is made of. They read, and never fail: what cannot be read
// stays as it is. `root` goes before every path of the host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/host.h"

namespace hutch::plan {

// The file without the line ends at its end; empty when it cannot be read.
std::string text_of(const std::string& path);
// `fallback` when the file is missing or no number ("max" in a cgroup file).
std::uint64_t number_of(const std::string& path, std::uint64_t fallback);
// The rest of the line that begins with `key`, blanks taken off its front.
std::string_view line_of(std::string_view text, std::string_view key);
// What stands between the separators; empty parts are left out.
std::vector<std::string> split(std::string_view text, std::string_view separators);
// The fields of a line of /etc/passwd and its like, empty ones included.
std::vector<std::string> fields_of(std::string_view line);
// From the usual directories, whatever PATH says: who asks may have another than the server.
Tool find_tool(const std::string& root, const std::string& name);

// host_facts_user.cc
UserFacts read_user(const std::string& root);
// Only what /etc/passwd, /etc/subuid and /etc/subgid say about the user of that name; the number is
// 0 when there is none.
UserFacts read_named_user(const std::string& root, const std::string& name);
void read_uid_ranges(const std::string& root, HostFacts& facts);

// host_facts_cgroups.cc
void read_cgroups(const std::string& root, HostFacts& facts);
// What systemd gives to facts.user instead of our own group.
void read_delegated_cgroups(const std::string& root, HostFacts& facts);

}  // namespace hutch::plan
