// Awaited: one entry in the completion thread's list (completion_thread.hpp). Private: the
// awaiters of awaitable.hpp need it.
//
// Lifetime: the waiting side owns the object, in a coroutine's frame or a notifier's array.
// Cost: adding an entry allocates nothing. A publication without entries costs nothing.
#pragma once

#include <cstdint>

#include <uptempo/completion/completion.hpp>

namespace uptempo::detail {

struct Awaited {
  Completion publication;  // not the empty one
  // Called once, on the completion thread, when the publication has completed or failed. It may
  // destroy the object.
  void (*on_finished)(Awaited&) noexcept = nullptr;

  // Owned by the completion thread, under its mutex.
  enum class Place : uint8_t { nowhere, waiting, ready };
  Place place = Place::nowhere;
  Awaited* before = nullptr;
  Awaited* after = nullptr;
};

}  // namespace uptempo::detail
