#include <uptempo/program/loaded_kernel.hpp>

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include <uptempo/program/elf_file.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

// The words of instructions, without operands, by generation. LLVM, SOPInstructions.td.
struct Words {
  uint32_t send_interrupt;  // s_sendmsg MSG_INTERRUPT: SOPP, immediate 1
  uint32_t set_pc;          // s_setpc_b64 and the next opcode, s_swappc_b64: SOP1
  uint32_t call;            // s_call_b64: SOPK
};
Words words_of(std::string_view processor) {
  if (!processor.starts_with("gfx1")) return {0xbf900001, 0xbe801d00, 0xba800000};
  if (processor.starts_with("gfx10")) return {0xbf900001, 0xbe802000, 0xbb000000};
  return {0xbfb60001, 0xbe804800, 0xba000000};
}

// Instructions without their operands.
constexpr uint32_t kSop1Opcode = 0xff80ff00, kSopkOpcode = 0xff800000;

struct CodeSearch {
  bool found = false;
  uint64_t searched_bytes = 0;
};

// Searches the code at addresses [begin, end) that the file has for a word for which `is_such`
// holds.
template <class F>
CodeSearch search(const CodeObject& object, uint64_t begin, uint64_t end, F&& is_such) {
  CodeSearch result;
  for (const Elf64_Phdr& segment : object.elf->segments) {
    if ((segment.p_flags & PF_X) == 0) continue;
    const uint64_t first = std::max(begin, segment.p_vaddr);
    const uint64_t last = std::min(end, segment.p_vaddr + segment.p_filesz);
    if (first >= last) continue;
    result.searched_bytes += last - first;
    // Instructions are aligned to 4 bytes in memory.
    for (uint64_t at = (first + 3) / 4 * 4; at + 4 <= last && !result.found; at += 4)
      result.found = is_such(
          *detail::read_at<uint32_t>(object.bytes, segment.p_offset + (at - segment.p_vaddr)));
  }
  return result;
}

template <class T>
T symbol_info(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t attribute,
              const std::string& kernel) {
  T value{};
  check(hsa_executable_symbol_get_info(symbol, attribute, &value), "hsa_executable_symbol_get_info",
        kernel);
  return value;
}

void require_stack(const std::string& kernel, bool is_dynamic, PrivateBytes stack,
                   std::string_view call) {
  const uint32_t given = stack.per_work_item;
  const auto refuse = [&](std::string found, std::string remedy) {
    throw Error({.code = ErrorCode::program,
                 .status = HSA_STATUS_ERROR_INVALID_CODE_SYMBOL,
                 .call = std::string(call),
                 .asked = given == 0
                              ? fmt::format("kernel '{}'", kernel)
                              : fmt::format("kernel '{}' with PrivateBytes{{{}}}", kernel, given),
                 .found = std::move(found),
                 .remedy = std::move(remedy)});
  };
  if (is_dynamic && given == 0)
    refuse(
        "its stack has no static bound (recursion or calls through pointers)",
        fmt::format("call {} with PrivateBytes{{bytes}}, the private memory that a work-item needs",
                    call));
  if (given > PrivateBytes::kMost)
    refuse(fmt::format("a work-item has at most {} bytes", PrivateBytes::kMost), "give less");
}

}  // namespace

bool can_call_host(const CodeObject& object) {
  const uint32_t interrupt = words_of(object.target.processor).send_interrupt;
  return search(object, 0, UINT64_MAX, [=](uint32_t word) { return word == interrupt; }).found;
}

bool can_call_host(const CodeObject& object, std::string_view kernel) {
  const Elf64_Sym* const symbol = object.elf->find(kernel);
  if (symbol == nullptr || symbol->st_size == 0 || symbol->st_size > UINT64_MAX - symbol->st_value)
    return true;  // its code is unknown
  const Words words = words_of(object.target.processor);
  const CodeSearch result =
      search(object, symbol->st_value, symbol->st_value + symbol->st_size, [&](uint32_t word) {
        const uint32_t sop1 = word & kSop1Opcode;
        return word == words.send_interrupt || sop1 == words.set_pc ||
               sop1 == words.set_pc + 0x100 || (word & kSopkOpcode) == words.call;
      });
  return result.found || result.searched_bytes != symbol->st_size;
}

ProgramMetadata program_metadata(const CodeObject& object) {
  ProgramMetadata metadata = read_metadata(metadata_note(object));
  const bool any_calls = can_call_host(object);  // once, because it reads all code
  for (KernelMetadata& kernel : metadata.kernels)
    if (!any_calls || !can_call_host(object, kernel.name)) drop_host_calls(kernel);
  return metadata;
}

KernelInfo info_of(const Agent& agent, const KernelMetadata& kernel, bool has_printf,
                   const KernelPlace& place, PrivateBytes stack, std::string_view call) {
  ArgumentLayout layout(kernel, has_printf);
  require_stack(kernel.name, kernel.uses_dynamic_stack || place.dynamic_stack, stack, call);
  const AgentProperties& limits = agent.properties();
  return {.code = {},
          .name = kernel.name,
          .agent = agent.handle(),
          .object = place.object,
          .reads_packet = place.reads_packet,
          .group_segment_size = place.group_segment_size,
          .private_segment_size = std::max(stack.per_work_item, place.private_segment_size),
          .stack = stack,
          .max_workgroup_size = std::min(kernel.max_workgroup_size, limits.max_workgroup_size),
          .required_workgroup_size = {kernel.required_workgroup_size[0],
                                      kernel.required_workgroup_size[1],
                                      kernel.required_workgroup_size[2]},
          .max_workgroups = {kernel.max_workgroups[0], kernel.max_workgroups[1],
                             kernel.max_workgroups[2]},
          .whole_workgroups = kernel.whole_workgroups,
          .max_group_segment_size = limits.group_segment_bytes,
          .arguments = std::move(layout)};
}

KernelInfo read_kernel(const Agent& agent, hsa_executable_t executable, const CodeObject& object,
                       const CodeIdentity& identity, const ProgramMetadata& program,
                       const KernelMetadata& kernel, PrivateBytes stack, std::string_view call) {
  hsa_executable_symbol_t symbol{};
  const hsa_agent_t handle = agent.handle();
  check(hsa_executable_get_symbol_by_name(executable, kernel.symbol.c_str(), &handle, &symbol),
        "hsa_executable_get_symbol_by_name", kernel.symbol);
  const KernelPlace place{
      .object =
          symbol_info<uint64_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, kernel.name),
      .reads_packet = kernel_start(object, kernel).packet,
      .dynamic_stack = symbol_info<bool>(
          symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, kernel.name),
      .group_segment_size = symbol_info<uint32_t>(
          symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, kernel.name),
      .private_segment_size = symbol_info<uint32_t>(
          symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, kernel.name)};
  KernelInfo info = info_of(agent, kernel, program.has_printf, place, stack, call);
  info.code = identity;
  return info;
}

}  // namespace uptempo
