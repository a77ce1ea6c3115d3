// CompletedSignal: a signal of another owner that a packet of a publication decrements from 0, for
// queues that are not the engine's. If the publication is lost, its failure stores -1 instead, so
// that no such queue waits forever. Private to engine/hip.
//
// Thread safety: thread-compatible.
// Lifetime: the signal must live until fate() has returned another value than unfinished.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>

#include <uptempo/completion/completion.hpp>
#include <uptempo/completion/detail/awaited.hpp>
#include <uptempo/completion/timeline.hpp>

namespace uptempo::detail {

class CompletedSignal {
 public:
  // Memory for one object. Allocates; made before the packet is published.
  struct Place {
    Timeline::SignalPlace list{1};
  };
  CompletedSignal() = default;
  // `signal` has no event and holds 0. Call after the packet has been published.
  CompletedSignal(hsa_signal_t signal, const Completion& completion, Place&& place) noexcept;

  enum class Fate : uint8_t {
    unfinished,
    complete,  // no packet and no failure uses the signal any more
    lost,      // no failure uses it any more, but the packet may still decrement it
  };
  Fate fate() noexcept;
  // The same for a publication whose packets only read a signal.
  static Fate fate_of(const Completion& completion) noexcept;

  // Calls item.on_finished on the completion thread when the publication has completed or failed
  // (completion_thread.hpp). Sets the item's publication, which is not empty. Throws
  // std::system_error if the thread cannot be started.
  static void await(const Completion& completion, Awaited& item);

 private:
  hsa_signal_t signal_{0};
  Completion completion_;
};

}  // namespace uptempo::detail
