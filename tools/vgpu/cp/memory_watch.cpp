#include "cp/memory_watch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "cp/packet/sdma_ranges.hpp"
#include "device/runtime_kernels.hpp"

namespace uptempo::vgpu {
namespace {

using memory_check::Allocation;
using memory_check::Verdict;

constexpr uint64_t kEveryLane = ~uint64_t{0};
constexpr uint64_t kDword = 4;

bool is_read(Access access) noexcept { return access != Access::write; }

// Whether all lanes are active and their bytes adjacent, as in most accesses of most kernels.
bool is_adjacent(const ObservedAccess& access) noexcept {
  if (access.lanes != kEveryLane) return false;
  uint64_t difference = 0;
  for (uint64_t lane = 0; lane < 64; ++lane)
    difference |= access.address[lane] ^ (access.address[0] + lane * access.size_bytes);
  return difference == 0;
}

// relaxed: free() compares it while the dispatch is still registered.
void use(Allocation& allocation, uint64_t number) noexcept {
  if (allocation.last_user.load(std::memory_order_relaxed) != number)
    allocation.last_user.store(number, std::memory_order_relaxed);
}

// A lane that reads at least one byte with contents may read padding besides, so it is fine.
Verdict judge(const Allocation& allocation, GpuAddress address, uint64_t bytes,
              Access access) noexcept {
  const Verdict verdict = memory_check::check(allocation, address, bytes, is_read(access));
  if (verdict != Verdict::uninitialised) return verdict;
  const auto* const words = allocation.initialised.load(std::memory_order_relaxed);
  const uint64_t offset = address - allocation.begin.load(std::memory_order_relaxed);
  return words == nullptr || memory_check::any_initialised(words, offset, bytes) ? Verdict::fine
                                                                                 : verdict;
}

// The lanes of an access with one verdict.
struct Bad {
  uint32_t lanes = 0, first = 0;
  GpuAddress address = 0;
  void add(uint32_t lane, GpuAddress lane_address) noexcept {
    if (lanes++ != 0) return;
    first = lane;
    address = lane_address;
  }
};

// `Observed`: an access to memory or to LDS.
template <class Observed>
memory_check::Finding finding_of(const memory_check::Packet& packet, const Observed& access,
                                 uint32_t lane, uint32_t lanes, GpuAddress address,
                                 uint64_t bytes) {
  return {.packet = packet,
          .access = access.access,
          .workgroup = access.workgroup,
          .wave = access.wave,
          .lane = lane,
          .lanes = lanes,
          .instruction = access.instruction,
          .address = address,
          .bytes = bytes};
}

}  // namespace

// Returns whether the access is fine; it is then recorded.
bool CheckedDispatch::pass(GpuAddress address, uint64_t bytes, Access access) noexcept {
  Allocation* const allocation = checker_.find(address);
  if (allocation == nullptr ||
      memory_check::check(*allocation, address, bytes, is_read(access)) != Verdict::fine)
    return false;
  if (access != Access::read) memory_check::mark(*allocation, address, bytes);
  use(*allocation, number_);
  return true;
}

void CheckedDispatch::report(const ObservedAccess& access, Verdict verdict, uint32_t lane,
                             uint32_t lanes, GpuAddress address, uint64_t bytes) noexcept {
  try {
    memory_check::Finding finding = finding_of(packet_, access, lane, lanes, address, bytes);
    finding.scalar = access.scalar;
    checker_.found(std::move(finding), verdict);
  } catch (const std::bad_alloc&) {
    // Not reported for lack of memory.
  }
}

// A scalar load reads whole dwords, and compilers use it for narrower data. So a dword is in bounds
// if its first byte is, and the load is fine if one of its bytes has contents.
void CheckedDispatch::scalar(const ObservedAccess& access) noexcept {
  Allocation* const allocation = checker_.find(access.address[0]);
  uint64_t inside = 0;  // bytes
  if (allocation != nullptr) {
    use(*allocation, number_);
    const uint64_t accessible = allocation->accessible.load(std::memory_order_relaxed);
    const uint64_t offset = access.address[0] - allocation->begin.load(std::memory_order_relaxed);
    if (offset < accessible) inside = std::min<uint64_t>(access.size_bytes, accessible - offset);
  }
  if (inside != 0) {
    const Verdict verdict = judge(*allocation, access.address[0], inside, access.access);
    if (verdict == Verdict::uninitialised && !of_runtime_)
      report(access, verdict, 0, 1, access.address[0], inside);
    if (access.access != Access::read) memory_check::mark(*allocation, access.address[0], inside);
  }
  uint64_t at = (inside + kDword - 1) / kDword * kDword;
  // LLVM loads three elements of one or two dwords as four, since there is no load of three, if
  // they are at a multiple of 8 bytes (AMDGPUISelLowering.cpp, WidenOrSplitVectorLoad).
  const bool is_of_four = access.size_bytes == 4 * kDword || access.size_bytes == 8 * kDword;
  if (is_of_four && access.address[0] % 8 == 0 && at >= access.size_bytes / 4 * 3) return;
  for (; at < access.size_bytes; at += kDword) {
    const GpuAddress address = access.address[0] + at;
    const Allocation* const other = checker_.find(address);
    const Verdict verdict =
        other == nullptr ? Verdict::outside : memory_check::check(*other, address, 1, false);
    if (verdict != Verdict::fine) return report(access, verdict, 0, 1, address, kDword);
  }
}

void CheckedDispatch::access(const ObservedAccess& access) noexcept {
  if (access.scalar) {
    if (!pass(access.address[0], access.size_bytes, access.access)) scalar(access);
    return;
  }
  if (is_adjacent(access) &&
      pass(access.address[0], uint64_t{64} * access.size_bytes, access.access))
    return;
  std::array<Bad, 4> bad;
  Allocation* allocation = nullptr;
  for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const GpuAddress address = access.address[lane];
    const bool is_same =
        allocation != nullptr &&
        memory_check::check(*allocation, address, access.size_bytes, false) == Verdict::fine;
    if (!is_same) {
      allocation = checker_.find(address);
      if (allocation != nullptr) use(*allocation, number_);
    }
    const Verdict verdict = allocation == nullptr
                                ? Verdict::outside
                                : judge(*allocation, address, access.size_bytes, access.access);
    if (verdict != Verdict::fine)
      bad[static_cast<size_t>(verdict)].add(lane, address);
    else if (access.access != Access::read)
      memory_check::mark(*allocation, address, access.size_bytes);
    // Reported once; the bytes have contents from then on.
    if (verdict == Verdict::uninitialised && access.access == Access::atomic)
      memory_check::mark(*allocation, address, access.size_bytes);
  }
  for (const Verdict verdict : {Verdict::outside, Verdict::freed, Verdict::uninitialised}) {
    const Bad& lanes = bad[static_cast<size_t>(verdict)];
    if (lanes.lanes == 0 || (verdict == Verdict::uninitialised && of_runtime_)) continue;
    report(access, verdict, lanes.first, lanes.lanes, lanes.address, access.size_bytes);
  }
}

void CheckedDispatch::out_of_range(const ObservedAccess& access) noexcept {
  const auto lane = static_cast<uint32_t>(std::countr_zero(access.lanes));
  try {
    memory_check::Finding finding =
        finding_of(packet_, access, lane, static_cast<uint32_t>(std::popcount(access.lanes)),
                   access.address[lane], access.size_bytes);
    finding.what = memory_check::Class::buffer_range;
    checker_.found(std::move(finding));
  } catch (const std::bad_alloc&) {
    // Not reported for lack of memory.
  }
}

CheckedDispatch::LdsBits* CheckedDispatch::lds_of(
    const std::array<uint32_t, 3>& workgroup) noexcept {
  // A workgroup runs on one worker for long. Its bits stay at their place until it ends.
  struct Last {
    uint64_t dispatch = 0;
    std::array<uint32_t, 3> workgroup{};
    LdsBits* bits = nullptr;
  };
  static thread_local Last last;
  if (last.dispatch == number_ && last.workgroup == workgroup) return last.bits;
  try {
    const std::lock_guard lock(lds_mutex_);
    std::unique_ptr<LdsBits>& bits = lds_[workgroup];
    if (bits == nullptr && !unused_lds_.empty()) {
      bits = std::move(unused_lds_.back());
      unused_lds_.pop_back();
    }
    if (bits == nullptr) bits = std::make_unique<LdsBits>();
    last = {.dispatch = number_, .workgroup = workgroup, .bits = bits.get()};
    return bits.get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void CheckedDispatch::workgroup_ended(const ObservedWorkgroup& group) noexcept {
  const std::lock_guard lock(lds_mutex_);
  const auto found = lds_.find(group.workgroup);
  if (found == lds_.end()) return;
  for (std::atomic<uint64_t>& word : *found->second) word.store(0, std::memory_order_relaxed);
  try {
    unused_lds_.push_back(std::move(found->second));
  } catch (const std::bad_alloc&) {
    // Freed instead.
  }
  lds_.erase(found);
}

void CheckedDispatch::report_lds(const ObservedLdsAccess& access, memory_check::Class what,
                                 uint32_t lane, uint32_t lanes) noexcept {
  try {
    memory_check::Finding finding =
        finding_of(packet_, access, lane, lanes, access.offset[lane], access.size_bytes);
    finding.what = what;
    finding.group_segment_bytes = access.segment_bytes;
    checker_.found(std::move(finding));
  } catch (const std::bad_alloc&) {
    // Not reported for lack of memory.
  }
}

void CheckedDispatch::lds_access(const ObservedLdsAccess& access) noexcept {
  LdsBits* const bits = access.segment_bytes == 0 ? nullptr : lds_of(access.workgroup);
  Bad outside, uninitialised;
  for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const uint64_t offset = access.offset[lane];
    if (offset + access.size_bytes > access.segment_bytes) {
      outside.add(lane, offset);
    } else if (bits != nullptr) {
      if (is_read(access.access) &&
          !memory_check::any_initialised(bits->data(), offset, access.size_bytes))
        uninitialised.add(lane, offset);
      if (access.access != Access::read)
        memory_check::mark_initialised(bits->data(), offset, access.size_bytes);
    }
  }
  if (outside.lanes != 0)
    report_lds(access, memory_check::Class::lds_out_of_bounds, outside.first, outside.lanes);
  if (uninitialised.lanes != 0 && !of_runtime_)
    report_lds(access, memory_check::Class::lds_uninitialised_read, uninitialised.first,
               uninitialised.lanes);
}

std::vector<memory_check::Checker::Argument> possible_addresses(AddressSpace::Reader& memory,
                                                                GpuAddress kernargs,
                                                                const LoadedKernel& kernel) {
  using memory_check::Use;
  std::vector<memory_check::Checker::Argument> found;
  const auto add = [&](uint32_t offset, Use use) {
    const std::byte* const bytes =
        memory.translate(kernargs + offset, sizeof(uint64_t), Access::read);
    if (bytes == nullptr) return false;
    found.push_back({.offset = offset, .use = use});
    std::memcpy(&found.back().value, bytes, sizeof(uint64_t));
    return true;
  };
  if (kernel.arguments) {
    for (const ArgumentWord& word : *kernel.arguments)
      add(word.offset, word.is_pointer ? Use::pointer : Use::by_value);
  } else if (const auto* const loaded = std::get_if<gfx9::Kernel>(&kernel.kernel)) {
    for (uint32_t offset = 0; offset + sizeof(uint64_t) <= loaded->kernarg_bytes;
         offset += sizeof(uint64_t))
      if (!add(offset, Use::unknown)) break;
  }
  return found;
}

std::unique_ptr<CheckedDispatch> MemoryWatch::launch(uint64_t index, gfx9::DispatchState& state,
                                                     const LoadedKernel& kernel,
                                                     const Publisher& published) {
  if (checker_ == nullptr) return nullptr;
  memory_check::Packet packet{.gpu = gpu_,
                              .queue = ordinal_,
                              .position = index,
                              .name = state.name,
                              .published = published,
                              .of_rocr = kernel.runtime_blit};
  const auto kernargs = reinterpret_cast<GpuAddress>(state.packet.kernarg_address);
  const uint64_t number = checker_->begin(packet, possible_addresses(memory_, kernargs, kernel));
  auto checked = std::make_unique<CheckedDispatch>(
      *checker_, std::move(packet), number, kernel.runtime_blit || is_kernel_of_hip(state.name),
      state.packet.group_segment_size);
  state.add_observer(*checked);
  return checked;
}

void MemoryWatch::copied(uint64_t offset, const sdma::Decoded& packet, const Publisher& published) {
  if (checker_ == nullptr) return;
  const memory_check::Packet copy{.is_copy = true,
                                  .gpu = gpu_,
                                  .queue = ordinal_,
                                  .position = offset,
                                  .name = std::string(packet.name),
                                  .published = published};
  sdma::for_ranges(packet, [&](std::optional<sdma::Range> source, sdma::Range destination) {
    using CopyRange = memory_check::Checker::Range;
    checker_->copied(
        copy, source ? std::optional(CopyRange{source->address, source->bytes}) : std::nullopt,
        {destination.address, destination.bytes});
  });
}

}  // namespace uptempo::vgpu
