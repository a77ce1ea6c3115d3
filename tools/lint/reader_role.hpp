// The right to read a queue's packets: one thread at a time, and no thread waits for it.
//
// The first thread that takes the role owns it, and then takes it without a locked instruction: a
// store to `owner_reads_` and a load of `phase_`. The processor may execute the load first. Another
// thread that wants the role changes the phase and calls membarrier(2) once, which executes a full
// barrier on every thread of the process. After it, the owner has seen the new phase, or its store
// is visible. From then on all threads use an atomic exchange.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo::lint {

class ReaderRole {
 public:
  enum class Taken : uint8_t { no, by_owner, shared };

  // `biased`: the first thread owns the role. Ignored where the kernel lacks membarrier().
  explicit ReaderRole(bool biased = true) noexcept;

  // Taken::no unless this thread owns the role. Otherwise as take().
  Taken take_owned() noexcept {
    if (owner_.load(std::memory_order_relaxed) != this_thread() ||
        phase_.load(std::memory_order_relaxed) != Phase::owned ||
        owner_reads_.load(std::memory_order_relaxed))
      return Taken::no;
    owner_reads_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // store, then load, in the code
    if (phase_.load(std::memory_order_relaxed) == Phase::owned) [[likely]]
      return Taken::by_owner;
    owner_reads_.store(false, std::memory_order_release);
    return Taken::no;
  }
  // Taken::no: another thread has the role, or is about to share it; or this one has it already,
  // below a signal handler.
  Taken take() noexcept {
    const Taken owned = take_owned();
    return owned != Taken::no ? owned : take_slowly();
  }
  // release, both: before the next reader.
  void give_back(Taken taken) noexcept {
    (taken == Taken::by_owner ? owner_reads_ : reads_).store(false, std::memory_order_release);
  }
  bool is_owned() const noexcept { return phase_.load(std::memory_order_relaxed) == Phase::owned; }

 private:
  enum class Phase : uint8_t { owned, changing, shared };
  using Thread = const char*;

  static Thread this_thread() noexcept { return &marker_; }
  Taken take_slowly() noexcept;
  bool share() noexcept;

  // Its address tells threads apart. initial-exec: no call; the library's few bytes fit what the
  // loader keeps free for libraries that are opened later.
  [[gnu::tls_model("initial-exec")]] static inline thread_local const char marker_ = 0;

  std::atomic<Thread> owner_{nullptr};
  std::atomic<Phase> phase_;
  std::atomic<bool> owner_reads_{false};  // only the owner stores
  std::atomic<bool> reads_{false};        // in Phase::shared
};

}  // namespace uptempo::lint
