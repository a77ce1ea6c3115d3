// HIP's own ways, as its users write them. Its queue is HIP's affair, so no gate is put into it: while a batch is handed over the device already
// works on it.
#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

#include "dispatch_bench/hip_peer.h"
#include "dispatch_bench/row.hpp"

namespace uptempo::bench {
namespace {

void require(const char* error, const char* call) {
  if (error != nullptr) throw std::runtime_error(std::string(call) + ": " + error);
}

class HipRow : public Row {
 public:
  HipRow(const Workload& workload, const uptempo_hip_peer& hip) : workload_(workload), hip_(hip) {}
  void close_gate() override {}
  void open_gate() override {}
  void wait() override { require(hip_.wait(), "hipStreamSynchronize"); }

 protected:
  const Workload& workload_;
  const uptempo_hip_peer& hip_;
};

class Launch final : public HipRow {
 public:
  using HipRow::HipRow;
  std::string_view name() const override { return "hip-launch"; }
  void prepare(const Load& load) override {
    require(hip_.prepare(load.batch, load.repeats, workload_.tallies.data(), 0), "preparing HIP");
  }
  void submit(const Load&) override { require(hip_.launch(), "hipLaunchKernel"); }
};

class Graph final : public HipRow {
 public:
  using HipRow::HipRow;
  std::string_view name() const override { return "hip-graph"; }
  void prepare(const Load& load) override {
    require(hip_.prepare(load.batch, load.repeats, workload_.tallies.data(), 1), "preparing HIP's graphs");
  }
  void submit(const Load&) override { require(hip_.launch_graphs(), "hipGraphLaunch"); }
};

}  // namespace

HipRows hip_rows(const Workload& workload) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  void* const library = dlopen((here / "libdispatch_bench_hip.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {.rows = {}, .version = {}, .missing = dlerror()};
  const auto functions = reinterpret_cast<uptempo_hip_peer_t>(dlsym(library, "uptempo_hip_peer_functions"));
  if (functions == nullptr) return {.rows = {}, .version = {}, .missing = dlerror()};
  HipRows hip{.rows = {}, .version = functions()->version(), .missing = {}};
  hip.rows.push_back(std::make_unique<Launch>(workload, *functions()));
  hip.rows.push_back(std::make_unique<Graph>(workload, *functions()));
  return hip;
}

}  // namespace uptempo::bench
