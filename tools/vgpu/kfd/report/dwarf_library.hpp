// libdw and libelf of elfutils, loaded when an object of this class is made, so that the virtual
// GPU does not depend on them.
//
// Thread safety: the constructor from any thread; the rest thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace uptempo::vgpu::kfd {

// The functions that reports use, with elfutils' types where they are opaque (libelf.h and
// elfutils/libdw.h, whose ABI is stable).
struct DwarfDie {
  void* address;
  void* unit;
  void* abbreviation;
  long padding;
};
struct DwarfAttribute {
  unsigned code, form;
  void* value;
  void* unit;
};

class DwarfLibrary {
 public:
  DwarfLibrary();

  bool complete() const noexcept { return complete_; }

  unsigned (*elf_version)(unsigned) = nullptr;
  void* (*elf_memory)(char* image, size_t size_bytes) = nullptr;
  int (*elf_end)(void* elf) = nullptr;
  void* (*begin)(void* elf, int command, void* section) = nullptr;
  int (*end)(void* dwarf) = nullptr;
  int (*next_unit)(void* dwarf, uint64_t offset, uint64_t* next, size_t* header_bytes,
                   uint64_t* abbreviations, uint8_t* address_bytes,
                   uint8_t* offset_bytes) = nullptr;
  DwarfDie* (*die_at)(void* dwarf, uint64_t offset, DwarfDie* die) = nullptr;
  void* (*line_of)(DwarfDie* unit, uint64_t address) = nullptr;
  int (*number)(void* line, int* number) = nullptr;
  DwarfDie* (*unit_of)(void* dwarf, uint64_t address, DwarfDie* die) = nullptr;
  const char* (*source)(void* line, uint64_t* time, uint64_t* length) = nullptr;

  int (*scopes_at)(DwarfDie* unit, uint64_t address, DwarfDie** scopes) = nullptr;
  int (*scopes_of)(DwarfDie* die, DwarfDie** scopes) = nullptr;
  int (*tag)(DwarfDie* die) = nullptr;
  const char* (*name)(DwarfDie* die) = nullptr;
  DwarfAttribute* (*attribute)(DwarfDie* die, unsigned name, DwarfAttribute* to) = nullptr;
  int (*number_of)(DwarfAttribute* attribute, uint64_t* number) = nullptr;
  const char* (*text_of)(DwarfAttribute* attribute) = nullptr;
  int (*files_of)(DwarfDie* unit, void** files, size_t* count) = nullptr;
  const char* (*file_name)(void* files, size_t index, uint64_t* time, uint64_t* length) = nullptr;

  static constexpr int kRead = 0;  // DWARF_C_READ

  // Returns "spin.cl:12" for an address of the object, or an empty text.
  std::string line_at(void* dwarf, uint64_t address) const;

  // A function that the compiler has inlined has the name of its source, demangled. The last one
  // contains the instruction and has no name here. Not empty if a line is known.
  struct Place {
    std::string function;
    std::string line;  // "spin.cl:12": in the innermost function the instruction, else the call
  };
  std::vector<Place> places_at(void* dwarf, uint64_t address) const;

 private:
  // Returns the line, and its unit.
  std::string line_at(void* dwarf, uint64_t address, DwarfDie& unit) const;
  std::string line_of_call(DwarfDie& unit, DwarfDie& inlined) const;
  std::string name_of(DwarfDie& inlined) const;

  bool complete_ = false;
};

}  // namespace uptempo::vgpu::kfd
