#include "kfd/machine/log.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <atomic>
#include <iterator>

namespace uptempo::vgpu::kfd {
namespace {

std::atomic<bool> verbose_notes{false};

}  // namespace

void report(std::string_view sentence) noexcept {
  constexpr std::string_view begin = "uptempo-vgpu: ", end = "\n";
  const auto part = [](std::string_view text) {
    return iovec{const_cast<char*>(text.data()), text.size()};
  };
  const iovec line[] = {part(begin), part(sentence), part(end)};
  // One call, so that lines of several threads do not mix. If stderr is closed, the line is lost.
  [[maybe_unused]] const ssize_t written = ::writev(STDERR_FILENO, line, std::size(line));
}

void note(std::string_view sentence) noexcept {
  // relaxed: a flag that orders nothing
  if (verbose_notes.load(std::memory_order_relaxed)) report(sentence);
}

void set_verbose(bool verbose) noexcept { verbose_notes.store(verbose, std::memory_order_relaxed); }

}  // namespace uptempo::vgpu::kfd
