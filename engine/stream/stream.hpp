// Stream: work that is carried out in the order in which it is put there, beside the work of other streams.
//
//   Stream stream{streams};
//   stream.launch(saxpy, Grid{n}.by(256), y, x, 2.0f, n);
//   const Event done = stream.record();
//   other.wait(done);
//   stream.synchronize();
//
// What each thing costs. A launch is one packet, published at once, and nobody is asked to tell of its end. record() is one marker packet where the stream has work that no earlier
// marker covers, and nothing otherwise; wait() is nothing where the event is complete, in the same hardware queue, or was waited for there already; what remains becomes
// one packet for up to five events, ahead of the stream's next work. Counters (counters.hpp) tell of all of it: markers, markers_elided, wait_packets, waits_elided.
// In steady state nothing here allocates, and no call is made but the doorbell's store.
//
// What the host wrote. The first launch after synchronize(), or after any other wait of the host that covers the stream's last work, sees everything the host wrote before. Later ones see what it writes to fine-grained memory (PinnedBuffer, KernargBuffer); after
// writing to coarse-grained memory while the stream has work, call host_wrote().
//
// Large arguments. What does not fit a kernarg slab (QueueOptions::kernarg_slab_bytes) gets memory of its own, which is used again when the kernel is complete: the first such launches
// of a size allocate, and no others pay. StreamsOptions::spill_bytes bounds it; a launch beyond what is free waits as below, and a kernel beyond all of it is refused.
//
// Waiting for the host. wait(signal) holds the stream until somebody, usually the host, makes the signal zero. A hardware queue is held up by it as well, so
// the stream gets one of its own, or is refused (StreamsOptions::own_queues). So does a stream that waits for an event behind such a wait.
//
// Back-pressure: a call that finds ring, kernarg memory or signals exhausted waits for the oldest work of its queue, StreamsOptions::patience at most, without holding a
// lock; then it throws Error naming what was short. Nothing is half done then.
//
// Misuse: after the Runtime has gone, what puts work on a stream throws Error, and so does what asks
// for the end of its work; events that were complete by then stay so.
//
// Thread safety: one thread at a time for one stream; others may use other streams and any event meanwhile. Lifetime: kernels, buffers and signals until completion. A stream may be destroyed
// with work in flight, which goes on; nobody waits for it and no other stream is held up.
#pragma once

#include <hsa/hsa.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/dispatch/dispatch_shape.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/runtime/signal.hpp"
#include "engine/stream/copy/copy_ends.hpp"
#include "engine/stream/event/event.hpp"
#include "engine/stream/queue/stream_queue.hpp"
#include "engine/stream/streams.hpp"
#include "engine/stream/event/timed_event.hpp"

namespace uptempo {

namespace detail {
class LauncherCore;
class Staging;
struct TimelinePoint;
}  // namespace detail

struct StreamOptions {
  StreamPriority priority = StreamPriority::normal;
  std::vector<uint32_t> cu_mask{};  // bit i of word i / 32: compute unit i may be used; empty: all
  bool blocking = true;             // ordered against the default stream where that is legacy
};

class Stream {
 public:
  // Throws Error if a hardware queue has to be made and cannot.
  explicit Stream(Streams& streams, const StreamOptions& options = {});
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Throws Error for a geometry or an amount of group memory that kernel or agent cannot run, when
  // room does not come in time, and if the queue has failed.
  template <class... Args>
  void launch(const Kernel<Args...>& kernel, const Grid& grid, const std::type_identity_t<Args>&... args) {
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    detail::StreamQueue& queue = prepare();
    detail::StreamQueue::Turn turn = queue.take_turn<Args...>(kernel.info(), grid);
    aql::Packet64 packet;
    detail::write_dispatch(packet, turn.block, *turn.shape, turn.shape->packet,
                           detail::offsets<Args...>(kernel.info()), args...);
    queue.launch(std::move(turn), position_, packet);
    if (follows_others_) [[unlikely]]
      note_order();
  }

  // An event that is complete when everything put on the stream so far is.
  Event record();
  // The same, with the time at which it was reached.
  void record(TimedEvent& event);
  // What is put on the stream from now on begins after the event. Throws Error where that takes a hardware queue of its own and none is left.
  void wait(const Event& event);
  // The same for a signal of the caller's, until it is zero.
  void wait(const Signal& signal) { wait(signal.handle()); }
  void wait(hsa_signal_t signal);

  // Copies and fills in the order of the stream; which ends there are, which paths, and when pageable memory is read and written: copy_ends.hpp. They return the path
  // taken, and CopyPath::automatic where there was nothing to do. None waits for the device, but as every call where something is exhausted. Throw Error for sizes that do not
  // fit, for a path asked for that cannot go, and as launch().
  CopyPath copy(const CopyTarget& to, const CopySource& from, const CopyOptions& options = {});
  CopyPath copy_2d(const CopyTarget& to, const CopySource& from, const CopyRows& rows,
                   const CopyOptions& options = {});
  // The target is filled with a pattern of 1, 2, 4, 8 or 16 bytes, of which it, or each row, holds a whole number.
  template <class T>
  CopyPath fill(const CopyTarget& to, const T& pattern, CopyPath path = CopyPath::automatic) {
    const size_t bytes = to.end().size_bytes;
    return fill_2d(to, {.width_bytes = bytes, .height = 1, .to_pitch = bytes}, pattern, path);
  }
  template <class T>
  CopyPath fill_2d(const CopyTarget& to, const CopyRows& rows, const T& pattern,
                   CopyPath path = CopyPath::automatic) {
    static_assert(std::is_trivially_copyable_v<T> && 16 % sizeof(T) == 0,
                  "a pattern of 1, 2, 4, 8 or 16 bytes");
    return fill_with(to, rows, &pattern, sizeof(T), path);
  }

  // Gives memory back when everything put on the stream so far is complete: in a later free(), synchronize() or the destructor of this stream, in
  // Streams::synchronize(), or at last with the Streams; never in a launch or another stream's call. Throws Error as record(); the memory is the caller's yet then.
  void free(Allocation&& memory);
  template <class Buffer>
  void free(Buffer&& buffer) requires requires {
    { buffer.release() } -> std::same_as<Allocation>;
  }
  {
    const Event after = record();
    free_after(after, buffer.release());
  }

  // Later launches see what the host wrote to coarse-grained memory.
  void host_wrote() noexcept { position_.acquires_system = true; }

  // Returns when everything put on the stream so far is complete. Throws Error if its queue has failed.
  void synchronize(WaitPolicy policy = {});
  // The same until a deadline: false if it has passed first.
  [[nodiscard]] bool synchronize(Deadline deadline, WaitPolicy policy = {});
  // True if everything put on the stream so far is complete. May put a marker on it.
  bool ready();

  hsa_queue_t* hardware_queue() const noexcept { return queue_->handle(); }
  bool has_own_queue() const noexcept { return owns_queue_; }

 private:
  friend class Streams;
  friend class detail::LauncherCore;
  Stream(std::shared_ptr<detail::StreamsState> streams, const StreamOptions& options, bool is_default);

  // The queue for the stream's next packet, with all that it waits for ahead of it.
  detail::StreamQueue& prepare() {
    if (position_.empty() || !waits_.empty() || follows_others_) [[unlikely]]
      settle();
    return *queue_;
  }
  struct Transfer;
  CopyPath fill_with(const CopyTarget& to, const CopyRows& rows, const void* pattern, size_t pattern_bytes,
                     CopyPath path);
  CopyPath put(Transfer transfer, const CopyOptions& options);
  CopyPath path_for(const Transfer& transfer, CopyPath asked);
  bool is_known_idle();
  detail::TimelinePoint begin(const Transfer& transfer, CopyPath path);
  void launch_copy(const Transfer& transfer);
  void launch_fill(const Transfer& transfer);
  void carry_out_on_host(const Transfer& transfer);
  void put_staged(const Transfer& transfer, CopyPath path);
  void put_staged_part(const Transfer& part, CopyPath path, const std::shared_ptr<detail::Staging>& own);
  void put_pinned_for_once(const Transfer& transfer, CopyPath path);
  static void count_transfer(const Transfer& transfer, CopyPath path) noexcept;
  void free_after(const Event& after, Allocation&& memory);

  void settle();
  void settle_place();
  void put_waits();
  // Legacy order: what the stream's next packet comes after, and what comes after its last one.
  void settle_order();
  void follow(detail::Standing standing);
  void note_order();
  void move_to(detail::StreamQueue& queue);
  void take_own_queue();
  void leave_own_queue() noexcept;
  void add(const Event& event);
  void drop_finished();
  bool is_behind_host();
  // What is complete when the stream's work is: the events that it waits for, and one for what is in its queue.
  template <class F>
  bool all_of_it(F&& is_over);

  std::shared_ptr<detail::StreamsState> streams_;
  const uint64_t number_;  // no other stream of these Streams has had it
  const StreamOptions options_;
  detail::StreamQueue* queue_;
  detail::StreamPosition position_;
  std::vector<Event> waits_;                 // for the next packet: of each timeline one at most
  std::vector<detail::Standing> to_follow_;  // of blocking streams, by the default stream
  std::vector<Event> gates_;                 // of its waits for the host, those that may not be over
  bool owns_queue_ = false;
  bool follows_others_ = false;  // it is, or is ordered against, a legacy default stream
  bool is_default_ = false;
  uint64_t default_followed_ = 0;  // as far as its packets have followed those of the default stream
};

}  // namespace uptempo
