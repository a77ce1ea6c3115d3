#include "device/trace.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <stdexcept>

#include <uptempo/aql/write_all.hpp>

namespace uptempo::vgpu {
namespace {

// Programs that close "all" descriptors, or rely on the lowest free one, rarely reach this number.
constexpr int kLowestDescriptor = 700;

std::string with_process_id(std::string file) {
  for (auto at = file.find("%p"); at != std::string::npos; at = file.find("%p", at))
    file.replace(at, 2, std::to_string(getpid()));
  return file;
}

int open_for_append(const std::string& file) {
  const int low = aql::open_output(file.c_str(), O_CREAT | O_APPEND, 0644);
  if (low < 0) return low;
  const int high = fcntl(low, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high < 0) return low;  // RLIMIT_NOFILE is below kLowestDescriptor
  ::close(low);
  return high;
}

}  // namespace

struct Trace::Impl {
  // Opens the file, and remembers which one it is. Returns false, with errno, if that fails.
  bool open() {
    descriptor = open_for_append(file);
    struct stat status {};
    if (descriptor < 0 || fstat(descriptor, &status) != 0) return false;
    // Another run's launcher does not empty a file that has this lock.
    (void)flock(descriptor, LOCK_SH | LOCK_NB);
    device = status.st_dev;
    number = status.st_ino;
    return true;
  }
  // False if the program has closed the descriptor, also if another file has its number now.
  bool is_open() const {
    struct stat status {};
    return descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_dev == device &&
           status.st_ino == number;
  }

  std::string file;
  std::mutex mutex;
  int descriptor = -1;
  dev_t device = 0;  // with `number`: the file behind the descriptor
  ino_t number = 0;
  std::string line;
  std::atomic<bool> is_incomplete{false};  // and reported as such
};

Trace::Trace(const std::string& file) {
  if (file.empty()) return;
  impl_ = std::make_unique<Impl>();
  impl_->file = with_process_id(file);
  if (!impl_->open())
    throw std::runtime_error("cannot write the trace file '" + impl_->file +
                             "': " + aql::write_error(errno));
}

Trace::~Trace() {
  if (impl_ != nullptr && impl_->is_open()) ::close(impl_->descriptor);
}

const std::string& Trace::file() const noexcept {
  static const std::string& none = *new std::string;  // never destroyed: the closing line uses it
  return impl_ == nullptr ? none : impl_->file;
}

bool Trace::is_incomplete() const noexcept {
  // relaxed: a flag that orders nothing
  return impl_ != nullptr && impl_->is_incomplete.load(std::memory_order_relaxed);
}

void Trace::write(std::string_view json_object) {
  if (impl_ == nullptr) return;
  const std::lock_guard lock(impl_->mutex);
  impl_->line.assign(json_object);
  impl_->line.push_back('\n');
  // The program may have closed this descriptor with others, and opened a file of its own, which
  // must not get the line.
  const bool is_open = impl_->is_open() || (!is_incomplete() && impl_->open());
  const int error = is_open ? aql::write_all(impl_->descriptor, impl_->line) : errno;
  // A full disk must not stop the program under test.
  if (error != 0 && !impl_->is_incomplete.exchange(true))
    (void)aql::write_all(STDERR_FILENO, "uptempo-vgpu: '" + impl_->file +
                                            "' is incomplete: " + aql::write_error(error) + '\n');
}

}  // namespace uptempo::vgpu
