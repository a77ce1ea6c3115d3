// Call stacks of the program, kept once each: where it rang a doorbell, or allocated memory. Exists
// only with a checker; a finding names the program's calls with them.
//
// A stack is a list of code addresses. Functions and source lines are looked up only for a finding
// (kfd/report/host_frames.hpp). The thread's Python calls follow, if it has any
// (tools/support/python_calls.hpp).
//
// Thread safety: any thread; capture() is async-signal-safe where the unwinder is, which takes no
// lock with glibc 2.35 and GCC 12 or later.
// Cost: capture() unwinds at most kCodeFrames frames, about 0.2 us each, and allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tools/support/python_calls.hpp"

namespace uptempo::vgpu {

// 0: not known.
using HostStackId = uint32_t;

// A frame with this bit is a Python call, the rest its number. No address of a program has it.
inline constexpr uintptr_t kPythonFrame = uintptr_t{1} << 63;

class HostStacks {
 public:
  static constexpr size_t kCodeFrames = 32;
  static constexpr size_t kFrames =
      kCodeFrames + std::tuple_size_v<decltype(support::PythonStack::ids)>;
  // Different stacks. Later ones are not known.
  static constexpr size_t kStacks = 8192;

  HostStacks() : slots_(std::make_unique<Slot[]>(kStacks)) {}

  // The calling thread's stack. Equal stacks have one id, also if threads capture them at once.
  // `innermost`: in a signal handler, the interrupted instruction; frames inside it are left out.
  // Null: from the caller on.
  HostStackId capture(const void* innermost = nullptr) noexcept {
    return capture(innermost, support::python_calls());
  }
  // The same; `python`: its Python calls.
  HostStackId capture(const void* innermost, const support::PythonStack& python) noexcept;

  // Innermost first: code, then Python's calls. Each address is in the instruction that called.
  // Valid as long as this object. Empty while the first thread that captures the stack is still in
  // capture().
  std::span<const uintptr_t> frames(HostStackId id) const noexcept;

 private:
  struct Slot {
    std::atomic<uint64_t> tag{0};    // 63 bits of the stack's hash, and 1; 0: free
    std::atomic<uint32_t> count{0};  // 0: the frames are not complete
    std::array<uintptr_t, kFrames> frames{};
  };
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace uptempo::vgpu
