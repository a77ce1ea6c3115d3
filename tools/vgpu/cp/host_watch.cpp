#include "cp/host_watch.hpp"

#include <optional>

namespace uptempo::vgpu {
namespace {

// The page may be one of another GPU. The checker does not use the kind for the host.
fences::Checker::KindOf kind_for_host(const Device& device, AddressSpace::Reader& memory) {
  if (is_one_of_several(device))
    return [](GpuAddress) { return std::optional(MemoryKind::fine_grained); };
  return [&memory](GpuAddress page) -> std::optional<MemoryKind> {
    const Mapping* const mapping = memory.find(page);
    if (mapping == nullptr) return std::nullopt;
    return mapping->kind;
  };
}

}  // namespace

HostWatch::HostWatch(Device& device, AddressSpace::Reader& memory)
    : checker_(device.checker),
      pages_(checker_ == nullptr ? nullptr : device.host_pages),
      waits_(pages_ != nullptr && device.options.checks.waits),
      kind_of_(kind_for_host(device, memory)) {}

void HostWatch::report() {
  if (pages_ == nullptr) return;
  const auto one_observer = checker_->section();
  PageMask bytes;
  for (HostEvent event; pages_->take(event, bytes);) {
    if (waits_ && !misses_looks_ && pages_->misses_looks()) {
      misses_looks_ = true;
      checker_->host_looked(0, event.host_ns);
    }
    switch (event.kind) {
      case HostEvent::Kind::read:
        checker_->host_read(event.address, event.host_ns, kind_of_, waits_ ? event.site : 0,
                            event.thread);
        break;
      case HostEvent::Kind::opened:
        // A system call may store nothing.
        if (waits_ && event.site != 0) {
          checker_->host_stored(event.address, event.host_ns, kind_of_, event.site, event.thread);
        } else {
          checker_->host_opened(fences::page_of(event.address), event.host_ns, event.thread);
        }
        break;
      case HostEvent::Kind::looked:
        checker_->host_looked(event.address, event.host_ns);
        break;
      case HostEvent::Kind::wrote:
        checker_->host_wrote(event.address, bytes, event.closed_ns, kind_of_);
        break;
      case HostEvent::Kind::unknown:
        checker_->unknown(event.address, bytes);
        break;
    }
  }
}

}  // namespace uptempo::vgpu
