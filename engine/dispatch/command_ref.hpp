// CommandRef: refers to the packet just appended to a batch, for declarations about it. Recordings
// (NodeRef) and plans (FencePlan) offer the same declarations.
//
// Thread safety: that of the batch.
#pragma once

#include "engine/dispatch/detail/publication.hpp"
#include "engine/fences/declarations.hpp"

namespace uptempo {

namespace detail {
struct BatchState;
}

// The packet just appended to a batch.
class CommandRef : public Declaring<CommandRef, detail::PacketRef> {
 private:
  friend struct detail::BatchState;
  using Declaring::Declaring;
};

}  // namespace uptempo
