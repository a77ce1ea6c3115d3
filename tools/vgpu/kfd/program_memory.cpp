#include "kfd/program_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "device/host/host_pages.hpp"
#include "kfd/program_mappings.hpp"

namespace uptempo::vgpu::kfd {
namespace {

using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

// Copies through process_vm_readv() or process_vm_writev(). Returns false with errno EFAULT, or
// with the errno of the refused call.
bool copy(Copy call, void* ours, uint64_t address, size_t size_bytes) noexcept {
  const HostAccess access(reinterpret_cast<void*>(address), size_bytes, call == process_vm_writev);
  const iovec here{ours, size_bytes};
  const iovec there{reinterpret_cast<void*>(address), size_bytes};
  const ssize_t copied = call(getpid(), &here, 1, &there, 1, 0);
  if (copied >= 0) errno = EFAULT;  // a partial copy leaves errno unset
  return copied == static_cast<ssize_t>(size_bytes);
}

// Calls visit(const ProgramMapping&) -> int for each mapping of the range in address order. Returns
// the first nonzero result, or -EFAULT at a gap.
template <typename Visit>
int walk(uint64_t address, uint64_t size_bytes, Visit&& visit) {
  ProgramMappings mappings;
  const uint64_t end = address + size_bytes;
  uint64_t visited = address;  // everything below has been visited
  while (visited < end) {
    const auto mapping = mappings.at_or_above(visited);
    if (!mapping || mapping->begin > visited) return -EFAULT;
    if (const int answer = visit(*mapping); answer != 0) return answer;
    visited = mapping->end;
  }
  return 0;
}

// Returns whether the range has no pages yet. Returns false if the kernel does not provide the
// information.
bool has_no_pages(uint64_t address, uint64_t size_bytes) {
  constexpr uint64_t kPresentOrSwapped = uint64_t{3}
                                         << 62;  // Documentation/admin-guide/mm/pagemap.rst
  constexpr uint64_t kPageBytes = 4096;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pages(
      std::fopen("/proc/self/pagemap", "re"), std::fclose);
  if (pages == nullptr ||
      std::fseek(pages.get(), static_cast<long>(address / kPageBytes * 8), SEEK_SET) != 0)
    return false;
  std::array<uint64_t, 4096> entries;
  for (uint64_t left = (size_bytes + kPageBytes - 1) / kPageBytes; left != 0;) {
    const size_t count = std::min<uint64_t>(left, entries.size());
    if (std::fread(entries.data(), sizeof entries[0], count, pages.get()) != count) return false;
    for (size_t entry = 0; entry < count; ++entry)
      if ((entries[entry] & kPresentOrSwapped) != 0) return false;
    left -= count;
  }
  return true;
}

}  // namespace

bool copy_from_program(void* to, uint64_t address, size_t size_bytes) noexcept {
  if (size_bytes == 0 || copy(process_vm_readv, to, address, size_bytes)) return true;
  if (errno == EFAULT) return false;
  // a sandbox forbids the call
  std::memcpy(to, reinterpret_cast<const void*>(address), size_bytes);
  return true;
}

bool copy_to_program(uint64_t address, const void* from, size_t size_bytes) noexcept {
  if (size_bytes == 0 || copy(process_vm_writev, const_cast<void*>(from), address, size_bytes))
    return true;
  if (errno == EFAULT) return false;
  std::memcpy(reinterpret_cast<void*>(address), from, size_bytes);
  return true;
}

int check_user_pages(uint64_t address, uint64_t size_bytes) {
  return walk(address, size_bytes, [](const ProgramMapping& mapping) {
    if (!mapping.readable) return -EFAULT;
    return mapping.writable ? 0 : -EPERM;
  });
}

bool is_mapping_of(uint64_t address, uint64_t size_bytes, const SparseFile& file, uint64_t offset) {
  return walk(address, size_bytes, [&](const ProgramMapping& mapping) {
           const bool same_byte = mapping.offset - mapping.begin == offset - address;
           return mapping.readable && mapping.writable && mapping.shared &&
                          file.is(mapping.device, mapping.inode) && same_byte
                      ? 0
                      : -EINVAL;
         }) == 0;
}

bool is_untouched_memory(uint64_t address, uint64_t size_bytes) {
  const bool anonymous = walk(address, size_bytes, [](const ProgramMapping& mapping) {
                           return mapping.readable && mapping.writable && !mapping.shared &&
                                          mapping.inode == 0 && !mapping.named
                                      ? 0
                                      : -EINVAL;
                         }) == 0;
  return anonymous && has_no_pages(address, size_bytes);
}

}  // namespace uptempo::vgpu::kfd
