// What a stream's copy is made from and to, and how: the arguments of Stream::copy(), copy_2d(), fill() and fill_2d().
//
//   DeviceBuffer<float> x{gpu, n};
//   std::vector<float> host(n);
//   stream.copy(x, std::span(host));                          // pageable to device
//   stream.copy(CopyTarget::device(x.data() + 16, 64), CopySource::pinned(p, 64));
//   const CopyPath taken = stream.copy(y, x, {.path = CopyPath::kernel});
//
// Four places, by what reaches them. Device: of the stream's agent. Pinned: host memory that the agent reaches (PinnedBuffer). Pageable: any other host memory (a
// vector, the stack). Peer: device memory of another agent, to which this one has access (engine/memory/access.hpp).
//
// Paths, and where each can go.
//   engine  a copy engine (SDMA), ordered by signals. All places; 1-D only. Not for a stream that waits for the host (Stream::wait(signal), or an event
//           behind one): a copy engine carries out its ring in order, so a copy that waits for the host would hold up those of other streams.
//   kernel  a kernel of kernels/transfer.cl on the stream's own hardware queue: no signal, no hand-over. All places, 1-D and 2-D, and fills.
//   host    the calling thread, before the call returns. Where both ends are in reach of the host (pinned, pageable, and as a target device memory
//           with .host_writes) and the stream is known to have nothing unfinished.
// Automatic takes host up to CopyLimits::host_bytes, kernel up to CopyLimits::kernel_bytes, and the engine above; kernel where the engine cannot go. A path asked for
// that cannot go is an Error that says why.
//
// Pageable memory. Up to CopyLimits::stage_bytes it goes through pinned staging memory, above it is pinned for the copy (PageablePath chooses otherwise).
//   to the device    staged: the bytes are taken at once, and the caller may change them when the call returns. Pinned: they must stay as they are until completion.
//   to the host      the copy's last step is the host's, and whoever learns of the completion carries it out: Event::wait(), Event::ready(), Stream::synchronize(),
//                    Stream::ready(), Streams::synchronize(). Only then are the bytes there. A Completion (Event::completion(), for co_await and descriptors) tells of the device's part
//                    only: call ready() of the event after it.
// Pageable memory belongs to the copy until then, at the latest until the Streams and all its streams have been destroyed.
// A copy to the device from memory into which an earlier copy to the host still has to write waits for that one first, in the calling thread.
//
// Coherence. A copy sees what the host wrote before the call, and what the stream did before it; what it writes is seen by what comes after it on the stream, and by whoever
// waited for an event after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "engine/memory/buffer.hpp"
#include "engine/memory/copy.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo {

enum class CopyPath : uint8_t { automatic, engine, kernel, host };
std::string_view name_of(CopyPath path) noexcept;

struct CopyOptions {
  CopyPath path = CopyPath::automatic;
  PageablePath pageable = PageablePath::automatic;
};

// Of the Streams; the defaults are measured, see engine/stream/README.md.
struct CopyLimits {
  size_t host_bytes = 16 << 10;    // the largest copy by the host
  size_t kernel_bytes = 4 << 10;   // the largest copy by a kernel where the engine would do as well
  size_t stage_bytes = 2 << 20;    // the largest copy of pageable memory through staging
  size_t staging_bytes = 8 << 20;  // staging memory, made with the first copy that needs some
  size_t piece_bytes = 256 << 10;  // of it, for one step of a copy
  uint32_t engine_copies =
      32;  // unfinished, of each direction: signals are made for so many with the first one
};

namespace detail {

enum class CopyPlace : uint8_t { device, pinned, pageable, peer };
std::string_view name_of(CopyPlace place) noexcept;

struct CopyEnd {
  std::byte* data = nullptr;
  size_t size_bytes = 0;
  CopyPlace place = CopyPlace::device;
  hsa_agent_t peer{0};       // whose memory it is, of a peer
  bool host_writes = false;  // device memory that the host may store to
};

}  // namespace detail

class CopyTarget {
 public:
  template <class T>
  CopyTarget(const DeviceBuffer<T>& buffer) : CopyTarget(device(buffer.data(), buffer.size_bytes())) {}
  template <class T>
  CopyTarget(const PinnedBuffer<T>& buffer) : CopyTarget(pinned(buffer.data(), buffer.size_bytes())) {}
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>) CopyTarget(std::span<T> memory)
      : CopyTarget(pageable(memory.data(), memory.size_bytes())) {}

  static CopyTarget device(void* data, size_t bytes) { return {data, bytes, detail::CopyPlace::device}; }
  static CopyTarget pinned(void* data, size_t bytes) { return {data, bytes, detail::CopyPlace::pinned}; }
  static CopyTarget pageable(void* data, size_t bytes) { return {data, bytes, detail::CopyPlace::pageable}; }
  static CopyTarget peer(const Agent& owner, void* data, size_t bytes) {
    CopyTarget target(data, bytes, detail::CopyPlace::peer);
    target.end_.peer = owner.handle();
    return target;
  }
  // The host may store to this device memory, by allow_host_access().
  CopyTarget host_writes() const noexcept {
    CopyTarget target = *this;
    target.end_.host_writes = true;
    return target;
  }

  const detail::CopyEnd& end() const noexcept { return end_; }

 private:
  CopyTarget(void* data, size_t bytes, detail::CopyPlace place)
      : end_{.data = static_cast<std::byte*>(data), .size_bytes = bytes, .place = place} {}
  detail::CopyEnd end_;
};

class CopySource {
 public:
  template <class T>
  CopySource(const DeviceBuffer<T>& buffer) : CopySource(device(buffer.data(), buffer.size_bytes())) {}
  template <class T>
  CopySource(const PinnedBuffer<T>& buffer) : CopySource(pinned(buffer.data(), buffer.size_bytes())) {}
  template <class T>
  requires std::is_trivially_copyable_v<T> CopySource(std::span<T> memory)
      : CopySource(pageable(memory.data(), memory.size_bytes())) {}

  static CopySource device(const void* data, size_t bytes) {
    return {data, bytes, detail::CopyPlace::device};
  }
  static CopySource pinned(const void* data, size_t bytes) {
    return {data, bytes, detail::CopyPlace::pinned};
  }
  static CopySource pageable(const void* data, size_t bytes) {
    return {data, bytes, detail::CopyPlace::pageable};
  }
  static CopySource peer(const Agent& owner, const void* data, size_t bytes) {
    CopySource source(data, bytes, detail::CopyPlace::peer);
    source.end_.peer = owner.handle();
    return source;
  }

  const detail::CopyEnd& end() const noexcept { return end_; }

 private:
  CopySource(const void* data, size_t bytes, detail::CopyPlace place)
      : end_{.data = static_cast<std::byte*>(const_cast<void*>(data)), .size_bytes = bytes, .place = place} {}
  detail::CopyEnd end_;  // only read
};

// Rows of a 2-D copy or fill: `height` of them, of `width_bytes`; a pitch is the distance from one row's start to the next one's.
struct CopyRows {
  size_t width_bytes = 0;
  size_t height = 0;
  size_t to_pitch = 0;
  size_t from_pitch = 0;  // not of a fill
};

}  // namespace uptempo
