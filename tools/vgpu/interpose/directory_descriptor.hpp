// Descriptors of virtual directories.
//
// open() of a virtual directory gives an empty memfd that bears the directory's path in its name, so that dup(), fcntl(), fork() and close() need no
// attention. fdopendir(), fstat() and the *at() functions recognise it. The kernel does not: system calls that list it or change to it (getdents64,
// fchdir) answer ENOTDIR.
//
// Thread safety: any thread.
#pragma once

#include <fcntl.h>
#include <optional>
#include <string>

namespace uptempo::vgpu::interpose {

// `path` as Tree::Lookup gives it. -1 with errno set on failure.
int open_directory(const std::string& path, bool close_on_exec);

// The path of the virtual directory that the descriptor stands for. Costs a load until this process opens the first one, a system call from then on.
std::optional<std::string> directory_of(int descriptor);

// What an *at() function is to work on: a path below a virtual directory becomes an absolute one, everything else stays as it is.
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
