#include "engine/program/loaded_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/program/host_calls.hpp"
#include "engine/program/kernel_descriptor.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

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
    throw Error({.status = HSA_STATUS_ERROR_INVALID_CODE_SYMBOL,
                 .call = std::string(call),
                 .asked = given == 0
                              ? fmt::format("kernel '{}'", kernel)
                              : fmt::format("kernel '{}' with PrivateBytes{{{}}}", kernel, given),
                 .found = std::move(found),
                 .remedy = std::move(remedy)});
  };
  if (is_dynamic && given == 0)
    refuse("its stack has no static bound (recursion or calls through pointers)",
           fmt::format("call {} with PrivateBytes{{bytes}}, the private memory that a work-item "
                       "needs",
                       call));
  if (given > PrivateBytes::kMost)
    refuse(fmt::format("a work-item has at most {} bytes", PrivateBytes::kMost), "give less");
}

}  // namespace

ProgramMetadata program_metadata(const CodeObject& object) {
  ProgramMetadata metadata = read_metadata(metadata_note(object));
  const bool any_calls = can_call_host(object);  // once, because it reads all code
  for (KernelMetadata& kernel : metadata.kernels)
    if (!any_calls || !can_call_host(object, kernel.name)) drop_host_calls(kernel);
  return metadata;
}

KernelInfo read_kernel(const Agent& agent, hsa_executable_t executable, const CodeObject& object,
                       const CodeIdentity& identity, const ProgramMetadata& program,
                       const KernelMetadata& kernel, PrivateBytes stack, std::string_view call) {
  ArgumentLayout layout(kernel, program.has_printf);
  hsa_executable_symbol_t symbol{};
  const hsa_agent_t handle = agent.handle();
  check(hsa_executable_get_symbol_by_name(executable, kernel.symbol.c_str(), &handle, &symbol),
        "hsa_executable_get_symbol_by_name", kernel.symbol);
  const bool dynamic_stack =
      kernel.uses_dynamic_stack ||
      symbol_info<bool>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, kernel.name);
  require_stack(kernel.name, dynamic_stack, stack, call);
  const AgentProperties& limits = agent.properties();
  return {.code = identity,
          .name = kernel.name,
          .agent = handle,
          .object =
              symbol_info<uint64_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, kernel.name),
          .reads_packet = read_kernel_descriptor(object, kernel.symbol).dispatch_ptr,
          .group_segment_size = symbol_info<uint32_t>(
              symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, kernel.name),
          .private_segment_size = std::max(
              stack.per_work_item,
              symbol_info<uint32_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                    kernel.name)),
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

}  // namespace uptempo
