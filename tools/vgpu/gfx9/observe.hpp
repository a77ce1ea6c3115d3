// The observer hook of the memory instructions, as a policy: handlers are templates over one of these two.
#pragma once

#include <cstdint>

#include "device/memory.hpp"
#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9 {

struct Unobserved {
  static constexpr bool enabled = false;
  static void access(const Op&, const Wave&, Access, std::uint32_t, std::uint64_t,
                     const GpuAddress*) noexcept {}
  static void scalar_access(const Op&, const Wave&, Access, std::uint32_t, GpuAddress) noexcept {}
};

// Forwards to the dispatch's MemoryObserver; does nothing when it has none.
struct Observed {
  static constexpr bool enabled = true;
  static void access(const Op& op, const Wave& wave, Access access, std::uint32_t size_bytes,
                     std::uint64_t lanes, const GpuAddress* address) noexcept;
  static void scalar_access(const Op& op, const Wave& wave, Access access, std::uint32_t size_bytes,
                            GpuAddress address) noexcept;
};

}  // namespace uptempo::vgpu::gfx9
