// GPU memory as the device sees it: a map from GPU virtual addresses to host pointers, with page
// permissions.
//
// Thread safety: any thread may call map() and unmap() (ioctls of the program). Lookups use a
// Reader, one per device thread, and take no lock. A Reader works on an immutable snapshot of the
// map. For an address that is not in it, the Reader searches each snapshot published since then.
// Blocking: unmap() returns only when no Reader can still hold a translation that it obtained
// before, so the caller may then munmap the host alias. map() seldom waits (once in 32 calls
// without an unmap() between them), for at most one section of each Reader.
// Lifetime: a `const Mapping*` or host pointer obtained through a Reader is valid until that
// Reader's leave().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace uptempo::vgpu {

using GpuAddress = uint64_t;
class Probes;  // device/caches/probes.hpp

// The kinds that caches and fences distinguish (KFD_IOC_ALLOC_MEM_FLAGS_* in linux/kfd_ioctl.h).
enum class MemoryKind : uint8_t {
  fine_grained,
  coarse_grained,
  uncached,
  device_local,
  device_local_fine,
  device_local_extended,  // EXT_COHERENT
  device_local_uncached,
  peer_local,           // device-local memory of another GPU, coarse-grained
  peer_local_fine,      // ... fine-grained
  peer_local_uncached,  // ... uncached or of extended coherence
  doorbell,
  hdp_registers
};
constexpr bool is_device_local(MemoryKind kind) noexcept {
  return kind >= MemoryKind::device_local && kind <= MemoryKind::device_local_uncached;
}
constexpr bool is_peer_local(MemoryKind kind) noexcept {
  return kind >= MemoryKind::peer_local && kind <= MemoryKind::peer_local_uncached;
}

// Memory of the host of which no GPU keeps a copy in its L2.
constexpr bool is_coherent_host(MemoryKind kind) noexcept {
  return kind == MemoryKind::fine_grained || kind == MemoryKind::uncached;
}

enum class Access : uint8_t { read, write, atomic, execute };

struct Mapping {
  GpuAddress begin = 0;
  GpuAddress end = 0;         // one past the last byte
  std::byte* host = nullptr;  // host alias of `begin`
  bool writable = true;
  bool executable = true;
  MemoryKind kind = MemoryKind::fine_grained;
  // Hears of each write to peer memory whose accesses are coherent requests. Null: none.
  Probes* probes = nullptr;

  bool contains(GpuAddress address, size_t size_bytes) const noexcept {
    return address >= begin && size_bytes <= end - begin && address <= end - size_bytes;
  }
  bool permits(Access access) const noexcept {
    return access == Access::read || (access == Access::execute ? executable : writable);
  }
  std::byte* at(GpuAddress address) const noexcept { return host + (address - begin); }
};

class AddressSpace {
 public:
  class Reader;

  AddressSpace();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Adds a mapping. Throws std::invalid_argument, which names both ranges, when `mapping` is empty
  // or overlaps another one.
  void map(const Mapping& mapping);

  // Removes the mapping that begins at `begin` and waits until every Reader that might have seen it
  // has left. Returns false when there is none. Deadlocks when called inside a Reader's section.
  bool unmap(GpuAddress begin);

  // Changes with every map() and unmap(). Caches of data derived from memory (decoded code) compare
  // it.
  uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

 private:
  using Snapshot = std::vector<Mapping>;  // sorted by begin, disjoint

  void publish(std::unique_ptr<const Snapshot> next);
  void reclaim();  // Waits for every Reader inside a section, then frees the retired snapshots.

  std::mutex writers_;
  std::atomic<const Snapshot*> current_;
  // replaced snapshots that a Reader may still use
  std::vector<std::unique_ptr<const Snapshot>> retired_;
  std::atomic<uint64_t> generation_{1};
  std::mutex readers_mutex_;
  std::vector<Reader*> readers_;
};

// One thread's view of the address space. Not thread-safe: register one per device thread and keep
// it for the thread's life.
class AddressSpace::Reader {
 public:
  explicit Reader(AddressSpace& space);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Translations are stable between enter() and leave(). Mappings added in between are found too.
  // Keep the section short (one time slice), since unmap() waits for it.
  void enter() noexcept;
  void leave() noexcept;

  // A number unique to this section of this Reader, for callers that cache translations within one
  // section. Never 0 inside a section.
  uint64_t section() const noexcept { return inside_.load(std::memory_order_relaxed); }

  // Returns the mapping that holds `address`, or nullptr. The last hit is cached.
  const Mapping* find(GpuAddress address) noexcept {
    if (last_ != nullptr && address >= last_->begin && address < last_->end) return last_;
    return search(address);
  }

  // Returns the host pointer for [address, address + size_bytes), or nullptr unless the whole range
  // is mapped and the access is permitted.
  std::byte* translate(GpuAddress address, size_t size_bytes, Access access) noexcept {
    const Mapping* mapping = find(address);
    if (mapping == nullptr || !mapping->contains(address, size_bytes) || !mapping->permits(access))
      return nullptr;
    return mapping->at(address);
  }

 private:
  friend class AddressSpace;
  const Mapping* search(GpuAddress address) noexcept;

  AddressSpace& space_;
  const Snapshot* snapshot_ = nullptr;  // valid inside enter()/leave()
  const Mapping* last_ = nullptr;
  std::atomic<uint64_t> inside_{0};  // odd inside a section; grows with each enter() and leave()
};

}  // namespace uptempo::vgpu
