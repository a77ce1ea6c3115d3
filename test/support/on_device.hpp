// The set-up of a test that runs on a device: a Runtime and its first GPU agent.
//
//   TEST_CASE_METHOD(OnDevice, "a filled buffer holds the word", "[memory]") {
//     Copier copier{gpu};
//     const DeviceBuffer<uint32_t> words{gpu, 64};
//     copier.fill(words, 7);
//     CHECK(download(copier, words) == std::vector<uint32_t>(64, 7));
//   }
//
// At its end, after the test's own objects and the Runtime, it checks that nothing is left: no
// interrupt signal of the library, and in the virtual GPU's driver no queue, event or buffer more
// than after a Runtime that did nothing. Of two fixtures at a time, the last to end checks. A test
// whose objects outlive its Runtime makes its own Runtime.
//
// A queue that loses work keeps its timeline, which goes on reporting the loss (timeline.hpp). So
// timelines are no part of the check; device_teardown_test counts them.
#pragma once

#include <uptempo/uptempo.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/holdings.hpp"
#include "test/support/soon.hpp"

namespace uptempo::test {

class OnDevice {
  // The first member, because it checks when the others are destroyed.
  struct NothingIsLeft {
    NothingIsLeft() {
      (void)idle();
      ++alive;
    }
    ~NothingIsLeft() {
      if (--alive != 0) return;
      Holdings left = holdings();
      left.timelines = idle().timelines;
      CHECK(left == idle());
    }
    NothingIsLeft(const NothingIsLeft&) = delete;
    NothingIsLeft& operator=(const NothingIsLeft&) = delete;

    static inline std::atomic<int> alive{0};
    // The holdings of a process between two Runtimes.
    static const Holdings& idle() {
      static const Holdings held = [] {
        { const Runtime first; }
        return holdings();
      }();
      return held;
    }
  };
  const NothingIsLeft nothing_is_left_{};

 public:
  const Runtime runtime{};
  const Agent gpu = runtime.gpu();
};

inline std::vector<uint32_t> download(Copier& copier, const DeviceBuffer<uint32_t>& buffer) {
  std::vector<uint32_t> host(buffer.size());
  copier.copy(host, buffer);
  return host;
}

// Submits a packet that completes when the gate becomes 0.
inline Completion submit_gated(Queue& queue, const Signal& gate) {
  BatchSubmitter batch{queue};
  batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  return batch.submit();
}

}  // namespace uptempo::test
