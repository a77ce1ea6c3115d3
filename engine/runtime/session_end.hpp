// A function that runs once when the session ends, before anything of it is given back: for those
// that must let go of the session's memory by then.
//
// It runs on the thread that ends the session, and never during or after the destructor of its
// SessionEnd: that waits for it. It must not make or destroy a SessionEnd.
//
// Thread safety: as an int; the end of the session comes on any thread.
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

  // Once: the function runs at the end of the running session. Throws Error if there is none.
  void start(std::function<void()> function);
  // From now on nothing runs.
  void stop() noexcept;

 private:
  uint64_t number_ = 0;  // 0: none
  Owned entry_;
};

}  // namespace uptempo::detail
