// Compiled kernels read the geometry of a dispatch from hidden arguments with code object version
// 5, and from the packet with version 4. The evidence is the kernel descriptor, and the
// instructions as LLVM disassembles them.
#include <elf.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/large_arguments.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/kernels/probes_v4.hpp>
#include <uptempo/kernels/transfer.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/metadata.hpp>
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"

using namespace uptempo;
namespace gfx9 = uptempo::vgpu::gfx9;

namespace {

template <class T>
T at(std::span<const std::byte> bytes, uint64_t offset) {
  REQUIRE(offset + sizeof(T) <= bytes.size());
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Size and place in the file of a symbol.
struct Symbol {
  uint64_t address = 0, size = 0, offset = 0;
};

Symbol symbol_of(std::span<const std::byte> elf, std::string_view name) {
  const auto header = at<Elf64_Ehdr>(elf, 0);
  const auto section = [&](unsigned i) {
    return at<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_DYNSYM) continue;
    const uint64_t names = section(symbols.sh_link).sh_offset;
    for (uint64_t each = 0; each < symbols.sh_size; each += sizeof(Elf64_Sym)) {
      const auto symbol = at<Elf64_Sym>(elf, symbols.sh_offset + each);
      if (reinterpret_cast<const char*>(elf.data()) + names + symbol.st_name != name) continue;
      for (unsigned s = 0; s < header.e_phnum; ++s) {
        const auto segment = at<Elf64_Phdr>(elf, header.e_phoff + s * sizeof(Elf64_Phdr));
        const uint64_t into = symbol.st_value - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && into < segment.p_filesz)
          return {symbol.st_value, symbol.st_size, segment.p_offset + into};
      }
    }
  }
  FAIL("no symbol " << name);
  return {};
}

// The user SGPRs that a kernel asks for: LLVM AMDGPU User Guide, "Kernel Descriptor", byte 56, and
// "Initial Kernel Execution State" for their order.
struct UserRegisters {
  explicit UserRegisters(uint16_t properties) {
    unsigned next = (properties & 1) != 0 ? 4 : 0;  // private segment buffer
    const auto take_pair = [&](unsigned bit) -> std::optional<unsigned> {
      if ((properties >> bit & 1) == 0) return std::nullopt;
      return std::exchange(next, next + 2);
    };
    dispatch_ptr = take_pair(1);
    queue_ptr = take_pair(2);
    kernarg_segment_ptr = take_pair(3);
  }
  // first register of each pair
  std::optional<unsigned> dispatch_ptr, queue_ptr, kernarg_segment_ptr;
};

struct KernelCode {
  CodeObject object;
  KernelMetadata metadata;
  UserRegisters registers;
};

std::vector<KernelCode> kernels_in(std::span<const std::byte> bundle) {
  std::vector<KernelCode> kernels;
  for (const CodeObjectCandidate& candidate : candidates_in(bundle)) {
    const CodeObject object = read_code_object(candidate.bytes);
    for (const KernelMetadata& kernel : read_metadata(metadata_note(object)).kernels) {
      const Symbol descriptor = symbol_of(object.bytes, kernel.symbol);
      kernels.push_back(
          {object, kernel, UserRegisters(at<uint16_t>(object.bytes, descriptor.offset + 56))});
    }
  }
  return kernels;
}

bool is_hidden_one(const ArgumentMetadata& argument) { return is_hidden(argument.kind); }

bool takes_hidden(const KernelCode& kernel) {
  return std::ranges::any_of(kernel.metadata.arguments, is_hidden_one);
}

std::optional<gfx9::Target> gfx9_target(const KernelCode& kernel) {
  using gfx9::Target;
  for (const Target target :
       {Target::gfx900, Target::gfx906, Target::gfx908, Target::gfx90a, Target::gfx942})
    if (kernel.object.target.processor == gfx9::test::cpu_name(target)) return target;
  return std::nullopt;
}

// The instructions of the kernel, as text.
std::vector<std::string> instructions_of(const KernelCode& kernel, gfx9::Target target) {
  gfx9::test::LlvmMc llvm(target);
  const Symbol code = symbol_of(kernel.object.bytes, kernel.metadata.name);
  std::vector<uint32_t> words(code.size / 4);
  REQUIRE(code.offset + code.size <= kernel.object.bytes.size());
  std::memcpy(words.data(), kernel.object.bytes.data() + code.offset, words.size() * 4);
  std::vector<std::string> instructions;
  for (size_t word = 0; word < words.size();) {
    const auto instruction = llvm.disassemble(std::span<const uint32_t>(words).subspan(word));
    REQUIRE(instruction);
    word += instruction->size_bytes / 4;
    instructions.push_back(instruction->text);
  }
  return instructions;
}

// A scalar load: the first and the last byte that it reads, after the address that a pair of SGPRs
// holds at the kernel's start.
struct ScalarLoad {
  uint64_t first, last;
  std::string text;
};

// The kernel's scalar loads through the address in SGPRs `base` and `base` + 1, or through a sum of
// that address and a constant.
std::vector<ScalarLoad> loads_through(unsigned base, const std::vector<std::string>& instructions) {
  static const std::regex kLoad(
      R"(\s*s_load_dword(?:x(\d+))?\s+[^,]+, s\[(\d+):\d+\], (0x[0-9a-f]+|\d+).*)");
  static const std::regex kAdd(R"(\s*s_add_u32\s+s(\d+), s(\d+), (0x[0-9a-f]+|\d+).*)");
  static const std::regex kWritten(R"(\s*\w+\s+s(?:(\d+)|\[(\d+):(\d+)\]).*)");
  const auto number = [](const std::string& text) { return std::stoul(text, nullptr, 0); };
  std::map<unsigned long, uint64_t> offsets{{base, 0}};  // of the address in a pair, by its first
  std::vector<ScalarLoad> loads;
  for (const std::string& text : instructions) {
    std::smatch parts;
    if (std::regex_match(text, parts, kLoad)) {
      if (const auto pair = offsets.find(number(parts[2])); pair != offsets.end()) {
        const uint64_t first = pair->second + number(parts[3]);
        const uint64_t words = parts[1].matched ? number(parts[1]) : 1;
        loads.push_back({.first = first, .last = first + 4 * words - 1, .text = text});
      }
    }
    std::optional<std::pair<unsigned long, uint64_t>> sum;
    if (std::regex_match(text, parts, kAdd)) {
      if (const auto pair = offsets.find(number(parts[2])); pair != offsets.end())
        sum = {number(parts[1]), pair->second + number(parts[3])};
    }
    // The upper half of the sum follows in s_addc_u32, which is not a new value.
    if (std::regex_match(text, parts, kWritten) && text.find("s_addc_u32") == std::string::npos) {
      const unsigned long first = number(parts[parts[1].matched ? 1 : 2]);
      const unsigned long last = number(parts[parts[1].matched ? 1 : 3]);
      std::erase_if(
          offsets, [&](const auto& pair) { return pair.first + 1 >= first && pair.first <= last; });
    }
    if (sum) offsets.insert(*sum);
  }
  return loads;
}

// Whether one of the loads reads a byte of [begin, end).
bool reads(const std::vector<ScalarLoad>& loads, uint64_t begin, uint64_t end) {
  return std::ranges::any_of(
      loads, [&](const ScalarLoad& load) { return load.first < end && load.last >= begin; });
}

std::string text_of(const std::vector<ScalarLoad>& loads) {
  std::string text;
  for (const ScalarLoad& load : loads) text += load.text + "\n";
  return text;
}

}  // namespace

TEST_CASE("no kernel of the library gets the packet's address, on any target", "[kernels]") {
  size_t with_geometry = 0;
  for (const auto& bundle :
       {builtin_kernels::basics(), builtin_kernels::bitonic_sort(), builtin_kernels::probes(),
        builtin_kernels::transfer(), builtin_kernels::large_arguments()}) {
    for (const KernelCode& kernel : kernels_in(bundle)) {
      CAPTURE(kernel.object.target.processor, kernel.metadata.name);
      CHECK(kernel.object.version == 5);
      CHECK_FALSE(kernel.registers.dispatch_ptr);
      with_geometry += takes_hidden(kernel);
    }
  }
  // chain_increment, copy, fill, iota, reduce_lds, saxpy, vector_add, bitonic_sort, five probes and
  // the transfers, for each device of the virtual GPU
  CHECK(with_geometry >= 4 * 17);
}

TEST_CASE("kernels of version 5 read geometry through the kernarg segment pointer", "[kernels]") {
  size_t checked = 0;
  std::set<std::string> processors;
  for (const auto& bundle : {builtin_kernels::basics(), builtin_kernels::bitonic_sort(),
                             builtin_kernels::probes(), builtin_kernels::transfer()}) {
    for (const KernelCode& kernel : kernels_in(bundle)) {
      const auto target = gfx9_target(kernel);
      if (!target || !takes_hidden(kernel)) continue;
      processors.insert(kernel.object.target.processor);
      const auto group_size = std::ranges::find(
          kernel.metadata.arguments, ArgumentKind::hidden_group_size_x, &ArgumentMetadata::kind);
      CAPTURE(kernel.object.target.processor, kernel.metadata.name);
      REQUIRE(group_size != kernel.metadata.arguments.end());
      REQUIRE(kernel.registers.kernarg_segment_ptr);
      const std::vector<ScalarLoad> loads =
          loads_through(*kernel.registers.kernarg_segment_ptr, instructions_of(kernel, *target));
      CAPTURE(text_of(loads));
      CHECK(reads(loads, group_size->offset, group_size->offset + group_size->size));
      ++checked;
    }
  }
  CHECK(processors.size() >= 4);  // gfx942 where the compiler knows it
  CHECK(checked == processors.size() * 18);
}

TEST_CASE("the same kernels of version 4 read geometry from the packet", "[kernels]") {
  // hsa_kernel_dispatch_packet_t: workgroup_size_x at 4
  constexpr uint64_t kWorkgroupSizeX = 4;
  const std::vector<KernelCode> kernels = kernels_in(test::kernels::probes_v4());
  std::map<std::string, size_t> with_geometry;  // by processor
  for (const KernelCode& kernel : kernels) {
    const auto target = gfx9_target(kernel);
    REQUIRE(target);
    CAPTURE(kernel.object.target.processor, kernel.metadata.name);
    CHECK(kernel.object.version == 4);
    CHECK(kernel.registers.dispatch_ptr.has_value() == takes_hidden(kernel));
    if (!kernel.registers.dispatch_ptr) continue;
    const std::vector<ScalarLoad> loads =
        loads_through(*kernel.registers.dispatch_ptr, instructions_of(kernel, *target));
    CAPTURE(text_of(loads));
    CHECK(reads(loads, kWorkgroupSizeX, kWorkgroupSizeX + 2));
    ++with_geometry[kernel.object.target.processor];
  }
  CHECK(with_geometry.contains("gfx90a"));
  // spin, combine, probe_arguments, probe_geometry, probe_private
  for (const auto& [processor, count] : with_geometry) CHECK(count == 5);
}
