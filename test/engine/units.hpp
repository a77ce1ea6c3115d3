// The compute units on which the kernels of a queue or stream run, as they read them from HW_ID of
// gfx9. Oracle for masks of compute units: ROCr 7.0 does not tell the mask that was set.
#pragma once

#include <uptempo/kernels/placement.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <cstdint>
#include <set>

#include "test/support/catch.hpp"

namespace uptempo::test {

class ComputeUnits {
  struct Ids {
    uint32_t hw, xcc;
  };
  static constexpr uint32_t kGroups = 512;

 public:
  explicit ComputeUnits(const Agent& gpu)
      : program_(gpu, vgpu::test::kernels::placement()),
        where_(program_.kernel<Ids*, uint32_t*, uint32_t>("where")),
        ids_(gpu, kGroups) {}

  // The number of compute units on which at least one of 512 workgroups has run.
  size_t of(Stream& stream) {
    clear();
    stream.launch(where_, Grid{kGroups * 64}.by(64), ids_.data(), static_cast<uint32_t*>(nullptr),
                  0u);
    stream.synchronize();
    return count();
  }
  size_t of(Queue& queue) {
    clear();
    BatchSubmitter batch{queue};
    batch.dispatch(where_, Grid{kGroups * 64}.by(64), ids_.data(), static_cast<uint32_t*>(nullptr),
                   0u);
    batch.submit().wait();
    return count();
  }

 private:
  static constexpr uint32_t kNone = ~0u;  // no HW_ID of a wave

  void clear() { std::ranges::fill(ids_.span(), Ids{kNone, kNone}); }
  size_t count() {
    std::set<uint64_t> units;
    // HW_ID: unit [11:8], array [12], engine [15:13]. XCC_ID: XCD [3:0].
    CHECK(std::ranges::count(ids_.span(), kNone, &Ids::hw) == 0);
    for (const Ids& id : ids_.span()) units.insert(uint64_t{id.xcc & 0xf} << 32 | (id.hw & 0xff00));
    return units.size();
  }

  Program program_;
  Kernel<Ids*, uint32_t*, uint32_t> where_;
  PinnedBuffer<Ids> ids_;
};

}  // namespace uptempo::test
