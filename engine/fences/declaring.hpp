// Declarations that the caller may add to an unpublished packet: the memory it accesses, its
// outside observers, and explicit fences. Base class of CommandRef (a packet of a batch), NodeRef
// (of a recording) and FencePlan::Dispatch (of a plan).
//
// Thread safety: that of the batch, recording or plan.
// Lifetime: valid until the batch or recording is modified again. A later call for a packet that is
// no longer the last one of its batch throws Error.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "aql/packet.hpp"
#include "engine/fences/declarations.hpp"

namespace uptempo {

// `Self` is the derived class. `Ref` identifies the packet; argument-dependent lookup finds
// declare(), depend(), observe(), set_fences() and drop_barrier() for it.
template <class Self, class Ref>
class Declaring {
 public:
  // Declares bytes that the dispatch reads or writes. If one range is declared, all must be: the
  // plan may then omit the barrier bit.
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
  // Declares a dispatch that accesses no memory except its arguments.
  Self& touches_nothing() {
    declare(packet_, nullptr, 0, false);
    return self();
  }
  // Declares that the dispatch depends on these earlier packets, and on no others: it begins when
  // they are complete and sees what they wrote. For a program that knows the order of its work but
  // not the memory, such as a graph. A packet is named by its number: the size() of the batch,
  // recording or plan before it was added. An empty list declares that it depends on no packet.
  // The dispatch may access any memory. So it also follows the last packet without declarations,
  // and later ones of that kind follow it. It is not ordered against packets that only declare
  // memory. Throws Error for a packet that is not earlier.
  Self& after(std::span<const size_t> packets) {
    depend(packet_, packets);
    return self();
  }
  Self& after(std::initializer_list<size_t> packets) {
    return after(std::span(packets.begin(), packets.size()));
  }
  // Declares an observer that reads the results before the caller awaits completion.
  Self& observed_by(Observer observer) {
    observe(packet_, observer);
    return self();
  }

  // Sets the fences, or removes the barrier bit, as the caller chooses. fence_rules.hpp has the
  // exceptions for the first and last packet.
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

}  // namespace uptempo
