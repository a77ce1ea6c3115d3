// Declarations of the C interface, applied to a packet of a batch or a recording.
#pragma once

#include <cstddef>
#include <span>

#include <uptempo/c/batch.h>
#include <uptempo/c/call.hpp>
#include <uptempo/fences/declarations.hpp>

namespace uptempo::c {

// The caller's declaration. Throws Error for parts and numbers that do not exist, and for a NULL
// with entries.
uptempo_declaration checked(const uptempo_declaration* given);

// `declaration`: of checked(). `packet`: a CommandRef or a Node. Declares all or nothing.
template <class Packet>
void declare(Packet& packet, const uptempo_declaration& declaration) {
  const bool orders = (declaration.parts & UPTEMPO_DECLARES_AFTER) != 0;
  const bool accesses = (declaration.parts & UPTEMPO_DECLARES_ACCESSES) != 0;
  // First all that may fail: memory, then a packet that is not earlier.
  packet.reserve((orders ? declaration.after_count : 0) +
                 (accesses ? declaration.access_count : 0));
  if (orders) packet.after_packets(std::span(declaration.after, declaration.after_count));
  if (accesses) {
    if (declaration.access_count == 0) packet.touches_nothing();
    for (const uptempo_access& access : std::span(declaration.accesses, declaration.access_count)) {
      auto* const data = static_cast<std::byte*>(const_cast<void*>(access.data));
      if (access.writes != 0) {
        packet.writes(data, access.bytes);
      } else {
        packet.reads(data, access.bytes);
      }
    }
  }
  if ((declaration.parts & UPTEMPO_DECLARES_SCOPES) != 0)
    packet.fences(static_cast<aql::FenceScope>(declaration.acquire),
                  static_cast<aql::FenceScope>(declaration.release));
  if ((declaration.parts & UPTEMPO_DECLARES_NO_BARRIER) != 0) packet.without_barrier();
  if (declaration.observer != UPTEMPO_OBSERVER_NONE)
    packet.observed_by(static_cast<Observer>(declaration.observer));
}

}  // namespace uptempo::c
