#include "engine/runtime/owned.hpp"

#include "engine/runtime/session.hpp"

namespace uptempo {

Owned::Owned(Kind kind, uint64_t handle, Release release)
    : Owned(Session::current(), kind, handle, release) {}

Owned::Owned(std::shared_ptr<Session> session, Kind kind, uint64_t handle, Release release)
    : session_(std::move(session)),
      ticket_(session_->adopt(kind, handle, release)),
      handle_(handle) {}

bool Owned::alive() const noexcept { return session_ && session_->alive(); }

void Owned::give_back() noexcept { session_->give_back(ticket_); }

void Owned::forget() noexcept {
  if (session_) session_->forget(ticket_);
  leave_to_session();
}

}  // namespace uptempo
