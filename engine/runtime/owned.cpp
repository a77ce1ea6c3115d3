#include "engine/runtime/owned.hpp"

#include "engine/runtime/session.hpp"

namespace uptempo {
namespace {

std::shared_ptr<Session> current_or_release(uint64_t handle, Owned::Release release) {
  try {
    return Session::current();
  } catch (...) {
    // In the child of a fork, the driver's objects belong to the parent.
    if (!Session::is_parents()) release(handle);
    throw;
  }
}

}  // namespace

Owned::Owned(Kind kind, uint64_t handle, Release release)
    : Owned(current_or_release(handle, release), kind, handle, release) {}

Owned::Owned(std::shared_ptr<Session> session, Kind kind, uint64_t handle, Release release)
    : session_(std::move(session)),
      ticket_(session_->adopt(kind, handle, release)),
      handle_(handle) {}

bool Owned::alive() const noexcept { return session_ && session_->alive(); }

void Owned::give_back() noexcept { session_->give_back(ticket_); }

}  // namespace uptempo
