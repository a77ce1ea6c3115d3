#include "cp/kernel/kernel_name.hpp"

#include <cstdio>

#include "cp/kernel/code_image.hpp"

namespace uptempo::vgpu {

std::string kernel_name(AddressSpace::Reader& memory, GpuAddress kernel_object) {
  if (const auto image = CodeImage::of(memory, kernel_object))
    if (auto name = image->symbol_at(kernel_object - image->base()); name && !name->empty())
      return *name;
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(kernel_object));
  return text;
}

}  // namespace uptempo::vgpu
