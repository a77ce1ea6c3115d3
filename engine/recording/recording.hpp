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
// Replay: for the queue, a replay is a batch: one publication with one completion signal, or
// several if it is longer than the ring. Its fences are planned for a batch that the host has
// prepared. Any queue of the recording's agent can replay it. Several replays may be in flight, in
// one queue or several. The rules of queue.hpp and batch_submitter.hpp about room, deadlines and
// batches longer than the ring apply. A replay that its deadline cuts off is partly published. The
// next replay() on the same queue continues it; abandon() drops the rest.
//
// Patching: changes apply from the next replay on; replays in flight keep their values. A block
// that a replay in flight may still read is not changed. Its node gets another block from
// RecordingOptions::spare_kernarg_bytes, and the old block is reused when those replays have
// completed. If no block is left, patching waits up to RecordingOptions::patience and then throws
// Error.
//
// Declared accesses: a declared range moves with the address argument that it starts at. After
// set() of that argument, the node accesses as many bytes at the new address, and the next replay
// plans again. So buffers are swapped by set() in all nodes that use them. A range that starts at
// several equal arguments counts for each of them. set() throws Error and changes nothing unless
// the ranges tell what the node then accesses: each starts at an address argument and contains no
// other, and one starts at each address argument that is not null. A value argument, such as a
// struct, moves no range. set() of an address argument throws if a value contains, at a multiple of
// 8 bytes in the kernarg block, an address in the range that would move. Otherwise replace() the
// node and declare it again.
//
// Order: a replay begins when everything before it in its queue is complete, and sees the results,
// unless the caller sets the fences of its ends or removes their barrier bits. Replays in different
// queues have no order. If they access the same memory, the caller makes the later one wait.
//
// Device memory: with the queue's kernargs in device memory (kernarg_placement.hpp), recording and
// patching write copies in host memory. A replay copies the blocks that have changed and flushes
// once; a replay without changes does neither.
//
// Nodes: a Node identifies a dispatch of one recording and has its argument types. replace() may
// change the types and invalidates the old handle. A stale handle, or one of another recording,
// throws Error. A Node must not be given declarations after its recording has been destroyed or
// assigned to.
//
// Cost: a replay in steady state makes no allocation, no system call and no HSA call except
// doorbells: one after the first `lead` packets, so that execution starts early, and one for each
// further chunk. A patch costs what it changes: for an argument its bytes (with replays in flight,
// also a copy of the node's block), for a grid or kernel one packet and one block. Only changes
// that affect fences (accesses and their addresses, scopes, additional nodes) make the next replay
// plan again. For ranges that it has planned before, as in a swap and back, that allocates nothing.
//
// Thread safety: one owner at a time, which must also own the queue of a replay.
//
// Lifetime: the recording keeps its kernels loaded. Buffers must live until the last replay has
// completed. The destructor waits up to 10 s for replays in flight; the memory of an unfinished one
// stays until the end of the Runtime. If a queue is destroyed while a replay is partly published in
// it, that replay ends as with abandon(). After the end of the Runtime, every call that records,
// patches or replays throws Error.
//
// Moves: nodes and replays in flight follow a recording that is moved. Assigning to a recording
// destroys what it held. A moved-from recording may be destroyed, abandoned or assigned to and has
// the size 0; its other functions throw Error.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include <uptempo/completion/completion.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/fences/declarations.hpp>
#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo {

namespace detail {

class RecordingState;
struct StateAccess;

struct NodeHandle {
  RecordingState* state;
  uint64_t recording;
  uint32_t packet;
  uint32_t generation;

  // Throw Error for a stale handle, and while a replay is partly published.
  Declarations& declarations() const;
  std::vector<AccessRange>& accesses() const;
};

// Throws Error for a node of another recording.
void require_same(const NodeHandle& own, const NodeHandle& other);

// A node whose explicit arguments are being written.
struct OpenNode {
  NodeHandle handle;
  const KernelInfo* kernel;
  std::byte* block;              // where the host writes them
  uint32_t group_segment_bytes;  // without LocalBytes arguments
};

}  // namespace detail

struct RecordingOptions {
  FencePolicy fences = FencePolicy::by_need;
  Timing timing = Timing::none;
  aql::Chunking chunking{.lead = 8, .chunk = 1024};
  // Minimum, for blocks of nodes that are patched while replays are in flight, at most 256 MiB. The
  // default holds 512 blocks of a kernel with a few arguments and the hidden ones of code object
  // version 5.
  size_t spare_kernarg_bytes = 160 << 10;
  // longest wait of a patch, and of replay() without a deadline
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
};

// Handle of a recorded dispatch, also for declarations about it. They apply from the next replay
// on.
template <class... Args>
class Node : public Declaring<Node<Args...>, detail::NodeHandle> {
  using Base = Declaring<Node, detail::NodeHandle>;

 public:
  size_t index() const noexcept { return this->packet_.packet; }

 private:
  friend class Recording;
  template <class...>
  friend class Node;
  using Base::Base;
};

class Recording {
 public:
  // For queues of this queue's agent. Throws Error.
  explicit Recording(Queue& queue, const RecordingOptions& options = {});
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

  // Records one dispatch. Throws Error if the kernel or the agent cannot run the geometry or the
  // amount of group memory, and while a replay is partly published.
  template <class... Args>
  Node<Args...> dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                         const std::type_identity_t<Args>&... args) {
    detail::require_arguments<Args...>(kernel.info(), grid.lds_bytes, args...);
    return store(add(kernel.shared_info(), grid), args...);
  }
  // Records a finished packet, as BatchSubmitter::raw(). The caller keeps its kernarg block and
  // completion signal valid for every replay.
  void raw(const aql::Packet64& packet);

  // Changes argument `I` of a node. An address moves the declared ranges that start at it; throws
  // Error if they do not tell what the node then accesses (above).
  template <size_t I, class... Args>
  void set(const Node<Args...>& node,
           const std::type_identity_t<std::tuple_element_t<I, std::tuple<Args...>>>& value) {
    using T = std::tuple_element_t<I, std::tuple<Args...>>;
    static_assert(!detail::kAtRunTime<T>, "pass the argument's index: set(node, i, bytes)");
    static_assert(!std::is_same_v<T, LocalBytes>,
                  "the size of an LDS array is part of the packet: use replace()");
    if constexpr (std::is_pointer_v<T>) {
      set_address(node.packet_, I, reinterpret_cast<uintptr_t>(value));
    } else {
      uint32_t none = 0;
      detail::store_argument(writable_argument(node.packet_, I), 0, value, none);
    }
  }
  // The same for a node whose arguments are given at run time. `value` has the argument's size.
  // Also throws Error for an index or a size that the kernel does not have, and for an LDS array.
  void set(const Node<Arguments>& node, size_t argument, std::span<const std::byte> value) {
    set_value(node.packet_, argument, value);
  }
  // Changes all arguments of such a node. Throws Error as dispatch() and as set() above; the node
  // is then unchanged. Equal values change nothing.
  void set(const Node<Arguments>& node, const Arguments& values) {
    set_values(node.packet_, values);
  }
  // Changes the grid of a node. Its declared accesses must hold for the new grid, too. LocalBytes
  // arguments keep their sizes; all but the last are rounded up to 16 bytes, the offset of the next
  // one. Their offsets follow Grid::lds_bytes. Throws Error as dispatch().
  template <class... Args>
  void set_grid(const Node<Args...>& node, const Grid& grid) {
    change_grid(node.packet_, grid);
  }
  // Replaces a node by another dispatch, which has no declarations yet. Invalidates the old handle.
  template <class... Old, class... Args>
  Node<Args...> replace(const Node<Old...>& node, const Kernel<Args...>& kernel, const Grid& grid,
                        const std::type_identity_t<Args>&... args) {
    detail::require_arguments<Args...>(kernel.info(), grid.lds_bytes, args...);
    return store(change(node.packet_, kernel.shared_info(), grid), args...);
  }

  // Publishes. For an empty recording, returns the completion of the last submission. Throws Error
  // as BatchSubmitter::submit(), for a queue of another agent, and for another queue if a kernel
  // has its queue's address as a hidden argument.
  Completion replay(Queue& queue, CallSite site = CallSite::here());
  Completion replay(Queue& queue, Deadline deadline, CallSite site = CallSite::here());
  // Does not wait, and returns refusals as values, as BatchSubmitter::try_submit(); also
  // ErrorCode::argument for a queue that cannot replay it.
  Tried<Completion> try_replay(Queue& queue, CallSite site = CallSite::here());
  // Drops the rest of a partly published replay. Otherwise does nothing.
  void abandon() noexcept;

  // Returns the handle of a node that was recorded elsewhere, for a recording from a file
  // (recording_file.hpp). Throws Error unless node `index` is a dispatch with these argument types.
  template <class... Args>
  Node<Args...> node(size_t index) const {
    if constexpr (detail::kAtRunTime<Args...>) {
      return Node<Args...>(handle_of(index));
    } else {
      static constexpr std::array<ArgumentType, sizeof...(Args)> kTypes{argument_type<Args>()...};
      return Node<Args...>(handle_of(index, kTypes));
    }
  }

  size_t size() const noexcept;
  // Where its kernarg blocks are, and why: the choice of the queue that it was made for.
  const KernargPlace& kernargs() const;
  uint64_t replays() const noexcept;
  // Fence plan of the last replay, one entry per packet, and the same in words.
  std::span<const PacketPlan> plan();
  std::string explain();

 private:
  friend class detail::RecordingState;
  friend struct detail::StateAccess;
  explicit Recording(std::unique_ptr<detail::RecordingState> state) noexcept;
  detail::OpenNode add(const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid);
  // Returns the place of an argument, in a block that no replay uses.
  std::byte* writable_argument(const detail::NodeHandle& node, size_t argument);
  void set_address(const detail::NodeHandle& node, size_t argument, uintptr_t value);
  void set_value(const detail::NodeHandle& node, size_t argument, std::span<const std::byte> value);
  void set_values(const detail::NodeHandle& node, const Arguments& values);
  void change_grid(const detail::NodeHandle& node, const Grid& grid);
  detail::OpenNode change(const detail::NodeHandle& node,
                          const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid);
  // Without types: any.
  detail::NodeHandle handle_of(size_t index,
                               std::optional<std::span<const ArgumentType>> types = {}) const;
  void set_group_segment_size(uint32_t index, uint32_t size_bytes) noexcept;

  template <class... Args>
  Node<Args...> store(const detail::OpenNode& node, const Args&... args) {
    uint32_t group_segment = node.group_segment_bytes;
    detail::ArgumentPlaces<Args...>(node.kernel->arguments)
        .store(node.block, group_segment, args...);
    set_group_segment_size(node.handle.packet, group_segment);
    return Node<Args...>(node.handle);
  }

  // Throws Error, with `call` as the failed call, if the Recording was moved from.
  detail::RecordingState& state(const char* call) const;

  std::unique_ptr<detail::RecordingState> state_;
};

}  // namespace uptempo
