#include "kfd/machine/process_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace uptempo::vgpu::kfd {
namespace {

struct Status {
  char state = 0;
  uint64_t threads = 0;
  ProcessIdentity identity;
};

// /proc/PID/stat, see proc_pid_stat(5). Raw calls: the library's own entry points would ask for the
// object that is being created.
std::optional<Status> status_of(uint64_t pid, bool& exists) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%llu/stat", static_cast<unsigned long long>(pid));
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  // Any other error, such as no free descriptor, says nothing about the process.
  exists = file >= 0 || (errno != ENOENT && errno != ESRCH);
  if (file < 0) return std::nullopt;
  char text[1024];
  const long length = syscall(SYS_read, file, text, sizeof text - 1);
  exists = length >= 0 || errno != ESRCH;
  syscall(SYS_close, file);
  if (length <= 0) return std::nullopt;
  text[length] = '\0';
  // The second field is the name in parentheses, which may contain anything.
  const char* field = std::strrchr(text, ')');
  if (field == nullptr || field[1] != ' ') return std::nullopt;
  field += 2;
  Status status{.state = *field, .identity = {.pid = pid}};
  for (int number = 3; *field != '\0'; ++number) {
    if (number == 20) status.threads = std::strtoull(field, nullptr, 10);
    if (number == 22) status.identity.start_ticks = std::strtoull(field, nullptr, 10);
    if (number == 28) {
      status.identity.stack_address = std::strtoull(field, nullptr, 10);
      return status;
    }
    field = std::strchr(field, ' ');
    if (field == nullptr) return std::nullopt;
    ++field;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessIdentity> ProcessIdentity::of_this_process() {
  bool exists = true;
  const auto status = status_of(static_cast<uint64_t>(getpid()), exists);
  if (!status) return std::nullopt;
  return status->identity;
}

bool ProcessIdentity::is_alive() const {
  bool exists = true;
  const auto now = status_of(pid, exists);
  if (!now) return exists;
  if (now->identity.start_ticks != start_ticks) return false;
  // The first thread of a process becomes a zombie when it ends before the others.
  if ((now->state == 'Z' || now->state == 'X') && now->threads <= 1) return false;
  const uint64_t stack = now->identity.stack_address;
  return stack == 0 || stack_address == 0 || stack == stack_address;
}

bool is_stopped(uint64_t pid) {
  bool exists = true;
  const auto now = status_of(pid, exists);
  return now && (now->state == 'T' || now->state == 't');
}

uint64_t pid_namespace() {
  struct stat status {};
  if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) != 0) return 0;
  return status.st_ino;
}

}  // namespace uptempo::vgpu::kfd
