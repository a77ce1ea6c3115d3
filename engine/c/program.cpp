#include <uptempo/c/program.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <uptempo/c/call.hpp>
#include <uptempo/program/kernel_object.hpp>
#include <uptempo/program/metadata.hpp>

using namespace uptempo;
using namespace uptempo::c;

struct uptempo_program : Handle<Kind::program> {
  explicit uptempo_program(const Program& the_program)
      : program(the_program), kernels(program.kernel_names()) {}
  Program program;
  std::vector<std::string> kernels;
};

namespace uptempo::c {

const Program& program_of(const uptempo_program* program, std::string_view parameter) {
  return handle(program, parameter).program;
}

}  // namespace uptempo::c

namespace {

// Calls visit(argument, its kind) for structs with a size of the caller's each.
template <class Visit>
void for_each_argument(const uptempo_argument* given, size_t count, std::string_view parameter,
                       Visit&& visit) {
  if (count != 0) (void)place(given, parameter);
  const auto* at = reinterpret_cast<const std::byte*>(given);
  for (size_t i = 0; i < count; ++i, at += given->size) {
    const auto argument = options_of(reinterpret_cast<const uptempo_argument*>(at), parameter);
    visit(argument, enum_of(argument.kind, ArgumentType::Kind::local, parameter));
  }
}

std::vector<ArgumentType> types_of(const uptempo_argument* given, size_t count) {
  constexpr std::array kNames{"a value", "an address", "an LDS array"};
  std::vector<ArgumentType> types;
  for_each_argument(given, count, "options.arguments",
                    [&](const uptempo_argument& argument, ArgumentType::Kind kind) {
                      types.push_back({.kind = kind,
                                       .size = argument.bytes,
                                       .name = kNames[static_cast<size_t>(kind)],
                                       .alignment = argument.alignment});
                    });
  return types;
}

KernelMetadata metadata_in(const uptempo_loaded_kernel& given, std::string_view name) {
  const std::span bytes(static_cast<const std::byte*>(given.metadata), given.metadata_bytes);
  return read_metadata(bytes).kernel(name, "uptempo_kernel_from_object");
}

KernelMetadata metadata_of(const uptempo_loaded_kernel& given, std::string_view name) {
  KernelMetadata metadata{.name = std::string(name),
                          .symbol = {},
                          .kernarg_size = given.kernarg_bytes,
                          .group_segment_size = given.group_bytes,
                          .private_segment_size = given.private_bytes,
                          .max_workgroup_size = given.max_workgroup_size,
                          .whole_workgroups = given.whole_workgroups != 0,
                          .arguments = {}};
  std::ranges::copy(given.required_workgroup_size, metadata.required_workgroup_size);
  constexpr std::array kKinds{ArgumentKind::by_value, ArgumentKind::global_buffer,
                              ArgumentKind::dynamic_shared_pointer};
  for_each_argument(given.arguments, given.argument_count, "loaded.arguments",
                    [&](const uptempo_argument& argument, ArgumentType::Kind kind) {
                      metadata.arguments.push_back({.kind = kKinds[static_cast<size_t>(kind)],
                                                    .kind_name = {},
                                                    .offset = argument.offset,
                                                    .size = argument.bytes,
                                                    .name = {},
                                                    .type_name = {}});
                    });
  return metadata;
}

uint32_t packed_bytes(const ArgumentLayout& arguments) noexcept {
  uint32_t end = 0;
  for (size_t i = 0; i < arguments.explicit_count(); ++i)
    end = std::max(end, arguments.offset(i) + arguments.size(i));
  return end;
}

}  // namespace

uptempo_status uptempo_program_create(const uptempo_agent* agent, const void* code,
                                      size_t code_bytes, const uptempo_program_options* options,
                                      uptempo_program** program) {
  return create(__func__, program, [&] {
    const Agent& on = handle(agent, "agent").agent;
    const auto* const first = &place(static_cast<const std::byte*>(code), "code");
    const std::span bytes(first, code_bytes);
    const bool borrows = options_of(options, "options").borrows_code != 0;
    return new uptempo_program(borrows ? Program(on, bytes) : Program::with_copy(on, bytes));
  });
}

uptempo_status uptempo_program_create_from_file(const uptempo_agent* agent, const char* path,
                                                const uptempo_program_options* options,
                                                uptempo_program** program) {
  return create(__func__, program, [&] {
    const Agent& on = handle(agent, "agent").agent;
    const std::filesystem::path file = &place(path, "path");
    (void)options_of(options, "options");
    return new uptempo_program(Program(on, file));
  });
}

uptempo_status uptempo_program_destroy(uptempo_program* program) {
  return destroy(__func__, program, "program");
}

uptempo_status uptempo_program_get_info(const uptempo_program* program,
                                        uptempo_program_info* info) {
  return guarded(__func__, [&] {
    const uptempo_program& of = handle(program, "program");
    return_facts(
        uptempo_program_info{
            .size = 0, .target = of.program.target().c_str(), .kernel_count = of.kernels.size()},
        info, "info");
  });
}

uptempo_status uptempo_program_kernel_name(const uptempo_program* program, size_t index,
                                           const char** name) {
  return create(__func__, name, [&] {
    const uptempo_program& of = handle(program, "program");
    require_index(index, of.kernels.size(), "kernels");
    return of.kernels[index].c_str();
  });
}

uptempo_status uptempo_program_global(const uptempo_program* program, const char* name,
                                      void** address, size_t* bytes) {
  return create(__func__, address, [&] {
    size_t& size = place(bytes, "bytes");
    size = 0;
    const DeviceGlobal found = handle(program, "program").program.global(&place(name, "name"));
    size = found.size_bytes;
    return found.address;
  });
}

uptempo_status uptempo_kernel_create(const uptempo_program* program, const char* name,
                                     const uptempo_kernel_options* options,
                                     uptempo_kernel** kernel) {
  return create(__func__, kernel, [&] {
    const Program& from = handle(program, "program").program;
    const std::string_view wanted = &place(name, "name");
    const auto given = options_of(options, "options");
    const PrivateBytes stack{limited<uint32_t>(given.private_bytes, "options.private_bytes")};
    if (given.arguments == nullptr && given.argument_count == 0)
      return new uptempo_kernel(from.kernel<Arguments>(wanted, stack));
    return new uptempo_kernel(
        from.kernel(wanted, types_of(given.arguments, given.argument_count), stack));
  });
}

uptempo_status uptempo_kernel_from_object(const uptempo_agent* agent,
                                          const uptempo_loaded_kernel* loaded,
                                          uptempo_kernel** kernel) {
  return create(__func__, kernel, [&] {
    const Agent& on = handle(agent, "agent").agent;
    const auto given = options_of(&place(loaded, "loaded"), "loaded");
    const std::string_view name = &place(given.name, "loaded.name");
    KernelMetadata metadata =
        given.metadata != nullptr ? metadata_in(given, name) : metadata_of(given, name);
    if (given.calls_no_host != 0) drop_host_calls(metadata);
    return new uptempo_kernel(Kernel<Arguments>::of(kernel_info(
        on, {.address = given.object, .stack = PrivateBytes{given.stack_bytes}}, metadata)));
  });
}

uptempo_status uptempo_kernel_destroy(uptempo_kernel* kernel) {
  return destroy(__func__, kernel, "kernel");
}

uptempo_status uptempo_kernel_get_info(const uptempo_kernel* kernel, uptempo_kernel_info* info) {
  return guarded(__func__, [&] {
    const KernelInfo& of = handle(kernel, "kernel").kernel.info();
    const auto& required = of.required_workgroup_size;
    return_facts(
        uptempo_kernel_info{.size = 0,
                            .name = of.name.c_str(),
                            .object = of.object,
                            .hsa_agent = of.agent.handle,
                            .argument_count = of.arguments.explicit_count(),
                            .packed_bytes = packed_bytes(of.arguments),
                            .kernarg_bytes = of.arguments.size_bytes(),
                            .group_bytes = of.group_segment_size,
                            .private_bytes = of.private_segment_size,
                            .max_group_bytes = of.max_group_segment_size,
                            .max_workgroup_size = of.max_workgroup_size,
                            .required_workgroup_size = {required[0], required[1], required[2]},
                            .whole_workgroups = of.whole_workgroups},
        info, "info");
  });
}

uptempo_status uptempo_kernel_argument(const uptempo_kernel* kernel, size_t index,
                                       uptempo_argument* argument) {
  return guarded(__func__, [&] {
    const ArgumentLayout& of = handle(kernel, "kernel").kernel.info().arguments;
    require_index(index, of.explicit_count(), "arguments");
    return_facts(uptempo_argument{.size = 0,
                                  .kind = static_cast<uptempo_argument_kind>(of.kind(index)),
                                  .bytes = of.size(index),
                                  .offset = of.offset(index),
                                  .alignment = 0},
                 argument, "argument");
  });
}
