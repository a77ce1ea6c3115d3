// The process's one initialisation of HSA, and the list of everything that was made in it.
//
// hsa_init is called when the first Runtime of the process appears and hsa_shut_down when the last one goes. Objects of this library
// that are still alive then (statics, leaked ones) were given back by the session first: queues, then executables, signals and
// memory, latest first. Their destructors find an ended session and do nothing. So tear-down returns every byte whatever
// the order of destruction, also when other users keep HSA itself initialised, and a new session can start in the same process.
//
// Thread safety: all functions from any thread. Cost: one lock and one map operation for each object made or destroyed, none else.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace uptempo {

class Session {
 public:
  // What is released first when a session ends comes first.
  enum class Kind : uint8_t { listener, completion_thread, queue, executable, signal, memory };
  using Release = void (*)(uint64_t handle) noexcept;
  using Ticket = std::pair<Kind, uint64_t>;

  struct MemoryFault {
    static constexpr auto status = static_cast<hsa_status_t>(HSA_STATUS_ERROR_MEMORY_FAULT);
    static constexpr const char* remedy = "correct the access; no more work of this Runtime runs on that GPU";

    hsa_agent_t agent;
    std::string text;  // address and reasons
  };
  // True: the fault ends work of the listener's, which will report it.
  using FaultListener = std::function<bool(const MemoryFault&)>;

  // The running session. Throws Error when there is none.
  static std::shared_ptr<Session> current();
  // The same, but null when there is none.
  static std::shared_ptr<Session> running() noexcept;
  // The running session, started if need be; it ends with the last pointer that start() has handed out.
  static std::shared_ptr<Session> start();

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Ticket adopt(Kind kind, uint64_t handle, Release release);
  // Releases what the ticket stands for; nothing if the session, or someone else, has done so.
  void give_back(Ticket ticket) noexcept;
  // Takes it off the list without releasing it.
  void forget(Ticket ticket) noexcept;
  bool alive() const noexcept { return alive_.load(std::memory_order_acquire); }

  // The listener is called on a thread of ROCr when the GPU has accessed memory that it must not; of HSA it may call signal functions
  // only. A fault that no listener claims, and that cannot be of work that was given up, goes its way as if this library were not there: to the handlers that others have
  // registered, and if none of those takes it either, ROCr prints agent, address and reason and aborts the process.
  // Faults of the past are told here at once: the driver has stopped the agent's queues for good, and ROCr reports no second fault
  // (runtime.cpp:1290 at 5.2.3), so that work begun later would be waited for without end.
  uint64_t listen(FaultListener listener);
  void stop_listening(uint64_t id) noexcept;

  // Work of the agent will be waited for no longer, though the device may still carry it out, or the event of its fault may be under way: the driver and ROCr take their time
  // for it, and nothing tells when that is over. A fault of the agent says neither which queue it was nor when, so from here on one that no listener claims is taken for
  // that work's: it is counted (Counters::late_faults), and ends what there is on the agent as any other does. Called before stop_listening().
  static void give_up(hsa_agent_t agent);

 private:
  struct Starter;
  Session() = default;
  void end() noexcept;
  // Whether a listener claims it.
  bool tell(const hsa_amd_gpu_memory_fault_info_t& found);
  static hsa_status_t on_system_event(const hsa_amd_event_t* event, void* number);

  struct Entry {
    uint64_t handle;
    Release release;
  };

  std::atomic<bool> alive_{true};
  std::mutex mutex_;
  std::atomic<uint64_t> next_{0};
  std::map<Ticket, Entry> entries_;
  // Recursive, because a listener may be removed by what it sets off; held while listeners run, so that a removed one runs no more.
  std::recursive_mutex listeners_mutex_;
  std::map<uint64_t, FaultListener> listeners_;
  std::vector<MemoryFault> faults_;
};

// One HSA handle of a session. Move-only; given back by the destructor or by the session's end, whichever comes first, unless one of
// leave_to_session() and forget() has said otherwise.
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<Session> session, Session::Kind kind, uint64_t handle, Session::Release release)
      : session_(std::move(session)), ticket_(session_->adopt(kind, handle, release)), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : session_(std::move(other.session_)),
        ticket_(other.ticket_),
        handle_(std::exchange(other.handle_, 0)) {}
  Owned& operator=(Owned&& other) noexcept {
    reset();
    session_ = std::move(other.session_);
    ticket_ = other.ticket_;
    handle_ = std::exchange(other.handle_, 0);
    return *this;
  }
  ~Owned() { reset(); }

  uint64_t handle() const noexcept { return handle_; }
  bool alive() const noexcept { return session_ && session_->alive(); }
  void reset() noexcept {
    if (session_) session_->give_back(ticket_);
    leave_to_session();
  }
  // Gives up the handle, which lives on until the session's end: something in flight may still use it.
  void leave_to_session() noexcept {
    session_.reset();
    handle_ = 0;
  }
  // Gives up the handle, which is never released.
  void forget() noexcept {
    if (session_) session_->forget(ticket_);
    leave_to_session();
  }

 private:
  std::shared_ptr<Session> session_;
  Session::Ticket ticket_{};
  uint64_t handle_ = 0;
};

}  // namespace uptempo
