#include "kfd/machine/machine_file.hpp"

#include <fcntl.h>
#include <sched.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "kfd/machine/process_identity.hpp"

namespace uptempo::vgpu::kfd::machine_file {
namespace {

// Raw system calls, because the library's own entry points may ask for the object under
// construction.
int open_raw(const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

// A record lock belongs to the process: a fork child does not inherit it, and it ends with the
// process or with any descriptor of the file, which only this unit opens. The system call that
// waits for it has no time limit, and its wait would not end while the holder is stopped. Returns
// 0, or the errno with the process that held the lock at the end (0: unknown).
std::pair<int, pid_t> lock_whole_file(int descriptor) {
  constexpr std::chrono::seconds kStopped{5}, kRunning{60};
  const auto begin = std::chrono::steady_clock::now();
  for (int tries = 0;; ++tries) {
    struct flock all {};
    all.l_type = F_WRLCK;
    all.l_whence = SEEK_SET;
    if (fcntl(descriptor, F_SETLK, &all) == 0) return {0, 0};
    if (errno != EACCES && errno != EAGAIN && errno != EINTR) return {errno, 0};
    if (tries < 64) {  // a holder needs some 30 us
      sched_yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited < kStopped) continue;
    const bool is_held = fcntl(descriptor, F_GETLK, &all) == 0 && all.l_type != F_UNLCK;
    const pid_t holder = is_held ? all.l_pid : 0;
    if (waited > kRunning || is_stopped(static_cast<uint64_t>(holder))) return {EAGAIN, holder};
  }
}

}  // namespace

std::string path_of(const std::string& name) {
  return "/dev/shm/uptempo-vgpu-" + std::to_string(geteuid()) + "-" + name;
}

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
  throw std::runtime_error("the machine '" + name + "' " + reason);
}

void compare_properties(const std::string& name, std::string_view theirs, std::string_view ours) {
  while (theirs != ours) {
    const std::string_view their_line = theirs.substr(0, theirs.find('\n'));
    const std::string_view our_line = ours.substr(0, ours.find('\n'));
    if (their_line != our_line)
      refuse(name, "has " + std::string(their_line) + ", but this process asks for " +
                       std::string(our_line) + ": use the same options, or another name");
    theirs.remove_prefix(std::min(theirs.size(), their_line.size() + 1));
    ours.remove_prefix(std::min(ours.size(), our_line.size() + 1));
  }
}

OpenFile open_locked(const std::string& name, bool create) {
  const std::string path = path_of(name);
  for (;;) {
    Descriptor file(
        open_raw(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | (create ? O_CREAT : 0), 0600));
    if (file.get() < 0 && errno == ENOENT && !create) return OpenFile{Descriptor(), {}};
    if (file.get() < 0) refuse(name, "cannot be opened: " + path + ": " + std::strerror(errno));
    struct stat status {};
    if (syscall(SYS_fstat, file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != geteuid() || (status.st_mode & 077) != 0)
      refuse(name, "cannot be used: " + path + " is not a private file of this user; remove it");
    if (const auto [error, holder] = lock_whole_file(file.get()); holder > 0)
      refuse(name, "is held by process " + std::to_string(holder) +
                       (is_stopped(static_cast<uint64_t>(holder))
                            ? ", which is stopped (SIGSTOP or a debugger): continue or end it"
                            : ", which does not go on: end it"));
    else if (error != 0)
      refuse(name, "cannot be locked: " + path + ": " + std::strerror(error));
    // The last process may have removed the file meanwhile.
    if (syscall(SYS_fstat, file.get(), &status) == 0 && status.st_nlink != 0)
      return {std::move(file), status};
  }
}

bool is_alive(const ProcessSlot& slot) {
  return ProcessIdentity{slot.pid, slot.start_ticks, slot.stack_address}.is_alive();
}

void write_head(const std::string& name, const OpenFile& file, const Head& head) {
  const int descriptor = file.descriptor.get();
  int error = ftruncate(descriptor, 0) == 0 ? set_file_size(descriptor, sizeof head) : errno;
  // Later writes find the room.
  if (error == 0) error = posix_fallocate(descriptor, 0, sizeof head);
  if (error == 0 && pwrite(descriptor, &head, sizeof head, 0) != sizeof head) error = errno;
  if (error != 0) refuse(name, "has no room in /dev/shm: " + std::string(std::strerror(error)));
}

bool read_whole(const OpenFile& file, Head& head) noexcept {
  return pread(file.descriptor.get(), &head, sizeof head, 0) == sizeof head &&
         head.magic == kMagic && head.version == kVersion;
}

std::unique_ptr<Head> read_head(const std::string& name, const OpenFile& file) {
  auto head = std::make_unique<Head>();
  const ssize_t got = pread(file.descriptor.get(), head.get(), sizeof *head, 0);
  if (got < static_cast<ssize_t>(2 * sizeof(uint64_t)) || head->magic != kMagic) return nullptr;
  const std::string remedy = ": use another name, or remove " + path_of(name) + " after its end";
  if (head->version != kVersion || got != sizeof *head || head->gpus > Machine::kMostGpus)
    refuse(name, "was begun by another version of uptempo-vgpu" + remedy);
  if (head->pid_namespace != pid_namespace())
    refuse(name, "belongs to processes of another PID namespace" + remedy);
  const auto own = static_cast<uint64_t>(getpid());
  for (const ProcessSlot& slot : head->processes)
    if (slot.pid != 0 && slot.pid != own && is_alive(slot)) return head;
  return nullptr;
}

Descriptor open_memory(const Head& head, uint32_t number) {
  const auto own = static_cast<uint64_t>(getpid());
  for (const ProcessSlot& slot : head.processes) {
    if (slot.pid == 0 || slot.pid == own || !is_alive(slot)) continue;
    const std::string path =
        "/proc/" + std::to_string(slot.pid) + "/fd/" + std::to_string(slot.files[number]);
    Descriptor file(open_raw(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    // The process may have closed the descriptor and reused its number.
    if (file.get() >= 0 && syscall(SYS_fstat, file.get(), &status) == 0 &&
        status.st_dev == head.files[number].device && status.st_ino == head.files[number].inode)
      return file;
  }
  return Descriptor();
}

}  // namespace uptempo::vgpu::kfd::machine_file
