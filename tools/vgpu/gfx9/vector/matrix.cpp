// Matrix instructions (MFMA) of gfx908 and gfx90a.
#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9::vector {

std::span<const Entry> matrix_entries() { return {}; }

}  // namespace uptempo::vgpu::gfx9::vector
