#include "kfd/machine/backing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

#include <uptempo/aql/write_all.hpp>

namespace uptempo::vgpu::kfd {
namespace {

// Programs that close "all" descriptors, or rely on the lowest free one, rarely reach this number.
constexpr int kLowestDescriptor = 800;

// Any lower limit of the address space may be the cause.
constexpr uint64_t kMostSpace = uint64_t{1} << 47;

// Names the resource limit if it is less than a file of that size needs.
std::string limit_text(__rlimit_resource resource, const char* name, uint64_t size_bytes) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= size_bytes) return {};
  return " (" + std::string(name) + " allows " + std::to_string(limit.rlim_cur) + ": raise it)";
}

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

RangeAllocator::RangeAllocator(uint64_t begin, uint64_t end) { free_.emplace(begin, end); }

std::optional<uint64_t> RangeAllocator::allocate(uint64_t size_bytes, uint64_t alignment) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [begin, end] = *range;
    const uint64_t start = (begin + alignment - 1) & ~(alignment - 1);
    if (start > end || end - start < size_bytes) continue;
    free_.erase(range);
    if (start > begin) free_.emplace(begin, start);
    if (start + size_bytes < end) free_.emplace(start + size_bytes, end);
    return start;
  }
  return std::nullopt;
}

void RangeAllocator::free(uint64_t begin, uint64_t size_bytes) {
  uint64_t end = begin + size_bytes;
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->second == begin) {
      begin = previous->first;
      free_.erase(previous);
    }
  }
  if (next != free_.end() && next->first == end) {
    end = next->second;
    free_.erase(next);
  }
  free_.emplace(begin, end);
}

void RangeAllocator::take(uint64_t begin, uint64_t size_bytes) {
  const auto range = std::prev(free_.upper_bound(begin));
  const auto [free_begin, free_end] = *range;
  free_.erase(range);
  if (begin > free_begin) free_.emplace(free_begin, begin);
  if (begin + size_bytes < free_end) free_.emplace(begin + size_bytes, free_end);
}

int set_file_size(int descriptor, uint64_t size_bytes) noexcept {
  return aql::without_signals(
      [&] { return ftruncate(descriptor, static_cast<off_t>(size_bytes)) == 0 ? 0 : errno; });
}

SparseFile::SparseFile(const char* name, uint64_t size_bytes) : size_bytes_(size_bytes) {
  descriptor_ = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor_ < 0) fail(errno, "memfd_create");
  raise_descriptor();
  int error = set_file_size(descriptor_, size_bytes);
  if (error == 0 && fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    error = errno;
  if (error != 0) {
    ::close(descriptor_);
    fail(error, "a memory file of " + std::to_string(size_bytes) + " bytes" +
                    limit_text(RLIMIT_FSIZE, "the file size limit (ulimit -f)", size_bytes));
  }
  map();
}

SparseFile::SparseFile(int descriptor, uint64_t size_bytes)
    : descriptor_(descriptor), size_bytes_(size_bytes) {
  raise_descriptor();
  map();
}

void SparseFile::raise_descriptor() noexcept {
  const int high = fcntl(descriptor_, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high < 0) return;
  ::close(descriptor_);
  descriptor_ = high;
}

// Closes the descriptor if it throws.
void SparseFile::map() {
  // Raw calls: fstat() and mmap() are interposed and may query this object. An `int` as the last
  // argument would leave half of the offset undefined.
  struct stat status {};
  void* alias = MAP_FAILED;
  if (syscall(SYS_fstat, descriptor_, &status) == 0)
    alias = reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, size_bytes_, PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_NORESERVE, descriptor_, off_t{0}));
  if (alias == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor_);
    fail(error, "mmap of " + std::to_string(size_bytes_) + " bytes" +
                    (error == ENOMEM ? limit_text(RLIMIT_AS, "RLIMIT_AS (ulimit -v)", kMostSpace)
                                     : std::string()));
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  alias_ = static_cast<std::byte*>(alias);
  // A forked child has no device threads, and a core dump must not contain 100 GiB. Both calls are
  // hints; failure has no effect.
  madvise(alias, size_bytes_, MADV_DONTFORK);
  madvise(alias, size_bytes_, MADV_DONTDUMP);
}

SparseFile::~SparseFile() {
  if (alias_ != nullptr) munmap(alias_, size_bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

int SparseFile::open(bool close_on_exec) const {
  // The program may have closed this descriptor together with all others. Its number may then refer
  // to another file.
  struct stat status {};
  if (syscall(SYS_fstat, descriptor_, &status) != 0 || !is(status.st_dev, status.st_ino))
    return -ENXIO;
  const int descriptor = fcntl(descriptor_, close_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  return descriptor >= 0 ? descriptor : -errno;
}

void SparseFile::release(uint64_t offset, uint64_t length_bytes) noexcept {
  // MADV_REMOVE punches the hole without the descriptor.
  madvise(alias_ + offset, length_bytes, MADV_REMOVE);
}

}  // namespace uptempo::vgpu::kfd
