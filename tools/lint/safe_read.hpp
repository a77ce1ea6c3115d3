// Reads memory of this process that may no longer be mapped.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <optional>

namespace uptempo::lint {

// No value if the memory cannot be read, or if the kernel forbids the call.
template <typename T>
std::optional<T> safe_read(const void* address) {
  T value{};
  const iovec to{&value, sizeof value};
  const iovec from{const_cast<void*>(address), sizeof value};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(sizeof value))
    return std::nullopt;
  return value;
}

}  // namespace uptempo::lint
