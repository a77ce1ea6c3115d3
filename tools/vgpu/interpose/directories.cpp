// opendir() and its relatives over the virtual tree. A DIR of a virtual directory is an object of ours, told from libc's by a register.
#include <dirent.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interpose/real.hpp"
#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {
namespace {

struct Directory {
  std::vector<std::pair<std::string, unsigned char>> names;  // with d_type
  std::size_t position = 0;
  dirent entry{};  // what readdir() returned last
};
static_assert(sizeof(dirent) == sizeof(dirent64),
              "one record serves readdir and readdir64 on 64-bit systems");

class Register {
 public:
  Directory* add(std::unique_ptr<Directory> directory) {
    const std::lock_guard lock(mutex_);
    open_.push_back(std::move(directory));
    count_.store(open_.size(), std::memory_order_release);  // after the entry: who sees it may look it up
    return open_.back().get();
  }
  // nullptr for libc's own. Costs a load while no virtual directory is open.
  Directory* find(void* stream) {
    if (count_.load(std::memory_order_acquire) == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(open_.begin(), open_.end(), [stream](const auto& each) { return each.get() == stream; });
    return found == open_.end() ? nullptr : found->get();
  }
  bool remove(void* stream) {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard lock(mutex_);
    const std::size_t before = open_.size();
    std::erase_if(open_, [stream](const auto& each) { return each.get() == stream; });
    count_.store(open_.size(), std::memory_order_release);
    return open_.size() != before;
  }

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};
  std::vector<std::unique_ptr<Directory>> open_;
};

Register& directories() {
  static Register& all = *new Register;  // programs list directories in exit handlers too
  return all;
}

unsigned char type_of(Entry::Kind kind) {
  switch (kind) {
    case Entry::Kind::file:
      return DT_REG;
    case Entry::Kind::directory:
      return DT_DIR;
    case Entry::Kind::kfd_device:
    case Entry::Kind::render_device:
      return DT_CHR;
  }
  return DT_UNKNOWN;
}

bool open_virtual_directory(const char* path, DIR*& result) {
  const Tree* tree = tree_for(path);
  if (tree == nullptr) return false;
  const auto found = tree->find(path);
  if (!found) return false;
  result = nullptr;
  if (found->entry == nullptr || found->entry->kind != Entry::Kind::directory) {
    errno = found->entry == nullptr ? ENOENT : ENOTDIR;
    return true;
  }
  auto directory = std::make_unique<Directory>();
  directory->names = {{".", DT_DIR}, {"..", DT_DIR}};
  for (const std::string& name : found->entry->children)
    directory->names.emplace_back(name, type_of(tree->find((found->path + '/' + name).c_str())->entry->kind));
  result = reinterpret_cast<DIR*>(directories().add(std::move(directory)));
  return true;
}

dirent* next_name(Directory& directory) {
  if (directory.position == directory.names.size()) return nullptr;
  const auto& [name, type] = directory.names[directory.position++];
  directory.entry.d_ino = directory.position;
  directory.entry.d_off = static_cast<off_t>(directory.position);
  directory.entry.d_reclen = sizeof(dirent);
  directory.entry.d_type = type;
  std::memcpy(directory.entry.d_name, name.c_str(), name.size() + 1);
  return &directory.entry;
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

namespace vgpu = uptempo::vgpu::interpose;

UPTEMPO_VGPU_EXPORT DIR* opendir(const char* path) {
  DIR* result = nullptr;
  if (vgpu::open_virtual_directory(path, result)) return result;
  static constinit vgpu::Next<DIR* (*)(const char*)> next{"opendir"};
  return next(path);
}

UPTEMPO_VGPU_EXPORT dirent* readdir(DIR* stream) {
  if (vgpu::Directory* directory = vgpu::directories().find(stream)) return vgpu::next_name(*directory);
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

UPTEMPO_VGPU_EXPORT int dirfd(DIR* stream) noexcept {
  if (vgpu::directories().find(stream) != nullptr) {
    errno = ENOTSUP;  // POSIX: an implementation may not have a descriptor behind a DIR
    return -1;
  }
  static constinit vgpu::Next<int (*)(DIR*)> next{"dirfd"};
  return next(stream);
}
