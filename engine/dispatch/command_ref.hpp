// CommandRef: refers to the packet just appended to a batch, for declarations about it. PacketRef
// is its base for batches; recordings (NodeRef) and plans (FencePlan) offer the same declarations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aql/packet.hpp"
#include "engine/fences/declaring.hpp"
#include "engine/runtime/handle_check.hpp"

namespace uptempo {

namespace detail {

struct Publication;

struct PacketRef {
  Publication* publication;
  uint32_t packet;
  [[no_unique_address]] GenerationTag generation;
};

// Defined in publication.hpp; inlined, because every dispatch with declared accesses calls it.
inline void declare(const PacketRef& packet, const void* data, size_t bytes, bool writes);
void observe(const PacketRef& packet, Observer observer);
void set_fences(const PacketRef& packet, aql::FenceScope acquire, aql::FenceScope release);
void drop_barrier(const PacketRef& packet);

}  // namespace detail

// The packet just appended to a batch.
class CommandRef : public detail::Declaring<CommandRef, detail::PacketRef> {
 private:
  friend class BatchSubmitter;
  using Declaring::Declaring;
};

}  // namespace uptempo
