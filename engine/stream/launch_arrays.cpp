#include "engine/stream/launch_arrays.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace uptempo::detail {
namespace {

constexpr size_t kLeastBytes = 4096;  // the driver's smallest allocation
// Pinning memory for each copy would cost system calls per launch and would hold the caller's
// memory beyond the call's return.
constexpr CopyOptions kStaged{.pageable = PageablePath::staged};

}  // namespace

std::byte* LaunchScratch::room(Stream& of, const Agent& gpu, size_t argument, size_t bytes) {
  if (buffers_.empty()) buffers_.resize(arguments_);
  DeviceBuffer<std::byte>& buffer = buffers_[argument];
  if (bytes > buffer.size()) {
    // Powers of two, so that arrays that grow step by step do not allocate at each step.
    DeviceBuffer<std::byte> larger(gpu, std::bit_ceil(std::max(bytes, kLeastBytes)));
    if (buffer.data() != nullptr) of.free(std::move(buffer));
    buffer = std::move(larger);
  }
  return buffer.data();
}

void LaunchScratch::copy_in(Stream& to, size_t argument, std::span<const std::byte> host) {
  if (host.empty()) return;
  to.copy(CopyTarget::device(buffers_[argument].data(), host.size()),
          CopySource::pageable(host.data(), host.size()), kStaged);
}

void LaunchScratch::copy_out(Stream& from, size_t argument, std::span<std::byte> host) {
  if (host.empty()) return;
  from.copy(CopyTarget::pageable(host.data(), host.size()),
            CopySource::device(buffers_[argument].data(), host.size()), kStaged);
}

}  // namespace uptempo::detail
