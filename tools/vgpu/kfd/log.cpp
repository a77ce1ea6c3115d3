#include "kfd/log.hpp"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>

namespace uptempo::vgpu::kfd {
namespace {

std::atomic<bool> verbose_notes{false};

}  // namespace

void report(std::string_view sentence) noexcept {
  char line[1024];
  const int length =
      std::snprintf(line, sizeof line, "uptempo-vgpu: %.*s\n",
                    static_cast<int>(std::min<std::size_t>(sentence.size(), 1000)), sentence.data());
  if (length <= 0) return;
  // stderr may be closed: nothing to be done about it here.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
}

void note(std::string_view sentence) noexcept {
  if (verbose_notes.load(std::memory_order_relaxed)) report(sentence);  // a flag, orders nothing
}

void set_verbose(bool verbose) noexcept { verbose_notes.store(verbose, std::memory_order_relaxed); }

}  // namespace uptempo::vgpu::kfd
