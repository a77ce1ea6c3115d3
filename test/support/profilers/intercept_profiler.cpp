// A tool for HSA_TOOLS_LIB that returns a queue of ROCr's interceptor from hsa_queue_create, as
// rocprofiler does, and as rocprofiler-sdk does when it collects counters. It reports each packet
// and passes it on unchanged.
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>

#include "test/support/profilers/report.hpp"

namespace {

using uptempo::test::ProfilerReport;

struct Tool {
  ProfilerReport report{"intercept"};
  AmdExtTable amd{};
};

// Never destroyed: ROCr's threads may still be in on_packets() at the end of the process.
Tool& tool() {
  static Tool* const instance = new Tool;
  return *instance;
}

void on_packets(const void* packets, uint64_t count, uint64_t, void* queue,
                hsa_amd_queue_intercept_packet_writer writer) {
  for (uint64_t i = 0; i < count; ++i)
    tool().report.add_packet(static_cast<const hsa_queue_t*>(queue),
                             static_cast<const hsa_kernel_dispatch_packet_t*>(packets) + i);
  writer(packets, count);
}

hsa_status_t queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                          uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t** queue) {
  const hsa_status_t status = tool().amd.hsa_amd_queue_intercept_create_fn(
      agent, size, type, callback, data, private_bytes, group_bytes, queue);
  if (status != HSA_STATUS_SUCCESS) return status;
  tool().report.add_queue(*queue);
  return tool().amd.hsa_amd_queue_intercept_register_fn(*queue, on_packets, *queue);
}

bool unloaded = false;  // ROCr calls nothing here any more

}  // namespace

extern "C" {

bool OnLoad(HsaApiTable* table, uint64_t, uint64_t, const char* const*) {
  tool().amd = *table->amd_ext_;
  table->core_->hsa_queue_create_fn = queue_create;
  return true;
}

void OnUnload() {
  tool().report.write();
  unloaded = true;
}

void uptempo_profiler_counts(uptempo::test::ProfilerCounts* counts) {
  *counts = tool().report.counts();
}

// Without OnUnload, threads may still pass packets.
__attribute__((destructor)) static void report_at_the_end() {
  tool().report.write();
  if (unloaded) delete &tool();
}
}
