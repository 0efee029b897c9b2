#include "isolation/bpf_eval.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace hutch::isolation {
namespace {

TEST(BpfEval, FollowsJumpsAndMasks) {
  const std::vector<sock_filter> program = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args)},
      {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf0},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0x20},
      {BPF_RET | BPF_K, 0, 0, 1},
      {BPF_JMP | BPF_JA, 0, 0, 1},
      {BPF_RET | BPF_K, 0, 0, 2},
      {BPF_RET | BPF_K, 0, 0, 3},
  };
  seccomp_data data{};
  data.args[0] = 0xabc2fU;
  EXPECT_EQ(run_filter(program, data).value(), 1U);
  data.args[0] = 0xabc1fU;
  EXPECT_EQ(run_filter(program, data).value(), 3U);
}

TEST(BpfEval, RefusesWhatTheKernelWouldRefuse) {
  const sock_filter give{BPF_RET | BPF_K, 0, 0, 0};
  const std::vector<std::vector<sock_filter>> broken = {
      {},
      {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 2}, give},                     // not aligned
      {{BPF_LD | BPF_W | BPF_ABS, 0, 0, sizeof(seccomp_data)}, give},  // outside
      {{BPF_JMP | BPF_JA, 0, 0, 1}, give},
      {{BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0}, give},
      {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}},  // runs off the end
      {{0xffff, 0, 0, 0}, give},
  };
  for (const auto& program : broken) EXPECT_FALSE(run_filter(program, seccomp_data{}));
}

}  // namespace
}  // namespace hutch::isolation
