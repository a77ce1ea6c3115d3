#include <uptempo/completion/notifier.hpp>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <uptempo/completion/completion_thread.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

int make_eventfd() {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd >= 0) return fd;
  throw Error({.code = ErrorCode::limit,
               .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
               .call = "CompletionNotifier",
               .asked = "an eventfd",
               .found = std::strerror(errno),
               .remedy = "close descriptors or raise the limit of open files (ulimit -n)"});
}

}  // namespace

struct CompletionNotifier::Slot : detail::Awaited {
  CompletionNotifier* notifier = nullptr;
  uint64_t tag = 0;
  bool failed = false;
  Slot* next = nullptr;  // in the list of free slots or of notices
};

CompletionNotifier::CompletionNotifier(uint32_t capacity, std::optional<int> eventfd)
    : capacity_(capacity),
      slots_(std::make_unique<Slot[]>(capacity)),
      owns_fd_(!eventfd),
      fd_(eventfd ? *eventfd : make_eventfd()) {
  for (uint32_t i = capacity; i-- > 0;) slots_[i].next = std::exchange(free_, &slots_[i]);
}

CompletionNotifier::~CompletionNotifier() {
  uint32_t removed = 0;
  for (uint32_t i = 0; i < capacity_; ++i)
    removed += detail::CompletionThread::of_process().remove(slots_[i]);
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return pending_ == removed; });
  }
  if (owns_fd_) ::close(fd_);
}

bool CompletionNotifier::try_watch(const Completion& completion, uint64_t tag) {
  Slot* slot = nullptr;
  bool alone = false;
  {
    const std::lock_guard lock(mutex_);
    slot = free_;
    if (slot == nullptr) return false;
    free_ = slot->next;
    alone = pending_++ == 0;
  }
  slot->notifier = this;
  slot->publication = completion;
  slot->tag = tag;
  slot->on_finished = &CompletionNotifier::on_finished;
  // Bypass the completion thread only if it holds none of our items, so that notices of one queue
  // stay in order.
  if (detail::timeline_of(completion) == nullptr || (alone && detail::is_finished(completion))) {
    put(*slot);
    return true;
  }
  try {
    detail::CompletionThread::of_process().add(*slot);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    slot->next = std::exchange(free_, slot);
    --pending_;
    throw;
  }
  return true;
}

void CompletionNotifier::watch(const Completion& completion, uint64_t tag) {
  if (try_watch(completion, tag)) return;
  throw Error({.code = ErrorCode::limit,
               .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
               .call = "CompletionNotifier::watch",
               .asked = "one more completion",
               .found = fmt::format("{} of {} are pending, the others are notices not yet taken",
                                    pending(), capacity_),
               .remedy = "take notices, or make the notifier with a larger capacity"});
}

void CompletionNotifier::on_finished(detail::Awaited& awaited) noexcept {
  auto& slot = static_cast<Slot&>(awaited);
  slot.notifier->put(slot);
}

void CompletionNotifier::put(Slot& slot) noexcept {
  slot.failed = !detail::is_done(slot.publication);
  slot.next = nullptr;
  const std::lock_guard lock(mutex_);
  (oldest_ == nullptr ? oldest_ : newest_->next) = &slot;
  newest_ = &slot;
  if (armed_) {
    armed_ = false;
    const uint64_t one = 1;
    // The write fails only if the counter is full, and then the descriptor is readable.
    [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  }
  --pending_;
  idle_.notify_all();  // under the lock: the destructor may destroy the condition variable after it
}

std::optional<CompletionNotifier::Notice> CompletionNotifier::take() noexcept {
  const std::lock_guard lock(mutex_);
  Slot* const slot = oldest_;
  if (slot == nullptr) {
    armed_ = true;
    return {};
  }
  oldest_ = slot->next;
  const Notice notice{.completion = slot->publication, .tag = slot->tag, .failed = slot->failed};
  slot->next = std::exchange(free_, slot);
  return notice;
}

uint32_t CompletionNotifier::pending() const noexcept {
  const std::lock_guard lock(mutex_);
  return pending_;
}

}  // namespace uptempo
