// The wait of a destructor for unfinished work, which says on stderr what it waits for. Private to
// the engine.
//
// Thread safety: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

// Time for which a destructor waits without a message.
inline constexpr std::chrono::seconds kSilentWait{1};

// Writes what the timeline's queue has not finished, and when the wait ends. `name` returns the
// name of what is being destroyed.
void say_waiting(Timeline& timeline, Deadline deadline,
                 const std::function<std::string()>& name) noexcept;
// As Timeline::wait(), with that message after kSilentWait.
WaitResult wait_for_end(Timeline& timeline, uint64_t value, Deadline deadline,
                        const std::function<std::string()>& name) noexcept;

}  // namespace uptempo::detail
