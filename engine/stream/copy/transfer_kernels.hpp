// Copies and fills as dispatches: the kernels of kernels/transfer.cl, their grids, and the choice
// between them. Private to the engine: streams launch them (Transfers), and engine/hip records them
// for the nodes of a graph.
//
// Thread safety: plain values and pure functions.
// Cost: load_transfer_kernels() loads a code object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo::detail {

struct TransferKernels {
  Kernel<uint8_t*, const uint8_t*, uint64_t> copy_bytes;
  Kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t> copy_rows;
  Kernel<uint8_t*, uint64_t, uint64_t, uint64_t> fill_bytes;
  Kernel<uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t> fill_rows;
  Kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
         uint64_t>
      copy_slices;
};

// Throws Error if no code object matches the agent.
TransferKernels load_transfer_kernels(const Agent& gpu);

// The largest useful grids. Any grid serves any size, so one dispatch makes a copy of any size.
class TransferGrids {
 public:
  explicit TransferGrids(uint32_t compute_units) noexcept
      : most_items_(size_t{compute_units} * 2048) {}
  Grid linear(size_t bytes) const noexcept;
  Grid rows(size_t width_bytes, size_t height) const noexcept;

 private:
  size_t most_items_;
};

// A copy or fill of `depth` slices of `height` rows of `width_bytes`. A pitch is the distance
// between the starts of two rows, a slice pitch that of two slices. A fill reads nothing.
struct TransferBox {
  void* to = nullptr;
  const void* from = nullptr;
  size_t width_bytes = 0, height = 1, depth = 1;
  size_t to_pitch = 0, from_pitch = 0;
  size_t to_slice_pitch = 0, from_slice_pitch = 0;
};

// One dispatch: kernel, grid and packed arguments.
class TransferDispatch {
 public:
  template <class... Args>
  TransferDispatch(const Kernel<Args...>& its_kernel, const Grid& its_grid, Args... args) noexcept
      : kernel(Kernel<Arguments>::trusted(its_kernel.shared_info())),
        grid(its_grid),
        words_{word(args)...},
        count_(sizeof...(Args)) {}

  Kernel<Arguments> kernel;
  Grid grid;
  std::span<const std::byte> arguments() const noexcept {
    return std::as_bytes(std::span(words_).first(count_));
  }

 private:
  template <class T>
  static uint64_t word(T* address) noexcept {
    return reinterpret_cast<uint64_t>(address);
  }
  static uint64_t word(uint64_t value) noexcept { return value; }

  std::array<uint64_t, 9> words_;
  size_t count_;
};

// The kernel with the fewest arguments that can make the transfer. Ranges of different rows must
// not overlap.
TransferDispatch copy_dispatch(const TransferKernels& kernels, const TransferGrids& grids,
                               const TransferBox& box);
// `pattern`: 16 bytes, lowest first, repeated from the first byte on. Requires a depth of 1 and,
// for several rows, a width that is a multiple of the pattern's period.
TransferDispatch fill_dispatch(const TransferKernels& kernels, const TransferGrids& grids,
                               const TransferBox& box, const std::array<uint64_t, 2>& pattern);

}  // namespace uptempo::detail
