// A report's lines for the waves of a dispatch. Waves that are at one place, with one EXEC mask and
// one reason to wait, share a line.
#pragma once

#include <cstddef>
#include <functional>
#include "cp/report/report_text.hpp"

#include "cp/report/snapshot.hpp"
#include "cp/report/source_lookup.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

// Call it inside the Reader's section, which it leaves and enters again. `accessed` is called after
// the line of a polled address, with the indent of lines that explain it. `sources` may be
// null.
void add_waves(ReportText& text, size_t indent, const DispatchSnapshot& dispatch, uint32_t gpu,
               AddressSpace::Reader& memory, SourceLookup* sources,
               const std::function<void(size_t indent, GpuAddress, uint64_t bytes)>& accessed);

}  // namespace uptempo::vgpu
