// RecordingState: the implementation of Recording: its nodes, blocks and replays in flight.
// Private to engine/recording and its tests; tests make one over a queue without ROCr.
//
// Thread safety: that of Recording.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <uptempo/completion/timeline.hpp>
#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/dispatch/detail/dispatch_shape.hpp>
#include <uptempo/dispatch/detail/publication.hpp>
#include <uptempo/memory/kernarg_memory.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/recording/recorded_blocks.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {

// Throws Error for a wrong argument of a call.
[[noreturn]] void refuse_recording(std::string asked, std::string found, std::string remedy);

// Calls visit(offset) for each 8-byte word, aligned in the block, of one of the arguments.
template <class Visit>
void each_word(const ArgumentLayout& layout, size_t argument, Visit&& visit) {
  const uint32_t begin = layout.offset(argument), end = begin + layout.size(argument);
  for (uint32_t at = (begin + 7) / 8 * 8; at + 8 <= end; at += 8) visit(at);
}

class RecordingState {
 public:
  using Kernels = std::set<std::shared_ptr<const KernelInfo>>;
  struct Recorded {
    std::shared_ptr<const KernelInfo> kernel;  // null: a finished packet
    Grid grid{0};
    std::byte* block = nullptr;  // read by the kernel
    std::byte* host = nullptr;   // read and written by the host: `block`, or its copy (Mirror)
    uint32_t block_bytes = 0;
    uint32_t generation = 0;
    bool is_stale = false;  // listed in stale_
    uint64_t since = 0;     // `block` was taken after this replay
  };

  // Allocates kernarg memory of the queue's agent. Throws Error.
  RecordingState(BatchQueue& state, const RecordingOptions& options);
  // Uses the caller's kernarg memory, like device memory if `writes` is needed.
  RecordingState(BatchQueue& state, std::span<std::byte> kernargs, const RecordingOptions& options,
                 const DeviceWrites& writes = {});
  ~RecordingState();
  RecordingState(const RecordingState&) = delete;
  RecordingState& operator=(const RecordingState&) = delete;

  // Adds a dispatch, whose explicit arguments the caller then writes.
  OpenNode add(const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid);
  void set_group_segment_size(uint32_t index, uint32_t size_bytes) noexcept {
    publication_.packets[index].set_group_segment_size(size_bytes);
  }
  void raw(const aql::Packet64& packet);
  // Appends the barrier packet that a replay would append to a recording that ends with a finished
  // packet.
  void complete_finished();

  // Changes of a node. They throw Error for a stale handle or one of another recording.
  std::byte* writable_argument(const NodeHandle& node, size_t argument);  // not an address
  void set_address(const NodeHandle& node, size_t argument, uintptr_t value);
  void set_value(const NodeHandle& node, size_t argument, std::span<const std::byte> value);
  void set_values(const NodeHandle& node, const Arguments& values);
  void change_grid(const NodeHandle& node, const Grid& grid);
  OpenNode replace(const NodeHandle& node, const std::shared_ptr<const KernelInfo>& kernel,
                   const Grid& grid);

  Completion replay(BatchQueue& state, const CallSite& site);
  Completion replay(BatchQueue& state, Deadline deadline, const CallSite& site);
  std::optional<Completion> submit(BatchQueue& state, Deadline deadline, const CallSite& site);
  void abandon() noexcept;

  NodeHandle node(size_t index, std::optional<std::span<const ArgumentType>> types);
  Declarations& declarations_of(const NodeHandle& node) {
    (void)find(node);
    return publication_.declarations_of(node.packet);
  }
  std::vector<AccessRange>& accesses_of(const NodeHandle& node) {
    (void)find(node);
    return publication_.accesses;
  }
  size_t size() const noexcept { return nodes_.size(); }
  uint64_t replays() const noexcept { return replays_; }
  std::span<const PacketPlan> plan() { return publication_.last_plan(); }
  const KernargPlace& place() const noexcept { return place_; }
  // For files. Throws Error, with `call` as the failed call, if the recording was moved from.
  static RecordingState& of(const Recording& recording, const char* call) {
    return recording.state(call);
  }
  const Recorded& recorded(size_t index) const noexcept { return nodes_[index]; }
  const Publication& publication() const noexcept { return publication_; }
  // Throws Error after the end of the Runtime, when its kernarg memory no longer exists.
  void require_usable() const {
    if (session_ && !session_->alive()) [[unlikely]]
      BatchQueue::refuse_ended(publication_);
  }

 private:
  // Blocks in device memory have copies in host memory. Nodes are written there; the next replay
  // copies changed blocks to device memory, whole and in order, and flushes once.
  struct Mirror {
    std::span<std::byte> device;
    std::unique_ptr<std::byte[]> host;
  };
  struct Flight {
    uint64_t replay;
    Timeline* timeline;
    uint64_t value;
  };

  using Allocate = RecordedBlocks::Allocate;
  RecordingState(BatchQueue& state, const RecordingOptions& options, const KernargPlace& place,
                 Allocate allocate);
  std::span<std::byte> allocate(size_t bytes);
  std::span<std::byte> with_mirror(std::span<std::byte> device);
  std::byte* host_of(std::byte* block) const noexcept;
  // The host is about to write the node's block.
  void note_write(uint32_t index) noexcept;
  void write_stale_blocks() noexcept;
  Recorded& find(const NodeHandle& node);
  OpenNode open(uint32_t index) noexcept;
  // Returns the node's block, or a copy of it that no replay uses.
  std::byte* writable_block(uint32_t index);
  bool declares_memory(uint32_t index) const noexcept;
  // The node has declarations.
  std::span<AccessRange> ranges_of(uint32_t index) noexcept;
  template <class Visit>
  void each_address(uint32_t index, Visit&& visit) const;
  void find_arguments_of_ranges(uint32_t index);
  // Throws Error unless the declared ranges of the node tell what it accesses with another address
  // for this argument.
  void require_movable(uint32_t index, size_t argument);
  void move_ranges(uint32_t index, size_t argument, uintptr_t to) noexcept;
  void require_not_partly_out(const char* asked) const;
  void keep_in_step();
  void expect(uint32_t block_bytes);
  // Places the node's LocalBytes arrays after `begin` bytes of group memory, and stores their
  // offsets in `block` unless it is null. Returns the size of the group segment.
  uint64_t place_local_arrays(uint32_t index, uint64_t begin, const std::byte* arguments,
                              std::byte* block) const noexcept;
  void put_packet(uint32_t index, const DispatchShape& shape);
  std::byte* wait_for_spare(uint32_t size);
  void require_queue(BatchQueue& state) const;
  // Recycles the blocks of completed replays. Returns true if all replays have completed.
  bool all_landed() noexcept;
  void keep_spare();
  void note_flight(BatchQueue& state, uint64_t value, bool resumes) noexcept;

  const std::optional<Agent> agent_;        // empty without ROCr
  const std::shared_ptr<Session> session_;  // null without ROCr
  const QueueFacts facts_;
  const RecordingOptions options_;
  const uint64_t id_;
  Publication publication_;
  DispatchShapes shapes_;
  std::vector<Recorded> nodes_;
  Kernels kernels_;  // of all current and earlier nodes: replays in flight may run any of them
  const KernargPlace place_;
  DeviceWrites writes_;
  std::vector<KernargMemory> memory_;
  std::vector<Mirror> mirrors_;  // empty for host memory
  std::vector<uint32_t> stale_;  // nodes whose block in device memory is not written yet
  RecordedBlocks blocks_;
  std::vector<std::byte> scratch_;  // size of the largest block
  bool spare_kept_ = false;
  // number of nodes whose kernel has its queue's address as a hidden argument
  size_t naming_queue_ = 0;
  // Result of all_landed() after replay `landed_checked_at_`.
  uint64_t landed_checked_at_ = UINT64_MAX;
  bool had_landed_ = false;
  bool lost_ = false;  // a queue failed before it had finished a replay

  Ring<Flight> flights_;  // unfinished, or not looked at since; the oldest is the first
  uint64_t replays_ = 0;
  uint64_t completed_ = 0;  // replays up to this one have completed
};

}  // namespace uptempo::detail
