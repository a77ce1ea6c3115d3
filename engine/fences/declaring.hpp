// What the caller may declare about a packet that has not been published: the memory it accesses, its
// outside observers, and fences of the caller's own. Base class of CommandRef (a packet of a batch),
// NodeRef (of a recording) and FencePlan::Dispatch (of a plan).
//
// Lifetime: valid until the batch or recording is touched again. With handle checks
// (engine/runtime/handle_check.hpp) a later call throws Error.
#pragma once

#include <cstddef>

#include "aql/packet.hpp"
#include "engine/fences/fence_rules.hpp"

namespace uptempo::detail {

// `Self` is the class that offers these functions. `Ref` names the packet; declare(), observe(),
// set_fences() and drop_barrier() are found for it by argument-dependent lookup.
template <class Self, class Ref>
class Declaring {
 public:
  // Bytes that the dispatch reads or writes. Once one range is declared, all must be: the plan may then leave out the barrier bit.
  template <class T>
  Self& reads(const T* data, size_t count) {
    declare(packet_, data, count * sizeof(T), false);
    return self();
  }
  template <class T>
  Self& writes(T* data, size_t count) {
    declare(packet_, data, count * sizeof(T), true);
    return self();
  }
  // A dispatch that touches no memory but its arguments.
  Self& touches_nothing() {
    declare(packet_, nullptr, 0, false);
    return self();
  }
  // Who looks at the results before the completion is awaited.
  Self& observed_by(Observer observer) {
    observe(packet_, observer);
    return self();
  }

  // The caller's own choice, taken as it is (but see fence_rules.hpp for the first packet and the last).
  Self& fences(aql::FenceScope acquire, aql::FenceScope release) {
    set_fences(packet_, acquire, release);
    return self();
  }
  Self& without_barrier() {
    drop_barrier(packet_);
    return self();
  }

 protected:
  explicit Declaring(const Ref& packet) noexcept : packet_(packet) {}

 private:
  Self& self() noexcept { return static_cast<Self&>(*this); }
  Ref packet_;
};

}  // namespace uptempo::detail
