// SessionEnd: runs a function once when the session ends, before the session releases anything. For
// objects that must release the session's memory by then.
//
// The function runs on the thread that ends the session, never during or after the destructor of
// its SessionEnd, which waits for it. It must not create or destroy a SessionEnd.
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

  // Call once. The function runs at the end of the running session. Throws Error if there is none.
  void start(std::function<void()> function);
  // After this call the function does not run.
  void stop() noexcept;

 private:
  uint64_t number_ = 0;  // 0: none
  Owned entry_;
};

}  // namespace uptempo::detail
