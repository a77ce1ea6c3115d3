// Owned: one HSA handle, which lives until its owner's destructor or the end of the Runtime,
// whichever comes first.
//
//   Owned executable(Owned::Kind::executable, handle.handle, [](uint64_t object) noexcept {
//     (void)hsa_executable_destroy({object});
//   });
//
// Signals, allocations, queues and programs of this library hold their handles so. A program may
// adopt handles that it has made itself.
//
// Thread safety: thread-compatible. The Runtime may end on any thread.
// Cost: one lock and one map operation per handle adopted or released.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace uptempo {

class Session;

class Owned {
 public:
  // Order of release at the end of the Runtime; of one kind, the latest first.
  enum class Kind : uint8_t { completion_thread, queue, executable, signal, memory };
  using Release = void (*)(uint64_t handle) noexcept;
  using Ticket = std::pair<Kind, uint64_t>;

  Owned() = default;
  // Adopts the handle in the running Runtime. Throws Error if there is none, and std::bad_alloc.
  // Whenever a constructor throws, the handle has been released.
  Owned(Kind kind, uint64_t handle, Release release);
  // The same in a session that the caller has looked up before it made the handle. Throws Error if
  // that session has ended since.
  Owned(std::shared_ptr<Session> session, Kind kind, uint64_t handle, Release release);
  Owned(Owned&& other) noexcept
      : session_(std::move(other.session_)),
        ticket_(std::move(other.ticket_)),
        handle_(std::exchange(other.handle_, 0)) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned& operator=(Owned&& other) noexcept {
    reset();
    session_ = std::move(other.session_);
    ticket_ = other.ticket_;
    handle_ = std::exchange(other.handle_, 0);
    return *this;
  }
  ~Owned() { reset(); }

  uint64_t handle() const noexcept { return handle_; }
  // False once the Runtime has ended: the object no longer exists.
  bool alive() const noexcept;
  // Releases the object.
  void reset() noexcept {
    if (session_) give_back();
    leave_to_session();
  }
  // Drops the handle; the object lives until the end of the Runtime, because work in flight may
  // still use it.
  void leave_to_session() noexcept {
    session_.reset();
    handle_ = 0;
  }

 private:
  void give_back() noexcept;

  std::shared_ptr<Session> session_;
  Ticket ticket_{};
  uint64_t handle_ = 0;
};

}  // namespace uptempo
