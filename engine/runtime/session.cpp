#include <uptempo/runtime/session.hpp>

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <uptempo/runtime/amd_extension.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/driver/hardware_exceptions.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

// Process-wide, never destroyed: static objects may request the session after static destructors
// have run.
struct Process {
  std::mutex mutex;  // orders hsa_init and hsa_shut_down of successive sessions
  std::weak_ptr<Session> owners;
  // Protects the members below. Not held during hsa_shut_down, which joins the thread that runs
  // on_system_event.
  std::mutex session_mutex;
  std::weak_ptr<Session> session;
  uintptr_t sessions = 0;  // number started so far
  // Not in the Session: another user of HSA keeps its queues and ROCr's fault-reporting thread
  // alive after the session ends.
  std::vector<uint64_t> given_up;  // agents
  bool fault_reported = false;     // since HSA was initialised
  // The driver keeps its queues stopped until the process ends. Atomic: read for every Error.
  std::atomic<bool> gpu_lost{false};

  // Only for a ROCr that does not report the loss of a GPU; from the session's first listener on.
  std::mutex exceptions_mutex;
  std::unique_ptr<detail::HardwareExceptions> exceptions;

  // Protects the listeners of every session. Recursive, because the effects of a listener may
  // remove one. Held while listeners run, so a removed listener no longer runs. Held during a fork,
  // so the child finds the listeners whole; the child never releases it, and does not take it.
  std::recursive_mutex listeners_mutex;

  // For the child of a fork, where the locks above may be held for ever.
  std::atomic<Session*> present{nullptr};
  std::atomic<bool> is_child{false};

  // The session started last, running or ended, if a pointer to it still exists.
  std::shared_ptr<Session> latest() {
    const std::lock_guard lock(session_mutex);
    return session.lock();
  }
};

Process& process() {
  static Process* const instance = new Process;
  return *instance;
}

[[noreturn]] void refuse_child(std::string call, std::string asked) {
  throw Error({.code = ErrorCode::misuse,
               .status = HSA_STATUS_ERROR_NOT_INITIALIZED,
               .call = std::move(call),
               .asked = std::move(asked),
               .found = std::string(Session::kParentsReason),
               .remedy = std::string(Session::kParentsRemedy)});
}

struct FaultReason {
  unsigned bit;
  const char* text;
};
constexpr FaultReason kFaultReasons[] = {
    {HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT, "page not present"},
    {HSA_AMD_MEMORY_FAULT_READ_ONLY, "write to a read-only page"},
    {HSA_AMD_MEMORY_FAULT_NX, "execution of a page that is not executable"},
    {HSA_AMD_MEMORY_FAULT_HOST_ONLY, "page is for the host only"},
    {HSA_AMD_MEMORY_FAULT_DRAMECC, "DRAM ECC error"},
    {HSA_AMD_MEMORY_FAULT_IMPRECISE, "address is imprecise"},
    {HSA_AMD_MEMORY_FAULT_SRAMECC, "SRAM ECC error"},
    {static_cast<unsigned>(HSA_AMD_MEMORY_FAULT_HANG), "the device was reset"},
};

bool hsa_is_initialised() noexcept {
  uint16_t major = 0;
  return hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major) !=
         HSA_STATUS_ERROR_NOT_INITIALIZED;
}

// ROCr reports one memory fault, and the loss of each GPU once. A driver has 64 GPUs at most.
constexpr size_t kMostFaults = 256;

// hsa_amd_event_t of ROCr 6.1 and newer. Headers of older ones lack this kind.
constexpr int kHardwareException = 1;  // HSA_AMD_GPU_HW_EXCEPTION_EVENT
struct HardwareException {
  hsa_agent_t agent;
  int reset_type, reset_cause;
};
constexpr int kCausedByEcc = 1 << 1;  // HSA_AMD_HW_EXCEPTION_CAUSE_ECC

// ROCR_VISIBLE_DEVICES hides the GPU from this process, so none of its work is there. ROCr has an
// agent for it all the same, and reports its loss.
bool is_hidden(hsa_agent_t agent) {
  const auto is_it = [](hsa_agent_t shown, void* one) {
    return shown.handle == static_cast<hsa_agent_t*>(one)->handle ? HSA_STATUS_INFO_BREAK
                                                                  : HSA_STATUS_SUCCESS;
  };
  return hsa_iterate_agents(is_it, &agent) != HSA_STATUS_INFO_BREAK;
}

std::string describe_loss(bool by_memory_error) {
  return by_memory_error ? "the driver stopped the GPU after an uncorrectable memory error (ECC)"
                         : "the GPU hung or was removed, and the driver stopped all of its queues";
}

std::string describe(const hsa_amd_gpu_memory_fault_info_t& fault) {
  std::string reasons;
  for (const FaultReason& reason : kFaultReasons) {
    if ((fault.fault_reason_mask & reason.bit) != 0) reasons += fmt::format(", {}", reason.text);
  }
  return fmt::format("the GPU accessed address 0x{:x}, which it may not access{}",
                     fault.virtual_address, reasons);
}

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

// Ends the session with its last owner, although objects still hold plain pointers to it.
struct Session::Starter {
  std::shared_ptr<Session> session;
  explicit Starter(std::shared_ptr<Session> s) : session(std::move(s)) {}
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;
  ~Starter() {
    // relaxed: the child of a fork starts with one thread
    if (process().is_child.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(process().mutex);
    session->end();
    if (!must_stay_initialised()) hsa_shut_down();
    session->hsa_remains_ = hsa_is_initialised();
    process().present.store(nullptr, std::memory_order_relaxed);
  }
};

std::shared_ptr<Session> Session::running() noexcept {
  if (is_parents()) return nullptr;
  std::shared_ptr<Session> found = process().latest();
  return found && found->alive() ? found : nullptr;
}

// Runs in the child of a fork.
void Session::leave_to_parent() noexcept {
  process().is_child.store(true, std::memory_order_relaxed);
  Session* const session = process().present.load(std::memory_order_relaxed);
  if (session == nullptr) return;
  session->alive_.store(false, std::memory_order_relaxed);
  for (const auto& [number, listener] : session->listeners_)
    if (listener.in_child) listener.in_child();
}

bool Session::has_lost_gpu() noexcept { return process().gpu_lost; }

bool Session::is_parents() noexcept { return process().is_child.load(std::memory_order_relaxed); }

void Session::refuse_ended(std::string call, std::string asked, std::string_view destroyed,
                           std::string remedy) {
  if (is_parents()) refuse_child(std::move(call), std::move(asked));
  throw Error({.code = ErrorCode::misuse,
               .status = HSA_STATUS_ERROR_NOT_INITIALIZED,
               .call = std::move(call),
               .asked = std::move(asked),
               .found = fmt::format("the Runtime was destroyed, and {} with it", destroyed),
               .remedy = std::move(remedy)});
}

std::shared_ptr<Session> Session::current() {
  std::shared_ptr<Session> session = running();
  if (!session) {
    if (is_parents()) refuse_child("uptempo", "an object that needs a Runtime");
    throw Error({.code = ErrorCode::misuse,
                 .status = HSA_STATUS_ERROR_NOT_INITIALIZED,
                 .call = "uptempo",
                 .asked = "an object that needs a Runtime",
                 .found = "no Runtime exists",
                 .remedy = "create a Runtime first and keep it while its objects are in use"});
  }
  return session;
}

std::shared_ptr<Session> Session::start() {
  if (is_parents()) refuse_child("Runtime", "a Runtime in the child of a fork");
  detail::require_one_rocr("Runtime");
  const std::lock_guard lock(process().mutex);
  static const int kHandlers =
      // A child leaves the mutex locked, and may fork, too.
      pthread_atfork(
          [] {
            if (!is_parents()) process().listeners_mutex.lock();
          },
          [] {
            if (!is_parents()) process().listeners_mutex.unlock();
          },
          &Session::leave_to_parent);
  if (kHandlers != 0)
    throw Error({.code = ErrorCode::memory,
                 .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                 .call = "pthread_atfork",
                 .asked = "handlers that end the session in the child of a fork",
                 .found = "no memory",
                 .remedy = "free memory first"});
  if (std::shared_ptr<Session> running = process().owners.lock()) return running;

  const bool is_first_user = !hsa_is_initialised();
  {
    const std::lock_guard session_lock(process().session_mutex);
    // No event of an earlier HSA initialisation can arrive here.
    if (is_first_user) {
      process().given_up.clear();
      process().fault_reported = false;
    }
    if (process().gpu_lost)
      throw Error({.code = ErrorCode::device_lost,
                   .status = MemoryFault::kLost,
                   .call = "Runtime",
                   .asked = "another Runtime after the loss of a GPU",
                   .found = "the driver keeps the queues of this process on that GPU stopped",
                   .remedy = "continue in a new process"});
    // ROCr's VMFaultHandler does not wait for a second fault, so waits could block for ever.
    if (process().fault_reported)
      throw Error({.code = ErrorCode::device_lost,
                   .call = "Runtime",
                   .asked = "another Runtime after a GPU memory fault",
                   .found = "ROCr reports one memory fault until it is shut down, and it is still "
                            "initialised: another library uses it, or it is ROCr 6.1, which fails "
                            "when it is shut down",
                   .remedy = "continue in a new process"});
  }
  if (const hsa_status_t status = hsa_init(); status != HSA_STATUS_SUCCESS) {
    // ROCr 6.4's thunk keeps its topology when it cannot disable debugging (hsaKmtRuntimeDisable).
    if (process().sessions > 0)
      throw Error({.code = ErrorCode::unavailable,
                   .status = status,
                   .call = "hsa_init",
                   .asked = "the HSA runtime, a second time in this process",
                   .found = "it does not start again; ROCr 6.4 cannot on a driver without "
                            "RUNTIME_ENABLE, that is before KFD 1.13 (Linux 6.5)",
                   .remedy = "keep one Runtime until the process ends, or use a newer kernel"});
    throw Error({.code = ErrorCode::unavailable,
                 .status = status,
                 .call = "hsa_init",
                 .asked = "the HSA runtime",
                 .found = "it does not start; usually /dev/kfd is missing or not accessible",
                 .remedy = "load the amdgpu driver and join the group that owns /dev/kfd, or run "
                           "under uptempo-vgpu"});
  }
  std::shared_ptr<Session> session(new Session);
  // ROCr's thread and destructors add to these lists, where no exception may leave.
  session->faults_.reserve(kMostFaults);
  session->claimed_.reserve(kMostFaults);
  uintptr_t number = 0;
  {
    const std::lock_guard session_lock(process().session_mutex);
    process().given_up.reserve(kMostFaults);
    number = ++process().sessions;
  }
  // HSA drops handlers when it shuts down, so each session registers one. If another user kept HSA
  // initialised, the last session's handler is still registered.
  hsa_amd_register_system_event_handler(&Session::on_system_event, reinterpret_cast<void*>(number));
  auto starter = std::make_shared<Starter>(session);
  std::shared_ptr<Session> owner(std::move(starter), session.get());
  process().owners = owner;
  process().present.store(session.get(), std::memory_order_relaxed);
  const std::lock_guard session_lock(process().session_mutex);
  process().session = session;
  return owner;
}

Session::Ticket Session::adopt(Kind kind, uint64_t handle, Release release) {
  bool is_listed = false;
  try {
    const std::lock_guard lock(mutex_);
    if (!has_ended_) {
      const Ticket ticket{kind, ++next_};
      entries_.emplace(ticket, Entry{handle, release});
      if (alive()) return ticket;
      is_listed = true;  // end() runs and releases it
    }
  } catch (...) {
    release(handle);
    throw;
  }
  if (!is_listed) release_late(handle, release);
  refuse_late();
}

void Session::refuse_late() {
  refuse_ended("uptempo", "an object that needs a Runtime", "the new object",
               "keep the Runtime while its objects are created and in use");
}

// If HSA was shut down and initialised again, the handle is of the earlier initialisation.
void Session::release_late(uint64_t handle, Release release) noexcept {
  const std::lock_guard lock(process().mutex);  // until hsa_shut_down has returned
  if (hsa_remains_ || !hsa_is_initialised()) release(handle);
}

void Session::give_back(Ticket ticket) noexcept {
  if (process().is_child.load(std::memory_order_relaxed)) return;
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(ticket);
    if (found == entries_.end()) return;
    entry = found->second;
    entries_.erase(found);
  }
  entry.release(entry.handle);  // outside the lock: destroying a queue waits for ROCr's own threads
}

bool Session::holds(Kind kind, uint64_t handle) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [&](const auto& entry) {
    return entry.first.first == kind && entry.second.handle == handle;
  });
}

void Session::end() noexcept {
  alive_.store(false, std::memory_order_release);
  stop_exceptions();
  {
    const std::lock_guard lock(process().listeners_mutex);
    for (auto next = listeners_.rbegin(); next != listeners_.rend(); ++next) {
      Listener& listener = next->second;
      if (listener.at_end) listener.at_end();
      listener.at_end = listener.in_child = nullptr;
    }
  }
  for (;;) {
    Ticket ticket;
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = entries_.empty();
      if (has_ended_) return;
      // The latest entry of the first kind.
      auto last = entries_.lower_bound(Ticket{entries_.begin()->first.first, UINT64_MAX});
      ticket = std::prev(last)->first;
    }
    give_back(ticket);
  }
}

void Session::start_exceptions() {
  if (reports_lost_gpus()) return;
  const std::lock_guard lock(process().exceptions_mutex);
  // After the end, nothing would stop it.
  if (process().exceptions || !alive()) return;
  process().exceptions = std::make_unique<detail::HardwareExceptions>(&Session::on_lost_gpu);
  // Before the code of an unloaded library is unmapped.
  static const struct AtExit {
    ~AtExit() {
      if (!is_parents()) stop_exceptions();
    }
  } kAtExit;
}

void Session::stop_exceptions() noexcept {
  std::unique_ptr<detail::HardwareExceptions> stopped;  // without the lock: waits for its thread
  const std::lock_guard lock(process().exceptions_mutex);
  stopped.swap(process().exceptions);
}

std::string Session::describe_exceptions() {
  if (reports_lost_gpus()) return "reported by ROCr";
  const std::lock_guard lock(process().exceptions_mutex);
  if (process().exceptions && !process().exceptions->refusal().empty())
    return "not noticed: " + process().exceptions->refusal();
  return "reported by the driver, because ROCr before 6.1 does not";
}

void Session::on_lost_gpu(hsa_agent_t agent, bool by_memory_error) {
  process().gpu_lost = true;
  // Without a listener that claims it, the next one learns of it.
  (void)report({agent, describe_loss(by_memory_error), MemoryFault::kLost});
}

uint64_t Session::listen(Listener listener) {
  if (is_parents()) refuse_late();
  if (listener.on_fault) start_exceptions();
  const std::lock_guard lock(process().listeners_mutex);
  if (!alive()) refuse_late();  // end() may have called the listeners
  if (listener.on_fault)
    for (const MemoryFault& fault : faults_) listener.on_fault(fault);
  const uint64_t number = ++next_;
  listeners_.emplace(number, std::move(listener));
  return number;
}

void Session::stop_listening(uint64_t number) noexcept {
  if (is_parents()) return;
  const std::lock_guard lock(process().listeners_mutex);
  listeners_.erase(number);
}

void Session::give_up(hsa_agent_t agent) {
  const std::lock_guard lock(process().session_mutex);
  std::vector<uint64_t>& agents = process().given_up;
  if (std::ranges::find(agents, agent.handle) == agents.end()) agents.push_back(agent.handle);
}

bool Session::notify(MemoryFault found) {
  const std::lock_guard lock(process().listeners_mutex);
  const MemoryFault fault = std::move(found);
  try {
    faults_.push_back(fault);
  } catch (const std::bad_alloc&) {
    faults_.push_back({fault.agent, {}, fault.status});  // later listeners learn no more than that
  }
  // An ECC error is both a fault and a loss; ROCr reports the two one after the other.
  bool claimed = std::ranges::find(claimed_, fault.agent.handle) != claimed_.end();
  for (const auto& [number, listener] : listeners_)
    claimed = (listener.on_fault && listener.on_fault(fault)) || claimed;
  if (claimed) claimed_.push_back(fault.agent.handle);
  return claimed;
}

hsa_status_t Session::on_system_event(const hsa_amd_event_t* event, void* number) {
  // ROCr aborts if every handler returns an error.
  const int type = event->event_type;
  const bool lost = type == kHardwareException;
  if (type != HSA_AMD_GPU_MEMORY_FAULT_EVENT && !lost) return HSA_STATUS_ERROR;
  HardwareException exception;
  if (lost) {
    std::memcpy(&exception, &event->memory_fault, sizeof exception);
    if (is_hidden(exception.agent)) return HSA_STATUS_SUCCESS;
  }
  {
    const std::lock_guard lock(process().session_mutex);
    if (lost)
      process().gpu_lost = true;
    else
      process().fault_reported = true;
    if (reinterpret_cast<uintptr_t>(number) != process().sessions) return HSA_STATUS_ERROR;
  }
  MemoryFault fault;
  const auto describe_with = [&fault](const auto& description) {
    try {
      fault.text = description();
    } catch (const std::bad_alloc&) {  // the fault matters more than its description
    }
  };
  if (lost) {
    fault.agent = exception.agent;
    fault.status = MemoryFault::kLost;
    describe_with([&] { return describe_loss((exception.reset_cause & kCausedByEcc) != 0); });
  } else {
    fault.agent = event->memory_fault.agent;
    describe_with([&] { return describe(event->memory_fault); });
  }
  return report(fault) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR;
}

bool Session::report(const MemoryFault& fault) {
  // Also an ended session: work on resources that it released may have run until then.
  const std::shared_ptr<Session> session = process().latest();
  if (session && session->notify(fault)) return true;
  // After the listeners: an owner calls give_up() before it stops listening.
  const std::lock_guard lock(process().session_mutex);
  const std::vector<uint64_t>& agents = process().given_up;
  if (std::ranges::find(agents, fault.agent.handle) == agents.end()) return false;
  detail::count(&detail::CounterBlock::late_faults);
  return true;
}

Owned::Owned(Kind kind, uint64_t handle, Release release)
    : Owned(current_or_release(handle, release), kind, handle, release) {}

Owned::Owned(std::shared_ptr<Session> session, Kind kind, uint64_t handle, Release release)
    : session_(std::move(session)),
      ticket_(session_->adopt(kind, handle, release)),
      handle_(handle) {}

bool Owned::alive() const noexcept { return session_ && session_->alive(); }

void Owned::give_back() noexcept { session_->give_back(ticket_); }

}  // namespace uptempo
