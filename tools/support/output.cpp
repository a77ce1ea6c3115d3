#include "tools/support/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "aql/printable.hpp"

namespace uptempo::support {
namespace {

std::string cannot_write(const std::string& file, int error) {
  return fmt::format("cannot write {}{}", file == "-" ? "standard output" : "'" + file + "'",
                     error == 0 ? "" : fmt::format(": {}", std::strerror(error)));
}

// Programs print through std::cout and through stdio. `text` may be empty.
void print_and_flush(std::string_view text) {
  errno = 0;
  std::cout << text << std::flush;
  bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  // Some file systems report a full disk only when a file is closed.
  if (const int copy = failed ? -1 : dup(STDOUT_FILENO); copy >= 0) failed = close(copy) != 0;
  if (failed) throw std::runtime_error(cannot_write("-", errno));
}

// A file that is being written; closed by its destructor.
class Written {
 public:
  explicit Written(int descriptor) noexcept : descriptor_(descriptor) {}
  ~Written() { (void)close_with_error(); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  bool write(std::string_view text) const noexcept {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }
  // Some file systems report a full disk only when a file is closed.
  bool close_with_error() noexcept {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

// The file that a link names, also one that is not there yet; any other file itself.
std::string named_by(std::filesystem::path file) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(file, error); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(file, error);
    if (error) break;
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  return file.string();
}

// Writes into the file itself. Returns false with errno.
bool write_in_place(const std::string& place, std::string_view text) {
  Written file(open(place.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file.descriptor() >= 0 && file.write(text) && file.close_with_error();
}

enum class Replaced { yes, no, not_allowed };

// Writes a file beside `place`, which then takes its name. `before`: what is there, or null.
// Returns `no` with errno. `not_allowed`: `place` is as before, but may be writable.
Replaced replace(const std::string& place, const struct stat* before, std::string_view text) {
  static std::atomic<unsigned> last{0};
  std::string beside;
  int opened = -1;
  do {  // a crashed process with the same number may have left this name
    beside = place + fmt::format(".{}-{}", getpid(), last.fetch_add(1, std::memory_order_relaxed));
    opened = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (opened < 0 && errno == EEXIST);
  if (opened < 0) {
    const bool by_folder = errno == EACCES || errno == EPERM || errno == ENAMETOOLONG;
    return by_folder ? Replaced::not_allowed : Replaced::no;
  }
  Written file(opened);
  const auto undo = [&](Replaced result) {
    const int error = errno;
    unlink(beside.c_str());
    errno = error;
    return result;
  };
  if (before != nullptr && (fchown(file.descriptor(), before->st_uid, before->st_gid) != 0 ||
                            fchmod(file.descriptor(), before->st_mode & 07777) != 0))
    return undo(Replaced::not_allowed);
  // Before the rename: a name that survives a crash must not refer to a file without its bytes.
  if (!file.write(text) || fsync(file.descriptor()) != 0 || !file.close_with_error() ||
      rename(beside.c_str(), place.c_str()) != 0)
    return undo(Replaced::no);
  return Replaced::yes;
}

}  // namespace

std::string output_problem(const std::string& file) {
  if (file == "-") return {};
  struct stat status {
  }, itself{};
  const bool exists = stat(file.c_str(), &status) == 0;
  const bool is_name_free = lstat(file.c_str(), &itself) != 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return access(file.c_str(), W_OK) == 0 ? "" : cannot_write(file, errno);
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (opened < 0) return cannot_write(file, errno);
  close(opened);
  if (is_name_free) {
    unlink(file.c_str());
  } else if (!exists) {  // the file that a link names
    std::error_code error;
    const auto target = std::filesystem::canonical(file, error);
    if (!error) unlink(target.c_str());
  }
  return {};
}

void write_output(const std::string& file, std::string_view text) {
  if (file == "-") return print_and_flush(text);
  const std::string place = named_by(file);
  struct stat before {};
  const bool exists = stat(place.c_str(), &before) == 0;
  // A file that may not be written is not replaced either, though its folder would allow it.
  if (exists && access(place.c_str(), W_OK) != 0)
    throw std::runtime_error(cannot_write(file, errno));
  Replaced result = Replaced::not_allowed;
  if (!exists || S_ISREG(before.st_mode)) result = replace(place, exists ? &before : nullptr, text);
  if (result == Replaced::yes) return;
  if (result == Replaced::no || !write_in_place(place, text))
    throw std::runtime_error(cannot_write(file, errno));
}

void write_json(const std::string& file, const nlohmann::ordered_json& document, int indent) {
  write_output(
      file,
      document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

void print(std::string_view text) { print_and_flush(aql::printable(text, aql::Lines::kept)); }

void print_report(const std::string& json_file, std::string_view text) {
  if (json_file != "-") print(text);
}

}  // namespace uptempo::support
