// Session: one initialisation of HSA in this process, and the list of all objects made in it.
//
// The first Runtime of the process calls hsa_init; the last one calls hsa_shut_down. Before that,
// the session releases objects of this library that are still alive (static or leaked ones):
// queues, then executables, signals and memory, latest first. Their destructors then find an ended
// session and do nothing. Tear-down therefore frees every byte in any order of destruction, even if
// other users keep HSA initialised, and a new session can start in the same process. Under ROCr
// 6.1, HSA stays initialised until the process ends (amd_extension.hpp).
//
// fork: in the child the session has ended and none can start. Nothing is released there, because
// the driver's objects belong to the parent and ROCr's threads and some of its memory are missing.
// Timelines have failed and batches have ended, so each use of an object of the parent is refused
// by name.
//
// Thread safety: every function may be called from any thread.
// Cost: one lock and one map operation per object created or destroyed.
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
#include <string_view>
#include <utility>
#include <vector>

#include <uptempo/runtime/owned.hpp>

namespace uptempo {

class Session {
 public:
  using Kind = Owned::Kind;
  using Release = Owned::Release;
  using Ticket = Owned::Ticket;

  // A memory fault of a GPU, or its loss: a reset after a hang, an ECC error, or its removal.
  struct MemoryFault {
    static constexpr auto kStatus = static_cast<hsa_status_t>(HSA_STATUS_ERROR_MEMORY_FAULT);
    static constexpr auto kLost = HSA_STATUS_ERROR_FATAL;
    // Returns what to do after a failure with that status, or `otherwise` if it is none of the two.
    static constexpr std::string_view remedy(hsa_status_t status,
                                             std::string_view otherwise = {}) noexcept {
      if (status == kStatus)
        return "correct the access; no more work of this Runtime runs on that GPU";
      if (status == kLost)
        return "continue in a new process: no more work of this one runs on that GPU";
      return otherwise;
    }

    hsa_agent_t agent;
    std::string text;  // address and reasons
    hsa_status_t status = kStatus;
  };
  // Returns true if the fault ends work of the listener, which will then report it.
  using FaultListener = std::function<bool(const MemoryFault&)>;
  // The functions of an object whose session can no longer carry out its work. Each may be empty.
  // None may create or destroy a listener, except that `on_fault` may remove one.
  struct Listener {
    // A GPU has faulted on a memory access, or is lost. Runs on a thread of ROCr or of the session,
    // or within listen(). May call only HSA's signal functions.
    FaultListener on_fault{};
    // The session ends. Runs once, the latest listener's first, before the session releases
    // anything, on the thread that ends it.
    std::function<void()> at_end{};
    // Runs instead of at_end in the child of a fork. Must not lock, wait, or touch memory of the
    // session: other threads of the parent may have held any lock.
    std::function<void()> in_child{};
  };

  // Returns the running session. Throws Error if there is none.
  static std::shared_ptr<Session> current();
  // Returns the running session, or null.
  static std::shared_ptr<Session> running() noexcept;
  // Returns the running session; starts one if there is none. It ends when the last pointer that
  // start() returned is destroyed.
  static std::shared_ptr<Session> start();

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The session releases the object at its end, unless give_back() has done so before. Throws Error
  // after the end, and std::bad_alloc; the object has then been released, or end() releases it.
  Ticket adopt(Kind kind, uint64_t handle, Release release);
  // Releases the ticket's object. Does nothing if it has already been released.
  void give_back(Ticket ticket) noexcept;
  // Returns true if this library has made the object in this session and not released it.
  bool holds(Kind kind, uint64_t handle);
  bool alive() const noexcept { return alive_.load(std::memory_order_acquire); }
  // True after the loss of a GPU of this process was reported.
  static bool has_lost_gpu() noexcept;
  // The source of that report, and the reason; for Runtime::describe(). HSA must be initialised.
  static std::string describe_exceptions();
  // True in the child of a fork of a process that had a session.
  static bool is_parents() noexcept;
  // Reason and remedy of an Error about the use of a session that belongs to the parent.
  static constexpr std::string_view kParentsReason =
      "this process is the child of a fork, and the parent had a Runtime before: its queues and "
      "memory belong to the parent";
  static constexpr std::string_view kParentsRemedy =
      "start another program with exec in the child, or fork before the first Runtime";
  // Throws Error for a call that needs an ended Runtime and what it has destroyed: "the queue".
  [[noreturn]] static void refuse_ended(std::string call, std::string asked,
                                        std::string_view destroyed, std::string remedy);

  // Adds a listener, until stop_listening(), which waits for a function that runs. Throws Error
  // after the end. Past faults are reported at once: the driver has stopped the agent's queues
  // permanently and ROCr reports no second fault (runtime.cpp:1290 at 5.2.3), so later work would
  // be waited for forever. ROCr 6.1 and newer report the loss of a GPU in the same way. With older
  // ones, the session asks the driver (hardware_exceptions.hpp), on a thread that the first
  // listener for faults starts. A fault that no listener claims, and that cannot belong to given-up
  // work, is passed on to handlers registered by others. If none of them handles it, ROCr prints
  // agent, address and reason and aborts the process.
  uint64_t listen(Listener listener);
  void stop_listening(uint64_t number) noexcept;

  // Marks the agent's unfinished work as no longer awaited. The device may still execute it, or its
  // fault event may still be on the way; neither the driver nor ROCr reports when that is over. A
  // fault event names neither queue nor time. So from now on, a fault of this agent that no
  // listener claims is attributed to that work: it is counted (Counters::late_faults) and ends
  // everything on the agent like any other fault. Call before stop_listening().
  static void give_up(hsa_agent_t agent);

 private:
  struct Starter;
  Session() = default;
  static void leave_to_parent() noexcept;
  void end() noexcept;
  void release_late(uint64_t handle, Release release) noexcept;
  [[noreturn]] static void refuse_late();
  // Reports a fault to the listeners. Returns true if one claims it.
  bool notify(MemoryFault fault);
  // As notify(), for the latest session. Also returns true for given-up work.
  static bool report(const MemoryFault& fault);
  static hsa_status_t on_system_event(const hsa_amd_event_t* event, void* number);
  void start_exceptions();
  static void stop_exceptions() noexcept;
  static void on_lost_gpu(hsa_agent_t agent, bool by_memory_error);

  struct Entry {
    uint64_t handle;
    Release release;
  };

  std::atomic<bool> alive_{true};
  std::mutex mutex_;
  std::atomic<uint64_t> next_{0};
  std::map<Ticket, Entry> entries_;
  bool has_ended_ = false;    // end() has released every entry; protected by mutex_
  bool hsa_remains_ = false;  // after the end; protected by the mutex of sessions' starts and ends
  // These three are protected by the process's lock of listeners.
  std::map<uint64_t, Listener> listeners_;
  std::vector<MemoryFault> faults_;
  std::vector<uint64_t> claimed_;  // agents of which a fault was claimed
};

namespace detail {

// A listener of a session, removed by its destructor. Thread-compatible; the session may end on any
// thread.
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

// Throws Error, which names the files, if more than one loaded library has ROCr's soname
// (libhsa-runtime64.so.1), for example the distribution's and that of /opt/rocm. Each copy has
// agents, queues and signals of its own, and takes handles of the other for pointers to its
// objects. The dynamic linker loads one file once, whatever its links and names. A copy in another
// namespace (dlmopen) is not seen. `call`: of the Error.
void require_one_rocr(const char* call);

// Names the files of this process that contain a copy of this library, with their versions.
std::string describe_copies();

}  // namespace detail
}  // namespace uptempo
