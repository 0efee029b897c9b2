// hutch-guest: `hutch-guest anchor` or `hutch-guest launcher`, started by the warden only, with its
// descriptors in place. Everything else that it becomes, it becomes by clone.
#include <cstring>

#include "guest/guest.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "anchor") == 0) hutch::guest::run_anchor();
  if (argc == 2 && std::strcmp(argv[1], "launcher") == 0) hutch::guest::run_launcher();
  return 64;
}
