// A temporary directory. The destructor removes it with its contents.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace uptempo::support {

class TemporaryDirectory {
 public:
  // Throws std::system_error if the directory cannot be created.
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "uptempo-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(),
                              "cannot create a directory like " + path);
    path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace uptempo::support
