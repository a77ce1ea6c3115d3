// A row of the table: one way to submit a batch of dispatches.
//
// All rows do the same work: dispatch i runs `tally` (kernels/basics.cl) with one wavefront and the
// arguments {tallies, i}, so that each leaves its own mark. There are two phases:
//
//   submit    from the first store until the last packet is published. Meanwhile a barrier packet
//             holds the queue's consumer, and the host completes its signal afterwards (open_gate):
//             no work of the device is in this figure
//   complete  the same, without a gate, until the host sees the last dispatch complete
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>

namespace uptempo::bench {

// `batch` dispatches per batch and `repeats` batches in succession. Short batches are repeated to
// exceed the clock's resolution.
struct Load {
  uint32_t batch = 1;
  uint32_t repeats = 1;
  uint32_t dispatches() const noexcept { return batch * repeats; }
};

inline constexpr uint32_t kBatches[] = {1, 8, 120, 1024, 8192};
inline constexpr uint32_t kMaxDispatches = 8192;  // per load
inline constexpr uint32_t kRing = 16384;          // packets: twice the longest batch

// 1 batch of 960 or more; otherwise batches of up to 960 dispatches in all.
constexpr Load load_for(uint32_t batch) noexcept { return {batch, batch >= 960 ? 1 : 960 / batch}; }

enum class Phase : uint8_t { submit, complete };
constexpr const char* phase_name(Phase phase) noexcept {
  return phase == Phase::submit ? "submit" : "complete";
}

class Row {
 public:
  virtual ~Row() = default;

  virtual std::string_view name() const = 0;  // "ROW" or "ROW/VARIANT"
  // False if submitting includes waiting for the device, so that there is no phase `submit`.
  virtual bool has_submit() const { return true; }
  // False if its kernels always run elsewhere, and always execute.
  virtual bool on_device() const { return true; }
  // The most dispatches of a load that it can submit without waiting for the device.
  virtual uint32_t max_dispatches() const { return kMaxDispatches; }

  // Number of times that the load executes dispatch `i`.
  virtual uint32_t times(uint32_t i, const Load& load) const {
    return i < load.dispatches() ? 1 : 0;
  }

  // Untimed preparation. No earlier load is unfinished.
  virtual void prepare(const Load& load) = 0;
  // Stops the consumer at this point of the queue until open_gate().
  virtual void close_gate() = 0;
  virtual void open_gate() = 0;
  virtual void submit(const Load& load) = 0;
  // Returns when the host sees the last batch complete.
  virtual void wait() = 0;
};

using Rows = std::vector<std::unique_ptr<Row>>;

// Row::times() of a row that submits the load's first batch repeatedly.
constexpr uint32_t first_batch_again(uint32_t i, const Load& load) noexcept {
  return i < load.batch ? load.repeats : 0;
}

// The name without its variant.
constexpr std::string_view row_name(std::string_view name) noexcept {
  return name.substr(0, name.find('/'));
}

// The kernel that all rows launch, and the memory of its marks.
struct Workload {
  Agent gpu;
  Program program;
  Kernel<uint32_t*, uint32_t> tally;
  PinnedBuffer<uint32_t> tallies;

  static constexpr uint32_t kItems = 64;  // one wavefront

  explicit Workload(const Agent& agent);
};

class RawQueue;
// Whether the device executes kernels (under uptempo-vgpu --null-kernels it does not), found by one
// dispatch. Uses no event of the driver, because peers may have used all.
bool executes_kernels(const std::shared_ptr<RawQueue>& queue);

Rows floor_rows(std::shared_ptr<RawQueue> queue);  // the cheapest ways to put those bytes there
Rows hsa_rows(std::shared_ptr<RawQueue> queue);    // hand-written loops on the HSA API
Rows uptempo_rows(const Workload& workload);       // this library's batches and recordings
Rows stream_rows(const Workload& workload);        // this library's streams and launchers
Rows c_rows(const Workload& workload);             // both in C

// A peer is a separate shared library; it has rows if it was built and can be opened.
struct Peer {
  std::string name;
  std::string note;  // how its rows differ from the others
  std::string version{};
  std::string missing{};  // if it has no rows: the reason
};
// Add their rows, if any, to `rows`.
Peer add_hip_rows(Rows& rows, const Workload& workload);
Peer add_pocl_rows(Rows& rows, const Workload& workload);

}  // namespace uptempo::bench
