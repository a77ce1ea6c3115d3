// The virtual /dev and /sys: the existing paths and their content. The tree exists in memory only;
// nothing is written to the file system.
//
// Below a root of the tree, only the tree's entries exist, whatever the real system has there. The
// program therefore sees the virtual GPU and no other. Outside its roots, the tree adds names to
// the listings of the directories that hold its roots and aliases, and affects no other path.
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
  std::string content;                // of a file
  std::vector<std::string> children;  // of a directory, names only
  uint32_t gpu_index = 0;             // of a render device
};

// Device numbers: libdrm expects this major number of a render node; /dev/kfd has one of its own.
inline constexpr unsigned kRenderMajor = 226;
constexpr unsigned render_minor_of(uint32_t gpu_index) noexcept { return 128 + gpu_index; }
inline constexpr unsigned kKfdMajor = 511;
inline constexpr unsigned kKfdMinor = 0;

class Tree {
 public:
  // Adds an entry and its parent directories up to the root. Throws std::logic_error if no root
  // contains `path`.
  void add_root(std::string path);
  void add_file(const std::string& path, std::string content);
  void add_device(const std::string& path, Entry::Kind kind, uint32_t gpu_index = 0);
  void add_directory(const std::string& path);
  // Makes everything below `target` also visible below `alias`.
  void add_alias(std::string alias, std::string target);

  struct Lookup {
    std::string path;              // absolute, without "." and "..", aliases resolved
    const Entry* entry = nullptr;  // nullptr: the path does not exist
  };
  // Returns nullopt if the path is not below a root; the real file system then answers.
  std::optional<Lookup> find(const char* path) const;
  // Names that the tree has in a directory of the real file system.
  std::vector<std::string> names_in(const char* directory) const;

  // Fills `status` with stat()'s result for an entry.
  static void describe(const Lookup& found, struct stat& status);

 private:
  void insert(const std::string& path, Entry entry);
  const std::string* root_of(std::string_view path) const;

  std::vector<std::string> roots_;
  std::vector<std::pair<std::string, std::string>> aliases_;
  std::map<std::string, Entry, std::less<>> entries_;
};

// Returns the tree of the emulated device and builds it on first use. Returns nullptr if `path`
// cannot be in the tree (decided without building it) or if the options in the environment are
// invalid.
const Tree* tree_for(const char* path) noexcept;

}  // namespace uptempo::vgpu::interpose
