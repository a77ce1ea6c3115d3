#include <uptempo/c/memory.h>

#include <fmt/format.h>

#include <array>
#include <vector>

#include <uptempo/c/call.hpp>
#include <uptempo/c/memory_handle.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/stream/stream.hpp>

using namespace uptempo;
using namespace uptempo::c;

struct uptempo_copier : Handle<Kind::copier> {
  explicit uptempo_copier(const Agent& gpu) : copier(gpu) {}
  Copier copier;
};

namespace {

const Allocation& live_memory(const uptempo_buffer* buffer) {
  const Allocation& memory = handle(buffer, "buffer").memory;
  if (!memory.alive())
    Session::refuse_ended("uptempo_buffer", "the address of a buffer", "its memory",
                          "create a new Runtime and a new buffer");
  return memory;
}

}  // namespace

namespace uptempo::c {

void refuse_pattern(size_t bytes) {
  refuse_parameter("pattern_bytes", fmt::format("it is {}", bytes), "use 1, 2, 4, 8 or 16");
}

}  // namespace uptempo::c

uptempo_status uptempo_buffer_create(const uptempo_agent* gpu, uptempo_memory_kind kind,
                                     size_t bytes, const uptempo_buffer_options* options,
                                     uptempo_buffer** buffer) {
  return create(__func__, buffer, [&] {
    std::vector<Agent> gpus{handle(gpu, "gpu").agent};
    const auto given = options_of(options, "options");
    if (given.more_gpu_count != 0) (void)place(given.more_gpus, "options.more_gpus");
    for (size_t i = 0; i < given.more_gpu_count; ++i)
      gpus.push_back(handle(given.more_gpus[i], "options.more_gpus").agent);
    return new uptempo_buffer(Allocation(gpus, enum_of(kind, MemoryKind::kernarg, "kind"), bytes));
  });
}

uptempo_status uptempo_buffer_destroy(uptempo_buffer* buffer) {
  return destroy(__func__, buffer, "buffer");
}

uptempo_status uptempo_buffer_get_info(const uptempo_buffer* buffer, uptempo_buffer_info* info) {
  return guarded(__func__, [&] {
    const Allocation& of = live_memory(buffer);
    return_facts(uptempo_buffer_info{.size = 0, .data = of.data(), .bytes = of.size_bytes()}, info,
                 "info");
  });
}

void* uptempo_buffer_data(const uptempo_buffer* buffer) {
  void* data = nullptr;
  (void)guarded(__func__, [&] { data = live_memory(buffer).data(); });
  return data;
}

uptempo_status uptempo_copier_create(const uptempo_agent* gpu, uptempo_copier** copier) {
  return create(__func__, copier, [&] { return new uptempo_copier(handle(gpu, "gpu").agent); });
}

uptempo_status uptempo_copier_destroy(uptempo_copier* copier) {
  return destroy(__func__, copier, "copier");
}

uptempo_status uptempo_copier_copy(uptempo_copier* copier, uptempo_range to, uptempo_range from) {
  return guarded(__func__, [&] {
    (void)handle(copier, "copier")
        .copier.copy(range_of<CopyTarget>(to, "to"), range_of<CopySource>(from, "from"));
  });
}

uptempo_status uptempo_copier_fill(uptempo_copier* copier, uptempo_range to, const void* pattern,
                                   size_t pattern_bytes) {
  return guarded(__func__, [&] {
    Copier& by = handle(copier, "copier").copier;
    const CopyTarget target = range_of<CopyTarget>(to, "to");
    with_pattern(pattern, pattern_bytes, [&](const auto& value) { (void)by.fill(target, value); });
  });
}
