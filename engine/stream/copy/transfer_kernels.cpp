#include <uptempo/stream/copy/transfer_kernels.hpp>

#include <algorithm>
#include <uptempo/kernels/transfer.hpp>

namespace uptempo::detail {
namespace {

// Bytes that a work-item copies at a time, and the workgroup size.
constexpr size_t kUnitBytes = 16;
constexpr uint32_t kWorkgroup = 256;

bool are_contiguous(size_t width_bytes, size_t height, size_t pitch) noexcept {
  return height <= 1 || pitch == width_bytes;
}

}  // namespace

TransferBox merged(TransferBox box, bool is_fill) noexcept {
  if (box.width_bytes == 0 || box.height == 0 || box.depth == 0)
    box.width_bytes = box.height = box.depth = 0;
  if (box.depth > 1 && box.to_slice_pitch == box.height * box.to_pitch &&
      box.from_slice_pitch == box.height * box.from_pitch) {
    box.height *= box.depth;
    box.depth = 1;
  }
  if (box.depth > 1 && box.height == 1) {  // its rows are the slices
    box.height = box.depth;
    box.depth = 1;
    box.to_pitch = box.to_slice_pitch;
    box.from_pitch = box.from_slice_pitch;
  }
  if (box.depth <= 1 && are_contiguous(box.width_bytes, box.height, box.to_pitch) &&
      (is_fill || are_contiguous(box.width_bytes, box.height, box.from_pitch))) {
    box.width_bytes *= box.height * box.depth;
    box.height = 1;
    box.depth = 1;
  }
  return box;
}

TransferKernels load_transfer_kernels(const Agent& gpu) {
  const Program program(gpu, builtin_kernels::transfer());
  return {
      .copy_bytes = program.kernel<uint8_t*, const uint8_t*, uint64_t>("copy_bytes"),
      .copy_rows = program.kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t>(
          "copy_rows"),
      .fill_bytes = program.kernel<uint8_t*, uint64_t, uint64_t, uint64_t>("fill_bytes"),
      .fill_rows =
          program.kernel<uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t>("fill_rows"),
      .copy_slices = program.kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t,
                                    uint64_t, uint64_t, uint64_t, uint64_t>("copy_slices"),
  };
}

Grid TransferGrids::linear(size_t bytes) const noexcept {
  const auto items = static_cast<uint32_t>(
      std::clamp<size_t>((bytes + kUnitBytes - 1) / kUnitBytes, 1, most_items_));
  return Grid{items}.by(std::min(items, kWorkgroup));
}

Grid TransferGrids::rows(size_t width_bytes, size_t height) const noexcept {
  const auto x = static_cast<uint32_t>(
      std::clamp<size_t>((width_bytes + kUnitBytes - 1) / kUnitBytes, 1, kWorkgroup));
  const auto y =
      static_cast<uint32_t>(std::clamp<size_t>(height, 1, std::max<size_t>(most_items_ / x, 1)));
  return Grid{x, y}.by(x, std::clamp(kWorkgroup / x, 1u, y));
}

}  // namespace uptempo::detail
