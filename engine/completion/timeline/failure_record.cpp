#include "engine/completion/timeline/failure_record.hpp"

#include <algorithm>
#include <new>

#include "engine/runtime/session.hpp"

namespace uptempo {

std::string_view remedy(const Failure& failure) noexcept {
  if (Session::is_parents()) return Session::kParentsRemedy;
  if (failure.status == HSA_STATUS_ERROR_OUT_OF_RESOURCES)
    return "use less private memory in the kernel (arrays of a work-item, spilled registers), free "
           "memory of the GPU, and create a new queue";
  return Session::MemoryFault::remedy(failure.status, "create a new queue");
}

namespace detail {
namespace {

// Error source of a timeline after one of its signals has become negative.
constinit const std::atomic<hsa_status_t> kNegativeSignal{HSA_STATUS_ERROR};

// Starts the text of a failure that another queue has caused.
constexpr std::string_view kPassedOn = "a queue that it waits for has failed: ";

}  // namespace

Failure FailureRecord::left_to_parent() {
  return {HSA_STATUS_ERROR_NOT_INITIALIZED, std::string(Session::kParentsReason)};
}

void FailureRecord::watch_failed_copy() noexcept { watch(&kNegativeSignal); }

FailureRecord::Report FailureRecord::reported() const noexcept {
  const std::atomic<hsa_status_t>* const watched = watched_.load(std::memory_order_acquire);
  if (watched == nullptr) return {};
  return {watched->load(std::memory_order_acquire),
          watched == &kNegativeSignal ? "the copy engine reported that a copy has failed"
                                      : "the owner of the borrowed queue reported an error"};
}

void FailureRecord::expect_dependent(Timeline& timeline) {
  if (std::ranges::find(dependents_, &timeline, &Dependent::timeline) == dependents_.end())
    dependents_.push_back({&timeline, 0});
}

void FailureRecord::add_dependent(const Dependent& dependent) noexcept {
  const auto at = std::ranges::find(dependents_, dependent.timeline, &Dependent::timeline);
  if (at == dependents_.end()) {
    dependents_.push_back(dependent);
  } else {
    at->value = std::max(at->value, dependent.value);
  }
}

bool FailureRecord::is_passed_on(std::string_view text) noexcept {
  return text.starts_with(kPassedOn);
}

std::string FailureRecord::passed_on(const std::string& text) noexcept {
  try {
    return is_passed_on(text) ? text : std::string(kPassedOn) + text;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void FailureRecord::clear() noexcept {
  failure_ = {};
  error_.store(HSA_STATUS_SUCCESS, std::memory_order_release);
  dependents_.clear();
  signals_.clear();
}

}  // namespace detail
}  // namespace uptempo
