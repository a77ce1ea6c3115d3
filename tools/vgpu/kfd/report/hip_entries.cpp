#include "kfd/report/hip_entries.hpp"

#include <unwind.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

template <class T>
T word(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Stub {
  const char* name;
  uint32_t place;  // in the table, in bytes
};

bool is_table(std::string_view bytes, const std::vector<Stub>& stubs, uint32_t last,
              const auto& is_code) {
  const auto size = word<uint64_t>(bytes, 0);
  return size % sizeof(uint64_t) == 0 && size > last && size <= bytes.size() &&
         std::ranges::all_of(
             stubs, [&](const Stub& stub) { return is_code(word<uint64_t>(bytes, stub.place)); });
}

}  // namespace

uint32_t place_in_table(std::string_view code) {
  constexpr size_t kCall = 5;                 // call rel32
  if (!code.ends_with("\xff\xe0")) return 0;  // jmp *%rax
  const size_t call = code.find('\xe8');      // the function that returns the table
  if (call == std::string_view::npos || code.size() - call < kCall) return 0;
  for (size_t at = call + kCall; at + 7 <= code.size(); ++at) {
    const std::string_view rest = code.substr(at);
    if (rest.starts_with("\x48\x8b\x80")) return word<uint32_t>(rest, 3);  // mov disp32(%rax),%rax
    if (rest.starts_with("\x48\x8b\x40")) return static_cast<uint8_t>(rest[3]);  // mov disp8(...)
  }
  return 0;
}

HipEntries::HipEntries(const HostImage& library, uintptr_t bias) {
  std::vector<Stub> stubs;
  uint32_t last = 0;
  library.for_each_exported([&](const char* name, const Elf64_Sym& symbol) {
    if (std::strncmp(name, "hip", 3) != 0) return;
    const uint32_t place = place_in_table(library.bytes_at(symbol.st_value, symbol.st_size));
    if (place == 0 || place % sizeof(uint64_t) != 0) return;
    stubs.push_back({name, place});
    last = std::max(last, place);
  });
  if (stubs.empty()) return;
  std::vector<std::pair<uintptr_t, uintptr_t>> code;
  std::vector<std::pair<uintptr_t, size_t>> zeroes;
  library.for_each_segment([&](const Elf64_Phdr& segment) {
    const uintptr_t begin = bias + segment.p_vaddr;
    if ((segment.p_flags & PF_X) != 0) code.emplace_back(begin, begin + segment.p_memsz);
    if ((segment.p_flags & PF_W) != 0 && segment.p_memsz > segment.p_filesz)
      zeroes.emplace_back(begin + segment.p_filesz, segment.p_memsz - segment.p_filesz);
  });
  const auto is_code = [&](uintptr_t address) {
    return std::ranges::any_of(
        code, [&](const auto& range) { return address >= range.first && address < range.second; });
  };
  for (const auto& [begin, size] : zeroes) {
    std::string bytes(size, '\0');
    if (!copy_from_program(bytes.data(), begin, size)) continue;
    const size_t first = (sizeof(uint64_t) - begin % sizeof(uint64_t)) % sizeof(uint64_t);
    for (size_t at = first; at + last + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
      const std::string_view table = std::string_view(bytes).substr(at);
      if (!is_table(table, stubs, last, is_code)) continue;
      for (const Stub& stub : stubs)
        names_.try_emplace(word<uint64_t>(table, stub.place), stub.name);
      return;
    }
  }
}

std::string HipEntries::name_at(uintptr_t address) const {
  if (names_.empty()) return {};
  const void* const first = _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(address + 1));
  const auto found = names_.find(reinterpret_cast<uintptr_t>(first));
  return found == names_.end() ? std::string() : found->second;
}

}  // namespace uptempo::vgpu::kfd
