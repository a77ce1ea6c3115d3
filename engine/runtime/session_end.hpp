// SessionEnd: runs a function once when the session ends, before the session releases anything. For
// objects that must release the session's memory by then.
//
// The function runs on the thread that ends the session, never during or after the destructor of
// its SessionEnd, which waits for it. It must not create or destroy a SessionEnd.
//
// fork: in the child the session has ended, but its memory is not mapped, and another thread of the
// parent may have held any lock or been in any function. A second function runs there instead.
//
// Thread safety: thread-compatible. The session may end on any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/runtime/session.hpp"

namespace uptempo::detail {

class SessionEnd {
 public:
  SessionEnd() = default;
  SessionEnd(const SessionEnd&) = delete;
  SessionEnd& operator=(const SessionEnd&) = delete;
  ~SessionEnd() { stop(); }

  // Call once. `function` runs at the end of the running session, and `in_child` in the child of
  // each fork before that end: it must not lock, wait or touch memory of the session. Throws Error
  // if there is no session.
  void start(std::function<void()> function, std::function<void()> in_child);
  // After this call neither function runs.
  void stop() noexcept;

 private:
  uint64_t number_ = 0;  // 0: none
  Owned entry_;
};

}  // namespace uptempo::detail
