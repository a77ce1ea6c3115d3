// What a caller can say about a packet that is kept: of a batch (CommandRef), of a recording (NodeRef) or of a plan (FencePlan).
#pragma once

#include <cstddef>
#include <cstdint>

#include "aql/packet.hpp"
#include "engine/fences/fence_rules.hpp"
#include "engine/dispatch/pools/handle_check.hpp"

namespace uptempo {

namespace detail {

struct Publication;

struct PacketRef {
  Publication* publication;
  uint32_t packet;
  [[no_unique_address]] GenerationTag generation;
};

// Defined in publication.hpp: on the way of every dispatch that says what it touches.
inline void declare(const PacketRef& packet, const void* data, size_t bytes, bool writes);
void observe(const PacketRef& packet, Observer observer);
void set_fences(const PacketRef& packet, aql::FenceScope acquire, aql::FenceScope release);
void drop_barrier(const PacketRef& packet);

// `Self` is the class that offers these functions, `Ref` tells them what they are about. Valid until its batch or recording is touched again; with handle checks
// (handle_check.hpp) they throw Error after that.
template <class Self, class Ref = PacketRef>
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

}  // namespace detail

// The packet just appended to a batch.
class CommandRef : public detail::Declaring<CommandRef> {
 private:
  friend class BatchSubmitter;
  using Declaring::Declaring;
};

}  // namespace uptempo
