// The roles of the one static program on the sandbox side. Each runs until its socket closes.
#pragma once

#include <linux/filter.h>

#include <cstddef>

#include "isolation/act.h"
#include "plan/launcher_wire.h"

namespace hutch::guest {

// The plan block, mapped and taken apart once, before any sandbox exists.
struct GuestPlan {
  const char* init = nullptr;
  std::size_t init_size = 0;
  const char* program = nullptr;
  std::size_t program_size = 0;
  const char* execute = nullptr;
  std::size_t execute_size = 0;
  const char* courier = nullptr;
  std::size_t courier_size = 0;
  sock_fprog filters[3]{};
  char* argv[16]{};
  char* envp[64]{};
};

// False when the block is not one of ours.
bool map_plan(int fd, GuestPlan* plan);

// Pid 1 of the zone's pid namespace: keeps it, and so everything in it, alive until the lifeline
// closes.
[[noreturn]] void run_anchor();

// Serves launch requests until its socket closes.
[[noreturn]] void run_launcher();

// What the launcher's children become.
[[noreturn]] void become_init(const GuestPlan& plan, const plan::LaunchRequest& request,
                              const int* fds);
[[noreturn]] void become_program(const GuestPlan& plan, const plan::LaunchRequest& request,
                                 const int* fds);
[[noreturn]] void become_courier(const GuestPlan& plan, const plan::LaunchRequest& request,
                                 const int* fds);

// The courier's work, once it is inside: stream socket in, exit status out.
int carry_files_in(int stream);
int carry_files_out(int stream);

}  // namespace hutch::guest
