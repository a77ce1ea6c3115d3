// Error: a failure, as a code for programs and five facts for the reader of a report.
//
// Thrown by all set-up functions (runtime, memory, programs, queues). Hot-path functions throw it
// only if the device has failed or a deadline has passed. what() joins the facts into one sentence,
// without the control characters that names may have; each fact can also be read as it is.
#pragma once

#include <hsa/hsa.h>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace uptempo {

// The cause of an Error, as far as a program acts on it. The numbers are stable: a release may add
// values, and changes none. The HSA status beside it is the one of the refused call.
enum class ErrorCode : uint32_t {
  // The caller.
  argument = 1,     // a value is not acceptable: geometry, size, name, agent; pass another one
  misuse = 2,       // the object's state forbids the call: moved from, ended Runtime, call order
  unavailable = 3,  // this machine, agent, driver or ROCr lacks it: no GPU; take another way
  program = 4,      // code object, kernel or metadata is not usable on this agent; build it anew
  file = 5,         // a file cannot be read or written, or its contents are damaged
  // No room now. A later call may succeed: wait for earlier work, or ask for less.
  memory = 6,    // memory of host or device, or what the driver counts: queues, events
  ring = 7,      // slots of the queue's ring (Pressure::ring)
  kernargs = 8,  // kernarg slabs of a queue, or a recording's spare blocks (kernarg_slabs)
  timeline = 9,  // publications of a queue that are unfinished at a time (publications)
  signals = 10,  // completion or timing signals, or the process's interrupts (SignalBudget)
  limit = 11,    // another limit of an object, named by found(): copies, staging, watches
  // Waiting.
  deadline = 12,  // the deadline has passed before the work was complete; wait longer
  too_long = 13,  // the batch is longer than what the ring can ever take at once; submit() waits
  // The device.
  failed = 14,  // a queue or copy engine has failed, its unfinished work is lost: a new queue
  device_lost =
      15,    // memory fault, reset or loss of a GPU: no more work of this process runs there
  hsa = 16,  // HSA or HIP refused with a status that no other value covers: status()
};

// The enumerator's name: "ring". "code 99" for other numbers.
std::string to_string(ErrorCode code);

// The code of a status that an HSA call has returned.
ErrorCode code_of(hsa_status_t status) noexcept;

// True for memory, ring, kernargs, timeline, signals and limit: the same call may succeed later.
constexpr bool is_exhausted(ErrorCode code) noexcept {
  return code >= ErrorCode::memory && code <= ErrorCode::limit;
}

struct ErrorFacts {
  ErrorCode code;
  hsa_status_t status = HSA_STATUS_ERROR;  // status returned by HSA, or the closest one
  // the function that failed: "hsa_queue_create", "Program::kernel"
  std::string call;
  std::string asked;  // what the caller requested
  // The finding; for a choice, every candidate and why it was rejected.
  std::string found;
  std::string remedy;  // what the caller can do
};

class Error : public std::runtime_error {
 public:
  explicit Error(ErrorFacts facts);

  ErrorCode code() const noexcept { return facts_->code; }
  hsa_status_t status() const noexcept { return facts_->status; }
  const std::string& call() const noexcept { return facts_->call; }
  const std::string& asked() const noexcept { return facts_->asked; }
  const std::string& found() const noexcept { return facts_->found; }
  const std::string& remedy() const noexcept { return facts_->remedy; }

 private:
  friend class Refusal;
  std::shared_ptr<const ErrorFacts> facts_;  // shared: copying an exception must not throw
};

// The line of the program that made a call, as a defaulted last parameter:
//
//   Completion submit(CallSite site = CallSite::here());
//
// The compiler fills it in, so it costs two constants. std::source_location would do the same; the
// release of clang-tidy that checks this library does not know it. `file` is a string literal of
// the caller's program or library, which must stay loaded.
struct CallSite {
  const char* file = nullptr;  // null: not known
  uint32_t line = 0;           // 0: `file` names the line, too

  static constexpr CallSite here(const char* file = __builtin_FILE(),
                                 uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  friend bool operator==(const CallSite&, const CallSite&) = default;
};

// Returns HSA's name of a status ("HSA_STATUS_ERROR_OUT_OF_RESOURCES"), or its number if it has no
// name. Works before hsa_init.
std::string status_name(hsa_status_t status);

// Throws unless `status` is HSA_STATUS_SUCCESS or HSA_STATUS_INFO_BREAK (returned by
// hsa_iterate_*). Builds no string on success.
inline void check(hsa_status_t status, std::string_view call, std::string_view asked = {},
                  std::string_view remedy = {});

namespace detail {
[[noreturn]] void throw_status(hsa_status_t status, std::string_view call, std::string_view asked,
                               std::string_view remedy);

// Throws the Error of a call of an object that was moved from. `type`: of the object.
[[noreturn]] void refuse_moved(std::string_view call, std::string_view type);

// For functions that cannot throw: writes "uptempo: <sentence>" and a line end to stderr, with one
// call.
void say(const std::string& sentence) noexcept;
}  // namespace detail

inline void check(hsa_status_t status, std::string_view call, std::string_view asked,
                  std::string_view remedy) {
  if (status != HSA_STATUS_SUCCESS && status != HSA_STATUS_INFO_BREAK)
    detail::throw_status(status, call, asked, remedy);
}
// The same with a text that make_asked() returns. It is made only to throw: a text made beside a
// call that takes something, or begins work, could fail after the call has succeeded.
template <std::invocable MakeAsked>
void check(hsa_status_t status, std::string_view call, MakeAsked&& make_asked,
           std::string_view remedy = {}) {
  if (status != HSA_STATUS_SUCCESS && status != HSA_STATUS_INFO_BREAK)
    detail::throw_status(status, call, std::string(make_asked()), remedy);
}

}  // namespace uptempo
