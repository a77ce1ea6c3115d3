#include "kfd/machine/machine_file.hpp"

#include <fcntl.h>
#include <sched.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "kfd/machine/process_identity.hpp"

namespace uptempo::vgpu::kfd::machine_file {
namespace {

// Raw system calls, because the library's own entry points may ask for the object under
// construction.
int open_raw(const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

// A record lock belongs to the process: a fork child does not inherit it, and it ends with the
// process or with any descriptor of the file, which only this unit opens.
bool lock_whole_file(int descriptor) noexcept {
  struct flock all {};
  all.l_type = F_WRLCK;
  all.l_whence = SEEK_SET;
  int result = -1;
  do {
    result = fcntl(descriptor, F_SETLKW, &all);
    // EDEADLK is never true, since the holder waits for nothing: the kernel takes the waits of all
    // threads of a process for one.
    if (result != 0 && errno == EDEADLK) sched_yield();
  } while (result != 0 && (errno == EINTR || errno == EDEADLK));
  return result == 0;
}

// Opens a memory file of the machine through a process that has it. Returns no descriptor if there
// is none.
Descriptor open_memory(const Head& head, uint32_t gpu) {
  const auto own = static_cast<uint64_t>(getpid());
  for (const ProcessSlot& slot : head.processes) {
    if (slot.pid == 0 || slot.pid == own || !is_alive(slot)) continue;
    const std::string path =
        "/proc/" + std::to_string(slot.pid) + "/fd/" + std::to_string(slot.files[gpu]);
    Descriptor file(open_raw(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    // The process may have closed the descriptor and reused its number.
    if (file.get() >= 0 && syscall(SYS_fstat, file.get(), &status) == 0 &&
        status.st_dev == head.file_device[gpu] && status.st_ino == head.file_inode[gpu])
      return file;
  }
  return Descriptor();
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
    if (!lock_whole_file(file.get()))
      refuse(name, "cannot be locked: " + path + ": " + std::strerror(errno));
    // The last process may have removed the file meanwhile.
    if (syscall(SYS_fstat, file.get(), &status) == 0 && status.st_nlink != 0)
      return {std::move(file), status};
  }
}

bool is_alive(const ProcessSlot& slot) {
  return ProcessIdentity{slot.pid, slot.start_ticks, slot.stack_address}.is_alive();
}

std::unique_ptr<Head> read_head(const std::string& name, const OpenFile& file) {
  auto head = std::make_unique<Head>();
  const ssize_t got = pread(file.descriptor.get(), head.get(), sizeof *head, 0);
  if (got < static_cast<ssize_t>(2 * sizeof(uint64_t)) || head->magic != kMagic) return nullptr;
  const std::string remedy = ": use another name, or remove " + path_of(name) + " after its end";
  if (head->version != kVersion || got != sizeof *head || head->gpus > Machine::kMostGpus ||
      static_cast<size_t>(file.status.st_size) != table_bytes(head->gpus))
    refuse(name, "was begun by another version of uptempo-vgpu" + remedy);
  if (head->pid_namespace != pid_namespace())
    refuse(name, "belongs to processes of another PID namespace" + remedy);
  const auto own = static_cast<uint64_t>(getpid());
  for (const ProcessSlot& slot : head->processes)
    if (slot.pid != 0 && slot.pid != own && is_alive(slot)) return head;
  return nullptr;
}

std::vector<Descriptor> open_memory(const Head& head) {
  std::vector<Descriptor> files;
  for (uint32_t gpu = 0; gpu < head.gpus; ++gpu) files.push_back(open_memory(head, gpu));
  return files;
}

}  // namespace uptempo::vgpu::kfd::machine_file
