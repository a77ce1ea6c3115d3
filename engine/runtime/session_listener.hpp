// SessionListener: a listener of a session (Session::Listener), removed by its destructor.
//
// Thread safety: thread-compatible. The session may end on any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/runtime/session.hpp"

namespace uptempo::detail {

class SessionListener {
 public:
  SessionListener() = default;
  SessionListener(std::shared_ptr<Session> session, Session::Listener listener)
      : session_(std::move(session)), number_(session_->listen(std::move(listener))) {}
  SessionListener(const SessionListener&) = delete;
  SessionListener& operator=(const SessionListener&) = delete;
  ~SessionListener() { stop(); }

  // Call once, on a listener without a session. As Session::listen().
  void start(std::shared_ptr<Session> session, Session::Listener listener) {
    number_ = session->listen(std::move(listener));
    session_ = std::move(session);
  }
  // Waits for a function that runs. After this call none runs.
  void stop() noexcept {
    if (session_) session_->stop_listening(number_);
    session_.reset();
  }
  bool listens() const noexcept { return session_ != nullptr; }
  // False without a session, and after its end.
  bool alive() const noexcept { return session_ != nullptr && session_->alive(); }

 private:
  std::shared_ptr<Session> session_;
  uint64_t number_ = 0;
};

}  // namespace uptempo::detail
