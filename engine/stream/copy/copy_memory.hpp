// Arguments of Stream::copy(), copy_2d(), fill() and fill_2d(): targets, sources, paths and limits.
//
//   DeviceBuffer<float> x{gpu, n};
//   std::vector<float> host(n);
//   stream.copy(x, host);                                     // pageable to device
//   stream.copy(CopyTarget::device(x.data() + 16, 64), CopySource::pinned(p, 64));
//   const CopyPath taken = stream.copy(y, x, CopyPath::kernel);
//
// Places:
//   device    memory of the stream's agent
//   pinned    host memory that the agent can access (PinnedBuffer)
//   pageable  any other host memory (a vector, the stack)
//   peer      device memory of another agent, to which this agent has access: a DeviceBuffer that
//             was made for both (buffer.hpp), or memory after allow_access()
//
// Several GPUs: a DeviceBuffer of another agent is a peer's memory by itself; addresses need
// CopyTarget::peer() or CopySource::peer(). A copy or fill by an engine or kernel that uses a
// peer's memory, or pinned memory of another agent, first asks ROCr whether the stream's agent has
// access (a lookup with an allocation, under ROCr's memory lock), and throws Error if not. Both
// ends may belong to peers. An engine of the source's GPU makes a copy with a peer if that GPU may
// access the target, as ROCr chooses; else a kernel of ROCr on the stream's GPU does.
//
// Paths:
//   engine  A copy engine (SDMA), ordered by signals. All places, 1-D only. Not for a stream that
//           waits for the host (Stream::after(signal), or an event after one): a copy engine
//           executes its ring in order, so a copy that waits for the host would delay those of
//           other streams.
//   kernel  A kernel of kernels/transfer.cl on the stream's own hardware queue; needs no signal and
//           no hand-over. All places, 1-D and 2-D, and fills.
//   host    The calling thread, before the call returns. Requires that the host can access both
//           ends (pinned, pageable, or as a target device memory with .host_writes) and that the
//           stream is known to have no unfinished work.
// Automatic selects host up to CopyLimits::host_bytes, kernel up to CopyLimits::kernel_bytes, and
// the engine above; it selects kernel if the engine cannot do the copy. If a requested path cannot
// do the copy, the call throws Error with the reason.
//
// Pageable memory: up to CopyLimits::stage_bytes, a copy uses pinned staging memory; a larger one
// pins the memory for the copy.
//   to the device  Staged: the call reads the bytes before it returns; the caller may then change
//                  them. Pinned: they must not change until completion.
//   to the host    The host performs the last step, in the thread that observes completion:
//                  Event::wait(), Event::ready(), Stream::synchronize(), Stream::ready(),
//                  Streams::synchronize(). The bytes are valid only then. A Completion
//                  (Event::completion(), for co_await and descriptors) covers only the device's
//                  part: call the event's ready() after it.
// Until then, and at most until the Streams and all its streams have been destroyed, the copy owns
// the pageable memory. Event::ready() makes no call, so memory that was pinned stays pinned until
// the next of the other functions, or the next copy that pins: do not unmap it before. A copy to
// the device from memory that an earlier copy to the host has yet to write waits for that copy
// first, in the calling thread.
//
// Coherence: a copy sees what the host wrote before the call and what the stream did before it.
// Later work of the stream, and any thread that has waited for a later event, sees what the copy
// wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo {

enum class CopyPath : uint8_t { automatic, engine, kernel, host };
std::string_view name_of(CopyPath path) noexcept;

// Limits of a Streams. The defaults are measured; see engine/stream/DESIGN.md.
struct CopyLimits {
  size_t host_bytes = 16 << 10;    // largest copy by the host
  size_t kernel_bytes = 4 << 10;   // largest copy by a kernel if the engine could also do it
  size_t stage_bytes = 2 << 20;    // largest copy of pageable memory through staging; 0: none
  size_t staging_bytes = 8 << 20;  // staging memory, allocated by the first copy that needs it
  // part of it that one step of a copy uses; at most 65,536 parts
  size_t piece_bytes = 256 << 10;
  // Unfinished copies per copy engine, or per direction where the runtime chooses the engine, 1 to
  // 65,536. The first copy there creates their signals.
  uint32_t engine_copies = 32;
};

namespace detail {

enum class CopyPlace : uint8_t { device, pinned, pageable, peer };
std::string_view name_of(CopyPlace place) noexcept;
constexpr bool is_host(CopyPlace place) noexcept {
  return place == CopyPlace::pinned || place == CopyPlace::pageable;
}

// Memory that a copy reads or writes.
struct CopyRange {
  std::byte* data = nullptr;
  size_t size_bytes = 0;
  CopyPlace place = CopyPlace::device;
  // Owner of device memory; of pinned memory, the agent that it was made for. 0: not known.
  hsa_agent_t agent{0};
  bool host_writes = false;  // device memory that the host can write
};

template <class T>
inline constexpr bool kIsBuffer = requires(T& buffer) {
  buffer.gpu();
};
// A span, or a vector or array that outlives the expression.
template <class R>
concept PageableRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> && std::is_trivially_copyable_v<std::ranges::range_value_t<R>> &&
    !kIsBuffer<R>;

}  // namespace detail

// Memory at one side of a copy. Void is const for a source: it may be read-only memory.
template <typename Void>
class CopyMemory {
 public:
  template <class T>
  CopyMemory(const DeviceBuffer<T>& buffer)
      : CopyMemory(buffer.data(), buffer.size_bytes(), detail::CopyPlace::device, buffer.gpu()) {}
  template <class T>
  CopyMemory(const PinnedBuffer<T>& buffer)
      : CopyMemory(buffer.data(), buffer.size_bytes(), detail::CopyPlace::pinned, buffer.gpu()) {}
  template <detail::PageableRange R>
  requires(std::is_const_v<Void> ||
           !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>)
      CopyMemory(R&& memory)
      : CopyMemory(pageable(std::ranges::data(memory), std::span(memory).size_bytes())) {}

  static CopyMemory device(Void* data, size_t bytes) {
    return {data, bytes, detail::CopyPlace::device};
  }
  static CopyMemory pinned(Void* data, size_t bytes) {
    return {data, bytes, detail::CopyPlace::pinned};
  }
  static CopyMemory pageable(Void* data, size_t bytes) {
    return {data, bytes, detail::CopyPlace::pageable};
  }
  static CopyMemory peer(const Agent& owner, Void* data, size_t bytes) {
    return {data, bytes, detail::CopyPlace::peer, owner.handle()};
  }
  // Declares that the host may write this device memory, after allow_host_access().
  CopyMemory host_writes() const noexcept requires(!std::is_const_v<Void>) {
    CopyMemory target = *this;
    target.range_.host_writes = true;
    return target;
  }

  const detail::CopyRange& range() const noexcept { return range_; }

 private:
  CopyMemory(Void* data, size_t bytes, detail::CopyPlace place, hsa_agent_t agent = {})
      : range_{.data = static_cast<std::byte*>(const_cast<std::remove_const_t<Void>*>(data)),
               .size_bytes = bytes,
               .place = place,
               .agent = agent} {}
  detail::CopyRange range_;  // of a source: read only
};
using CopyTarget = CopyMemory<void>;
using CopySource = CopyMemory<const void>;

// Rows of a 2-D copy or fill: `height` rows of `width_bytes`. A pitch is the distance between the
// starts of two consecutive rows.
struct CopyRows {
  size_t width_bytes = 0;
  size_t height = 0;
  size_t to_pitch = 0;
  size_t from_pitch = 0;  // unused by fills
};

}  // namespace uptempo
