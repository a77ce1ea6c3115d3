// A report's lines for the waves of a dispatch. Waves that are at one place, with one EXEC mask and
// one reason to wait, share a line.
#pragma once

#include "cp/report/report_text.hpp"
#include "cp/report/snapshot.hpp"
#include "cp/report/source_lookup.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

// Call it inside the Reader's section, which it leaves and enters again. `sources` may be
// null.
void add_waves(ReportText& text, size_t indent, const DispatchSnapshot& dispatch, uint32_t gpu,
               AddressSpace::Reader& memory, SourceLookup* sources);

}  // namespace uptempo::vgpu
