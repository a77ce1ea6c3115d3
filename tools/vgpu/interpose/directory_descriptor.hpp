// Descriptors of virtual directories.
//
// open() of a virtual directory returns an empty memfd whose name contains the directory's path, so
// dup(), fcntl(), fork() and close() need no interception. fdopendir(), fstat() and the *at()
// functions recognise the memfd. The kernel does not: system calls that list it or change to it
// (getdents64, fchdir) fail with ENOTDIR.
//
// Thread safety: any thread.
#pragma once

#include <fcntl.h>
#include <optional>
#include <string>

namespace uptempo::vgpu::interpose {

// `path` is that of Tree::Lookup. Returns -1 with errno set on failure.
int open_directory(const std::string& path, bool close_on_exec);

// Returns the path of the virtual directory that the descriptor refers to. Cost: a load until this
// process opens its first virtual directory, a system call afterwards.
std::optional<std::string> directory_of(int descriptor);

// The path that an *at() function works on. A path below a virtual directory becomes absolute; any
// other path stays unchanged.
class AtPath {
 public:
  AtPath(int directory, const char* path);
  AtPath(const AtPath&) = delete;
  AtPath& operator=(const AtPath&) = delete;

  int directory() const noexcept { return directory_; }
  const char* path() const noexcept { return path_; }

 private:
  std::string joined_;
  int directory_;
  const char* path_;
};

}  // namespace uptempo::vgpu::interpose
