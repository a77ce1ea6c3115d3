#include "kfd/program_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace uptempo::vgpu::kfd {
namespace {

using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// The kernel copies for us, through its own interface for debuggers. False with errno EFAULT, or what forbids the call itself.
bool copy(Copy call, void* ours, std::uint64_t address, std::size_t size_bytes) noexcept {
  const iovec here{ours, size_bytes};
  const iovec there{reinterpret_cast<void*>(address), size_bytes};
  const ssize_t copied = call(getpid(), &here, 1, &there, 1, 0);
  if (copied >= 0) errno = EFAULT;  // in case it is a part
  return copied == static_cast<ssize_t>(size_bytes);
}

}  // namespace

bool copy_from_program(void* to, std::uint64_t address, std::size_t size_bytes) noexcept {
  if (size_bytes == 0 || copy(process_vm_readv, to, address, size_bytes)) return true;
  if (errno == EFAULT) return false;
  std::memcpy(to, reinterpret_cast<const void*>(address), size_bytes);  // a sandbox forbids the call
  return true;
}

bool copy_to_program(std::uint64_t address, const void* from, std::size_t size_bytes) noexcept {
  if (size_bytes == 0 || copy(process_vm_writev, const_cast<void*>(from), address, size_bytes)) return true;
  if (errno == EFAULT) return false;
  std::memcpy(reinterpret_cast<void*>(address), from, size_bytes);
  return true;
}

int check_user_pages(std::uint64_t address, std::uint64_t size_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  if (maps == nullptr) return -EFAULT;
  const std::uint64_t end = address + size_bytes;
  std::uint64_t checked = address;  // everything below is fine
  char line[512];
  bool begins = true;  // a line longer than the buffer comes in parts
  while (checked < end && std::fgets(line, sizeof line, maps.get()) != nullptr) {
    const bool whole_line = begins;
    begins = std::strchr(line, '\n') != nullptr;
    unsigned long first = 0;
    unsigned long last = 0;
    char readable = '-';
    char writable = '-';
    if (!whole_line || std::sscanf(line, "%lx-%lx %c%c", &first, &last, &readable, &writable) != 4 ||
        last <= checked)
      continue;
    if (first > checked || readable != 'r') return -EFAULT;
    if (writable != 'w') return -EPERM;
    checked = last;
  }
  return checked < end ? -EFAULT : 0;
}

}  // namespace uptempo::vgpu::kfd
