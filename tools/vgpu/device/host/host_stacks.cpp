#include "device/host/host_stacks.hpp"

#include <unwind.h>

#include <algorithm>

namespace uptempo::vgpu {
namespace {

struct Unwinding {
  uintptr_t innermost;  // 0: reached
  std::array<uintptr_t, HostStacks::kFrames> frames;
  uint32_t count;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& unwinding = *static_cast<Unwinding*>(argument);
  int before_instruction = 0;
  uintptr_t address = _Unwind_GetIPInfo(context, &before_instruction);
  if (unwinding.innermost != 0) {
    if (address != unwinding.innermost) return _URC_NO_REASON;
    unwinding.innermost = 0;
  }
  // 0: the caller of a thread's first function. The last one of a broken chain may be anything.
  if (address == 0 || (address & kPythonFrame) != 0) return _URC_END_OF_STACK;
  // A return address is after the call, perhaps beyond the function's end.
  if (before_instruction == 0) --address;
  unwinding.frames[unwinding.count++] = address;
  return unwinding.count == HostStacks::kCodeFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

HostStackId HostStacks::capture(const void* innermost,
                                const support::PythonStack& python) noexcept {
  Unwinding unwinding;
  unwinding.innermost = reinterpret_cast<uintptr_t>(innermost);
  unwinding.count = 0;
  _Unwind_Backtrace(add_frame, &unwinding);
  for (const support::PythonCallId call : python.calls())
    unwinding.frames[unwinding.count++] = kPythonFrame | call;
  if (unwinding.count == 0) return 0;
  const std::span<const uintptr_t> frames(unwinding.frames.data(), unwinding.count);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, by words
  for (const uintptr_t frame : frames) hash = (hash ^ frame) * 0x100000001b3;
  hash ^= hash >> 32;
  const uint64_t tag = hash | 1;  // not 0
  constexpr size_t kProbes = 16;
  for (size_t probe = 0; probe < kProbes; ++probe) {
    const size_t index = (hash + probe) % kStacks;
    const auto id = static_cast<HostStackId>(index + 1);
    Slot& slot = slots_[index];
    // No order: the frames are ordered by `count`. A load first, since most stacks are known.
    uint64_t owner = slot.tag.load(std::memory_order_relaxed);
    if (owner == 0 && slot.tag.compare_exchange_strong(owner, tag, std::memory_order_relaxed)) {
      std::ranges::copy(frames, slot.frames.begin());
      slot.count.store(unwinding.count, std::memory_order_release);  // release: for frames()
      return id;
    }
    if (owner != tag) continue;
    // Another thread, or the code that a signal interrupted, may still be filling the slot. The
    // frames cannot be compared before it has, and waiting for it could last forever.
    const auto known = this->frames(id);
    if (known.empty() || std::ranges::equal(frames, known)) return id;
  }
  return 0;
}

std::span<const uintptr_t> HostStacks::frames(HostStackId id) const noexcept {
  if (id == 0 || id > kStacks) return {};
  const Slot& slot = slots_[id - 1];
  // acquire: the frames are complete
  return {slot.frames.data(), slot.count.load(std::memory_order_acquire)};
}

}  // namespace uptempo::vgpu
