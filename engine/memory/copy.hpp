// Copier: copies between host and device, each on a named path.
//
//   pinned           the GPU can access both ends: one copy by a copy engine
//   pinned for once  pins pageable host memory (hsa_amd_memory_lock), copies, unpins; expensive for
//                    small copies
//   staged           the host copies pageable memory through a pinned buffer, chunk by chunk
//
// counters.hpp counts paths, staged bytes, pins and unpins. A copy sees a device buffer's content
// once the packet that wrote it has completed with a system-scope release; a Completion implies
// this. A function returns when its copy is complete, and throws Error if the device reports a
// failure. start_* functions return at once and signal completion with the caller's signal.
//
// Memory faults: if the GPU faults on a memory access, the copy that a Copier waits for throws
// Error within a quarter of a second, and every later copy throws at once. The Copier does not wait
// for a start_* copy, and fill() waits inside ROCr: a fault in one of these ends the process,
// unless other work of the agent claims the fault (session.hpp). The loss of the GPU (a reset after
// a hang, its removal) ends a copy in the same way, but not a fill() in which ROCr waits.
//
// Several GPUs: copies run on the Copier's GPU, also those from and to a peer's memory, which it
// must have access to: a buffer that was made for both (buffer.hpp), or memory after allow_access()
// (access.hpp). A buffer that it has no access to is refused with an Error that names both agents.
// Addresses are not checked. fill() runs on the GPU that owns the memory.
//
// Misuse: a Copier that was moved from, or whose Runtime has ended, throws Error for every copy of
// at least one byte. It may be destroyed or assigned to.
//
// Thread safety: one thread at a time per Copier.
// Lifetime: host memory and buffers must live until the copy is complete; those of a copy that a
// fault has ended, until the end of the Runtime. The Copier then keeps its own resources until that
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "engine/memory/buffer.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo {

// Path for pageable host memory.
enum class PageablePath : uint8_t {
  automatic,  // staged up to Copier::kStageLimitBytes, pinned for once above
  staged,
  pinned_for_once,
};

class Copier {
 public:
  // Above this size, pinning both ends costs less than the host's copy into the staging buffer.
  static constexpr size_t kStageLimitBytes = 256 * 1024;
  static constexpr size_t kStagingBytes = 256 * 1024;

  // Allocates the staging buffer and one signal. Throws Error.
  explicit Copier(const Agent& gpu);
  Copier(Copier&&) noexcept;
  Copier& operator=(Copier&&) noexcept;
  ~Copier();

  // Pinned paths. `source` and `destination` must point to `bytes` bytes of pinned or device
  // memory.
  void to_device(void* destination, const void* pinned_source, size_t bytes);
  void to_host(void* pinned_destination, const void* source, size_t bytes);
  void on_device(void* destination, const void* source, size_t bytes);

  // For pageable host memory (a std::vector, the stack).
  void to_device_pageable(void* destination, const void* source, size_t bytes,
                          PageablePath path = PageablePath::automatic);
  void to_host_pageable(void* destination, const void* source, size_t bytes,
                        PageablePath path = PageablePath::automatic);

  // Copies whole buffers. Throws Error if the sizes differ.
  template <class T>
  void to_device(const DeviceBuffer<T>& destination, const PinnedBuffer<T>& source) {
    require_equal(destination.size_bytes(), source.size_bytes());
    require_reach(destination);
    require_reach(source);
    to_device(destination.data(), source.data(), source.size_bytes());
  }
  template <class T>
  void to_host(const PinnedBuffer<T>& destination, const DeviceBuffer<T>& source) {
    require_equal(destination.size_bytes(), source.size_bytes());
    require_reach(destination);
    require_reach(source);
    to_host(destination.data(), source.data(), source.size_bytes());
  }
  template <class T>
  void on_device(const DeviceBuffer<T>& destination, const DeviceBuffer<T>& source) {
    require_equal(destination.size_bytes(), source.size_bytes());
    require_reach(destination);
    require_reach(source);
    on_device(destination.data(), source.data(), source.size_bytes());
  }
  // The same for pageable memory: a std::vector, a std::array, a std::span. The buffer gives T.
  template <class T>
  void to_device(const DeviceBuffer<T>& destination,
                 std::type_identity_t<std::span<const T>> pageable,
                 PageablePath path = PageablePath::automatic) {
    require_equal(destination.size_bytes(), pageable.size_bytes());
    require_reach(destination);
    to_device_pageable(destination.data(), pageable.data(), pageable.size_bytes(), path);
  }
  template <class T>
  void to_host(std::type_identity_t<std::span<T>> pageable, const DeviceBuffer<T>& source,
               PageablePath path = PageablePath::automatic) {
    require_equal(pageable.size_bytes(), source.size_bytes());
    require_reach(source);
    to_host_pageable(pageable.data(), source.data(), source.size_bytes(), path);
  }

  // Sets `words` 32-bit words of device memory. Runs as a kernel of ROCr. Throws Error if the
  // allocation is smaller.
  void fill(void* destination, uint32_t value, size_t words);

  // Asynchronous, pinned path. Begins when all of `after` are zero (up to 5 need no extra packet),
  // and decrements `done` by one when complete.
  void start_to_device(void* destination, const void* pinned_source, size_t bytes,
                       hsa_signal_t done, std::span<const hsa_signal_t> after = {});
  void start_to_host(void* pinned_destination, const void* source, size_t bytes, hsa_signal_t done,
                     std::span<const hsa_signal_t> after = {});

 private:
  enum class Direction : uint8_t { to_device, to_host, on_device };
  struct Work;

  // Throws Error if there is nothing to copy with.
  Work& work() const;
  static void require_equal(size_t destination_bytes, size_t source_bytes);
  // Throws Error for memory of a peer that this GPU has no access to.
  template <class Buffer>
  void require_reach(const Buffer& buffer) const {
    if (buffer.gpu().handle != gpu_.handle().handle && buffer.size_bytes() != 0)
      require_reach(buffer.data(), buffer.gpu(), buffer.size_bytes());
  }
  void require_reach(const void* memory, hsa_agent_t owner, size_t bytes) const;
  void start(Direction direction, void* destination, const void* source, size_t bytes,
             hsa_signal_t done, std::span<const hsa_signal_t> after);
  void run(Direction direction, void* destination, const void* source, size_t bytes);

  Agent gpu_;
  hsa_agent_t host_;
  std::unique_ptr<Work> work_;
};

}  // namespace uptempo
