#include "engine/runtime/session_end.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace uptempo::detail {
namespace {

// Keyed by number, because the session may release an entry whose object has just been destroyed.
// Never destroyed, because the session may end after static destructors.
struct Functions {
  std::mutex mutex;
  uint64_t last = 0;
  std::map<uint64_t, std::function<void()>> by_number;
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
  found->second();
  all.by_number.erase(found);
}

}  // namespace

void SessionEnd::start(std::function<void()> function) {
  std::shared_ptr<Session> session = Session::current();
  {
    Functions& all = functions();
    const std::lock_guard lock(all.mutex);
    number_ = ++all.last;
    all.by_number.emplace(number_, std::move(function));
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
