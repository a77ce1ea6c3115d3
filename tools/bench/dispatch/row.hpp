// A row of the table: one way of handing a batch of dispatches over to the device.
//
// The work is the same for all: dispatch i runs `tally` (kernels/basics.cl) with one wavefront and the arguments {tallies, i}, so that each
// leaves its own mark. What is timed is told apart in two phases:
//
//   submit    from the first store until the last packet is handed over. The queue's consumer stands at a barrier packet meanwhile, whose signal
//             the host completes afterwards (open_gate): nothing that the device does is in this figure
//   complete  the same, without a gate, until the host has seen the last dispatch complete
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/memory/buffer.hpp"
#include "engine/program/program.hpp"

namespace uptempo::bench {

// So many dispatches in each batch, and so many batches one after the other: short ones are repeated so that a clock can tell.
struct Load {
  uint32_t batch = 1;
  uint32_t repeats = 1;
  uint32_t dispatches() const noexcept { return batch * repeats; }
};

inline constexpr uint32_t kBatches[] = {1, 8, 120, 1024, 8192};
inline constexpr uint32_t kMaxDispatches = 8192;  // of one load
inline constexpr uint32_t kRing = 16384;          // packets: twice the longest batch

// 1 batch of 1,024 and more, up to 960 dispatches of shorter ones.
constexpr Load load_for(uint32_t batch) noexcept { return {batch, batch >= 960 ? 1 : 960 / batch}; }

enum class Phase : uint8_t { submit, complete };
constexpr const char* phase_name(Phase phase) noexcept {
  return phase == Phase::submit ? "submit" : "complete";
}

class Row {
 public:
  virtual ~Row() = default;

  virtual std::string_view name() const = 0;  // "ROW" or "ROW/VARIANT"
  // False: its way of working includes waiting for the device, so there is no phase `submit`.
  virtual bool has_submit() const { return true; }
  // False: its kernels run elsewhere, and always do.
  virtual bool on_device() const { return true; }
  // Of a load: more than these it cannot hand over without waiting for the device.
  virtual uint32_t max_dispatches() const { return kMaxDispatches; }

  // How often the load has dispatch `i`.
  virtual uint32_t times(uint32_t i, const Load& load) const { return i < load.dispatches() ? 1 : 0; }

  // What comes before the clock starts: nothing of an earlier load is unfinished.
  virtual void prepare(const Load& load) = 0;
  // The consumer stops at this point of the queue until open_gate().
  virtual void close_gate() = 0;
  virtual void open_gate() = 0;
  // Hands over every batch of the load.
  virtual void submit(const Load& load) = 0;
  // Returns when the host has seen the last of them complete.
  virtual void wait() = 0;
};

using Rows = std::vector<std::unique_ptr<Row>>;

// Row::times() of a row that hands over the load's first batch again and again.
constexpr uint32_t first_batch_again(uint32_t i, const Load& load) noexcept {
  return i < load.batch ? load.repeats : 0;
}

// Without its variant.
constexpr std::string_view row_name(std::string_view name) noexcept { return name.substr(0, name.find('/')); }

// What all rows launch, and where its marks go.
struct Workload {
  Agent gpu;
  Program program;
  Kernel<uint32_t*, uint32_t> tally;
  PinnedBuffer<uint32_t> tallies;

  static constexpr uint32_t items = 64;  // one wavefront

  explicit Workload(const Agent& agent);
};

class RawQueue;
// Whether the device does what kernels say (uptempo-vgpu --null-kernels does not): one dispatch shows. Takes no event of the driver, which peers may have used up.
bool executes_kernels(const std::shared_ptr<RawQueue>& queue);

Rows floor_rows(std::shared_ptr<RawQueue> queue);  // the cheapest ways to put those bytes there
Rows hsa_rows(std::shared_ptr<RawQueue> queue);    // loops on the HSA API, written by hand
Rows uptempo_rows(const Workload& workload);       // this library's batches and recordings
Rows stream_rows(const Workload& workload);        // its streams and launchers

// A peer that is a library of its own, where that was built and can be opened.
struct Peer {
  std::string name;
  std::string note;  // what its rows are not
  std::string version{};
  std::string missing{};  // why it has no rows, if so
};
// They add their rows, if any, to `rows`.
Peer add_hip_rows(Rows& rows, const Workload& workload);
Peer add_pocl_rows(Rows& rows, const Workload& workload);

}  // namespace uptempo::bench
