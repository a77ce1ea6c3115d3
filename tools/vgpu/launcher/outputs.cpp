#include "launcher/outputs.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "launcher/failure.hpp"

namespace fs = std::filesystem;

namespace uptempo::vgpu::launcher {
namespace {

// A file that is open for writing. Unless kept, the destructor removes what opening has created.
class Opened {
 public:
  Opened(std::string option, fs::path path) : option_(std::move(option)), path_(std::move(path)) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
    descriptor_ = open(path_.c_str(), kFlags | O_EXCL, 0644);
    is_new_ = descriptor_ >= 0;
    if (!is_new_) descriptor_ = open(path_.c_str(), kFlags, 0644);
    if (descriptor_ < 0) refuse("cannot write '" + path_.string() + "': " + std::strerror(errno));
    fstat(descriptor_, &status_);
  }
  ~Opened() {
    if (is_new_) unlink(path_.c_str());
    if (descriptor_ >= 0) close(descriptor_);
  }
  Opened(Opened&& other) noexcept
      : option_(std::move(other.option_)),
        path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        is_new_(std::exchange(other.is_new_, false)),
        status_(other.status_) {}
  Opened& operator=(Opened&&) = delete;

  // Pipes and devices may serve several purposes; a file's lines would be lost or mixed.
  bool is_same(const struct stat& other) const {
    return S_ISREG(status_.st_mode) && status_.st_dev == other.st_dev &&
           status_.st_ino == other.st_ino;
  }
  void refuse_if(const fs::path& other, const std::string& what) const {
    struct stat status {};
    if (stat(other.c_str(), &status) == 0 && is_same(status))
      refuse("'" + path_.string() + "' is " + what);
  }

  // Until the program starts. Does nothing on a file system without locks.
  void lock() const {
    if (S_ISREG(status_.st_mode) && flock(descriptor_, LOCK_EX | LOCK_NB) != 0 &&
        errno == EWOULDBLOCK)
      refuse("a program of another run writes '" + path_.string() + "'");
  }

  void empty() {
    is_new_ = false;
    if (S_ISREG(status_.st_mode) && ftruncate(descriptor_, 0) != 0)
      refuse("cannot empty '" + path_.string() + "': " + std::strerror(errno));
  }

  [[noreturn]] void refuse(const std::string& sentence) const {
    throw Failure{kUsage, option_ + ": " + sentence + " (see uptempo-vgpu --help)"};
  }

 private:
  std::string option_;
  fs::path path_;
  int descriptor_ = -1;
  bool is_new_ = false;
  struct stat status_ {};
};

const char* in_environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// Not opened here: its reader would see the end of its input.
bool is_pipe(const fs::path& path) {
  std::error_code ignored;
  return fs::is_fifo(path, ignored);
}

}  // namespace

void empty(const Outputs& outputs, const fs::path& program) {
  std::vector<Opened> files;
  const fs::path trace = in_environment("UPTEMPO_VGPU_TRACE"),
                 report = in_environment("UPTEMPO_VGPU_REPORT");
  for (const auto& [option, path] : outputs) {
    const bool is_trace = option == "--trace";
    const fs::path& other = is_trace ? report : trace;
    const std::string is_other = is_trace ? "the file of --report" : "the file of --trace";
    if (path.lexically_normal() == other.lexically_normal() && !fs::is_other(path))
      throw Failure{kUsage, option + ": '" + path.string() + "' is " + is_other +
                                " (see uptempo-vgpu --help)"};
    if (path.string().find("%p") != std::string::npos) continue;
    if (is_pipe(path)) {
      if (access(path.c_str(), W_OK) == 0) continue;
      throw Failure{kUsage, option + ": cannot write '" + path.string() +
                                "': " + std::strerror(errno) + " (see uptempo-vgpu --help)"};
    }
    const Opened& file = files.emplace_back(option, path);
    file.refuse_if(program, "the program");
    file.refuse_if(in_environment("UPTEMPO_VGPU_SUPPRESSIONS"), "the file of --suppressions");
    file.refuse_if(other, is_other);
    file.lock();
  }
  for (Opened& file : files) file.empty();
}

}  // namespace uptempo::vgpu::launcher
