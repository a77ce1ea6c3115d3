// The memory behind the emulated device: one sparse file for buffers (the render node) and one for
// doorbells and registers (/dev/kfd).
//
// Both are memfds, so mmap, munmap, dup, fork and close of the program need no interception. The
// program maps parts of them at addresses of its choice. The device uses one alias mapping of each
// whole file.
//
// Thread safety: immutable after construction, except RangeAllocator and release(), which the owner
// serialises.
#pragma once

#include <sys/stat.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace uptempo::vgpu::kfd {

// First-fit allocator over [begin, end). Freed ranges coalesce.
class RangeAllocator {
 public:
  RangeAllocator(uint64_t begin, uint64_t end);

  // Requires `size_bytes` > 0 and `alignment` a power of two. Returns nullopt if no free range is
  // long enough.
  std::optional<uint64_t> allocate(uint64_t size_bytes, uint64_t alignment);
  void free(uint64_t begin, uint64_t size_bytes);
  // Takes a range that is free.
  void take(uint64_t begin, uint64_t size_bytes);

 private:
  std::map<uint64_t, uint64_t> free_;  // begin -> end
};

// Sets the size of a memfd. Returns 0 or an errno: EFBIG if RLIMIT_FSIZE is less, where the system
// call would end the process with SIGXFSZ.
int set_file_size(int descriptor, uint64_t size_bytes) noexcept;

// No process can change the size of such a file, so no access to it is a SIGBUS.
class SparseFile {
 public:
  // Throws std::system_error if the system refuses the memfd, its size or its mapping. It names
  // the limit of the process that is the cause.
  SparseFile(const char* name, uint64_t size_bytes);
  // Takes over the descriptor of another process's file. The object closes it, also if the
  // constructor throws.
  SparseFile(int descriptor, uint64_t size_bytes);
  ~SparseFile();
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  // Returns a new descriptor for the program or a negative errno.
  int open(bool close_on_exec) const;

  // Returns whether a descriptor with this identity refers to this file.
  bool is(dev_t device, ino_t inode) const noexcept { return device == device_ && inode == inode_; }

  // The object's own descriptor, a high number.
  int descriptor() const noexcept { return descriptor_; }
  dev_t device() const noexcept { return device_; }
  ino_t inode() const noexcept { return inode_; }

  std::byte* at(uint64_t offset) const noexcept { return alias_ + offset; }
  uint64_t size_bytes() const noexcept { return size_bytes_; }

  // Returns pages to the system. They read as zero afterwards, also through the program's mappings.
  void release(uint64_t offset, uint64_t length_bytes) noexcept;

 private:
  void raise_descriptor() noexcept;
  void map();

  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t size_bytes_ = 0;
  std::byte* alias_ = nullptr;
};

}  // namespace uptempo::vgpu::kfd
