#include "kfd/report/dwarf_library.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <string_view>

namespace uptempo::vgpu::kfd {
namespace {

template <typename Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

DwarfLibrary::DwarfLibrary() {
  void* const dw = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (dw == nullptr) return;
  void* const elf = dlopen("libelf.so.1", RTLD_NOW | RTLD_LOCAL);
  if (elf == nullptr) return;
  complete_ = look_up(elf, "elf_version", elf_version) && look_up(elf, "elf_memory", elf_memory) &&
              look_up(elf, "elf_end", elf_end) && look_up(dw, "dwarf_begin_elf", begin) &&
              look_up(dw, "dwarf_end", end) && look_up(dw, "dwarf_nextcu", next_unit) &&
              look_up(dw, "dwarf_offdie", die_at) && look_up(dw, "dwarf_getsrc_die", line_of) &&
              look_up(dw, "dwarf_addrdie", unit_of) && look_up(dw, "dwarf_lineno", number) &&
              look_up(dw, "dwarf_linesrc", source);
  if (complete_) elf_version(EV_CURRENT);
}

std::string DwarfLibrary::line_at(void* dwarf, uint64_t address) const {
  const auto text_of = [&](DwarfDie& unit) -> std::string {
    void* const line = line_of(&unit, address);
    int line_number = 0;
    if (line == nullptr || number(line, &line_number) != 0) return {};
    const char* const file = source(line, nullptr, nullptr);
    if (file == nullptr) return {};
    const std::string_view path(file);
    return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(line_number);
  };
  DwarfDie die;
  // Uses .debug_aranges, which compilers for the device do not write.
  if (unit_of(dwarf, address, &die) != nullptr) return text_of(die);
  uint64_t offset = 0, next = 0, abbreviations = 0;
  size_t header_bytes = 0;
  uint8_t address_bytes = 0, offset_bytes = 0;
  for (; next_unit(dwarf, offset, &next, &header_bytes, &abbreviations, &address_bytes,
                   &offset_bytes) == 0;
       offset = next) {
    if (die_at(dwarf, offset + header_bytes, &die) == nullptr) continue;
    if (std::string text = text_of(die); !text.empty()) return text;
  }
  return {};
}

}  // namespace uptempo::vgpu::kfd
