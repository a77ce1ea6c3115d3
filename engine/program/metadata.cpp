#include <uptempo/program/metadata.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include <uptempo/program/kernel_names.hpp>
#include <uptempo/runtime/error.hpp>

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
    {"sampler", ArgumentKind::unsupported},
    {"image", ArgumentKind::unsupported},
    {"pipe", ArgumentKind::unsupported},
    {"queue", ArgumentKind::unsupported},
    {"hidden_none", ArgumentKind::hidden_none},
    {"hidden_global_offset_x", ArgumentKind::hidden_none},
    {"hidden_global_offset_y", ArgumentKind::hidden_none},
    {"hidden_global_offset_z", ArgumentKind::hidden_none},
    {"hidden_multigrid_sync_arg", ArgumentKind::hidden_none},
    {"hidden_default_queue", ArgumentKind::hidden_none},
    {"hidden_completion_action", ArgumentKind::hidden_none},
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
    {"hidden_dynamic_lds_size", ArgumentKind::hidden_dynamic_lds_size},
    {"hidden_printf_buffer", ArgumentKind::hidden_printf_buffer},
    {"hidden_hostcall_buffer", ArgumentKind::hidden_hostcall_buffer},
    {"hidden_heap_v1", ArgumentKind::hidden_heap_v1},
};

[[noreturn]] void refuse(std::string found) {
  throw Error(
      {.code = ErrorCode::program,
       .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
       .call = "code object metadata",
       .asked = "NT_AMDGPU_METADATA of code object version 3 to 6",
       .found = std::move(found),
       .remedy =
           "rebuild the code object; if it is from a newer compiler, ask for version 4 or 5"});
}

// Looks at MessagePack before it becomes a json value: nlohmann's reader recurses into lists and
// maps, so that a few kilobytes of nested lists would overflow the stack.
class DepthCheck : public nlohmann::detail::json_sax_acceptor<json> {
 public:
  // Metadata has five levels: all, kernels, one kernel, its arguments, one argument.
  static constexpr size_t kMost = 16;
  bool is_too_deep() const noexcept { return depth_ > kMost; }

  bool start_object(size_t) { return ++depth_ <= kMost; }
  bool start_array(size_t) { return ++depth_ <= kMost; }
  bool end_object() { return --depth_, true; }
  bool end_array() { return --depth_, true; }

 private:
  size_t depth_ = 0;
};

// A map of the metadata. `where` names it in errors.
class Map {
 public:
  Map(const json& map, std::string where) : map_(map), where_(std::move(where)) {
    if (!map.is_object()) refuse(fmt::format("{} is not a map", where_));
  }

  const std::string& where() const noexcept { return where_; }
  // Null if the map has no such key.
  const json* find(const char* key) const {
    const auto found = map_.find(key);
    return found == map_.end() ? nullptr : &*found;
  }
  const json& at(const char* key) const {
    const json* const found = find(key);
    if (found == nullptr) refuse(fmt::format("{} has no '{}'", where_, key));
    return *found;
  }
  // `value`: of this key, or one of its list.
  uint32_t number(const char* key, const json& value) const {
    if (!value.is_number_unsigned() && !(value.is_number_integer() && value.get<int64_t>() >= 0))
      refuse(fmt::format("'{}' of {} is not an unsigned number", key, where_));
    const auto wide = value.get<uint64_t>();
    if (wide > std::numeric_limits<uint32_t>::max())
      refuse(fmt::format("'{}' of {} is {}", key, where_, wide));
    return static_cast<uint32_t>(wide);
  }
  uint32_t number(const char* key) const { return number(key, at(key)); }
  std::string text(const char* key) const {
    const json& value = at(key);
    if (!value.is_string()) refuse(fmt::format("'{}' of {} is not a string", key, where_));
    return value.get<std::string>();
  }
  std::string text_if_any(const char* key) const { return find(key) ? text(key) : std::string(); }
  const json& list(const char* key) const {
    const json& value = at(key);
    if (!value.is_array()) refuse(fmt::format("'{}' of {} is not a list", key, where_));
    return value;
  }

 private:
  const json& map_;
  std::string where_;
};

// Only OpenCL C since 2.0 has partial workgroups: get_local_size() is smaller in one. HIP and older
// OpenCL C launch whole ones, and their kernels compute indices with one size for all.
//
// `.language` alone does not tell: HIP's device libraries are OpenCL C 2.0, and a HIP kernel linked
// with them has that language, too. Compilers write `.type_name` for the arguments of OpenCL C only
// (clang, CodeGenModule.cpp: GenKernelArgMetadata). LLVM 19 also writes `.uniform_work_group_size`
// for kernels that require whole workgroups; LLVM 15 does not.
bool allows_partial_workgroups(const Map& map, const KernelMetadata& kernel) {
  const char* const uniform = ".uniform_work_group_size";
  if (map.find(uniform) != nullptr && map.number(uniform) != 0) return false;
  if (const json* language = map.find(".language"); language == nullptr || *language != "OpenCL C")
    return false;
  const json* const version = map.find(".language_version");
  if (version == nullptr || !version->is_array() || version->empty() ||
      map.number(".language_version", version->front()) < 2)
    return false;
  return std::ranges::all_of(kernel.arguments, [](const ArgumentMetadata& argument) {
    return is_hidden(argument.kind) || !argument.type_name.empty();
  });
}

bool has_explicit_arguments(const KernelMetadata& kernel) {
  return std::ranges::any_of(
      kernel.arguments, [](const ArgumentMetadata& argument) { return !is_hidden(argument.kind); });
}

ArgumentMetadata read_argument(const Map& map, uint32_t kernarg_size) {
  ArgumentMetadata argument;
  argument.offset = map.number(".offset");
  argument.size = map.number(".size");
  argument.kind_name = map.text(".value_kind");
  argument.name = map.text_if_any(".name");
  argument.type_name = map.text_if_any(".type_name");
  const auto* const known = std::ranges::find(kKindNames, argument.kind_name, &KindName::name);
  if (known == std::end(kKindNames))
    refuse(fmt::format("{} has the unknown kind '{}'", map.where(), argument.kind_name));
  argument.kind = known->kind;
  if (const uint64_t end = uint64_t{argument.offset} + argument.size; end > kernarg_size)
    refuse(fmt::format("{} takes bytes {} to {} of a block of {}", map.where(), argument.offset,
                       end, kernarg_size));
  return argument;
}

KernelMetadata read_kernel(const json& entry, size_t number_of_kernel) {
  KernelMetadata kernel;
  kernel.name = Map(entry, fmt::format("kernel {}", number_of_kernel)).text(".name");
  const Map map(entry, fmt::format("kernel '{}'", kernel.name));
  kernel.symbol = map.text(".symbol");
  kernel.kernarg_size = map.number(".kernarg_segment_size");
  kernel.kernarg_alignment = map.number(".kernarg_segment_align");
  kernel.group_segment_size = map.number(".group_segment_fixed_size");
  kernel.private_segment_size = map.number(".private_segment_fixed_size");
  kernel.max_workgroup_size = map.number(".max_flat_workgroup_size");
  if (const json* dynamic = map.find(".uses_dynamic_stack")) {
    if (!dynamic->is_boolean())
      refuse(fmt::format("'.uses_dynamic_stack' of {} is neither true nor false", map.where()));
    kernel.uses_dynamic_stack = dynamic->get<bool>();
  }
  if (const json* required = map.find(".reqd_workgroup_size")) {
    if (!required->is_array() || required->size() != 3)
      refuse(fmt::format("'.reqd_workgroup_size' of {} is not a list of three", map.where()));
    for (size_t d = 0; d < 3; ++d)
      kernel.required_workgroup_size[d] = map.number(".reqd_workgroup_size", (*required)[d]);
  }
  static constexpr const char* kMaxWorkgroups[] = {".max_num_workgroups_x", ".max_num_workgroups_y",
                                                   ".max_num_workgroups_z"};
  for (size_t d = 0; d < 3; ++d)
    if (map.find(kMaxWorkgroups[d]) != nullptr)
      kernel.max_workgroups[d] = map.number(kMaxWorkgroups[d]);
  for (const json& argument : map.find(".args") ? map.list(".args") : json::array())
    kernel.arguments.push_back(read_argument(
        Map(argument,
            fmt::format("argument {} of kernel '{}'", kernel.arguments.size(), kernel.name)),
        kernel.kernarg_size));
  kernel.whole_workgroups = !allows_partial_workgroups(map, kernel);
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
  const Map map(root, "the metadata");
  for (const json& kernel : map.list("amdhsa.kernels"))
    program.kernels.push_back(read_kernel(kernel, program.kernels.size()));
  // A kernel without explicit arguments shows no language of its own: it is like the others.
  const bool others_allow = std::ranges::any_of(program.kernels, has_explicit_arguments) &&
                            std::ranges::none_of(program.kernels, [](const KernelMetadata& kernel) {
                              return kernel.whole_workgroups && has_explicit_arguments(kernel);
                            });
  for (KernelMetadata& kernel : program.kernels)
    if (!has_explicit_arguments(kernel) && !others_allow) kernel.whole_workgroups = true;
  if (const json* printf = map.find("amdhsa.printf"))
    program.has_printf = printf->is_array() && !printf->empty();
  // Version 3 reserves the buffer in every kernel.
  if (!program.has_printf)
    for (KernelMetadata& kernel : program.kernels)
      for (ArgumentMetadata& argument : kernel.arguments)
        if (argument.kind == ArgumentKind::hidden_printf_buffer)
          argument.kind = ArgumentKind::hidden_none;
  return program;
}

const KernelMetadata& ProgramMetadata::kernel(std::string_view name, std::string_view call) const {
  std::vector<std::string> symbols;
  symbols.reserve(kernels.size());
  for (const KernelMetadata& each : kernels) symbols.push_back(each.name);
  const std::vector<size_t> found = kernels_named(name, symbols);
  if (found.size() == 1) return kernels[found.front()];
  std::string listed;
  const auto list = [&](const std::string& symbol) {
    const std::string cpp = cpp_name(symbol);
    listed += fmt::format("{}{}", listed.empty() ? "" : ", ", symbol);
    if (cpp != symbol) listed += fmt::format(" ({})", cpp);
  };
  if (found.empty()) {
    std::ranges::for_each(symbols, list);
  } else {
    for (const size_t i : found) list(symbols[i]);
  }
  throw Error({.code = ErrorCode::program,
               .status = HSA_STATUS_ERROR_INVALID_SYMBOL_NAME,
               .call = std::string(call),
               .asked = fmt::format("kernel '{}'", name),
               .found = found.empty() ? fmt::format("the program has {}", listed)
                                      : fmt::format("several have this name: {}", listed),
               .remedy = found.empty() ? "ask for one of these"
                                       : "add the parameters as listed, or use the symbol"});
}

void drop_host_calls(KernelMetadata& kernel) {
  for (ArgumentMetadata& argument : kernel.arguments) {
    if (argument.kind == ArgumentKind::hidden_hostcall_buffer ||
        argument.kind == ArgumentKind::hidden_heap_v1)
      argument.kind = ArgumentKind::hidden_none;
  }
}

}  // namespace uptempo
