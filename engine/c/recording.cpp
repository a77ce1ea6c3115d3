#include <uptempo/c/recording.h>

#include <sstream>
#include <utility>
#include <vector>

#include <uptempo/c/call.hpp>
#include <uptempo/c/declaration.hpp>
#include <uptempo/c/options.hpp>
#include <uptempo/c/queue_handle.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/recording/recording_file.hpp>

using namespace uptempo;
using namespace uptempo::c;

struct uptempo_recording : Handle<Kind::recording> {
  explicit uptempo_recording(Recording&& the_recording) : recording(std::move(the_recording)) {}
  Recording recording;
};

namespace {

Bindings bindings_of(const uptempo_binding* given, size_t count, std::string_view parameter) {
  Bindings bindings;
  if (count != 0) (void)place(given, parameter);
  for (const uptempo_binding& binding : std::span(given, count))
    bindings.add(&place(binding.name, parameter), binding.data, binding.bytes);
  return bindings;
}

std::vector<KernelSource> kernels_of(const uptempo_recording_source& source) {
  std::vector<KernelSource> kernels;
  if (source.program_count != 0) (void)place(source.programs, "source.programs");
  for (const uptempo_program* const program : std::span(source.programs, source.program_count))
    kernels.emplace_back(program_of(program, "source.programs"));
  if (source.kernel_count != 0) (void)place(source.kernels, "source.kernels");
  for (const uptempo_kernel* const kernel : std::span(source.kernels, source.kernel_count))
    kernels.emplace_back(handle(kernel, "source.kernels").kernel.shared_info());
  return kernels;
}

Recording load(Queue& queue, const uptempo_recording_source& source,
               const RecordingOptions& options) {
  const std::vector<KernelSource> kernels = kernels_of(source);
  const Bindings memory = bindings_of(source.bindings, source.binding_count, "source.bindings");
  if ((source.path == nullptr) == (source.bytes == nullptr))
    refuse_parameter("source", "it has a path and bytes, or neither", "give one of them");
  if (source.path != nullptr)
    return std::move(
        *load_recording(queue, std::filesystem::path(source.path), kernels, memory, options));
  std::istringstream in(std::string(static_cast<const char*>(source.bytes), source.byte_count));
  Recording recording = std::move(*load_recording(queue, in, kernels, memory, options));
  if (in.peek() != std::istringstream::traits_type::eof())
    refuse_parameter("source.bytes", "bytes follow the end of the recording",
                     "give the bytes of one recording");
  return recording;
}

Node<Arguments> node_of(const Recording& recording, size_t node) {
  return recording.node<Arguments>(node);
}

}  // namespace

uptempo_status uptempo_recording_create(uptempo_queue* queue,
                                        const uptempo_recording_options* options,
                                        uptempo_recording** recording) {
  return create(__func__, recording, [&] {
    return new uptempo_recording(Recording(handle(queue, "queue").queue,
                                           recording_options_of(options_of(options, "options"))));
  });
}

uptempo_status uptempo_recording_destroy(uptempo_recording* recording) {
  return destroy(__func__, recording, "recording");
}

uptempo_status uptempo_recording_dispatch(uptempo_recording* recording,
                                          const uptempo_kernel* kernel, const uptempo_grid* grid,
                                          uptempo_arguments arguments, size_t* node) {
  return guarded(__func__, [&] {
    Recording& to = handle(recording, "recording").recording;
    const auto added = to.dispatch(handle(kernel, "kernel").kernel, grid_of(place(grid, "grid")),
                                   arguments_of(arguments));
    if (node != nullptr) *node = added.index();
  });
}

uptempo_status uptempo_recording_raw(uptempo_recording* recording, const void* packet,
                                     size_t* node) {
  return guarded(__func__, [&] {
    Recording& to = handle(recording, "recording").recording;
    aql::Packet64 copy;
    std::memcpy(&copy, &place(static_cast<const std::byte*>(packet), "packet"), sizeof copy);
    const size_t number = to.size();
    to.raw(copy);
    if (node != nullptr) *node = number;
  });
}

uptempo_status uptempo_recording_declare(uptempo_recording* recording, size_t node,
                                         const uptempo_declaration* declaration) {
  return guarded(__func__, [&] {
    const Recording& of = handle(recording, "recording").recording;
    const uptempo_declaration known = checked(declaration);
    Node<Arguments> declared = node_of(of, node);
    declare(declared, known);
  });
}

uptempo_status uptempo_recording_set(uptempo_recording* recording, size_t node, size_t argument,
                                     const void* value, size_t value_bytes) {
  return guarded(__func__, [&] {
    Recording& of = handle(recording, "recording").recording;
    const auto* const bytes = &place(static_cast<const std::byte*>(value), "value");
    of.set(node_of(of, node), argument, std::span(bytes, value_bytes));
  });
}

uptempo_status uptempo_recording_set_all(uptempo_recording* recording, size_t node,
                                         uptempo_arguments arguments) {
  return guarded(__func__, [&] {
    Recording& of = handle(recording, "recording").recording;
    of.set(node_of(of, node), arguments_of(arguments));
  });
}

uptempo_status uptempo_recording_set_grid(uptempo_recording* recording, size_t node,
                                          const uptempo_grid* grid) {
  return guarded(__func__, [&] {
    Recording& of = handle(recording, "recording").recording;
    of.set_grid(node_of(of, node), grid_of(place(grid, "grid")));
  });
}

uptempo_status uptempo_recording_replace(uptempo_recording* recording, size_t node,
                                         const uptempo_kernel* kernel, const uptempo_grid* grid,
                                         uptempo_arguments arguments) {
  return guarded(__func__, [&] {
    Recording& of = handle(recording, "recording").recording;
    (void)of.replace(node_of(of, node), handle(kernel, "kernel").kernel,
                     grid_of(place(grid, "grid")), arguments_of(arguments));
  });
}

uptempo_status uptempo_recording_replay(uptempo_recording* recording, uptempo_queue* queue,
                                        uint64_t timeout_ns, const char* site,
                                        uptempo_completion* completion) {
  return guarded(__func__, [&] {
    Recording& of = handle(recording, "recording").recording;
    Queue& on = handle(queue, "queue").queue;
    uptempo_completion& result = place(completion, "completion");
    if (timeout_ns == 0) {
      const auto replayed = of.try_replay(on, site_of(site));
      if (replayed) result = completion_of(*replayed);
      return status_of(replayed);
    }
    result = completion_of(of.replay(on, deadline_of(timeout_ns), site_of(site)));
    return UPTEMPO_OK;
  });
}

uptempo_status uptempo_recording_abandon(uptempo_recording* recording) {
  return guarded(__func__, [&] { handle(recording, "recording").recording.abandon(); });
}

uptempo_status uptempo_recording_size(const uptempo_recording* recording, size_t* size) {
  return guarded(__func__,
                 [&] { place(size, "size") = handle(recording, "recording").recording.size(); });
}

uptempo_status uptempo_recording_explain(uptempo_recording* recording, char** text) {
  return create(__func__, text,
                [&] { return text_copy(handle(recording, "recording").recording.explain()); });
}

uptempo_status uptempo_recording_save(const uptempo_recording* recording, const char* path,
                                      const uptempo_binding* bindings, size_t binding_count) {
  return guarded(__func__, [&] {
    const Recording& of = handle(recording, "recording").recording;
    const std::filesystem::path file = &place(path, "path");
    save_recording(of, file, bindings_of(bindings, binding_count, "bindings"));
  });
}

uptempo_status uptempo_recording_save_bytes(const uptempo_recording* recording,
                                            const uptempo_binding* bindings, size_t binding_count,
                                            void** bytes, size_t* byte_count) {
  return create(__func__, bytes, [&]() -> void* {
    size_t& count = place(byte_count, "byte_count");
    const Recording& of = handle(recording, "recording").recording;
    std::ostringstream out;
    save_recording(of, out, bindings_of(bindings, binding_count, "bindings"));
    const std::string text = std::move(out).str();
    char* const copy = text_copy(text);
    count = text.size();
    return copy;
  });
}

uptempo_status uptempo_recording_load(uptempo_queue* queue, const uptempo_recording_source* source,
                                      const uptempo_recording_options* options,
                                      uptempo_recording** recording) {
  return create(__func__, recording, [&] {
    Queue& on = handle(queue, "queue").queue;
    const auto known = options_of(&place(source, "source"), "source");
    return new uptempo_recording(
        load(on, known, recording_options_of(options_of(options, "options"))));
  });
}
