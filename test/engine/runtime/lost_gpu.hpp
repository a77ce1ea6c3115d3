// A GPU of the virtual machine that the test loses, as after a reset by the driver.
#pragma once

#include <dlfcn.h>
#include <unistd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <chrono>
#include <cstdint>
#include <string>

#include <uptempo/vgpu/query.h>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/eventually.hpp"

namespace uptempo::test {

inline void lose_gpu(uint32_t index) {
  const auto reset =
      reinterpret_cast<uptempo_vgpu_reset_gpu_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_reset_gpu"));
  REQUIRE(reset != nullptr);
  REQUIRE(reset(index) == 0);
}

// A process loses a GPU for good, so each test has a process of its own, which ends with a signal
// if it hangs.
inline void end_if_it_hangs() { alarm(static_cast<unsigned>(kHang.count())); }

inline void check_loss(const std::string& error) {
  CAPTURE(error);
  CHECK(contains(error, "the driver stopped all of its queues"));
  CHECK(contains(error, "continue in a new process"));
  CHECK(contains(error, "HSA_STATUS_ERROR_FATAL"));
}

// Work that never ends, and queues whose destructors would wait for it for a day.
struct EndlessWork {
  static constexpr std::chrono::hours kDay{24};
  using Gate = Kernel<uint32_t*, uint32_t, uint32_t*>;

  explicit EndlessWork(const Agent& agent)
      : gpu(agent), basics(gpu, builtin_kernels::basics()), probes(gpu, builtin_kernels::probes()) {
    words.data()[0] = 0;
  }

  Completion submit(Queue& on) const {
    BatchSubmitter batch{on};
    batch.dispatch(gate, Grid{1}, words.data(), UINT32_MAX, words.data() + 1);
    return batch.submit();
  }
  // Complete when it returns.
  Completion submit_short(Queue& on, uint32_t value) const {
    BatchSubmitter batch{on};
    batch.dispatch(fill, Grid{64}, words.data() + 64, value);
    const Completion completion = batch.submit();
    completion.wait();
    return completion;
  }

  Agent gpu;
  Program basics, probes;
  Kernel<uint32_t*, uint32_t> fill = basics.kernel<uint32_t*, uint32_t>("fill");
  Gate gate = probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  PinnedBuffer<uint32_t> words{gpu, 128};
  QueueOptions options{.drain_timeout = kDay};
};

}  // namespace uptempo::test
