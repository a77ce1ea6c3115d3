// Recording: a batch that is recorded and planned once and replayed any number of times, at the
// cost of copying its packets.
//
//   Recording step{queue};
//   Node force = step.dispatch(force_kernel, Grid{n}.by(256), x, f, dt).reads(x, n).writes(f, n);
//   step.dispatch(move_kernel, Grid{n}.by(256), x, f, dt);
//   step.replay(queue);
//   step.set<2>(force, dt / 2);                    // from the next replay on
//   step.replay(queue).wait();
//
// Replay: for the queue, a replay is a batch: one publication with one completion signal. Its
// fences are planned for a batch that the host has prepared. Any queue of the recording's agent can
// replay it. Several replays may be in flight, in one queue or several. The rules of queue.hpp and
// batch_submitter.hpp about room, deadlines and publications longer than the ring apply. A replay
// that its deadline cuts off is partly published. The next replay() on the same queue continues it;
// abandon() drops the rest.
//
// Patching: changes apply from the next replay on; replays in flight keep their values. A block
// that a replay in flight may still read is not changed. Its node gets another block from
// RecordingOptions::spare_kernarg_bytes, and the old block is reused when those replays have
// completed. If no block is left, patching waits up to RecordingOptions::patience and then throws
// Error.
//
// Nodes: a Node identifies a dispatch of one recording and has its argument types. replace() may
// change the types and invalidates the old handle. A stale handle, or one of another recording,
// throws Error.
//
// Cost: a replay in steady state makes no allocation, no system call and no HSA call except
// doorbells. One doorbell follows the first `lead` packets, so that execution starts early; each
// further chunk has one. A patch costs what it changes: for an argument its bytes (with replays in
// flight, also a copy of the node's block), for a grid or kernel one packet and one block. Only
// changes that affect fences (accesses, scopes, additional nodes) make the next replay plan again.
//
// Thread safety: one owner at a time, which must also own the queue of a replay.
//
// Lifetime: the recording keeps its kernels loaded. Buffers must live until the last replay has
// completed. The destructor waits up to 10 s for replays in flight; the memory of an unfinished one
// stays until the end of the Runtime. If a queue is destroyed while a replay is partly published in
// it, that replay ends as with abandon(). After the end of the Runtime, every call that records,
// patches or replays throws Error.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/completion/completion.hpp"
#include "engine/dispatch/batch_queue.hpp"
#include "engine/dispatch/command_ref.hpp"
#include "engine/dispatch/dispatch_shape.hpp"
#include "engine/dispatch/publication.hpp"
#include "engine/dispatch/queue.hpp"
#include "engine/dispatch/timing.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/recording/recorded_blocks.hpp"

namespace uptempo {

namespace detail {
struct RecordedNode;
}

struct RecordingOptions {
  FencePolicy fences = FencePolicy::planned;
  Timing timing = Timing::none;
  aql::Chunking chunking{.lead = 8, .chunk = 1024};
  size_t spare_kernarg_bytes =
      64 << 10;  // minimum, for blocks of nodes that are patched while replays are in flight
  // longest wait of a patch, and of replay() without a deadline
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
};

// Handle of a recorded dispatch.
template <class... Args>
class Node {
 public:
  size_t index() const noexcept { return index_; }

 private:
  friend class Recording;
  Node(uint64_t recording, uint32_t index, uint32_t generation) noexcept
      : recording_(recording), index_(index), generation_(generation) {}
  uint64_t recording_;
  uint32_t index_;
  uint32_t generation_;
};

// The dispatch just recorded or replaced, for declarations about it. Converts to a Node.
template <class... Args>
class NodeRef : public Declaring<NodeRef<Args...>, detail::PacketRef> {
 public:
  // NOLINT: implicit, because a NodeRef is a Node plus declarations
  operator Node<Args...>() const noexcept { return node_; }
  Node<Args...> node() const noexcept { return node_; }

 private:
  friend class Recording;
  NodeRef(const detail::PacketRef& packet, Node<Args...> node) noexcept
      : Declaring<NodeRef, detail::PacketRef>(packet), node_(node) {}
  Node<Args...> node_;
};
template <class... Args>
Node(const NodeRef<Args...>&) -> Node<Args...>;

class Recording {
 public:
  // For queues of this queue's agent. Throws Error.
  explicit Recording(Queue& queue, const RecordingOptions& options = {});
  // For a queue without ROCr; `kernargs` is the kernarg memory, including spare bytes. See
  // batch_queue.hpp.
  Recording(detail::BatchQueue& state, std::span<std::byte> kernargs,
            const RecordingOptions& options);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Records one dispatch. Throws Error if the kernel or the agent cannot run the geometry or the
  // amount of group memory, and while a replay is partly published.
  template <class... Args>
  NodeRef<Args...> dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                            const std::type_identity_t<Args>&... args) {
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    const uint32_t index = add(kernel.shared_info(), grid);
    store(index, args...);
    return {publication_.ref_of(index), Node<Args...>(id_, index, nodes_[index].generation)};
  }
  // Records a finished packet, as BatchSubmitter::raw(). The caller keeps its kernarg block and
  // completion signal valid for every replay.
  void raw(const aql::Packet64& packet);

  // Changes argument `I` of a node. Throws Error for an address if the node's accesses are
  // declared, because they would describe other memory. Use replace() and declare them again.
  template <size_t I, class... Args>
  void set(const Node<Args...>& node,
           const std::type_identity_t<std::tuple_element_t<I, std::tuple<Args...>>>& value) {
    using T = std::tuple_element_t<I, std::tuple<Args...>>;
    static_assert(!std::is_same_v<T, LocalBytes>,
                  "the size of an LDS array is part of the packet: use replace()");
    Recorded& recorded = find(node.recording_, node.index_, node.generation_);
    if constexpr (std::is_pointer_v<T>) refuse_if_declared(node.index_, I);
    uint32_t none = 0;
    detail::store_argument(writable_block(node.index_), recorded.kernel->arguments.offset(I), value,
                           none);
  }
  // Changes the grid of a node. Its declared accesses must hold for the new grid, too. LocalBytes
  // arguments keep their sizes; all but the last are rounded up to 16 bytes, the offset of the next
  // one. Their offsets follow Grid::lds_bytes. Throws Error as dispatch().
  template <class... Args>
  void set_grid(const Node<Args...>& node, const Grid& grid) {
    find(node.recording_, node.index_, node.generation_);
    change_grid(node.index_, grid);
  }
  // Replaces a node by another dispatch, which has no declarations yet. Invalidates the old handle.
  template <class... Old, class... Args>
  NodeRef<Args...> replace(const Node<Old...>& node, const Kernel<Args...>& kernel,
                           const Grid& grid, const std::type_identity_t<Args>&... args) {
    find(node.recording_, node.index_, node.generation_);
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    change(node.index_, kernel.shared_info(), grid);
    store(node.index_, args...);
    return {publication_.ref_of(node.index_),
            Node<Args...>(id_, node.index_, nodes_[node.index_].generation)};
  }

  // Publishes. For an empty recording, returns the completion of the last submission. Throws Error
  // as BatchSubmitter::submit(), for a queue of another agent, and for another queue if a kernel
  // has its queue's address as a hidden argument.
  Completion replay(Queue& queue);
  Completion replay(Queue& queue, Deadline deadline);
  // Returns empty instead of waiting. Throws Error for a recording longer than the ring, which
  // cannot be replayed without waiting.
  std::optional<Completion> try_replay(Queue& queue);
  // As above, for a queue without ROCr.
  Completion replay(detail::BatchQueue& state, Deadline deadline);
  std::optional<Completion> try_replay(detail::BatchQueue& state);
  // Ends a partly published replay with a barrier packet, for which it waits for a slot. Otherwise
  // does nothing.
  void abandon() noexcept;

  // Returns the handle of a node that was recorded elsewhere, for a recording from a file
  // (recording_file.hpp). Throws Error unless node `index` is a dispatch with these argument types.
  template <class... Args>
  Node<Args...> node(size_t index) const {
    static constexpr std::array<ArgumentType, sizeof...(Args)> types{argument_type<Args>()...};
    return Node<Args...>(id_, static_cast<uint32_t>(index), generation_of_dispatch(index, types));
  }

  size_t size() const noexcept { return nodes_.size(); }
  uint64_t replays() const noexcept { return replays_; }
  // Fence plan of the last replay, one entry per packet, and the same in words.
  std::span<const PacketPlan> plan() { return publication_.last_plan(); }
  std::string explain();

 private:
  friend struct detail::RecordedNode;
  struct Recorded {
    std::shared_ptr<const KernelInfo> kernel;  // null: a finished packet
    Grid grid{0};
    std::byte* block = nullptr;
    uint32_t block_bytes = 0;
    uint32_t generation = 0;
    uint64_t since = 0;  // `block` was taken after this replay
  };
  struct Flight {
    uint64_t replay;
    Timeline* timeline;
    uint64_t value;
  };

  Recording(detail::BatchQueue& state, const RecordingOptions& options,
            detail::RecordedBlocks::Allocate allocate);
  void require_not_ended() const;
  void require_not_partly_out(const char* asked) const;
  Recorded& find(uint64_t recording, uint32_t index, uint32_t generation);
  uint32_t generation_of_dispatch(size_t index, std::span<const ArgumentType> types) const;
  void keep_in_step();
  void expect(uint32_t block_bytes);
  uint32_t add(const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid);
  void change(uint32_t index, const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid);
  void change_grid(uint32_t index, const Grid& grid);
  // Places the node's LocalBytes arrays after `begin` bytes of group memory, and stores their
  // offsets in `block` unless it is null. Returns the size of the group segment.
  uint64_t place_local_arrays(uint32_t index, uint64_t begin, const std::byte* arguments,
                              std::byte* block) const noexcept;
  void complete_finished();
  void put_packet(uint32_t index, const detail::DispatchShape& shape);
  void refuse_if_declared(uint32_t index, size_t argument) const;
  // Returns the node's block, or a copy of it that no replay uses.
  std::byte* writable_block(uint32_t index);
  std::byte* wait_for_spare(uint32_t size);
  void require_queue(detail::BatchQueue& state) const;
  std::optional<Completion> submit(detail::BatchQueue& state, Deadline deadline);
  // Recycles the blocks of completed replays. Returns true if all replays have completed.
  bool all_landed() noexcept;
  void keep_spare();
  void make_room_for_flight();
  void note_flight(detail::BatchQueue& state, uint64_t value) noexcept;

  template <class... Args>
  void store(uint32_t index, const Args&... args) {
    const Recorded& recorded = nodes_[index];
    size_t i = 0;
    uint32_t group_segment = recorded.kernel->group_segment_size + recorded.grid.lds_bytes;
    ((detail::store_argument(recorded.block, recorded.kernel->arguments.offset(i), args,
                             group_segment),
      ++i),
     ...);
    publication_.edit(index).set_group_segment_size(group_segment);
  }

  const std::optional<Agent> agent_;  // empty without ROCr
  const QueueFacts facts_;
  const RecordingOptions options_;
  const uint64_t id_;
  detail::Publication publication_;
  detail::DispatchShapes shapes_;
  std::vector<Recorded> nodes_;
  std::set<std::shared_ptr<const KernelInfo>>
      kernels_;  // of all current and earlier nodes, because replays in flight may run any of them
  std::vector<KernargBuffer> memory_;
  detail::RecordedBlocks blocks_;
  std::vector<std::byte> scratch_;  // size of the largest block
  bool spare_kept_ = false;
  // number of nodes whose kernel has its queue's address as a hidden argument
  size_t naming_queue_ = 0;
  // Result of all_landed() after replay `asked_after_`.
  uint64_t asked_after_ = UINT64_MAX;
  bool had_landed_ = false;
  bool lost_ = false;  // a queue failed before it had finished a replay

  std::vector<Flight> flights_;  // ring buffer; oldest at first_flight_
  size_t first_flight_ = 0, flight_count_ = 0;
  uint64_t replays_ = 0;
  // state: the queue in which a replay is partly published; null: none
  detail::QueueGuest partly_out_;
  detail::SessionEnd session_end_;  // last: it uses the others
};

}  // namespace uptempo
