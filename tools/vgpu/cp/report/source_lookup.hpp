// Source lines for a report. The driver implements it, since it can read the program's code objects.
#pragma once

#include <cstdint>
#include <string>

#include "device/memory.hpp"

namespace uptempo::vgpu {

class SourceLookup {
 public:
  virtual ~SourceLookup() = default;
  // Returns "spin.cl:12", or an empty text. Not inside a Reader's section: it may take long.
  virtual std::string line(uint32_t gpu, GpuAddress pc) = 0;
  // Returns why a place had no line, in one sentence; empty if each had one.
  virtual std::string missing() const = 0;
};

}  // namespace uptempo::vgpu
