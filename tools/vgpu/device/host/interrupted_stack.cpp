#include "device/host/interrupted_stack.hpp"

#include <unwind.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace uptempo::vgpu {
namespace {

struct Recent {
  std::atomic<bool> busy{false};
  const HostStacks* stacks = nullptr;
  const void* instruction = nullptr;
  const void* stack_pointer = nullptr;
  const void* thread = nullptr;
  HostStackId id = 0;  // 0: nothing is known
  uint32_t count = 0;
  std::array<const uintptr_t*, HostStacks::kCodeFrames>
      returns{};  // where the return addresses are
};

// A constant, because a signal handler must not initialise anything.
constinit std::array<Recent, 64> recents;
constinit std::atomic<uint64_t> remembered{0};

// The object may be another one at the address of an earlier one, so its frames are compared, too.
bool is_unchanged(const Recent& recent, const HostStacks& stacks,
                  const support::PythonStack& python) {
  const auto frames = stacks.frames(recent.id);
  const uint32_t of_code = recent.count + 1;
  if (frames.size() != of_code + python.count ||
      frames[0] != reinterpret_cast<uintptr_t>(recent.instruction))
    return false;
  for (size_t i = 0; i < python.count; ++i)
    if (frames[of_code + i] != (kPythonFrame | python.ids[i])) return false;
  for (uint32_t i = 0; i < recent.count; ++i)
    if (*recent.returns[i] - 1 != frames[i + 1]) return false;
  return true;
}

struct Places {
  Recent& recent;
  bool reached = false;
  bool known = true;
};

_Unwind_Reason_Code add_place(_Unwind_Context* context, void* argument) {
  auto& places = *static_cast<Places*>(argument);
  int before_instruction = 0;
  const uintptr_t address = _Unwind_GetIPInfo(context, &before_instruction);
  if (!places.reached) {
    places.reached = address == reinterpret_cast<uintptr_t>(places.recent.instruction);
    return _URC_NO_REASON;
  }
  if (address == 0 || places.recent.count + 1 == HostStacks::kCodeFrames) return _URC_END_OF_STACK;
  // A call pushes the return address just below the canonical frame address of the frame that it
  // enters, which is what the unwinder has at this point (System V ABI for x86-64, 3.2.2).
  const auto* const place = reinterpret_cast<const uintptr_t*>(_Unwind_GetCFA(context)) - 1;
  if (before_instruction != 0 || place < places.recent.stack_pointer || *place != address) {
    places.known = false;
    return _URC_END_OF_STACK;
  }
  places.recent.returns[places.recent.count++] = place;
  return _URC_NO_REASON;
}

}  // namespace

uint64_t remembered_stacks() noexcept { return remembered.load(std::memory_order_relaxed); }

HostStackId capture_interrupted(HostStacks& stacks, const void* instruction,
                                const void* stack_pointer) noexcept {
  const support::PythonStack python = support::python_calls();
  auto key = reinterpret_cast<uintptr_t>(instruction) * 31 +
             reinterpret_cast<uintptr_t>(stack_pointer) / 16;
  for (const support::PythonCallId call : python.calls()) key = key * 31 + call;
  Recent& recent = recents[key % recents.size()];
  // acquire: the entry is as its last user left it
  if (recent.busy.exchange(true, std::memory_order_acquire))
    return stacks.capture(instruction, python);
  const void* const thread = __builtin_thread_pointer();
  if (recent.id == 0 || recent.stacks != &stacks || recent.instruction != instruction ||
      recent.stack_pointer != stack_pointer || recent.thread != thread ||
      !is_unchanged(recent, stacks, python)) {
    recent.stacks = &stacks;
    recent.instruction = instruction;
    recent.stack_pointer = stack_pointer;
    recent.thread = thread;
    recent.count = 0;
    Places places{recent};
    _Unwind_Backtrace(add_place, &places);
    const HostStackId id = stacks.capture(instruction, python);
    recent.id = places.known && places.reached ? id : 0;
    recent.busy.store(false, std::memory_order_release);  // release: the entry is complete
    return id;
  }
  const HostStackId id = recent.id;
  remembered.fetch_add(1, std::memory_order_relaxed);  // a count that orders nothing
  recent.busy.store(false, std::memory_order_release);
  return id;
}

}  // namespace uptempo::vgpu
