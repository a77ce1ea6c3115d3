// opendir() and related functions over the virtual tree. A DIR of a virtual directory, or of a real
// one that also holds virtual entries, is an object of this library; a register distinguishes it
// from libc's.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interpose/directory_descriptor.hpp"
#include "interpose/real.hpp"
#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {
namespace {

struct Name {
  std::string text;
  unsigned char type;
  ino_t inode;
};

struct Directory {
  std::string path;
  bool real = false;    // the file system has it, too
  int descriptor = -1;  // passed to fdopendir() or made by dirfd()
  std::vector<Name> names;
  size_t position = 0;
  dirent entry{};  // the last result of readdir()

  Directory() = default;
  ~Directory() {
    if (descriptor >= 0) close(descriptor);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
};
static_assert(sizeof(dirent) == sizeof(dirent64),
              "one record serves readdir and readdir64 on 64-bit systems");

class Register {
 public:
  Directory* add(std::unique_ptr<Directory> directory) {
    const std::lock_guard lock(mutex_);
    open_.push_back(std::move(directory));
    // release: a thread that reads the count finds the entry
    count_.store(open_.size(), std::memory_order_release);
    return open_.back().get();
  }
  // Returns nullptr for a DIR of libc. Costs one load while no virtual directory is open.
  Directory* find(void* stream) {
    if (count_.load(std::memory_order_acquire) == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [stream](const auto& each) { return each.get() == stream; });
    return found == open_.end() ? nullptr : found->get();
  }
  bool remove(void* stream) {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard lock(mutex_);
    const size_t before = open_.size();
    std::erase_if(open_, [stream](const auto& each) { return each.get() == stream; });
    count_.store(open_.size(), std::memory_order_release);
    return open_.size() != before;
  }

 private:
  std::mutex mutex_;
  std::atomic<size_t> count_{0};
  std::vector<std::unique_ptr<Directory>> open_;
};

Register& directories() {
  static Register& all = *new Register;  // never destroyed: exit handlers list directories too
  return all;
}

unsigned char type_of(mode_t mode) { return static_cast<unsigned char>(IFTODT(mode)); }

Name name_of(const Tree& tree, const std::string& directory, const std::string& name) {
  struct stat status {};
  if (const auto found = tree.find((directory + '/' + name).c_str());
      found && found->entry != nullptr) {
    Tree::describe(*found, status);
  } else {  // the parent of the tree's root
    stat((directory + '/' + name).c_str(), &status);
  }
  return {name, type_of(status.st_mode), status.st_ino};
}

// Returns the entries of the real directory and, instead of those of the same name, the tree's.
// Returns nothing if the file system has no such directory.
std::vector<Name> mixed_names(const Tree& tree, const char* path,
                              const std::vector<std::string>& added) {
  static constinit Next<DIR* (*)(const char*)> open{"opendir"};
  static constinit Next<dirent* (*)(DIR*)> read{"readdir"};
  static constinit Next<int (*)(DIR*)> close{"closedir"};
  DIR* const stream = open(path);
  if (stream == nullptr) return {};
  std::vector<Name> names;
  while (const dirent* const entry = read(stream))
    if (std::ranges::find(added, entry->d_name) == added.end())
      names.push_back({entry->d_name, entry->d_type, entry->d_ino});
  close(stream);
  for (const std::string& name : added) names.push_back(name_of(tree, path, name));
  return names;
}

// Returns whether the virtual tree contains `path` or names in it; `result` is then opendir()'s
// result, which takes over `descriptor` if it is not -1.
bool open_virtual_directory(const char* path, int descriptor, DIR*& result) {
  const Tree* tree = tree_for(path);
  if (tree == nullptr) return false;
  const auto found = tree->find(path);
  if (!found) {
    const std::vector<std::string> added = tree->names_in(path);
    if (added.empty()) return false;
    std::vector<Name> names = mixed_names(*tree, path, added);
    if (names.empty()) return false;
    auto directory = std::make_unique<Directory>();
    directory->path = path;
    directory->real = true;
    directory->names = std::move(names);
    directory->descriptor = descriptor;
    result = reinterpret_cast<DIR*>(directories().add(std::move(directory)));
    return true;
  }
  result = nullptr;
  if (found->entry == nullptr || found->entry->kind != Entry::Kind::directory) {
    errno = found->entry == nullptr ? ENOENT : ENOTDIR;
    return true;
  }
  auto directory = std::make_unique<Directory>();
  directory->path = found->path;
  directory->names = {name_of(*tree, found->path, "."), name_of(*tree, found->path, "..")};
  for (const std::string& name : found->entry->children)
    directory->names.push_back(name_of(*tree, found->path, name));
  directory->descriptor = descriptor;
  result = reinterpret_cast<DIR*>(directories().add(std::move(directory)));
  return true;
}

// The path of a real directory's descriptor.
std::optional<std::string> path_of(int descriptor) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  static constinit Next<ssize_t (*)(const char*, char*, size_t)> read_link{"readlink"};
  const ssize_t length = read_link(link.c_str(), path, sizeof path);
  if (length <= 0 || length == sizeof path) return std::nullopt;
  return std::string(path, static_cast<size_t>(length));
}

dirent* next_name(Directory& directory) {
  if (directory.position >= directory.names.size()) return nullptr;
  const Name& name = directory.names[directory.position++];
  directory.entry.d_ino = name.inode;
  directory.entry.d_off = static_cast<off_t>(directory.position);
  directory.entry.d_reclen = sizeof(dirent);
  directory.entry.d_type = name.type;
  std::memcpy(directory.entry.d_name, name.text.c_str(), name.text.size() + 1);
  return &directory.entry;
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

namespace vgpu = uptempo::vgpu::interpose;

UPTEMPO_VGPU_EXPORT DIR* opendir(const char* path) {
  DIR* result = nullptr;
  if (vgpu::open_virtual_directory(path, -1, result)) return result;
  static constinit vgpu::Next<DIR* (*)(const char*)> next{"opendir"};
  return next(path);
}

UPTEMPO_VGPU_EXPORT dirent* readdir(DIR* stream) {
  if (vgpu::Directory* directory = vgpu::directories().find(stream))
    return vgpu::next_name(*directory);
  static constinit vgpu::Next<dirent* (*)(DIR*)> next{"readdir"};
  return next(stream);
}

UPTEMPO_VGPU_EXPORT dirent64* readdir64(DIR* stream) {
  if (vgpu::Directory* directory = vgpu::directories().find(stream))
    return reinterpret_cast<dirent64*>(vgpu::next_name(*directory));
  static constinit vgpu::Next<dirent64* (*)(DIR*)> next{"readdir64"};
  return next(stream);
}

UPTEMPO_VGPU_EXPORT int closedir(DIR* stream) {
  if (vgpu::directories().remove(stream)) return 0;
  static constinit vgpu::Next<int (*)(DIR*)> next{"closedir"};
  return next(stream);
}

UPTEMPO_VGPU_EXPORT void rewinddir(DIR* stream) noexcept {
  if (vgpu::Directory* directory = vgpu::directories().find(stream)) {
    directory->position = 0;
    return;
  }
  static constinit vgpu::Next<void (*)(DIR*)> next{"rewinddir"};
  next(stream);
}

UPTEMPO_VGPU_EXPORT DIR* fdopendir(int descriptor) {
  DIR* result = nullptr;
  auto path = vgpu::directory_of(descriptor);
  if (!path) path = vgpu::path_of(descriptor);
  if (path && vgpu::open_virtual_directory(path->c_str(), descriptor, result)) return result;
  static constinit vgpu::Next<DIR* (*)(int)> next{"fdopendir"};
  return next(descriptor);
}

UPTEMPO_VGPU_EXPORT int dirfd(DIR* stream) noexcept {
  if (vgpu::Directory* directory = vgpu::directories().find(stream)) {
    if (directory->descriptor < 0)
      directory->descriptor =
          directory->real ? open(directory->path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                          : vgpu::open_directory(directory->path, true);
    return directory->descriptor;
  }
  static constinit vgpu::Next<int (*)(DIR*)> next{"dirfd"};
  return next(stream);
}

UPTEMPO_VGPU_EXPORT long telldir(DIR* stream) noexcept {
  if (const vgpu::Directory* directory = vgpu::directories().find(stream))
    return static_cast<long>(directory->position);
  static constinit vgpu::Next<long (*)(DIR*)> next{"telldir"};
  return next(stream);
}

UPTEMPO_VGPU_EXPORT void seekdir(DIR* stream, long position) noexcept {
  if (vgpu::Directory* directory = vgpu::directories().find(stream)) {
    directory->position = static_cast<size_t>(position);
    return;
  }
  static constinit vgpu::Next<void (*)(DIR*, long)> next{"seekdir"};
  next(stream, position);
}

#define UPTEMPO_VGPU_READDIR_R(name, record)                                   \
  UPTEMPO_VGPU_EXPORT int name(DIR* stream, record* entry, record** result) {  \
    if (vgpu::Directory* directory = vgpu::directories().find(stream)) {       \
      const dirent* found = vgpu::next_name(*directory);                       \
      if (found != nullptr) std::memcpy(entry, found, sizeof *entry);          \
      *result = found != nullptr ? entry : nullptr;                            \
      return 0;                                                                \
    }                                                                          \
    static constinit vgpu::Next<int (*)(DIR*, record*, record**)> next{#name}; \
    return next(stream, entry, result);                                        \
  }
UPTEMPO_VGPU_READDIR_R(readdir_r, dirent)
UPTEMPO_VGPU_READDIR_R(readdir64_r, dirent64)
#undef UPTEMPO_VGPU_READDIR_R
