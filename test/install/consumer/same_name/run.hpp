// Runs the kernel `add` of the given code objects on a zero.
#pragma once

#include <cstdint>

#include <uptempo/uptempo.hpp>

inline uint32_t add_to_zero(std::span<const std::byte> code) {
  using namespace uptempo;
  static Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, code};
  auto add = program.kernel<uint32_t*>("add");
  Queue queue{gpu};
  PinnedBuffer<uint32_t> value{gpu, 1};
  value[0] = 0;
  BatchSubmitter batch{queue};
  batch.dispatch(add, Grid{1}.by(1), value.data());
  batch.submit().wait();
  return value[0];
}
