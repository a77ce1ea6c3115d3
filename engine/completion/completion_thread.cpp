#include <uptempo/completion/completion_thread.hpp>

#include <hsa/hsa_ext_amd.h>

#include <algorithm>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/runtime/amd_extension.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/library_thread.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo::detail {
namespace {

thread_local bool is_completion_thread = false;

constexpr std::chrono::milliseconds kNoMemoryPause{10};

}  // namespace

CompletionThread& CompletionThread::of_process() {
  // Never destroyed, like Completions and timelines. Without allocation, because destructors ask
  // for it.
  alignas(CompletionThread) static std::byte storage[sizeof(CompletionThread)];
  static CompletionThread* const instance = new (storage) CompletionThread;
  return *instance;
}

void CompletionThread::add(Awaited& item) {
  attach_to_session();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (running_) {
        Timeline& timeline = *timeline_of(item.publication);
        AwaitedList& awaited = timeline.awaited();
        if (awaited.first() == nullptr) {
          watched_.push_back(&timeline);
          // Sequentially consistent, like the store of the error and the load of this flag in
          // fail(): one of the two sees the other.
          timeline.is_awaited().store(true, std::memory_order_seq_cst);
        }
        awaited.insert(item);
        item.place = Awaited::Place::waiting;
        // The thread sleeps for the first item only. It checks later items when the first has
        // finished.
        if (awaited.first() == &item) wake();
        return;
      }
    }
    start();
  }
}

bool CompletionThread::remove(Awaited& item) noexcept {
  const std::lock_guard lock(mutex_);
  switch (item.place) {
    case Awaited::Place::nowhere:
      return false;
    case Awaited::Place::ready:
      ready_.erase(item);
      break;
    case Awaited::Place::waiting: {
      Timeline& timeline = *timeline_of(item.publication);
      timeline.awaited().erase(item);
      if (timeline.awaited().first() == nullptr) stop_watching(timeline);
      break;
    }
  }
  item.place = Awaited::Place::nowhere;
  return true;
}

// Requires mutex_.
void CompletionThread::stop_watching(Timeline& timeline) noexcept {
  timeline.is_awaited().store(false, std::memory_order_relaxed);
  std::erase(watched_, &timeline);
}

void CompletionThread::look_again() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (watched_.empty()) return;
    wake();
    if (running_) return;
  }
  try {
    start();  // after static destruction has ended the thread
  } catch (const std::exception&) {
    // Without a thread, no waiter can be notified, and this function cannot report the error.
  }
}

bool CompletionThread::running() const noexcept {
  const std::lock_guard lock(mutex_);
  return running_;
}

std::string CompletionThread::describe_sleep() const {
  const std::lock_guard lock(mutex_);
  if (!session_ || !session_->alive())
    return wait_any_overflows() ? "not started; signal handlers would wake it"
                                : "not started; it would sleep in hsa_amd_signal_wait_any";
  switch (means_) {
    case Sleep::on_signals:
      return "sleeps in hsa_amd_signal_wait_any";
    case Sleep::on_handlers:
      return "sleeps until a signal handler wakes it, because hsa_amd_signal_wait_any overwrites "
             "memory";
    default:
      return events_in_use() ? "polls with pauses, because no event was left for its control signal"
                             : "polls with pauses, because HSA_ENABLE_INTERRUPT is 0";
  }
}

// Requires mutex_.
void CompletionThread::wake() noexcept {
  woken_ = true;
  pause_ = kFirstPause;
  changed_.notify_all();
  if (!in_rocr_) return;
  in_rocr_ = false;
  // Exchange, not store: ROCr checks for waiters after it changes the value, without a fence
  // (interrupt_signal.h:208). Only an atomic read-modify-write keeps the two in order.
  hsa_signal_exchange_screlease(control_->handle(), 0);
}

void CompletionThread::attach_to_session() {
  {
    const std::lock_guard lock(mutex_);
    if (session_ && session_->alive()) return;
  }
  const std::shared_ptr<Session> session = Session::running();
  if (!session) return;
  Sleep means = Sleep::on_handlers;
  std::optional<Signal> control;
  if (!wait_any_overflows()) {
    try {
      control.emplace();
      if (!control->interrupt()) control.reset();
    } catch (const Error&) {
      // No events are left. Polling needs none.
    }
    means = control ? Sleep::on_signals : Sleep::in_pauses;
  }
  const std::lock_guard lock(mutex_);
  if (session_ == session) return;
  session->adopt(Session::Kind::completion_thread, 0, &CompletionThread::end_with_session);
  session_ = session;
  control_ = std::move(control);
  means_ = means;
}

// All timelines of the session have failed and are closed, so all their awaited publications have
// finished.
void CompletionThread::end_with_session(uint64_t) noexcept {
  CompletionThread& thread = of_process();
  if (is_completion_thread) {  // a coroutine destroyed the last Runtime
    std::unique_lock lock(thread.mutex_);
    while (thread.collect(lock)) thread.serve(lock);
  } else {
    thread.stop(false);
  }
  std::optional<Signal> control;
  const std::lock_guard lock(thread.mutex_);
  control.swap(thread.control_);
  thread.means_ = Sleep::in_pauses;
  thread.session_.reset();
}

void CompletionThread::start() {
  const std::lock_guard life(life_);
  {
    const std::lock_guard lock(mutex_);
    if (running_) return;
  }
  if (thread_.joinable()) thread_.join();
  static const struct AtExit {
    ~AtExit() { of_process().stop(true); }
  } kAtExit;
  const std::lock_guard lock(mutex_);
  thread_ = start_library_thread("uptempo-waiter", [this] { run(); });
  running_ = true;
}

void CompletionThread::stop(bool for_good) noexcept {
  {
    const std::lock_guard life(life_);
    {
      const std::lock_guard lock(mutex_);
      if (!running_) return;
      stopping_ = true;
      wake();
    }
    thread_.join();
    const std::lock_guard lock(mutex_);
    stopping_ = false;
  }
  if (!for_good) look_again();  // publications that need no Runtime are still awaited
}

void CompletionThread::run() noexcept {
  is_completion_thread = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_ = false;
    bool has_collected = false;
    try {
      has_collected = collect(lock);
    } catch (const std::bad_alloc&) {
      // Nothing was taken. It looks again when there may be memory, or ends.
      if (!stopping_) {
        changed_.wait_for(lock, kNoMemoryPause);
        continue;
      }
    }
    if (has_collected) {
      count(&CounterBlock::completion_thread_wake_ups);
      serve(lock);
    } else if (stopping_) {
      running_ = false;
      return;
    } else if (watched_.empty()) {
      changed_.wait(lock, [&] { return woken_; });
    } else if (!woken_) {
      sleep(lock);
    }
  }
}

// Moves finished items to ready_. Called, and returns, with the lock held.
bool CompletionThread::collect(std::unique_lock<std::mutex>& lock) {
  looked_at_ = watched_;
  failed_.assign(looked_at_.size(), false);
  lock.unlock();  // a failure found here calls look_again(), which takes the lock
  Timeline::find_failed_copies();
  for (size_t i = 0; i < looked_at_.size(); ++i) failed_[i] = looked_at_[i]->failed();
  lock.lock();
  for (size_t i = 0; i < looked_at_.size(); ++i) {
    Timeline& timeline = *looked_at_[i];
    AwaitedList& awaited = timeline.awaited();
    if (awaited.first() == nullptr) continue;
    while (Awaited* const item = awaited.first()) {
      if (!failed_[i] && !is_done(item->publication)) break;
      awaited.erase(*item);
      item->place = Awaited::Place::ready;
      ready_.push_back(*item);
    }
    if (awaited.first() == nullptr) stop_watching(timeline);
  }
  return ready_.first() != nullptr;
}

void CompletionThread::serve(std::unique_lock<std::mutex>& lock) {
  pause_ = kFirstPause;
  while (Awaited* const item = ready_.first()) {
    ready_.erase(*item);
    item->place = Awaited::Place::nowhere;
    lock.unlock();
    count(&CounterBlock::completions_handed_back);
    item->on_finished(*item);
    lock.lock();
  }
}

void CompletionThread::sleep(std::unique_lock<std::mutex>& lock) {
  Sleep how = prepare_to_sleep();
  if (how == Sleep::on_signals) {
    in_rocr_ = true;
    lock.unlock();
    wait_for_signals();
    lock.lock();
    in_rocr_ = false;
    aql::rearm(control_->handle(), 1);
  } else if (how == Sleep::on_handlers) {
    lock.unlock();
    const bool registered = register_handlers();
    lock.lock();
    if (registered)
      changed_.wait_for(lock, kLongestSleep, [&] { return woken_; });
    else
      how = Sleep::in_pauses;
  }
  end_sleeps();
  if (how == Sleep::in_pauses) {
    changed_.wait_for(lock, pause_, [&] { return woken_; });
    pause_ = std::min(pause_ * 2, kLongestPause);
  }
}

// Fills sleepers_.
CompletionThread::Sleep CompletionThread::prepare_to_sleep() {
  if (means_ == Sleep::in_pauses) return means_;
  for (Timeline* const timeline : watched_) {
    const uint64_t value = timeline->awaited().first()->publication.value();
    hsa_signal_t signal{0};
    switch (timeline->begin_sleep(value, signal)) {
      case Timeline::SleepRole::leads:
        sleepers_.push_back({timeline, value, signal});
        break;
      case Timeline::SleepRole::led:
        break;
      case Timeline::SleepRole::without_event:
        return Sleep::in_pauses;
      case Timeline::SleepRole::finished:
        return Sleep::none;
    }
  }
  return means_;
}

void CompletionThread::wait_for_signals() {
  signals_.assign(1, control_->handle());
  for (const Sleeper& sleep : sleepers_) signals_.push_back(sleep.signal);
  conditions_.assign(signals_.size(), HSA_SIGNAL_CONDITION_LT);
  values_.assign(signals_.size(), 1);
  hsa_amd_signal_wait_any(static_cast<uint32_t>(signals_.size()), signals_.data(),
                          conditions_.data(), values_.data(), ticks_in(kLongestSleep),
                          HSA_WAIT_STATE_BLOCKED, nullptr);
}

// Each publication of sleepers_ has one handler, however often the thread sleeps for it. Returns
// false if ROCr refuses one.
bool CompletionThread::register_handlers() {
  std::erase_if(handled_, [](const Sleeper& handled) {
    return handled.timeline->failed() || handled.timeline->is_done(handled.value);
  });
  for (const Sleeper& sleep : sleepers_) {
    const auto is_same = [&](const Sleeper& handled) {
      return handled.timeline == sleep.timeline && handled.value == sleep.value;
    };
    if (std::ranges::any_of(handled_, is_same)) continue;
    if (hsa_amd_signal_async_handler(sleep.signal, HSA_SIGNAL_CONDITION_LT, 1, &on_signal,
                                     nullptr) != HSA_STATUS_SUCCESS)
      return false;
    handled_.push_back(sleep);
  }
  return true;
}

// Runs on ROCr's thread. Returns false: the handler has run for the last time.
bool CompletionThread::on_signal(hsa_signal_value_t, void*) noexcept {
  of_process().look_again();
  return false;
}

void CompletionThread::end_sleeps() noexcept {
  for (const Sleeper& sleep : sleepers_) sleep.timeline->end_sleep(sleep.value);
  sleepers_.clear();
}

}  // namespace uptempo::detail
