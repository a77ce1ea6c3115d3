#include <uptempo/c/runtime.h>

#include <deque>
#include <memory>
#include <optional>

#include <uptempo/c/call.hpp>
#include <uptempo/runtime/runtime.hpp>
#include <uptempo/runtime/signal.hpp>

using namespace uptempo;
using namespace uptempo::c;

struct uptempo_runtime : Handle<Kind::runtime> {
  uptempo_runtime() {
    for (const Agent& gpu : runtime.gpus()) gpus.emplace_back(gpu);
    host.emplace(runtime.host());
  }
  // The handle of an agent that the Runtime has returned.
  const uptempo_agent* handle_of(const Agent& agent) const {
    for (const uptempo_agent& gpu : gpus)
      if (gpu.agent == agent) return &gpu;
    return &*host;
  }

  Runtime runtime;
  std::deque<uptempo_agent> gpus;  // handles do not move
  std::optional<uptempo_agent> host;
};

uptempo_status uptempo_runtime_create(const uptempo_runtime_options* options,
                                      uptempo_runtime** runtime) {
  return create(__func__, runtime, [&] {
    const auto given = options_of(options, "options");
    if (given.event_less_beyond != 0 && given.interrupt_signals == 0)
      refuse_parameter("options.event_less_beyond", "options.interrupt_signals is 0",
                       "set the number beyond which signals poll");
    auto made = std::make_unique<uptempo_runtime>();
    // A call that fails changes no limit.
    if (given.interrupt_signals != 0)
      set_signal_budget({.interrupts = given.interrupt_signals,
                         .event_less_beyond = given.event_less_beyond != 0});
    return made.release();
  });
}

uptempo_status uptempo_runtime_destroy(uptempo_runtime* runtime) {
  return destroy(__func__, runtime, "runtime");
}

uptempo_status uptempo_runtime_gpu_count(const uptempo_runtime* runtime, size_t* count) {
  return guarded(__func__, [&] { place(count, "count") = handle(runtime, "runtime").gpus.size(); });
}

uptempo_status uptempo_runtime_gpu(const uptempo_runtime* runtime, size_t index,
                                   const uptempo_agent** agent) {
  return create(__func__, agent, [&] {
    const uptempo_runtime& from = handle(runtime, "runtime");
    return from.handle_of(from.runtime.gpu(index));
  });
}

uptempo_status uptempo_runtime_find_gpu(const uptempo_runtime* runtime, const char* selector,
                                        const uptempo_agent** agent) {
  return create(__func__, agent, [&] {
    const uptempo_runtime& from = handle(runtime, "runtime");
    return from.handle_of(from.runtime.gpu(&place(selector, "selector")));
  });
}

uptempo_status uptempo_runtime_host(const uptempo_runtime* runtime, const uptempo_agent** agent) {
  return create(__func__, agent, [&] {
    const uptempo_agent& host = *handle(runtime, "runtime").host;
    return &host;
  });
}

uptempo_status uptempo_runtime_describe(const uptempo_runtime* runtime, char** text) {
  return create(__func__, text,
                [&] { return text_copy(handle(runtime, "runtime").runtime.describe()); });
}

uptempo_status uptempo_agent_get_info(const uptempo_agent* agent, uptempo_agent_info* info) {
  return guarded(__func__, [&] {
    const uptempo_agent& of = handle(agent, "agent");
    const AgentProperties& has = of.agent.properties();
    return_facts(uptempo_agent_info{.size = 0,
                                    .name = has.name.c_str(),
                                    .product_name = has.product_name.c_str(),
                                    .isa = has.isas.empty() ? "" : has.isas.front().c_str(),
                                    .pci_address = of.pci.c_str(),
                                    .uuid = has.uuid.c_str(),
                                    .hsa_agent = of.agent.handle().handle,
                                    .timestamp_hz = has.timestamp_hz,
                                    .is_gpu = of.agent.is_gpu(),
                                    .is_apu = has.is_apu,
                                    .node = has.node,
                                    .compute_units = has.compute_units,
                                    .wavefront_size = has.wavefront_size,
                                    .max_workgroup_size = has.max_workgroup_size,
                                    .group_segment_bytes = has.group_segment_bytes,
                                    .queue_min_packets = has.queue_min_packets,
                                    .queue_max_packets = has.queue_max_packets,
                                    .reserved = 0},
                 info, "info");
  });
}
