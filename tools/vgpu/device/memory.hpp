// GPU memory as the device sees it: a map from GPU virtual addresses to host pointers, with page permissions.
//
// Thread safety. map() and unmap() may be called from any thread (ioctls of the program). Lookups go through a Reader, one per
// device thread, and take no lock: a Reader works on an immutable snapshot of the map, and only an address that is not in it is looked for
// again, in each snapshot that a map() or unmap() has published meanwhile. unmap() returns only when no
// Reader can still hold a translation that it obtained before, so the caller may munmap the host alias afterwards. map() seldom waits
// (once in 32 calls without an unmap() between them), for at most one section of each Reader.
//
// Lifetime. A `const Mapping*` or host pointer obtained through a Reader is valid until that Reader's leave().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace uptempo::vgpu {

using GpuAddress = uint64_t;

// The kinds that caches and fences tell apart (see KFD_IOC_ALLOC_MEM_FLAGS_* in linux/kfd_ioctl.h).
enum class MemoryKind : uint8_t {
  fine_grained,
  coarse_grained,
  uncached,
  device_local,
  device_local_fine,
  doorbell,
  hdp_registers
};

enum class Access : uint8_t { read, write, atomic, execute };

struct Mapping {
  GpuAddress begin = 0;
  GpuAddress end = 0;         // one past the last byte
  std::byte* host = nullptr;  // host alias of `begin`
  bool writable = true;
  bool executable = true;
  MemoryKind kind = MemoryKind::fine_grained;

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

  // Adds a mapping. Throws std::invalid_argument naming both ranges when it is empty or overlaps another one.
  void map(const Mapping& mapping);

  // Removes the mapping that begins at `begin` and waits until every Reader that might have seen it has left. Returns
  // false when there is none. Must not be called from inside a Reader's enter()/leave() section: it would wait for itself.
  bool unmap(GpuAddress begin);

  // Changes with every map() and unmap(): whoever caches what it derived from memory (decoded code) compares it.
  uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

 private:
  using Snapshot = std::vector<Mapping>;  // sorted by begin, disjoint

  void publish(std::unique_ptr<const Snapshot> next);
  void reclaim();  // waits for every Reader that is inside a section, then frees the retired snapshots

  std::mutex writers_;
  std::atomic<const Snapshot*> current_;
  std::vector<std::unique_ptr<const Snapshot>> retired_;  // replaced, perhaps still read
  std::atomic<uint64_t> generation_{1};
  std::mutex readers_mutex_;
  std::vector<Reader*> readers_;
};

// One thread's view. Not thread-safe; register one per device thread and keep it for the thread's life.
class AddressSpace::Reader {
 public:
  explicit Reader(AddressSpace& space);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Between enter() and leave() translations are stable, and what is mapped meanwhile is found too. Keep the section short (one time slice): unmap() waits for it.
  void enter() noexcept;
  void leave() noexcept;

  // A number that no other section of this reader has, for who keeps translations as long as the section lasts. Never 0 inside of one.
  uint64_t section() const noexcept { return inside_.load(std::memory_order_relaxed); }

  // The mapping that holds `address`, or nullptr. The last hit is remembered.
  const Mapping* find(GpuAddress address) noexcept {
    if (last_ != nullptr && address >= last_->begin && address < last_->end) return last_;
    return search(address);
  }

  // Host pointer for [address, address + size_bytes), or nullptr when it is not mapped as a whole or not permitted.
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
  std::atomic<uint64_t> inside_{0};  // odd while inside a section; grows with each enter() and leave()
};

}  // namespace uptempo::vgpu
