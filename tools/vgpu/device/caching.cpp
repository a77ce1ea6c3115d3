#include "device/caching.hpp"

#include <array>

namespace uptempo::vgpu {

std::string_view scope_name(FenceScope scope) noexcept {
  constexpr std::array<std::string_view, 3> names{"none", "agent", "system"};
  return names[static_cast<size_t>(scope)];
}

std::string_view memory_kind_name(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::fine_grained:
      return "fine-grained host memory";
    case MemoryKind::coarse_grained:
      return "coarse-grained host memory";
    case MemoryKind::uncached:
      return "uncached host memory";
    case MemoryKind::device_local:
      return "coarse-grained device memory";
    case MemoryKind::device_local_fine:
      return "fine-grained device memory";
    case MemoryKind::doorbell:
      return "a doorbell";
    case MemoryKind::hdp_registers:
      return "registers";
  }
  return "memory";
}

MemoryType memory_type(std::string_view target, MemoryKind kind) noexcept {
  // Other targets have only UC and NC.
  const bool local_types = target == "gfx908" || target == "gfx90a";
  switch (kind) {
    case MemoryKind::coarse_grained:
      return MemoryType::non_coherent;
    case MemoryKind::device_local:
      return local_types ? MemoryType::read_write : MemoryType::non_coherent;
    case MemoryKind::device_local_fine:
      return local_types ? MemoryType::coherent : MemoryType::uncached;
    case MemoryKind::fine_grained:
    case MemoryKind::uncached:
    case MemoryKind::doorbell:
    case MemoryKind::hdp_registers:
      break;
  }
  return MemoryType::uncached;
}

}  // namespace uptempo::vgpu
