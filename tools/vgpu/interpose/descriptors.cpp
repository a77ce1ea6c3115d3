// The open() and fopen() families. Paths of the virtual tree become memfds; libc opens all others.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <uptempo/aql/write_all.hpp>
#include "device/options.hpp"
#include "gfx9/vector/entry.hpp"
#include "interpose/directory_descriptor.hpp"
#include "interpose/real.hpp"
#include "interpose/runtime_age.hpp"
#include "interpose/tree.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/process.hpp"

namespace uptempo::vgpu::interpose {
namespace {

// Opens a read-only file with that content, positioned at its start. Returns -1 with errno set on
// failure.
int open_content(std::string_view content, bool close_on_exec) {
  const int descriptor = memfd_create("uptempo-vgpu-file", close_on_exec ? MFD_CLOEXEC : 0);
  if (descriptor < 0) return -1;
  int error = aql::write_all(descriptor, content);
  if (error == 0 && lseek(descriptor, 0, SEEK_SET) != 0) error = errno;
  if (error != 0) {
    close(descriptor);
    errno = error;
    return -1;
  }
  return descriptor;
}

int fail(int error) {
  errno = error;
  return -1;
}

int open_device(const Entry& device, bool close_on_exec) {
  kfd::Process* process = kfd::Process::get();
  if (process == nullptr) return fail(ENODEV);
  const bool is_kfd = device.kind == Entry::Kind::kfd_device;
  if (is_kfd) {
    for (const auto& gpu : process->gpus()) {
      const std::string refusal = why_runtime_is_too_old(gpu->description());
      if (refusal.empty()) continue;
      kfd::report(refusal);
      return fail(ENODEV);
    }
  }
  const int result = is_kfd ? process->open_kfd(close_on_exec)
                            : process->open_render(device.gpu_index, close_on_exec);
  return result >= 0 ? result : fail(-result);
}

// Returns whether the virtual tree contains `path`; `result` is then open()'s result.
bool open_virtual(const char* path, int flags, int& result) {
  const Tree* tree = tree_for(path);
  if (tree == nullptr) return false;
  const auto found = tree->find(path);
  if (!found) return false;
  const bool close_on_exec = (flags & O_CLOEXEC) != 0;
  if (found->entry == nullptr) {
    result = fail((flags & O_CREAT) != 0 ? EACCES : ENOENT);
  } else if (found->entry->kind == Entry::Kind::directory) {
    result = (flags & (O_ACCMODE | O_CREAT)) == O_RDONLY
                 ? open_directory(found->path, close_on_exec)
                 : fail(EISDIR);
  } else if ((flags & O_DIRECTORY) != 0) {
    result = fail(ENOTDIR);
  } else if (found->entry->kind == Entry::Kind::file) {
    result = (flags & O_ACCMODE) == O_RDONLY ? open_content(found->entry->content, close_on_exec)
                                             : fail(EACCES);
  } else {
    result = open_device(*found->entry, close_on_exec);
  }
  return true;
}

bool fopen_virtual(const char* path, const char* mode, std::FILE*& result) {
  const Tree* tree = tree_for(path);
  if (tree == nullptr || !tree->find(path)) return false;
  const bool reads_only = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
  int descriptor = -1;
  open_virtual(
      path, (reads_only ? O_RDONLY : O_RDWR) | (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0),
      descriptor);
  result = descriptor < 0 ? nullptr : fdopen(descriptor, mode);
  return true;
}

// Ends a program with invalid options, or on a machine for which this library was not built, before
// main(), so that it cannot run on a real device by mistake.
__attribute__((constructor)) void check_options() {
  try {
    Options::from_environment();
    gfx9::vector::require_simd();
  } catch (const std::exception& error) {
    kfd::report(error.what());
    _exit(2);
  }
}

}  // namespace

std::FILE* content_stream(std::string_view content) {
  const int descriptor = open_content(content, true);
  return descriptor < 0 ? nullptr : fdopen(descriptor, "r");
}

}  // namespace uptempo::vgpu::interpose

namespace vgpu = uptempo::vgpu::interpose;

namespace {

bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// open() and openat() have a third argument only with O_CREAT or O_TMPFILE.
#define UPTEMPO_VGPU_MODE(flags)      \
  mode_t mode = 0;                    \
  if (takes_mode(flags)) {            \
    va_list arguments;                \
    va_start(arguments, flags);       \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments);                \
  }

}  // namespace

UPTEMPO_VGPU_EXPORT int open(const char* path, int flags, ...) {
  UPTEMPO_VGPU_MODE(flags)
  int result = 0;
  if (vgpu::open_virtual(path, flags, result)) return result;
  static constinit vgpu::Next<int (*)(const char*, int, ...)> next{"open"};
  return next(path, flags, mode);
}

UPTEMPO_VGPU_EXPORT int open64(const char* path, int flags, ...) {
  UPTEMPO_VGPU_MODE(flags)
  int result = 0;
  if (vgpu::open_virtual(path, flags, result)) return result;
  static constinit vgpu::Next<int (*)(const char*, int, ...)> next{"open64"};
  return next(path, flags, mode);
}

UPTEMPO_VGPU_EXPORT int openat(int directory, const char* path, int flags, ...) {
  UPTEMPO_VGPU_MODE(flags)
  const vgpu::AtPath at(directory, path);
  int result = 0;
  if (vgpu::open_virtual(at.path(), flags, result)) return result;
  static constinit vgpu::Next<int (*)(int, const char*, int, ...)> next{"openat"};
  return next(at.directory(), at.path(), flags, mode);
}

UPTEMPO_VGPU_EXPORT int openat64(int directory, const char* path, int flags, ...) {
  UPTEMPO_VGPU_MODE(flags)
  const vgpu::AtPath at(directory, path);
  int result = 0;
  if (vgpu::open_virtual(at.path(), flags, result)) return result;
  static constinit vgpu::Next<int (*)(int, const char*, int, ...)> next{"openat64"};
  return next(at.directory(), at.path(), flags, mode);
}

#undef UPTEMPO_VGPU_MODE

// -D_FORTIFY_SOURCE replaces open() without a mode by this function.
UPTEMPO_VGPU_EXPORT int __open_2(const char* path, int flags) {
  int result = 0;
  if (vgpu::open_virtual(path, flags, result)) return result;
  static constinit vgpu::Next<int (*)(const char*, int)> next{"__open_2"};
  return next(path, flags);
}

UPTEMPO_VGPU_EXPORT int __open64_2(const char* path, int flags) {
  int result = 0;
  if (vgpu::open_virtual(path, flags, result)) return result;
  static constinit vgpu::Next<int (*)(const char*, int)> next{"__open64_2"};
  return next(path, flags);
}

UPTEMPO_VGPU_EXPORT int __openat_2(int directory, const char* path, int flags) {
  const vgpu::AtPath at(directory, path);
  int result = 0;
  if (vgpu::open_virtual(at.path(), flags, result)) return result;
  static constinit vgpu::Next<int (*)(int, const char*, int)> next{"__openat_2"};
  return next(at.directory(), at.path(), flags);
}

UPTEMPO_VGPU_EXPORT int __openat64_2(int directory, const char* path, int flags) {
  const vgpu::AtPath at(directory, path);
  int result = 0;
  if (vgpu::open_virtual(at.path(), flags, result)) return result;
  static constinit vgpu::Next<int (*)(int, const char*, int)> next{"__openat64_2"};
  return next(at.directory(), at.path(), flags);
}

UPTEMPO_VGPU_EXPORT std::FILE* fopen(const char* path, const char* mode) {
  std::FILE* result = nullptr;
  if (vgpu::fopen_virtual(path, mode, result)) return result;
  static constinit vgpu::Next<std::FILE* (*)(const char*, const char*)> next{"fopen"};
  return next(path, mode);
}

UPTEMPO_VGPU_EXPORT std::FILE* fopen64(const char* path, const char* mode) {
  std::FILE* result = nullptr;
  if (vgpu::fopen_virtual(path, mode, result)) return result;
  static constinit vgpu::Next<std::FILE* (*)(const char*, const char*)> next{"fopen64"};
  return next(path, mode);
}

// rocminfo runs `lsmod | grep amdgpu` to find out whether the driver is loaded. pclose() also
// closes a stream that popen() did not make.
UPTEMPO_VGPU_EXPORT std::FILE* popen(const char* command, const char* mode) {
  const std::string_view text = command == nullptr ? "" : command;
  if (text.find("lsmod") != std::string_view::npos && text.find("amdgpu") != std::string_view::npos)
    return vgpu::content_stream("amdgpu               9000000  0\n");
  static constinit vgpu::Next<std::FILE* (*)(const char*, const char*)> next{"popen"};
  return next(command, mode);
}
