// The row that uses PoCL as its users do. PoCL starts work while more is submitted, as HIP does;
// its kernels run on the host's cores.
#include <stdexcept>

#include "tools/bench/dispatch/peer_library.hpp"
#include "tools/bench/dispatch/pocl_peer.h"
#include "tools/bench/dispatch/row.hpp"

namespace uptempo::bench {
namespace {

class Pocl final : public Row {
 public:
  explicit Pocl(const uptempo_pocl_peer& pocl) : pocl_(pocl) {}
  std::string_view name() const override { return "pocl"; }
  bool on_device() const override { return false; }
  void prepare(const Load&) override {}
  void close_gate() override {}
  void open_gate() override {}
  void submit(const Load& load) override { require(pocl_.launch(load.batch, load.repeats)); }
  void wait() override { require(pocl_.wait()); }

 private:
  static void require(const char* error) {
    if (error != nullptr) throw std::runtime_error(std::string("PoCL: ") + error);
  }
  const uptempo_pocl_peer& pocl_;
};

}  // namespace

Peer add_pocl_rows(Rows& rows, const Workload& workload) {
  Peer peer{.name = "PoCL", .note = "its device is the processor and its row is not gated"};
  const auto functions = open_peer<uptempo_pocl_peer_t>(
      "libdispatch_bench_pocl.so", "uptempo_pocl_peer_functions", peer.missing);
  if (functions == nullptr) return peer;
  if (const char* error = functions()->prepare(workload.tallies.data(), kMaxDispatches)) {
    peer.missing = error;
    return peer;
  }
  peer.version = functions()->version();
  rows.push_back(std::make_unique<Pocl>(*functions()));
  return peer;
}

}  // namespace uptempo::bench
