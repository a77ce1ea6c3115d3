// Files of the kernel driver. Private to the engine.
//
// Thread safety: any thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>

namespace uptempo::detail {

class Descriptor {
 public:
  // Closed on exec. get() is negative if the file cannot be opened; then errno has the reason.
  Descriptor(const std::string& file, int flags)
      : value_(::open(file.c_str(), flags | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const noexcept { return value_; }

 private:
  int value_;
};

// Returns the contents, or nothing with errno set.
inline std::optional<std::string> contents_of(const std::string& file) {
  const Descriptor descriptor(file, O_RDONLY);
  if (descriptor.get() < 0) return {};
  std::string text;
  for (;;) {
    char part[4096];
    const ssize_t count = ::read(descriptor.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) return text;
    text.append(part, static_cast<size_t>(count));
  }
}

}  // namespace uptempo::detail
