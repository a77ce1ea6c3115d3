// Recording: a batch that is kept. Recorded once with its kernarg blocks, planned once, replayed any number of times at the cost of copying packets.
//
//   Recording step{queue};
//   Node force = step.dispatch(force_kernel, Grid{n}.by(256), x, f, dt).reads(x, n).writes(f, n);
//   step.dispatch(move_kernel, Grid{n}.by(256), x, f, dt);
//   step.replay(queue);
//   step.set<2>(force, dt / 2);                    // from the next replay on
//   step.replay(queue).wait();
//
// Replay. To the queue a replay is a batch: one publication, one completion signal, fences as planned for a batch that the host has
// prepared. It goes to any queue of the agent that the recording was made for; several replays may be in flight, in one queue or in
// several. What is said in queue.hpp and batch_submitter.hpp of room, deadlines and a publication longer than the ring holds here too: a replay that is cut off by
// its deadline is partly out, goes on with the next replay() on the same queue, and can be given up with abandon().
//
// Patching. Changes hold from the next replay on; replays in flight go on with what they were given. A block that a replay in flight may still read is not
// written: the node gets another one from RecordingOptions::spare_kernarg_bytes, and the old one is used again when those replays have completed. If none is
// left, patching waits up to RecordingOptions::patience and then throws Error. A patch costs what it changes: an argument its bytes (and, with replays in flight,
// a copy of the node's block), a grid or a kernel one packet and one block. Only what bears on fences (accesses, scopes, more nodes) makes
// the next replay plan anew.
//
// Nodes. A Node names a dispatch of one recording and knows its argument types. replace() may change them: the old handle is refused from
// then on, as is a handle of another recording, with Error.
//
// Cost of a replay in the steady state: no allocation, no system call, no HSA call but doorbells: one for the first `lead` packets, so that execution starts
// early, then one for each chunk.
//
// Thread safety: one owner at a time, who owns the queue of a replay as well. Lifetime: kernels are kept loaded by the recording; buffers live until the last
// replay has completed; the destructor waits up to 10 s for replays in flight, and what is not finished then keeps its memory until the end of
// the Runtime. A queue that goes while a replay is partly out in it ends that replay as abandon()
// does. After the Runtime has gone, everything that records, patches or replays throws Error.
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

#include "engine/dispatch/command_ref.hpp"
#include "engine/completion/completion.hpp"
#include "engine/dispatch/dispatch_shape.hpp"
#include "engine/dispatch/publication.hpp"
#include "engine/dispatch/queue.hpp"
#include "engine/dispatch/batch_queue.hpp"
#include "engine/recording/recorded_blocks.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"

namespace uptempo {

namespace detail {
struct RecordedNode;
}

struct RecordingOptions {
  FencePolicy fences = FencePolicy::planned;
  Timing timing = Timing::none;
  aql::Chunking chunking{.lead = 8, .chunk = 1024};
  size_t spare_kernarg_bytes =
      64 << 10;  // at least, of blocks for nodes that are patched while replays are in flight
  std::chrono::nanoseconds patience = std::chrono::seconds(30);  // of patches and of a plain replay()
};

// A recorded dispatch.
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

// The dispatch just recorded or replaced, for saying more about it. Becomes a Node.
template <class... Args>
class NodeRef : public detail::Declaring<NodeRef<Args...>, detail::PacketRef> {
 public:
  operator Node<Args...>() const noexcept { return node_; }  // NOLINT: a NodeRef is a Node with more to say
  Node<Args...> node() const noexcept { return node_; }

 private:
  friend class Recording;
  NodeRef(const detail::PacketRef& packet, Node<Args...> node) noexcept
      : detail::Declaring<NodeRef, detail::PacketRef>(packet), node_(node) {}
  Node<Args...> node_;
};
template <class... Args>
Node(const NodeRef<Args...>&) -> Node<Args...>;

class Recording {
 public:
  // For the queue's agent. Throws Error.
  explicit Recording(Queue& queue, const RecordingOptions& options = {});
  // Over a queue without ROCr; kernarg memory is `kernargs`, spare bytes included. See batch_queue.hpp.
  Recording(detail::BatchQueue& state, std::span<std::byte> kernargs, const RecordingOptions& options);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Records one dispatch. Throws Error for a geometry or an amount of group memory that kernel or
  // agent cannot run, and while a replay is partly out.
  template <class... Args>
  NodeRef<Args...> dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                            const std::type_identity_t<Args>&... args) {
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    const uint32_t index = add(kernel.shared_info(), grid);
    store(index, args...);
    return {publication_.ref_of(index), Node<Args...>(id_, index, nodes_[index].generation)};
  }
  // Records a finished packet, as BatchSubmitter::raw. Its kernarg block and its completion signal are the caller's, for every replay.
  void raw(const aql::Packet64& packet);

  // Gives argument `I` of a node another value. Throws Error for an address if the accesses of the node are declared: they would speak of other memory; use
  // replace() and declare them again.
  template <size_t I, class... Args>
  void set(const Node<Args...>& node,
           const std::type_identity_t<std::tuple_element_t<I, std::tuple<Args...>>>& value) {
    using T = std::tuple_element_t<I, std::tuple<Args...>>;
    static_assert(!std::is_same_v<T, LocalBytes>,
                  "the size of an LDS array is part of the packet: use replace()");
    Recorded& recorded = find(node.recording_, node.index_, node.generation_);
    if constexpr (std::is_pointer_v<T>) refuse_if_declared(node.index_, I);
    uint32_t none = 0;
    detail::store_argument(writable_block(node.index_), recorded.kernel->arguments.offset(I), value, none);
  }
  // Gives a node another grid. What was declared of its accesses must hold for that one too.
  // LocalBytes arguments keep their sizes (but the last of several are rounded up to 16 bytes,
  // which is where the next one lay); their offsets follow Grid::lds_bytes. Throws Error as
  // dispatch().
  template <class... Args>
  void set_grid(const Node<Args...>& node, const Grid& grid) {
    find(node.recording_, node.index_, node.generation_);
    change_grid(node.index_, grid);
  }
  // Makes a node another dispatch, of which nothing is said yet. The old handle is not valid any more.
  template <class... Old, class... Args>
  NodeRef<Args...> replace(const Node<Old...>& node, const Kernel<Args...>& kernel, const Grid& grid,
                           const std::type_identity_t<Args>&... args) {
    find(node.recording_, node.index_, node.generation_);
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    change(node.index_, kernel.shared_info(), grid);
    store(node.index_, args...);
    return {publication_.ref_of(node.index_),
            Node<Args...>(id_, node.index_, nodes_[node.index_].generation)};
  }

  // Publishes. Throws Error as BatchSubmitter::submit does, for a queue of another agent, and for another queue than the one that a kernel of the
  // recording names in a hidden argument. An empty recording gives the completion of what was submitted before.
  Completion replay(Queue& queue);
  Completion replay(Queue& queue, Deadline deadline);
  // Empty if it would have to wait. A recording longer than the ring cannot be replayed without waiting: throws Error.
  std::optional<Completion> try_replay(Queue& queue);
  // The same over a queue without ROCr.
  Completion replay(detail::BatchQueue& state, Deadline deadline);
  std::optional<Completion> try_replay(detail::BatchQueue& state);
  // Ends a replay that is partly out, with a barrier packet (waiting for a slot); otherwise does nothing.
  void abandon() noexcept;

  // A node that was recorded elsewhere: of a recording that comes from a file (recording_file.hpp). Throws Error unless there is such a dispatch and it
  // takes arguments of these types.
  template <class... Args>
  Node<Args...> node(size_t index) const {
    static constexpr std::array<ArgumentType, sizeof...(Args)> types{argument_type<Args>()...};
    return Node<Args...>(id_, static_cast<uint32_t>(index), generation_of_dispatch(index, types));
  }

  size_t size() const noexcept { return nodes_.size(); }
  uint64_t replays() const noexcept { return replays_; }
  // The fence plan, packet by packet, and in words. Of the last replay.
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
  // Puts the node's LocalBytes arrays behind `begin` bytes of group memory, into `block` where that
  // is not null. Returns the size of the group segment.
  uint64_t place_local_arrays(uint32_t index, uint64_t begin, const std::byte* arguments,
                              std::byte* block) const noexcept;
  void complete_finished();
  void put_packet(uint32_t index, const detail::DispatchShape& shape);
  void refuse_if_declared(uint32_t index, size_t argument) const;
  // The node's block, or a copy of it that no replay uses.
  std::byte* writable_block(uint32_t index);
  std::byte* wait_for_spare(uint32_t size);
  void require_queue(detail::BatchQueue& state) const;
  std::optional<Completion> submit(detail::BatchQueue& state, Deadline deadline);
  // Takes note of replays that have completed; true if all have.
  bool all_landed() noexcept;
  void keep_spare();
  void make_room_for_flight();
  void note_flight(detail::BatchQueue& state, uint64_t value) noexcept;

  template <class... Args>
  void store(uint32_t index, const Args&... args) {
    const Recorded& recorded = nodes_[index];
    size_t i = 0;
    uint32_t group_segment = recorded.kernel->group_segment_size + recorded.grid.lds_bytes;
    ((detail::store_argument(recorded.block, recorded.kernel->arguments.offset(i), args, group_segment), ++i),
     ...);
    publication_.edit(index).set_group_segment_size(group_segment);
  }

  const std::optional<Agent> agent_;  // none without ROCr
  const QueueFacts facts_;
  const RecordingOptions options_;
  const uint64_t id_;
  detail::Publication publication_;
  detail::DispatchShapes shapes_;
  std::vector<Recorded> nodes_;
  std::set<std::shared_ptr<const KernelInfo>>
      kernels_;  // of all nodes there are and were: replays in flight may run any
  std::vector<KernargBuffer> memory_;
  detail::RecordedBlocks blocks_;
  std::vector<std::byte> scratch_;  // as large as the largest block
  bool spare_kept_ = false;
  size_t naming_queue_ = 0;  // nodes whose kernel is told its queue
  // What all_landed() said after replay `asked_after_`.
  uint64_t asked_after_ = UINT64_MAX;
  bool had_landed_ = false;
  bool lost_ = false;  // a queue failed that had not finished a replay

  std::vector<Flight> flights_;  // a ring, oldest at first_flight_
  size_t first_flight_ = 0, flight_count_ = 0;
  uint64_t replays_ = 0;
  detail::QueueGuest partly_out_;   // its queue: that in which a replay is partly out; null: none
  detail::SessionEnd session_end_;  // last: it uses the others
};

}  // namespace uptempo
