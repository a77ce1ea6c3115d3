// libdw and libelf of elfutils, loaded when an object of this class is made, so that the virtual GPU
// does not depend on them.
//
// Thread safety: the constructor from any thread; the rest thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace uptempo::vgpu::kfd {

// The functions that reports use, with elfutils' types where they are opaque (libelf.h and
// elfutils/libdw.h, whose ABI is stable).
struct DwarfDie {
  void* address;
  void* unit;
  void* abbreviation;
  long padding;
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

  static constexpr int kRead = 0;  // DWARF_C_READ

  // Returns "spin.cl:12" for an address of the object, or an empty text.
  std::string line_at(void* dwarf, uint64_t address) const;

 private:
  bool complete_ = false;
};

}  // namespace uptempo::vgpu::kfd
