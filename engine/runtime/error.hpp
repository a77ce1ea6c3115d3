// Error: a failure, as five facts that the caller needs to act on it.
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

struct ErrorFacts {
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

  hsa_status_t status() const noexcept { return facts_->status; }
  const std::string& call() const noexcept { return facts_->call; }
  const std::string& asked() const noexcept { return facts_->asked; }
  const std::string& found() const noexcept { return facts_->found; }
  const std::string& remedy() const noexcept { return facts_->remedy; }

 private:
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
  uint32_t line = 0;

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
// The same for the sentence that make() returns. Says nothing if make() throws, as it does when
// memory is short.
template <std::invocable Make>
void say(Make&& make) noexcept {
  try {
    say(std::string(make()));
  } catch (const std::exception&) {
  }
}
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
