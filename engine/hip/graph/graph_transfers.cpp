#include <uptempo/hip/graph/graph_transfers.hpp>

#include <fmt/format.h>

#include <uptempo/hip/graph/graph_error.hpp>

namespace uptempo::hip {
namespace {

using detail::TransferBox;

// a * b + c, or false if it does not fit.
bool product_plus(size_t a, size_t b, size_t c, size_t& result) noexcept {
  return !__builtin_mul_overflow(a, b, &result) && !__builtin_add_overflow(result, c, &result);
}

bool is_empty(const TransferBox& box) noexcept {
  return box.width_bytes == 0 || box.height == 0 || box.depth == 0;
}

// From the first to the last byte; false if that does not fit.
bool extent_of(const TransferBox& box, size_t pitch, size_t slice_pitch, size_t& bytes) noexcept {
  bytes = 0;
  return is_empty(box) || (product_plus(box.height - 1, pitch, box.width_bytes, bytes) &&
                           product_plus(box.depth - 1, slice_pitch, bytes, bytes));
}

struct End {
  std::byte* data;
  size_t pitch, slice_pitch;
};

// `which`: "source" or "target".
End end_of(const hipPitchedPtr& pointer, const hipPos& position, const hipExtent& extent,
           const char* which, const std::string& node) {
  const std::string asked = fmt::format("the {} of {}", which, node);
  const size_t pitch = pointer.pitch == 0 ? extent.width : pointer.pitch;
  const size_t height = pointer.ysize == 0 ? extent.height : pointer.ysize;
  if (extent.height > 1 && pitch < extent.width)
    refuse_import(asked, fmt::format("rows of {} bytes with a pitch of {}", extent.width, pitch),
                  "make the pitch at least the width");
  if (extent.depth > 1 && height < extent.height)
    refuse_import(
        asked,
        fmt::format("slices of {} rows in an allocation of {} rows (ysize)", extent.height, height),
        "give the pitched pointer the height of the allocation");
  size_t slice_pitch = 0, offset = 0;
  if (__builtin_mul_overflow(pitch, height, &slice_pitch) ||
      !product_plus(position.z, slice_pitch, position.x, offset) ||
      !product_plus(position.y, pitch, offset, offset))
    refuse_import(asked, "sizes beyond 64 bits", "pass the sizes of the allocation");
  return {static_cast<std::byte*>(pointer.ptr) + offset, pitch, slice_pitch};
}

void require_extents(const TransferBox& box, const std::string& node) {
  size_t bytes = 0;
  if (!extent_of(box, box.to_pitch, box.to_slice_pitch, bytes) ||
      !extent_of(box, box.from_pitch, box.from_slice_pitch, bytes))
    refuse_import(node, "sizes beyond 64 bits", "pass the sizes of the allocation");
}

GraphRange range_of(const void* data, const TransferBox& box, size_t pitch, size_t slice_pitch,
                    const char* which, const std::string& node) {
  GraphRange range{.data = data, .node = fmt::format("the {} of {}", which, node)};
  extent_of(box, pitch, slice_pitch, range.bytes);
  return range;
}

}  // namespace

TransferBox transfer_of(const hipMemcpy3DParms& parameters, const std::string& node) {
  const hipMemcpy3DParms& p = parameters;
  if (p.srcArray != nullptr || p.dstArray != nullptr)
    refuse_import(node,
                  fmt::format("a hipArray as its {}", p.srcArray != nullptr ? "source" : "target"),
                  "copy from and to linear memory");
  const End from = end_of(p.srcPtr, p.srcPos, p.extent, "source", node);
  const End to = end_of(p.dstPtr, p.dstPos, p.extent, "target", node);
  const TransferBox box{.to = to.data,
                        .from = from.data,
                        .width_bytes = p.extent.width,
                        .height = p.extent.height,
                        .depth = p.extent.depth,
                        .to_pitch = to.pitch,
                        .from_pitch = from.pitch,
                        .to_slice_pitch = to.slice_pitch,
                        .from_slice_pitch = from.slice_pitch};
  require_extents(box, node);
  return box;
}

TransferBox transfer_of(const hipMemsetParams& parameters, const std::string& node) {
  const hipMemsetParams& p = parameters;
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4)
    refuse_import(node, fmt::format("elements of {} bytes", p.elementSize),
                  "fill elements of 1, 2 or 4 bytes");
  TransferBox box{.to = p.dst, .height = p.height};
  if (__builtin_mul_overflow(p.width, size_t{p.elementSize}, &box.width_bytes))
    refuse_import(node, "sizes beyond 64 bits", "pass the sizes of the allocation");
  box.to_pitch = p.pitch == 0 ? box.width_bytes : p.pitch;
  if (box.height > 1 && box.to_pitch < box.width_bytes)
    refuse_import(node,
                  fmt::format("rows of {} bytes with a pitch of {}", box.width_bytes, box.to_pitch),
                  "make the pitch at least the width");
  require_extents(box, node);
  return box;
}

std::array<uint64_t, 2> pattern_of(const hipMemsetParams& parameters) noexcept {
  const uint64_t value = parameters.value;
  const uint64_t word = parameters.elementSize == 1   ? (value & 0xff) * 0x0101010101010101
                        : parameters.elementSize == 2 ? (value & 0xffff) * 0x0001000100010001
                                                      : value * 0x0000000100000001;
  return {word, word};
}

GraphRange target_of(const TransferBox& box, const std::string& node) {
  return range_of(box.to, box, box.to_pitch, box.to_slice_pitch, "target", node);
}

GraphRange source_of(const TransferBox& box, const std::string& node) {
  return range_of(box.from, box, box.from_pitch, box.from_slice_pitch, "source", node);
}

}  // namespace uptempo::hip
