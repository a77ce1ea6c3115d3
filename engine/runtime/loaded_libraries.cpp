#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/runtime/version.h>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {
namespace {

// Returns the DT_SONAME of a loaded object, or nothing. System V ABI, "Dynamic Section".
std::string_view soname_of(const dl_phdr_info& object) {
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Addr) base = object.dlpi_addr;
    ElfW(Addr) strings = 0;
    size_t name = 0;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val;
    }
    if (strings == 0 || name == 0) return {};
    // glibc has relocated the address, except in the kernel's vDSO, which is read-only.
    if (strings < base) strings += base;
    return reinterpret_cast<const char*>(strings + name);
  }
  return {};
}

int add_rocr(dl_phdr_info* object, size_t, void* files) {
  // Tools that bundle ROCr rename it to libhsa-runtime64-<hash>.so.
  const std::string_view soname = soname_of(*object);
  if (soname.starts_with("libhsa-runtime64.") || soname.starts_with("libhsa-runtime64-"))
    static_cast<std::vector<std::string>*>(files)->emplace_back(object->dlpi_name);
  return 0;
}

// The mark of a copy of this library in the program or library that it is linked into: an ELF note
// (System V ABI, "Note Section"), which needs no exported symbol.
struct Note {
  uint32_t name_bytes, text_bytes, type;
  std::array<char, 8> name;
  std::array<char, 16> version;  // "major.minor.patch"
};
[[gnu::section(".note.uptempo"), gnu::used]] alignas(4) constexpr Note kMark{
    8, 16, 1, {"Uptempo"}, {UPTEMPO_VERSION}};

// Returns the version of the copy of this library in a loaded object; empty: it has none.
std::string version_in(const dl_phdr_info& object) {
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const notes =
        reinterpret_cast<const std::byte*>(object.dlpi_addr + segment.p_vaddr);
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= segment.p_memsz;) {
      Note note{};
      std::memcpy(&note, notes + at, std::min(sizeof note, segment.p_memsz - at));
      if (note.name_bytes == kMark.name_bytes && note.text_bytes == kMark.text_bytes &&
          note.type == kMark.type && note.name == kMark.name)
        return {note.version.data(), strnlen(note.version.data(), note.version.size())};
      const size_t step = std::max<size_t>(segment.p_align, 4);
      const auto round = [step](size_t bytes) { return (bytes + step - 1) / step * step; };
      at += round(sizeof(ElfW(Nhdr)) + note.name_bytes) + round(note.text_bytes);
    }
  }
  return {};
}

int add_copy(dl_phdr_info* object, size_t, void* copies) {
  if (const std::string version = version_in(*object); !version.empty()) {
    const std::string file = object->dlpi_name[0] == '\0' ? "the program" : object->dlpi_name;
    static_cast<std::vector<std::string>*>(copies)->push_back(file + " (" + version + ')');
  }
  return 0;
}

}  // namespace

std::string describe_copies() {
  std::vector<std::string> copies;
  dl_iterate_phdr(&add_copy, &copies);
  if (copies.size() <= 1) return copies.empty() ? "not found" : copies.front();
  return fmt::format(
      "{} copies, which share nothing but the budget of signals: {}. Objects of one "
      "must not be passed to another",
      copies.size(), fmt::join(copies, ", "));
}

void require_one_rocr(const char* call) {
  std::vector<std::string> files;
  dl_iterate_phdr(&add_rocr, &files);
  if (files.size() <= 1) return;
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_INVALID_RUNTIME_STATE,
               .call = call,
               .asked = "one HSA runtime (ROCr) in this process",
               .found = fmt::format("{} are loaded: {}", files.size(), fmt::join(files, " and ")),
               .remedy = "use one ROCm for the program and all its libraries: check their rpath "
                         "(readelf -d) and LD_LIBRARY_PATH"});
}

}  // namespace uptempo::detail
