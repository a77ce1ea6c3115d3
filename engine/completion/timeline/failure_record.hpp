// FailureRecord: the first error of a timeline, the sources of errors, and the timelines and
// signals that it must reach. Private to Timeline and its users in the engine.
//
// Sources: fail() of any thread; a watched error source of a borrowed queue's owner; a signal that
// a failed copy has made negative. The record is permanent: later errors, and later values of a
// source, change nothing.
//
// Thread safety: noted(), error(), watch(), watches() and reported() may be called from any thread.
// The timeline's mutex protects the other functions.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace uptempo {

class Timeline;

// Why a queue failed.
struct Failure {
  hsa_status_t status = HSA_STATUS_SUCCESS;
  std::string text;
};
// Advice for the caller of a failed call.
std::string_view remedy(const Failure& failure) noexcept;

namespace detail {

class FailureRecord {
 public:
  // Cost: one load. Acquire: a thread that sees the error also sees what was noted before it.
  bool noted() const noexcept {
    return error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS;
  }
  const std::atomic<hsa_status_t>& error() const noexcept { return error_; }
  void note(hsa_status_t status, std::string text) noexcept {
    failure_ = {status, std::move(text)};
    error_.store(status, std::memory_order_release);
  }
  const Failure& failure() const noexcept { return failure_; }
  // In the child of a fork, instead of note(): needs no lock.
  void leave_to_parent() noexcept {
    hsa_status_t none = HSA_STATUS_SUCCESS;
    error_.compare_exchange_strong(none, HSA_STATUS_ERROR_NOT_INITIALIZED);
  }
  static Failure left_to_parent();

  // Watches `source`, or nothing if it is null. A failed copy replaces the source.
  void watch(const std::atomic<hsa_status_t>* source) noexcept {
    watched_.store(source, std::memory_order_release);
  }
  void watch_failed_copy() noexcept;
  bool watches() const noexcept { return watched_.load(std::memory_order_acquire) != nullptr; }
  // The error that the watched source holds now. Status success: none.
  struct Report {
    hsa_status_t status = HSA_STATUS_SUCCESS;
    const char* text = "";
  };
  Report reported() const noexcept;

  // A timeline that fails with this one unless `value` is known to be complete by then.
  struct Dependent {
    Timeline* timeline;
    uint64_t value;
  };
  // Keeps the highest value of each timeline. Requires expect_dependent() for the timeline, since
  // the last take_dependents() or clear().
  void add_dependent(const Dependent& dependent) noexcept;
  // Allocates for a new timeline.
  void expect_dependent(Timeline& timeline);
  std::vector<Dependent> take_dependents() noexcept { return std::exchange(dependents_, {}); }
  // A caller's signal that a packet of the publication decrements.
  struct Dependency {
    hsa_signal_t signal;
    uint64_t value;
  };
  // Adds the dependency of a list of one.
  void add_signal(std::list<Dependency>&& signal) noexcept {
    signals_.splice(signals_.end(), signal);
  }
  void remove_signal(hsa_signal_t signal) noexcept {
    std::erase_if(signals_, [=](const Dependency& d) { return d.signal.handle == signal.handle; });
  }
  // Calls f(signal, value) for each and forgets them.
  template <class F>
  void take_signals(F&& f) noexcept {
    for (const Dependency& d : signals_) f(d.signal, d.value);
    signals_.clear();
  }
  // Describes this failure to a timeline that waits for it. The prefix is added once, however long
  // the chain. Empty if memory is short.
  static std::string passed_on(const std::string& text) noexcept;
  static bool is_passed_on(std::string_view text) noexcept;

  // Forgets the failure, the dependents and the signals; the watched source stays.
  void clear() noexcept;

 private:
  std::atomic<hsa_status_t> error_{HSA_STATUS_SUCCESS};
  std::atomic<const std::atomic<hsa_status_t>*> watched_{nullptr};
  Failure failure_;
  std::vector<Dependent> dependents_;
  std::list<Dependency> signals_;
};

}  // namespace detail
}  // namespace uptempo
