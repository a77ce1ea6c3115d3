#include "engine/runtime/session_end.hpp"

#include <pthread.h>

#include <map>
#include <mutex>
#include <utility>

#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

// Keyed by number, because the session may release an entry whose object has just been destroyed.
// Never destroyed, because the session may end after static destructors.
struct Functions {
  struct Pair {
    std::function<void()> at_end, in_child;
  };
  std::mutex mutex;  // also held during a fork, so the child finds the map whole
  uint64_t last = 0;
  std::map<uint64_t, Pair> by_number;
};

Functions& functions() {
  static Functions* const all = new Functions;
  return *all;
}

void run(uint64_t number) noexcept {
  Functions& all = functions();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_number.find(number);
  if (found == all.by_number.end()) return;
  found->second.at_end();
  all.by_number.erase(found);
}

void watch_forks() {
  static const int kHandlers =
      pthread_atfork([] { functions().mutex.lock(); }, [] { functions().mutex.unlock(); },
                     [] {
                       functions().mutex.unlock();
                       for (const auto& [number, each] : functions().by_number) each.in_child();
                     });
  if (kHandlers != 0)
    throw Error({.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                 .call = "pthread_atfork",
                 .asked = "handlers that end queues in the child of a fork",
                 .found = "no memory",
                 .remedy = "free memory first"});
}

}  // namespace

void SessionEnd::start(std::function<void()> function, std::function<void()> in_child) {
  std::shared_ptr<Session> session = Session::current();
  watch_forks();
  {
    Functions& all = functions();
    const std::lock_guard lock(all.mutex);
    number_ = ++all.last;
    all.by_number.emplace(number_, Functions::Pair{std::move(function), std::move(in_child)});
  }
  try {
    entry_ = Owned(std::move(session), Session::Kind::listener, number_, &run);
  } catch (...) {
    stop();
    throw;
  }
}

void SessionEnd::stop() noexcept {
  entry_.forget();
  if (number_ == 0) return;
  Functions& all = functions();
  const std::lock_guard lock(all.mutex);
  all.by_number.erase(std::exchange(number_, 0));
}

}  // namespace uptempo::detail
