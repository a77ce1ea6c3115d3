#include "kfd/report/dwarf_library.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <cstdlib>
#include <string_view>

#include "device/demangled.hpp"

namespace uptempo::vgpu::kfd {
namespace {

// DWARF 5, tables 7.3 and 7.5.
constexpr int kInlinedSubroutine = 0x1d, kSubprogram = 0x2e;
constexpr unsigned kCallFile = 0x58, kCallLine = 0x59, kLinkageName = 0x6e;

std::string line_text(std::string_view path, uint64_t line) {
  return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(line);
}

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
  complete_ =
      look_up(elf, "elf_version", elf_version) && look_up(elf, "elf_memory", elf_memory) &&
      look_up(elf, "elf_end", elf_end) && look_up(dw, "dwarf_begin_elf", begin) &&
      look_up(dw, "dwarf_end", end) && look_up(dw, "dwarf_nextcu", next_unit) &&
      look_up(dw, "dwarf_offdie", die_at) && look_up(dw, "dwarf_getsrc_die", line_of) &&
      look_up(dw, "dwarf_addrdie", unit_of) && look_up(dw, "dwarf_lineno", number) &&
      look_up(dw, "dwarf_linesrc", source) && look_up(dw, "dwarf_getscopes", scopes_at) &&
      look_up(dw, "dwarf_getscopes_die", scopes_of) && look_up(dw, "dwarf_tag", tag) &&
      look_up(dw, "dwarf_diename", name) && look_up(dw, "dwarf_attr_integrate", attribute) &&
      look_up(dw, "dwarf_formudata", number_of) && look_up(dw, "dwarf_formstring", text_of) &&
      look_up(dw, "dwarf_getsrcfiles", files_of) && look_up(dw, "dwarf_filesrc", file_name);
  if (complete_) elf_version(EV_CURRENT);
}

std::string DwarfLibrary::line_at(void* dwarf, uint64_t address) const {
  DwarfDie unit;
  return line_at(dwarf, address, unit);
}

std::string DwarfLibrary::line_at(void* dwarf, uint64_t address, DwarfDie& unit) const {
  const auto line_in_unit = [&]() -> std::string {
    void* const line = line_of(&unit, address);
    int line_number = 0;
    if (line == nullptr || number(line, &line_number) != 0) return {};
    const char* const file = source(line, nullptr, nullptr);
    if (file == nullptr) return {};
    return line_text(file, static_cast<uint64_t>(line_number));
  };
  // Uses .debug_aranges, which compilers for the device do not write.
  if (unit_of(dwarf, address, &unit) != nullptr) return line_in_unit();
  uint64_t offset = 0, next = 0, abbreviations = 0;
  size_t header_bytes = 0;
  uint8_t address_bytes = 0, offset_bytes = 0;
  for (; next_unit(dwarf, offset, &next, &header_bytes, &abbreviations, &address_bytes,
                   &offset_bytes) == 0;
       offset = next) {
    if (die_at(dwarf, offset + header_bytes, &unit) == nullptr) continue;
    if (std::string text = line_in_unit(); !text.empty()) return text;
  }
  return {};
}

std::string DwarfLibrary::line_of_call(DwarfDie& unit, DwarfDie& inlined) const {
  DwarfAttribute at;
  uint64_t file = 0, line = 0;
  void* files = nullptr;
  size_t count = 0;
  if (attribute(&inlined, kCallFile, &at) == nullptr || number_of(&at, &file) != 0 ||
      attribute(&inlined, kCallLine, &at) == nullptr || number_of(&at, &line) != 0 ||
      files_of(&unit, &files, &count) != 0 || file >= count)
    return {};
  const char* const path = file_name(files, file, nullptr, nullptr);
  return path == nullptr ? std::string() : line_text(path, line);
}

std::string DwarfLibrary::name_of(DwarfDie& inlined) const {
  DwarfAttribute at;
  const char* text = attribute(&inlined, kLinkageName, &at) == nullptr ? nullptr : text_of(&at);
  if (text == nullptr) text = name(&inlined);
  return text == nullptr ? std::string() : demangled(text);
}

std::vector<DwarfLibrary::Place> DwarfLibrary::places_at(void* dwarf, uint64_t address) const {
  DwarfDie unit;
  std::vector<Place> places(1);
  places.back().line = line_at(dwarf, address, unit);
  if (places.back().line.empty()) return {};
  // Beyond an inlined function, these are the scopes of its definition, not of its call.
  DwarfDie* scopes = nullptr;
  if (scopes_at(&unit, address, &scopes) <= 0) return places;
  DwarfDie innermost = scopes[0];
  std::free(scopes);
  const int depth = scopes_of(&innermost, &scopes);
  if (depth <= 0) return places;
  for (int scope = 0; scope < depth && tag(&scopes[scope]) != kSubprogram; ++scope) {
    if (tag(&scopes[scope]) != kInlinedSubroutine) continue;
    places.back().function = name_of(scopes[scope]);
    places.push_back({.function = {}, .line = line_of_call(unit, scopes[scope])});
  }
  std::free(scopes);
  return places;
}

}  // namespace uptempo::vgpu::kfd
