// The virtual /dev and /sys: which paths exist and what they hold. Kept in memory; nothing is ever written to the file system.
//
// A path below one of the tree's roots that the tree does not hold does not exist, whatever the real system has there: a program sees
// the virtual GPU and no other. Paths outside the roots are none of the tree's business.
//
// Thread safety: immutable after construction.
#pragma once

#include <sys/stat.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::vgpu::interpose {

struct Entry {
  enum class Kind : uint8_t { file, directory, kfd_device, render_device };
  Kind kind = Kind::directory;
  std::string content;                // files
  std::vector<std::string> children;  // directories, names only
};

// The device numbers that libdrm expects of a render node, and a number for /dev/kfd.
inline constexpr unsigned kRenderMajor = 226;
inline constexpr unsigned kRenderMinor = 128;
inline constexpr unsigned kKfdMajor = 511;
inline constexpr unsigned kKfdMinor = 0;

class Tree {
 public:
  // Adds an entry and the directories above it up to its root. Throws std::logic_error when no root holds `path`.
  void add_root(std::string path);
  void add_file(const std::string& path, std::string content);
  void add_device(const std::string& path, Entry::Kind kind);
  void add_directory(const std::string& path);
  // Everything below `alias` is what is below `target`.
  void add_alias(std::string alias, std::string target);

  struct Lookup {
    std::string path;              // absolute, without "." and "..", aliases replaced
    const Entry* entry = nullptr;  // nullptr: does not exist
  };
  // nullopt: not below a root, so the real file system answers.
  std::optional<Lookup> find(const char* path) const;

  // Fills what stat() says of an entry.
  static void describe(const Lookup& found, struct stat& status);

 private:
  void insert(const std::string& path, Entry entry);
  const std::string* root_of(std::string_view path) const;

  std::vector<std::string> roots_;
  std::vector<std::pair<std::string, std::string>> aliases_;
  std::map<std::string, Entry, std::less<>> entries_;
};

// The tree of the emulated device; built on first use. nullptr when `path` cannot be in it (decided without building it) or when the
// options in the environment are wrong.
const Tree* tree_for(const char* path) noexcept;

}  // namespace uptempo::vgpu::interpose
