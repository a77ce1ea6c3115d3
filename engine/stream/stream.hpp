// Stream: work that executes in the order of its calls, concurrently with other streams.
//
//   Stream stream{streams};
//   stream.launch(saxpy, Grid{n}.by(256), y, x, 2.0f, n);
//   const Event done = stream.record();
//   other.after(done);
//   stream.synchronize();
//
// Cost:
//   launch    One packet, published at once, without a completion signal.
//   record()  One marker packet if the stream has work that no earlier marker covers; otherwise
//             nothing.
//   after()   Nothing if the event is complete, is in the same hardware queue, or was already
//             waited for there. Remaining events share one packet per five events, before the
//             stream's next work.
// The counters markers, markers_elided, wait_packets and waits_elided (counters.hpp) count these.
// In steady state nothing here allocates, and the only call is the doorbell store.
//
// Host writes: the first launch after synchronize(), or after another host wait that covers the
// stream's last work, sees everything that the host wrote before. Later launches see host writes to
// fine-grained memory (PinnedBuffer, KernargBuffer). After writing coarse-grained memory while the
// stream has work, call host_wrote().
//
// Waiting for signals: after(signal) stops the stream until the signal is zero, which is usually
// the host's action. This also stops the hardware queue, so the stream gets a queue of its own, or
// the call is refused (StreamsOptions::own_queues). The same applies to a stream that waits for an
// event after such a wait.
//
// Back-pressure: a call that finds the ring, kernarg memory or signals exhausted waits for the
// oldest work of its queue, without holding a lock, for at most StreamsOptions::patience. Then it
// throws Error, which names the exhausted resource, and has launched nothing; waits for events that
// precede the launch may be published.
//
// Misuse: after the Runtime has ended, every call that puts work on a stream, or asks for the end
// of its work, throws Error. Events that were complete by then stay complete.
//
// Thread safety: one thread at a time per stream. Other threads may use other streams and any event
// meanwhile.
// Lifetime: kernels, buffers and signals that are given as bare handles must live until completion.
// A stream may be destroyed with work in flight. The work continues; the destructor does not wait,
// and no other stream is delayed. A stream that was moved from may be destroyed or assigned to;
// every other call that submits or awaits work throws Error.
#pragma once

#include <hsa/hsa.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/signal.hpp>
#include <uptempo/runtime/tried.hpp>
#include <uptempo/stream/copy/copy_memory.hpp>
#include <uptempo/stream/queue/detail/launch_reservation.hpp>
#include <uptempo/stream/queue/event.hpp>
#include <uptempo/stream/streams.hpp>

namespace uptempo {

namespace detail {
class LauncherCore;
class Staging;
}  // namespace detail

// The side that sets a signal to zero for which a stream waits.
enum class SignalSetBy : uint8_t {
  host,    // the host, or anything else; the stream gets a hardware queue of its own
  device,  // work that has been submitted already; the stream keeps its hardware queue
};

struct StreamOptions {
  StreamPriority priority = StreamPriority::normal;
  // Bit i of word i / 32: compute unit i may be used; empty: all. From gfx10 on, compute units come
  // in pairs, and a bit of either stands for both (hsa_amd_queue_cu_set_mask). HSA_CU_MASK, an
  // environment variable of ROCr, may disable some of them; Streams::describe() gives the mask in
  // use. The constructor of Stream throws Error if no unit is left, or if ROCr does not tell which
  // are left (7.0).
  std::vector<uint32_t> cu_mask{};
  bool blocking = true;  // ordered against the default stream if that is legacy
};

class Stream {
 public:
  // Throws Error if a new hardware queue is needed and cannot be created.
  explicit Stream(Streams& streams, const StreamOptions& options = {});
  ~Stream();
  Stream(Stream&& other) noexcept = default;
  Stream& operator=(Stream&& other) noexcept;

  // Throws Error for a geometry or an amount of group memory that kernel or agent cannot run, for
  // Arguments that do not fit (arguments.hpp), for arguments larger than a kernarg slab
  // (QueueOptions::kernarg_slab_bytes), if no room becomes available in time, and if the queue has
  // failed. Pass a Grid: its conversion to LaunchGrid adds the calling line, for reports.
  template <class... Args>
  void launch(const Kernel<Args...>& kernel, const detail::LaunchGrid& on,
              const std::type_identity_t<Args>&... args) {
    detail::require_arguments<Args...>(kernel.info(), on.grid.lds_bytes, args...);
    detail::LaunchReservation reserved = reserve(kernel.info(), on, true);
    aql::Packet64 packet;
    detail::write_dispatch(packet, reserved.block, *reserved.shape, reserved.shape->packet,
                           detail::ArgumentPlaces<Args...>(kernel.info().arguments), args...);
    commit(std::move(reserved), packet);
  }

  // As launch(), but does not wait for room, and returns refusals as values (tried.hpp):
  // ErrorCode::argument; ring, kernargs, timeline, signals; failed, device_lost. A refused launch
  // has launched nothing; waits for events may have been published.
  template <class... Args>
  Tried<> try_launch(const Kernel<Args...>& kernel, const detail::LaunchGrid& on,
                     const std::type_identity_t<Args>&... args) {
    if (const std::optional<Refusal> refusal =
            detail::try_arguments<Args...>(kernel.info(), on.grid.lds_bytes, args...))
      return *refusal;
    Tried<detail::LaunchReservation> reserved = try_reserve(kernel.info(), on);
    if (!reserved) [[unlikely]]
      return reserved.refusal();
    aql::Packet64 packet;
    detail::write_dispatch(packet, reserved->block, *reserved->shape, reserved->shape->packet,
                           detail::ArgumentPlaces<Args...>(kernel.info().arguments), args...);
    commit(std::move(*reserved), packet);
    return std::monostate{};
  }

  // Returns an event that completes when all earlier work of the stream is complete.
  Event record();
  // The same, with the completion time.
  void record(TimedEvent& event);
  // Later work of the stream begins after the event. Throws Error if that requires a separate
  // hardware queue and none is left.
  void after(const Event& event);
  // Later work of the stream begins when the caller's signal is zero. SignalSetBy::device: the
  // wait also holds up other streams of the hardware queue. Submitted work that does not depend on
  // later work of these streams must set the signal; otherwise the hardware queue stops forever.
  // The Signal may be destroyed before the wait is over; a bare handle must stay valid until then.
  void after(const Signal& signal, SignalSetBy setter = SignalSetBy::host) {
    after(signal.handle(), signal.lend(), setter);
  }
  void after(hsa_signal_t signal, SignalSetBy setter = SignalSetBy::host) {
    after(signal, detail::SignalLoan(), setter);
  }
  // Decrements the caller's signal when all earlier work of the stream is complete and its writes
  // are visible to the system. If the queue fails first, the signal keeps its value. Lifetime as
  // for after(). Throws Error like launch().
  void signal(const Signal& signal) { this->signal(signal.handle(), signal.lend()); }
  void signal(hsa_signal_t signal) { this->signal(signal, detail::SignalLoan()); }

  // Copies and fills in stream order. copy_memory.hpp describes targets, sources, paths, and when
  // pageable memory is read and written. Return the path used; CopyPath::automatic if there was
  // nothing to do. They do not wait for the device, except under back-pressure. Throw Error if
  // sizes do not match, if the requested path cannot do the copy, and like launch().
  CopyPath copy(const CopyTarget& to, const CopySource& from, CopyPath path = CopyPath::automatic) {
    return copy(to, from, path, false);
  }
  CopyPath copy_2d(const CopyTarget& to, const CopySource& from, const CopyRows& rows,
                   CopyPath path = CopyPath::automatic);
  // Fills the target with a pattern of 1, 2, 4, 8 or 16 bytes. The target, or each row, must hold a
  // whole number of patterns.
  template <class T>
  CopyPath fill(const CopyTarget& to, const T& pattern, CopyPath path = CopyPath::automatic) {
    const size_t bytes = to.range().size_bytes;
    return fill_2d(to, {.width_bytes = bytes, .height = 1, .to_pitch = bytes}, pattern, path);
  }
  template <class T>
  CopyPath fill_2d(const CopyTarget& to, const CopyRows& rows, const T& pattern,
                   CopyPath path = CopyPath::automatic) {
    static_assert(std::is_trivially_copyable_v<T> && 16 % sizeof(T) == 0,
                  "a pattern of 1, 2, 4, 8 or 16 bytes");
    return fill_with(to, rows, &pattern, sizeof(T), path);
  }

  // Frees memory once all earlier work of the stream is complete. This happens in a later one,
  // in a later call that waits for an event or a stream, in the destructor of a stream, or at the
  // latest with the Streams; never in a launch. Throws Error like record(); the caller then keeps
  // the memory.
  void free_after_work(Allocation&& memory) {
    retire([](void* from) noexcept { return std::move(*static_cast<Allocation*>(from)); }, &memory);
  }
  template <class Buffer>
  void free_after_work(Buffer&& buffer) requires requires {
    { buffer.release() } -> std::same_as<Allocation>;
  }
  {
    using Type = std::remove_reference_t<Buffer>;
    retire([](void* from) noexcept { return static_cast<Type*>(from)->release(); }, &buffer);
  }

  // The agent of its Streams.
  const Agent& agent() const;

  // Later launches see the host's writes to coarse-grained memory.
  void host_wrote() noexcept { position_.acquires_system = true; }

  // Blocks until all earlier work of the stream is complete. Throws Error if its queue has failed.
  void synchronize(WaitPolicy policy = {});
  // The same with a deadline. Returns false if the deadline passes first. Publishes a marker, like
  // record(): throws Error if StreamsOptions::patience ends first and there is no room for it.
  [[nodiscard]] bool synchronize(Deadline deadline, WaitPolicy policy = {});
  // The same with refusals as values: ErrorCode::deadline; ring, timeline, signals, for the marker;
  // failed, device_lost.
  Tried<> try_synchronize(Deadline deadline, WaitPolicy policy = {});
  // Returns true if all earlier work of the stream is complete. May publish a marker; never waits.
  bool ready();

 private:
  friend class Copier;
  friend class Streams;
  friend class detail::LauncherCore;
  friend struct detail::StateAccess;
  // Without a hardware queue: its first packet takes one. Until then, only copies, fills and
  // synchronize() are allowed.
  Stream(std::shared_ptr<detail::StreamsState> streams, const StreamOptions& options,
         bool is_default);

  // The steps of a launch: the stream's next packet, after the waits that must precede it, and its
  // publication. Without a block, the caller has one. Throws Error.
  detail::LaunchReservation reserve(const KernelInfo& kernel, const detail::LaunchGrid& on,
                                    bool takes_block);
  // The same without waiting.
  Tried<detail::LaunchReservation> try_reserve(const KernelInfo& kernel,
                                               const detail::LaunchGrid& on);
  void commit(detail::LaunchReservation&& reserved, aql::Packet64& packet) noexcept;
  void after(const Event& event, Deadline latest);
  void after(hsa_signal_t signal, detail::SignalLoan loan, SignalSetBy setter);
  void signal(hsa_signal_t signal, detail::SignalLoan loan);

  struct Transfer;
  CopyPath fill_with(const CopyTarget& to, const CopyRows& rows, const void* pattern,
                     size_t pattern_bytes, CopyPath path);
  // `always_staged`: pageable memory of any size is read at once.
  CopyPath copy(const CopyTarget& to, const CopySource& from, CopyPath path, bool always_staged);
  CopyPath put(Transfer transfer, CopyPath asked);
  CopyPath path_for(const Transfer& transfer, CopyPath asked);
  void expect_kernel(const Transfer& transfer);
  bool is_known_idle();
  Completion begin(const Transfer& transfer, CopyPath path);
  void launch_transfer(const Transfer& transfer);
  void carry_out_on_host(const Transfer& transfer);
  void put_staged(const Transfer& transfer, CopyPath path);
  void put_staged_part(const Transfer& part, CopyPath path,
                       const std::shared_ptr<detail::Staging>& own);
  void put_pinned_for_once(const Transfer& transfer, CopyPath path);
  static void count_transfer(const Transfer& transfer, CopyPath path) noexcept;
  // `take(from)` returns the memory, once nothing can fail any more.
  void retire(Allocation (*take)(void* from) noexcept, void* from);

  // Throws Error for a stream that was moved from.
  void require_here(const char* call) const {
    if (streams_ == nullptr) [[unlikely]]
      refuse_moved(call);
  }
  [[noreturn]] static void refuse_moved(const char* call);
  void take_queue();
  // Returns the queue for the stream's next packet, after publishing the waits that must precede
  // it. `latest`, here and below: the end of waits for room (stream_queue.hpp).
  detail::StreamQueue& prepare(Deadline latest = Deadline::never()) {
    if (streams_ == nullptr || position_.empty() || !waits_.empty() || follows_others_) [[unlikely]]
      begin_packet(latest);
    return *queue_;
  }
  void begin_packet(Deadline latest);
  void choose_queue();
  void put_waits(Deadline latest = Deadline::never());
  // Legacy order: follow_default() orders the next packet after other streams' work; note_order()
  // records the last packet, so that other streams can follow it.
  void follow_default(Deadline latest = Deadline::never());
  void follow(detail::LastWork last_work, Deadline latest = Deadline::never());
  void note_order() noexcept;
  void take_own_queue(Deadline latest = Deadline::never());
  void leave_own_queue() noexcept;
  void add(const Event& event);
  void drop_finished();
  bool is_behind_host() noexcept;
  // All work of the stream: the events that it waits for, and an event for its work in the queue.
  template <class F>
  bool for_all_work(const char* call, Deadline latest, F&& is_over);

  std::shared_ptr<detail::StreamsState> streams_;  // null: moved from
  StreamOptions options_;
  detail::StreamQueue* queue_ = nullptr;
  detail::StreamPosition position_;
  std::vector<Event> waits_;                 // for the next packet; at most one per timeline
  std::vector<detail::LastWork> to_follow_;  // of blocking streams; used by the default stream
  std::vector<Event> gates_;                 // waits for the host that may be unfinished
  bool owns_queue_ = false;
  bool follows_others_ = false;  // it is, or is ordered against, a legacy default stream
  bool is_default_ = false;
  // Sequence number of the default stream that this stream's packets have followed.
  uint64_t default_followed_ = 0;
};

// Copies and fills that are complete when the call returns.
//
//   Copier copier{gpu};
//   copier.copy(keys, host);    // std::vector, array, span or PinnedBuffer to DeviceBuffer
//   copier.fill(keys, 7u);
//   copier.copy(host, keys);    // and back
//
// It is a Stream of its own Streams that waits for each call. Kernels make no copies, so that a
// Copier takes a hardware queue with its first fill only. Programs with a Stream need no Copier.
//
// Order: a copy sees what the device wrote before a completion that the caller has observed, and
// device work that is submitted later sees what it wrote.
// Errors: as Stream::copy() and synchronize(). A memory fault and the loss of the GPU end copies
// and fills with an Error, within a quarter of a second; later ones throw at once.
//
// Thread safety: one thread at a time per Copier.
// Lifetime: as for a Stream. Memory of a copy that a fault has ended must live until the end of the
// Runtime.
class Copier {
 public:
  // Throws Error.
  explicit Copier(const Agent& gpu)
      : streams_(gpu, {.copies = {.kernel_bytes = 0, .staging_bytes = 512 << 10}}),
        stream_(streams_.state_, {}, false) {}

  // Return the path used. Throw Error.
  CopyPath copy(const CopyTarget& to, const CopySource& from) {
    return finish([&] { return stream_.copy(to, from); });
  }
  template <class T>
  CopyPath fill(const CopyTarget& to, const T& pattern) {
    return finish([&] { return stream_.fill(to, pattern); });
  }

 private:
  // Waits for the parts of a copy that had begun before an exception.
  struct Begun {
    Stream* stream;
    ~Begun();
  };
  template <class Begin>
  CopyPath finish(Begin&& begin) {
    Begun begun{&stream_};
    const CopyPath path = begin();
    stream_.synchronize();
    begun.stream = nullptr;
    return path;
  }

  Streams streams_;
  Stream stream_;
};

}  // namespace uptempo
