#include "engine/program/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

using nlohmann::json;

struct KindName {
  std::string_view name;
  ArgumentKind kind;
};
constexpr KindName kKindNames[] = {
    {"by_value", ArgumentKind::by_value},
    {"global_buffer", ArgumentKind::global_buffer},
    {"dynamic_shared_pointer", ArgumentKind::dynamic_shared_pointer},
    {"sampler", ArgumentKind::sampler},
    {"image", ArgumentKind::image},
    {"pipe", ArgumentKind::pipe},
    {"queue", ArgumentKind::queue},
    {"hidden_none", ArgumentKind::hidden_none},
    {"hidden_global_offset_x", ArgumentKind::hidden_global_offset_x},
    {"hidden_global_offset_y", ArgumentKind::hidden_global_offset_y},
    {"hidden_global_offset_z", ArgumentKind::hidden_global_offset_z},
    {"hidden_block_count_x", ArgumentKind::hidden_block_count_x},
    {"hidden_block_count_y", ArgumentKind::hidden_block_count_y},
    {"hidden_block_count_z", ArgumentKind::hidden_block_count_z},
    {"hidden_group_size_x", ArgumentKind::hidden_group_size_x},
    {"hidden_group_size_y", ArgumentKind::hidden_group_size_y},
    {"hidden_group_size_z", ArgumentKind::hidden_group_size_z},
    {"hidden_remainder_x", ArgumentKind::hidden_remainder_x},
    {"hidden_remainder_y", ArgumentKind::hidden_remainder_y},
    {"hidden_remainder_z", ArgumentKind::hidden_remainder_z},
    {"hidden_grid_dims", ArgumentKind::hidden_grid_dims},
    {"hidden_private_base", ArgumentKind::hidden_private_base},
    {"hidden_shared_base", ArgumentKind::hidden_shared_base},
    {"hidden_queue_ptr", ArgumentKind::hidden_queue_ptr},
    {"hidden_multigrid_sync_arg", ArgumentKind::hidden_multigrid_sync_arg},
    {"hidden_default_queue", ArgumentKind::hidden_default_queue},
    {"hidden_completion_action", ArgumentKind::hidden_completion_action},
    {"hidden_dynamic_lds_size", ArgumentKind::hidden_dynamic_lds_size},
    {"hidden_printf_buffer", ArgumentKind::hidden_printf_buffer},
    {"hidden_hostcall_buffer", ArgumentKind::hidden_hostcall_buffer},
    {"hidden_heap_v1", ArgumentKind::hidden_heap_v1},
};

[[noreturn]] void refuse(std::string found) {
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
       .call = "code object metadata",
       .asked = "NT_AMDGPU_METADATA of code object version 3 to 6",
       .found = std::move(found),
       .remedy =
           "rebuild the code object; if it is from a newer compiler, ask for version 4 or 5"});
}

// Looks at MessagePack before it becomes a json value: nlohmann's reader recurses into lists and
// maps, so that a few kilobytes of nested lists would overflow the stack.
class DepthCheck final : public nlohmann::json_sax<json> {
 public:
  // Metadata has five levels: all, kernels, one kernel, its arguments, one argument.
  static constexpr size_t kMost = 16;
  bool is_too_deep() const noexcept { return depth_ > kMost; }

  bool start_object(size_t) override { return ++depth_ <= kMost; }
  bool start_array(size_t) override { return ++depth_ <= kMost; }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  size_t depth_ = 0;
};

const json& member(const json& map, const char* key, std::string_view where) {
  if (!map.is_object()) refuse(fmt::format("{} is not a map", where));
  const auto found = map.find(key);
  if (found == map.end()) refuse(fmt::format("{} has no '{}'", where, key));
  return *found;
}

uint32_t number(const json& value, const char* key, std::string_view where) {
  if (!value.is_number_unsigned() && !(value.is_number_integer() && value.get<int64_t>() >= 0)) {
    refuse(fmt::format("'{}' of {} is not an unsigned number", key, where));
  }
  const auto wide = value.get<uint64_t>();
  if (wide > std::numeric_limits<uint32_t>::max())
    refuse(fmt::format("'{}' of {} is {}", key, where, wide));
  return static_cast<uint32_t>(wide);
}

uint32_t number_in(const json& map, const char* key, std::string_view where) {
  return number(member(map, key, where), key, where);
}

std::string text(const json& map, const char* key, std::string_view where) {
  const json& value = member(map, key, where);
  if (!value.is_string()) refuse(fmt::format("'{}' of {} is not a string", key, where));
  return value.get<std::string>();
}

const json* optional_member(const json& map, const char* key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &*found;
}

// Only OpenCL C since 2.0 has partial workgroups: get_local_size() is smaller in one. HIP and older
// OpenCL C launch whole ones, and their kernels compute indices with one size for all.
//
// `.language` alone does not tell: HIP's device libraries are OpenCL C 2.0, and a HIP kernel linked
// with them has that language, too. Compilers write `.type_name` for the arguments of OpenCL C only
// (clang, CodeGenModule.cpp: GenKernelArgMetadata). LLVM 19 also writes `.uniform_work_group_size`
// for kernels that require whole workgroups; LLVM 15 does not.
bool allows_partial_workgroups(const json& map, const KernelMetadata& kernel,
                               std::string_view where) {
  if (const json* uniform = optional_member(map, ".uniform_work_group_size");
      uniform != nullptr && number(*uniform, ".uniform_work_group_size", where) != 0)
    return false;
  if (const json* language = optional_member(map, ".language");
      language == nullptr || *language != "OpenCL C")
    return false;
  const json* const version = optional_member(map, ".language_version");
  if (version == nullptr || !version->is_array() || version->empty() ||
      number(version->front(), ".language_version", where) < 2)
    return false;
  return std::ranges::all_of(kernel.arguments, [](const ArgumentMetadata& argument) {
    return is_hidden(argument.kind) || !argument.type_name.empty();
  });
}

bool has_explicit_arguments(const KernelMetadata& kernel) {
  return std::ranges::any_of(
      kernel.arguments, [](const ArgumentMetadata& argument) { return !is_hidden(argument.kind); });
}

ArgumentMetadata read_argument(const json& map, const KernelMetadata& kernel,
                               size_t number_of_argument) {
  const std::string where =
      fmt::format("argument {} of kernel '{}'", number_of_argument, kernel.name);
  ArgumentMetadata argument;
  argument.offset = number_in(map, ".offset", where);
  argument.size = number_in(map, ".size", where);
  argument.kind_name = text(map, ".value_kind", where);
  std::optional<ArgumentKind> kind;
  for (const KindName& entry : kKindNames) {
    if (entry.name == argument.kind_name) kind = entry.kind;
  }
  if (!kind) refuse(fmt::format("{} has the unknown kind '{}'", where, argument.kind_name));
  argument.kind = *kind;
  if (optional_member(map, ".name") != nullptr) argument.name = text(map, ".name", where);
  if (optional_member(map, ".type_name") != nullptr)
    argument.type_name = text(map, ".type_name", where);
  if (uint64_t{argument.offset} + argument.size > kernel.kernarg_size) {
    refuse(fmt::format("{} takes bytes {} to {} of a block of {}", where, argument.offset,
                       uint64_t{argument.offset} + argument.size, kernel.kernarg_size));
  }
  return argument;
}

KernelMetadata read_kernel(const json& map, size_t number_of_kernel) {
  KernelMetadata kernel;
  kernel.name = text(map, ".name", fmt::format("kernel {}", number_of_kernel));
  const std::string where = fmt::format("kernel '{}'", kernel.name);
  kernel.symbol = text(map, ".symbol", where);
  kernel.kernarg_size = number_in(map, ".kernarg_segment_size", where);
  kernel.kernarg_alignment = number_in(map, ".kernarg_segment_align", where);
  kernel.group_segment_size = number_in(map, ".group_segment_fixed_size", where);
  kernel.private_segment_size = number_in(map, ".private_segment_fixed_size", where);
  kernel.max_workgroup_size = number_in(map, ".max_flat_workgroup_size", where);
  kernel.wavefront_size = number_in(map, ".wavefront_size", where);
  if (const json* dynamic = optional_member(map, ".uses_dynamic_stack")) {
    if (!dynamic->is_boolean())
      refuse(fmt::format("'.uses_dynamic_stack' of {} is neither true nor false", where));
    kernel.uses_dynamic_stack = dynamic->get<bool>();
  }
  if (const json* required = optional_member(map, ".reqd_workgroup_size")) {
    if (!required->is_array() || required->size() != 3)
      refuse(fmt::format("'.reqd_workgroup_size' of {} is not a list of three", where));
    for (size_t d = 0; d < 3; ++d)
      kernel.required_workgroup_size[d] = number((*required)[d], ".reqd_workgroup_size", where);
  }
  static constexpr const char* kMaxWorkgroups[] = {".max_num_workgroups_x", ".max_num_workgroups_y",
                                                   ".max_num_workgroups_z"};
  for (size_t d = 0; d < 3; ++d)
    if (const json* most = optional_member(map, kMaxWorkgroups[d]))
      kernel.max_workgroups[d] = number(*most, kMaxWorkgroups[d], where);
  if (const json* arguments = optional_member(map, ".args")) {
    if (!arguments->is_array()) refuse(fmt::format("'.args' of {} is not a list", where));
    for (const json& argument : *arguments)
      kernel.arguments.push_back(read_argument(argument, kernel, kernel.arguments.size()));
  }
  kernel.whole_workgroups = !allows_partial_workgroups(map, kernel, where);
  return kernel;
}

}  // namespace

ProgramMetadata read_metadata(std::span<const std::byte> message_pack) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(message_pack.data());
  DepthCheck depth;
  json::sax_parse(begin, begin + message_pack.size(), &depth, json::input_format_t::msgpack);
  if (depth.is_too_deep())
    refuse(fmt::format("lists and maps nested deeper than {} levels", DepthCheck::kMost));
  const json root = json::from_msgpack(begin, begin + message_pack.size(), /*strict=*/true,
                                       /*allow_exceptions=*/false);
  if (root.is_discarded())
    refuse(fmt::format("{} bytes that are not MessagePack", message_pack.size()));
  if (!root.is_object()) refuse("MessagePack that is not a map");

  ProgramMetadata program;
  const json& kernels = member(root, "amdhsa.kernels", "the metadata");
  if (!kernels.is_array()) refuse("'amdhsa.kernels' is not a list");
  for (const json& kernel : kernels) {
    if (!kernel.is_object()) refuse("an entry of 'amdhsa.kernels' is not a map");
    program.kernels.push_back(read_kernel(kernel, program.kernels.size()));
  }
  // A kernel without explicit arguments shows no language of its own: it is like the others.
  const bool others_allow = std::ranges::any_of(program.kernels, has_explicit_arguments) &&
                            std::ranges::none_of(program.kernels, [](const KernelMetadata& kernel) {
                              return kernel.whole_workgroups && has_explicit_arguments(kernel);
                            });
  for (KernelMetadata& kernel : program.kernels)
    if (!has_explicit_arguments(kernel) && !others_allow) kernel.whole_workgroups = true;
  if (const json* printf = optional_member(root, "amdhsa.printf"))
    program.has_printf = printf->is_array() && !printf->empty();
  return program;
}

void drop_host_calls(KernelMetadata& kernel) {
  for (ArgumentMetadata& argument : kernel.arguments) {
    if (argument.kind == ArgumentKind::hidden_hostcall_buffer ||
        argument.kind == ArgumentKind::hidden_heap_v1)
      argument.kind = ArgumentKind::hidden_none;
  }
}

}  // namespace uptempo
