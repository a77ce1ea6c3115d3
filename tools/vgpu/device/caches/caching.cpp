#include "device/caches/caching.hpp"

#include <array>

namespace uptempo::vgpu {
namespace {

constexpr std::string_view kGfx900 =
    "Linux amdgpu_amdkfd_gpuvm.c, get_pte_flags(): NC, or UC if coherent or uncached";
constexpr std::string_view kGfx908 =
    "Linux gmc_v9_0.c, gmc_v9_0_get_coherence_flags(), GC 9.4.1 and 9.4.2. Local memory has no C "
    "bit unless xGMI connects the CPU, so the probes of LLVM's guide do not reach it. Extended "
    "coherence is the same as coherence. Memory of a peer is NC, or UC if coherent or uncached";
constexpr std::string_view kGfx942 =
    "Linux gmc_v9_0.c, gmc_v9_0_get_coherence_flags(), GC 9.4.3, not an APU: local memory RW with "
    "the C bit whether coherent or not, extended coherence CC from the second revision on, "
    "uncached and system memory UC; memory of a peer NC whether coherent or not, UC if uncached or "
    "of extended coherence; LLVM AMDGPUUsage, Memory Model GFX942";

constexpr auto rows(std::string_view target, std::string_view source, MemoryType coarse_host,
                    MemoryType local, MemoryType local_fine, MemoryType local_extended,
                    MemoryType peer_fine) noexcept {
  return std::array{
      Coherence{target, MemoryKind::fine_grained, MemoryType::uncached, source},
      Coherence{target, MemoryKind::uncached, MemoryType::uncached, source},
      Coherence{target, MemoryKind::coarse_grained, coarse_host, source},
      Coherence{target, MemoryKind::device_local, local, source},
      Coherence{target, MemoryKind::device_local_fine, local_fine, source},
      Coherence{target, MemoryKind::device_local_extended, local_extended, source},
      Coherence{target, MemoryKind::device_local_uncached, MemoryType::uncached, source},
      Coherence{target, MemoryKind::peer_local, MemoryType::non_coherent, source},
      Coherence{target, MemoryKind::peer_local_fine, peer_fine, source},
      Coherence{target, MemoryKind::peer_local_uncached, MemoryType::uncached, source},
  };
}

template <size_t Targets, size_t Rows>
constexpr auto joined(const std::array<std::array<Coherence, Rows>, Targets>& tables) noexcept {
  std::array<Coherence, Targets * Rows> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = tables[i / Rows][i % Rows];
  return all;
}

using enum MemoryType;
constexpr auto kCoherence = joined(std::array{
    rows("gfx900", kGfx900, non_coherent, non_coherent, uncached, uncached, uncached),
    rows("gfx906", kGfx900, non_coherent, non_coherent, uncached, uncached, uncached),
    rows("gfx908", kGfx908, non_coherent, read_write, coherent, coherent, uncached),
    rows("gfx90a", kGfx908, non_coherent, read_write, coherent, coherent, uncached),
    rows("gfx942", kGfx942, uncached, probed_read_write, probed_read_write, coherent, non_coherent),
});

}  // namespace

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
    case MemoryKind::device_local_extended:
      return "device memory of extended coherence";
    case MemoryKind::device_local_uncached:
      return "uncached device memory";
    case MemoryKind::peer_local:
      return "coarse-grained memory of a peer";
    case MemoryKind::peer_local_fine:
      return "fine-grained memory of a peer";
    case MemoryKind::peer_local_uncached:
      return "uncached memory of a peer";
    case MemoryKind::doorbell:
      return "a doorbell";
    case MemoryKind::hdp_registers:
      return "registers";
  }
  return "memory";
}

MemoryType memory_type(std::string_view target, MemoryKind kind) noexcept {
  for (const Coherence& row : kCoherence)
    if (row.target == target && row.kind == kind) return row.type;
  return MemoryType::uncached;
}

bool peer_writes_probe(std::string_view target) noexcept {
  return target == "gfx908" || target == "gfx90a" || target == "gfx942";
}

std::span<const Coherence> coherence_table() noexcept { return kCoherence; }

}  // namespace uptempo::vgpu
