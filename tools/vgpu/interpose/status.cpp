// The stat(), access(), readlink() and realpath() families.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "interpose/directory_descriptor.hpp"
#include "interpose/real.hpp"
#include "interpose/tree.hpp"
#include "kfd/process.hpp"

namespace uptempo::vgpu::interpose {
namespace {

static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat is stat64 on 64-bit systems");

std::optional<Tree::Lookup> lookup(const char* path) {
  const Tree* tree = tree_for(path);
  return tree == nullptr ? std::nullopt : tree->find(path);
}

// Returns whether the virtual tree contains `path`; `result` is then stat()'s result.
bool stat_virtual(const char* path, void* status, int& result) {
  const auto found = lookup(path);
  if (!found) return false;
  if (found->entry == nullptr) {
    errno = ENOENT;
    result = -1;
  } else {
    Tree::describe(*found, *static_cast<struct stat*>(status));
    result = 0;
  }
  return true;
}

// Makes the memfd behind a device or a virtual directory look like the device or directory.
// `status` is the kernel's answer for the descriptor, or for a path (then without a descriptor).
// Returns false if it is neither.
bool set_device_status(int descriptor, struct stat& status) {
  if (!S_ISREG(status.st_mode) || status.st_nlink != 0) return false;  // a memfd has no name
  if (const auto directory = directory_of(descriptor)) {
    int result = 0;
    return stat_virtual(directory->c_str(), &status, result) && result == 0;
  }
  const kfd::Process* process = kfd::Process::existing();
  using Node = kfd::Process::Node;
  const Node node = process == nullptr ? Node{} : process->node_of(status.st_dev, status.st_ino);
  if (node.kind == Node::Kind::none) return false;
  status.st_mode = S_IFCHR | 0666;
  status.st_rdev = node.kind == Node::Kind::kfd
                       ? makedev(kKfdMajor, kKfdMinor)
                       : makedev(kRenderMajor, render_minor_of(node.gpu_index));
  status.st_size = 0;
  status.st_blocks = 0;
  return true;
}

int with_device_status(int result, int descriptor, void* status) {
  if (result == 0) set_device_status(descriptor, *static_cast<struct stat*>(status));
  return result;
}

// Returns the descriptor that a path and flags of an *at() function refer to, or -1 if they refer
// to the path.
int meant_descriptor(int directory, const char* path, int flags) {
  return (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || path[0] == '\0') ? directory : -1;
}

void fill(const struct stat& from, struct statx& to) {
  to = {};
  to.stx_mask = STATX_BASIC_STATS;
  to.stx_blksize = static_cast<__u32>(from.st_blksize);
  to.stx_nlink = static_cast<__u32>(from.st_nlink);
  to.stx_mode = static_cast<__u16>(from.st_mode);
  to.stx_ino = from.st_ino;
  to.stx_size = static_cast<__u64>(from.st_size);
  to.stx_dev_major = major(from.st_dev);
  to.stx_dev_minor = minor(from.st_dev);
  to.stx_rdev_major = major(from.st_rdev);
  to.stx_rdev_minor = minor(from.st_rdev);
}

bool access_virtual(const char* path, int mode, int& result) {
  const auto found = lookup(path);
  if (!found) return false;
  result = -1;
  if (found->entry == nullptr) {
    errno = ENOENT;
  } else if (found->entry->kind == Entry::Kind::file && (mode & (W_OK | X_OK)) != 0) {
    errno = EACCES;
  } else {
    result = 0;
  }
  return true;
}

bool realpath_virtual(const char* path, char* resolved, char*& result) {
  const auto found = lookup(path);
  if (!found) return false;
  result = nullptr;
  if (found->entry == nullptr) {
    errno = ENOENT;
  } else if (resolved == nullptr) {
    result = strdup(found->path.c_str());
  } else {
    // the caller provides PATH_MAX bytes; virtual paths are shorter
    result = std::strcpy(resolved, found->path.c_str());
  }
  return true;
}

bool readlink_virtual(const char* path, ssize_t& result) {
  const auto found = lookup(path);
  if (!found) return false;
  errno = found->entry == nullptr ? ENOENT : EINVAL;  // the tree has no symbolic links
  result = -1;
  return true;
}

// Virtual entries have no extended attributes; `ls -l` asks for them.
bool attributes_virtual(const char* path, int error, ssize_t& result) {
  const auto found = lookup(path);
  if (!found) return false;
  result = found->entry != nullptr && error == 0 ? 0 : -1;
  if (result != 0) errno = found->entry == nullptr ? ENOENT : error;
  return true;
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

namespace vgpu = uptempo::vgpu::interpose;

#define UPTEMPO_VGPU_STAT(name, record)                                     \
  UPTEMPO_VGPU_EXPORT int name(const char* path, record* status) noexcept { \
    int result = 0;                                                         \
    if (vgpu::stat_virtual(path, status, result)) return result;            \
    static constinit vgpu::Next<int (*)(const char*, record*)> next{#name}; \
    return next(path, status);                                              \
  }
UPTEMPO_VGPU_STAT(stat, struct stat)
UPTEMPO_VGPU_STAT(stat64, struct stat64)
UPTEMPO_VGPU_STAT(lstat, struct stat)
UPTEMPO_VGPU_STAT(lstat64, struct stat64)
#undef UPTEMPO_VGPU_STAT

#define UPTEMPO_VGPU_FSTAT(name, record)                                           \
  UPTEMPO_VGPU_EXPORT int name(int descriptor, record* status) noexcept {          \
    static constinit vgpu::Next<int (*)(int, record*)> next{#name};                \
    return vgpu::with_device_status(next(descriptor, status), descriptor, status); \
  }
UPTEMPO_VGPU_FSTAT(fstat, struct stat)
UPTEMPO_VGPU_FSTAT(fstat64, struct stat64)
#undef UPTEMPO_VGPU_FSTAT

#define UPTEMPO_VGPU_FSTATAT(name, record)                                                   \
  UPTEMPO_VGPU_EXPORT int name(int directory, const char* path, record* status,              \
                               int flags) noexcept {                                         \
    const vgpu::AtPath at(directory, path);                                                  \
    int result = 0;                                                                          \
    if (vgpu::stat_virtual(at.path(), status, result)) return result;                        \
    static constinit vgpu::Next<int (*)(int, const char*, record*, int)> next{#name};        \
    return vgpu::with_device_status(next(at.directory(), at.path(), status, flags),          \
                                    vgpu::meant_descriptor(directory, path, flags), status); \
  }
UPTEMPO_VGPU_FSTATAT(fstatat, struct stat)
UPTEMPO_VGPU_FSTATAT(fstatat64, struct stat64)
#undef UPTEMPO_VGPU_FSTATAT

// Binaries built against glibc before 2.33 call these. Their first argument is the record's
// version.
#define UPTEMPO_VGPU_XSTAT(name, record)                                                 \
  UPTEMPO_VGPU_EXPORT int name(int version, const char* path, record* status) noexcept { \
    int result = 0;                                                                      \
    if (vgpu::stat_virtual(path, status, result)) return result;                         \
    static constinit vgpu::Next<int (*)(int, const char*, record*)> next{#name};         \
    return next(version, path, status);                                                  \
  }
UPTEMPO_VGPU_XSTAT(__xstat, struct stat)
UPTEMPO_VGPU_XSTAT(__xstat64, struct stat64)
UPTEMPO_VGPU_XSTAT(__lxstat, struct stat)
UPTEMPO_VGPU_XSTAT(__lxstat64, struct stat64)
#undef UPTEMPO_VGPU_XSTAT

#define UPTEMPO_VGPU_FXSTAT(name, record)                                                   \
  UPTEMPO_VGPU_EXPORT int name(int version, int descriptor, record* status) noexcept {      \
    static constinit vgpu::Next<int (*)(int, int, record*)> next{#name};                    \
    return vgpu::with_device_status(next(version, descriptor, status), descriptor, status); \
  }
UPTEMPO_VGPU_FXSTAT(__fxstat, struct stat)
UPTEMPO_VGPU_FXSTAT(__fxstat64, struct stat64)
#undef UPTEMPO_VGPU_FXSTAT

UPTEMPO_VGPU_EXPORT int statx(int directory, const char* path, int flags, unsigned mask,
                              struct statx* status) noexcept {
  const vgpu::AtPath at(directory, path);
  struct stat plain {};
  int result = 0;
  if (vgpu::stat_virtual(at.path(), &plain, result)) {
    if (result == 0) vgpu::fill(plain, *status);
    return result;
  }
  if (const int descriptor = vgpu::meant_descriptor(directory, path, flags);
      descriptor >= 0 && syscall(SYS_fstat, descriptor, &plain) == 0 &&
      vgpu::set_device_status(descriptor, plain)) {
    vgpu::fill(plain, *status);
    return 0;
  }
  static constinit vgpu::Next<int (*)(int, const char*, int, unsigned, struct statx*)> next{
      "statx"};
  return next(at.directory(), at.path(), flags, mask, status);
}

UPTEMPO_VGPU_EXPORT int access(const char* path, int mode) noexcept {
  int result = 0;
  if (vgpu::access_virtual(path, mode, result)) return result;
  static constinit vgpu::Next<int (*)(const char*, int)> next{"access"};
  return next(path, mode);
}

UPTEMPO_VGPU_EXPORT int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  const vgpu::AtPath at(directory, path);
  int result = 0;
  if (vgpu::access_virtual(at.path(), mode, result)) return result;
  static constinit vgpu::Next<int (*)(int, const char*, int, int)> next{"faccessat"};
  return next(at.directory(), at.path(), mode, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
  ssize_t result = 0;
  if (vgpu::readlink_virtual(path, result)) return result;
  static constinit vgpu::Next<ssize_t (*)(const char*, char*, size_t)> next{"readlink"};
  return next(path, buffer, size);
}

UPTEMPO_VGPU_EXPORT ssize_t readlinkat(int directory, const char* path, char* buffer,
                                       size_t size) noexcept {
  const vgpu::AtPath at(directory, path);
  ssize_t result = 0;
  if (vgpu::readlink_virtual(at.path(), result)) return result;
  static constinit vgpu::Next<ssize_t (*)(int, const char*, char*, size_t)> next{"readlinkat"};
  return next(at.directory(), at.path(), buffer, size);
}

UPTEMPO_VGPU_EXPORT char* realpath(const char* path, char* resolved) noexcept {
  char* result = nullptr;
  if (vgpu::realpath_virtual(path, resolved, result)) return result;
  static constinit vgpu::Next<char* (*)(const char*, char*)> next{"realpath"};
  return next(path, resolved);
}

UPTEMPO_VGPU_EXPORT char* __realpath_chk(const char* path, char* resolved, size_t size) {
  char* result = nullptr;
  if (vgpu::realpath_virtual(path, resolved, result)) return result;
  static constinit vgpu::Next<char* (*)(const char*, char*, size_t)> next{"__realpath_chk"};
  return next(path, resolved, size);
}

#define UPTEMPO_VGPU_GETXATTR(name)                                                                \
  UPTEMPO_VGPU_EXPORT ssize_t name(const char* path, const char* attribute, void* value,           \
                                   size_t size) {                                                  \
    ssize_t result = 0;                                                                            \
    if (vgpu::attributes_virtual(path, ENODATA, result)) return result;                            \
    static constinit vgpu::Next<ssize_t (*)(const char*, const char*, void*, size_t)> next{#name}; \
    return next(path, attribute, value, size);                                                     \
  }
UPTEMPO_VGPU_GETXATTR(getxattr)
UPTEMPO_VGPU_GETXATTR(lgetxattr)
#undef UPTEMPO_VGPU_GETXATTR

#define UPTEMPO_VGPU_LISTXATTR(name)                                                  \
  UPTEMPO_VGPU_EXPORT ssize_t name(const char* path, char* names, size_t size) {      \
    ssize_t result = 0;                                                               \
    if (vgpu::attributes_virtual(path, 0, result)) return result;                     \
    static constinit vgpu::Next<ssize_t (*)(const char*, char*, size_t)> next{#name}; \
    return next(path, names, size);                                                   \
  }
UPTEMPO_VGPU_LISTXATTR(listxattr)
UPTEMPO_VGPU_LISTXATTR(llistxattr)
#undef UPTEMPO_VGPU_LISTXATTR
