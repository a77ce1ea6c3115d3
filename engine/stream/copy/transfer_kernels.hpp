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
#include <type_traits>

#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>

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
  TransferDispatch(const Kernel<Args...>& its_kernel, const Grid& its_grid,
                   std::type_identity_t<Args>... args) noexcept
      : kernel(Kernel<Arguments>::of(its_kernel.shared_info())),
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

// Merges contiguous rows into one row, and slices that continue one another into one slice.
TransferBox merged(TransferBox box, bool is_fill) noexcept;

// Calls launch(kernel, grid, arguments...) for the kernel with the fewest arguments that can make
// the transfer. Ranges of different rows must not overlap.
template <class Launch>
auto launch_copy(const TransferKernels& kernels, const TransferGrids& grids,
                 const TransferBox& given, Launch&& launch) {
  const TransferBox box = merged(given, false);
  auto* const to = static_cast<uint8_t*>(box.to);
  const auto* const from = static_cast<const uint8_t*>(box.from);
  const uint64_t width = box.width_bytes, height = box.height;
  if (box.depth > 1)
    return launch(kernels.copy_slices, grids.rows(width, height * box.depth), to, from, width,
                  height, box.depth, box.to_pitch, box.from_pitch, box.to_slice_pitch,
                  box.from_slice_pitch);
  if (height > 1)
    return launch(kernels.copy_rows, grids.rows(width, height), to, from, width, height,
                  box.to_pitch, box.from_pitch);
  return launch(kernels.copy_bytes, grids.linear(width), to, from, width);
}
// `pattern`: 16 bytes, lowest first, repeated from the first byte on. Requires a depth of 1 and,
// for several rows, a width that is a multiple of the pattern's period.
template <class Launch>
auto launch_fill(const TransferKernels& kernels, const TransferGrids& grids,
                 const TransferBox& given, const std::array<uint64_t, 2>& pattern,
                 Launch&& launch) {
  const TransferBox box = merged(given, true);
  auto* const to = static_cast<uint8_t*>(box.to);
  const uint64_t width = box.width_bytes, height = box.height;
  if (height > 1)
    return launch(kernels.fill_rows, grids.rows(width, height), to, width, height, box.to_pitch,
                  pattern[0], pattern[1]);
  return launch(kernels.fill_bytes, grids.linear(width), to, width, pattern[0], pattern[1]);
}

// The same as one dispatch.
inline TransferDispatch copy_dispatch(const TransferKernels& kernels, const TransferGrids& grids,
                                      const TransferBox& box) {
  return launch_copy(kernels, grids, box,
                     [](const auto&... parts) { return TransferDispatch(parts...); });
}
inline TransferDispatch fill_dispatch(const TransferKernels& kernels, const TransferGrids& grids,
                                      const TransferBox& box,
                                      const std::array<uint64_t, 2>& pattern) {
  return launch_fill(kernels, grids, box, pattern,
                     [](const auto&... parts) { return TransferDispatch(parts...); });
}

}  // namespace uptempo::detail
