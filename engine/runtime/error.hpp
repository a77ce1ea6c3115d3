// What went wrong, in the five facts that somebody needs to act on it.
//
// Thrown by everything that sets up (runtime, memory, programs, queues) and by the hot path only when the device has failed or a
// deadline has passed. what() is one sentence made of the facts; the facts stay readable one by one.
#pragma once

#include <hsa/hsa.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace uptempo {

struct ErrorFacts {
  hsa_status_t status = HSA_STATUS_ERROR;  // what HSA answered, or the status that comes closest
  std::string call;                        // the function that failed: "hsa_queue_create", "Program::kernel"
  std::string asked;                       // what was asked of it
  std::string found;   // what there was instead; for a choice, every candidate and why it was rejected
  std::string remedy;  // what to do about it
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

// HSA's own name of a status ("HSA_STATUS_ERROR_OUT_OF_RESOURCES"); its number where it has none. Works before hsa_init.
std::string status_name(hsa_status_t status);

// Throws unless `status` is success (or, as hsa_iterate_* return it, HSA_STATUS_INFO_BREAK). Nothing is built when it is.
inline void check(hsa_status_t status, std::string_view call, std::string_view asked = {},
                  std::string_view remedy = {});

namespace detail {
[[noreturn]] void throw_status(hsa_status_t status, std::string_view call, std::string_view asked,
                               std::string_view remedy);
}

inline void check(hsa_status_t status, std::string_view call, std::string_view asked,
                  std::string_view remedy) {
  if (status != HSA_STATUS_SUCCESS && status != HSA_STATUS_INFO_BREAK)
    detail::throw_status(status, call, asked, remedy);
}

}  // namespace uptempo
