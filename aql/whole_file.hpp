// The files that a program leaves: whole, or as they were before.
//
// Thread safety: any thread of any process. Two writers of one file do not mix: write_whole_file()
// leaves the last one's bytes, append_to_file() those of both.
// Errors: each function returns the reason, for example "No space left on device", or "".
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <uptempo/aql/write_all.hpp>

namespace uptempo::aql {

// The action of write_whole_file() where no file can take the name: with a device or pipe, and with
// a file whose folder or owner does not allow a replacement.
enum class InPlace : uint8_t {
  refused,  // leaves it unchanged
  written,  // writes to it; an error can leave a part
};

namespace detail {

// A descriptor that its destructor closes.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) noexcept : descriptor_(descriptor) {}
  ~OpenFile() { (void)close_it(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  // Returns 0 or the error's number: some file systems report a full disk only here.
  int close_it() noexcept {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || close(descriptor) == 0 ? 0 : errno;
  }

 private:
  int descriptor_;
};

// The file that a link names, also one that is not there yet; any other file itself.
inline std::string named_by(std::string file) {
  constexpr int kMostLinks = 40;  // as the kernel
  char target[PATH_MAX];
  for (int i = 0; i < kMostLinks; ++i) {
    const ssize_t size = readlink(file.c_str(), target, sizeof target);
    if (size <= 0 || size == sizeof target) break;
    if (target[0] == '/')
      file.clear();
    else
      file.resize(file.rfind('/') + 1);  // npos + 1 is 0
    file.append(target, static_cast<size_t>(size));
  }
  return file;
}

// Creates a file with a name of its own beside `place`. Returns -1 with errno if it cannot.
inline int create_beside(const std::string& place, std::string& name) {
  static std::atomic<unsigned> last{0};
  int opened = -1;
  do {  // a crashed process with the same number may have left this name
    // relaxed: a number of its own is enough
    name = place + '.' + std::to_string(getpid()) + '-' +
           std::to_string(last.fetch_add(1, std::memory_order_relaxed));
    opened = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (opened < 0 && errno == EEXIST);
  return opened;
}

inline bool is_writable(const std::string& file) noexcept {
  return faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0;
}

// Where a file's bytes go.
struct Destination {
  explicit Destination(const std::string& file) : place(named_by(file)) {
    struct stat through {};
    exists = stat(file.c_str(), &through) == 0;
    if (!exists && (errno != ENOENT || file.empty())) error = errno;
    const bool is_there = stat(place.c_str(), &status) == 0;
    // A link of /proc/self/fd may name something that has no name.
    if (exists &&
        (!is_there || status.st_dev != through.st_dev || status.st_ino != through.st_ino)) {
      place = file;
      status = through;
      has_name = false;
    }
  }
  bool is_replaceable() const noexcept { return has_name && (!exists || S_ISREG(status.st_mode)); }

  std::string place;
  int error = 0;  // no file can be there, for example because links form a loop
  bool exists = false;
  bool has_name = true;
  struct stat status {};  // if it exists
};

// Writes a file beside the destination, which then takes its name. Returns 0 or the error's number.
// `not_allowed` is set if nothing was changed, and the file itself may be writable.
inline int replace(const Destination& to, std::string_view bytes, bool keeps_owner,
                   bool& not_allowed) {
  std::string beside;
  OpenFile file(create_beside(to.place, beside));
  if (file.descriptor() < 0) {
    not_allowed = errno == EACCES || errno == EPERM || errno == ENAMETOOLONG;
    return errno;
  }
  int error = 0;
  if (to.exists) {
    const bool is_owned = fchown(file.descriptor(), to.status.st_uid, to.status.st_gid) == 0;
    const mode_t mode = to.status.st_mode & (is_owned ? 07777 : 0777);
    if ((!is_owned && keeps_owner) || fchmod(file.descriptor(), mode) != 0) error = errno;
    not_allowed = error != 0;
  }
  if (error == 0) error = write_all(file.descriptor(), bytes);
  // Before the rename: a name that survives a crash must not refer to a file without its bytes.
  if (error == 0 && fsync(file.descriptor()) != 0) error = errno;
  if (error == 0) error = file.close_it();
  if (error == 0 && rename(beside.c_str(), to.place.c_str()) != 0) error = errno;
  if (error != 0) unlink(beside.c_str());
  return error;
}

}  // namespace detail

// Writes `bytes` to a file beside `file`, flushes it, and gives it the name `file`, with the mode,
// owner and group of what was there. `refused` keeps the owner where the process may. A link stays
// a link, and the file that it names is replaced; hard links keep the old bytes. After a crash the
// old or the new file exists, perhaps with the file beside it.
inline std::string write_whole_file(const std::string& file, std::string_view bytes,
                                    InPlace in_place) {
  const detail::Destination to(file);
  if (to.error != 0) return write_error(to.error);
  // A file that may not be written is not replaced either, though its folder would allow it.
  if (to.exists && !detail::is_writable(to.place)) return write_error(errno);
  bool not_allowed = !to.is_replaceable();
  if (not_allowed && in_place == InPlace::refused) return "it is not a regular file";
  if (!not_allowed) {
    const bool keeps_owner = in_place == InPlace::written;
    const int error = detail::replace(to, bytes, keeps_owner, not_allowed);
    if (error == 0) return {};
    if (in_place == InPlace::refused && not_allowed)
      return "no file can be made beside it: " + write_error(error);
    if (!not_allowed) return write_error(error);
  }
  // O_CREAT would be refused for others' pipes in /tmp (proc(5), protected_fifos).
  detail::OpenFile opened(open_output(to.place.c_str(), to.exists ? O_TRUNC : O_CREAT));
  if (opened.descriptor() < 0) return write_error(errno);
  int error = write_all(opened.descriptor(), bytes);
  if (error == 0) error = opened.close_it();
  return error == 0 ? std::string() : write_error(error);
}

// Appends `bytes` to `file`, or creates it. A lock (flock(2)) keeps other calls out meanwhile, so
// several processes may use one file. If the bytes do not fit, a regular file is as before.
inline std::string append_to_file(const std::string& file, std::string_view bytes) {
  detail::OpenFile opened(open_output(file.c_str(), O_CREAT | O_APPEND));
  if (opened.descriptor() < 0) return write_error(errno);
  struct stat before {
  }, after{};
  const bool is_regular = fstat(opened.descriptor(), &before) == 0 && S_ISREG(before.st_mode);
  // Without locks, as on some network file systems, one write() is the best that there is.
  while (is_regular && flock(opened.descriptor(), LOCK_EX) != 0 && errno == EINTR) {
  }
  if (is_regular) (void)fstat(opened.descriptor(), &before);
  int error = write_all(opened.descriptor(), bytes);
  if (error != 0 && is_regular && fstat(opened.descriptor(), &after) == 0 &&
      after.st_size > before.st_size)
    (void)!ftruncate(opened.descriptor(), before.st_size);
  if (error == 0) error = opened.close_it();
  return error == 0 ? std::string() : write_error(error);
}

// Why write_whole_file() with InPlace::written, or append_to_file(), would fail now. Changes no
// file, and does not open pipes, whose readers would see the end of their input.
inline std::string why_not_writable(const std::string& file) {
  const detail::Destination to(file);
  if (to.error != 0) return write_error(to.error);
  if (to.exists && !S_ISREG(to.status.st_mode) && !S_ISDIR(to.status.st_mode))
    return detail::is_writable(to.place) ? "" : write_error(errno);
  std::string beside;
  const detail::OpenFile opened(to.exists ? open(to.place.c_str(), O_WRONLY | O_CLOEXEC)
                                          : detail::create_beside(to.place, beside));
  if (opened.descriptor() >= 0) {
    if (!to.exists) unlink(beside.c_str());
    return {};
  }
  return errno == ENAMETOOLONG ? "" : write_error(errno);  // its longer name
}

}  // namespace uptempo::aql
