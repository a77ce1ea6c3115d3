#include "cp/queue.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "device/clock.hpp"

namespace uptempo::vgpu {

void Queue::report(std::string_view packet, std::string_view reason) const {
  std::string line = "uptempo-vgpu: queue " + std::to_string(ordinal_) + ", ";
  line += packet;
  line += ": ";
  line += reason;
  line += "; the queue is stopped\n";
  // One write(): lines of several threads and of the program's stdio do not mix.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void Queue::rung(std::uint64_t value, std::uint64_t host_ns) {
  fences_.doorbell(value, host_ns);
  if (!context_.device.trace.enabled()) return;
  char line[128];
  std::snprintf(line, sizeof line, R"({"type":"doorbell","queue":%u,"value":%lld,"ns":%llu})", ordinal_,
                static_cast<long long>(value), static_cast<unsigned long long>(host_ns));
  context_.device.trace.write(line);
}

void Queue::noted_doorbell(std::uint64_t value, std::uint64_t host_ns) {
  if (doorbell_lines_.noted(value, host_ns)) rung(value, host_ns);
}

void Queue::found_doorbell(std::uint64_t value) {
  if (!context_.device.trace.enabled() && !fences_.enabled()) return;
  // Noted before it was stored: if the program rang it, then its note is there, perhaps with others before it.
  context_.take_noted_doorbells();
  const std::uint64_t now = host_clock_ns();
  if (doorbell_lines_.found(value, now)) rung(value, now);
}

}  // namespace uptempo::vgpu
