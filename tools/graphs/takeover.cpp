#include "tools/graphs/takeover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "tools/graphs/call_times.hpp"
#include "tools/graphs/capture.hpp"
#include "tools/graphs/original.hpp"
#include "tools/graphs/settings.hpp"

namespace uptempo::graphs {
namespace {

size_t at_least() {
  static const size_t value = [] {
    size_t number = kDefaultAtLeast;
    if (const char* const given = std::getenv(kAtLeastVariable); given != nullptr)
      std::from_chars(given, given + std::strlen(given), number);
    return number;
  }();
  return value;
}

size_t count_of(hipGraph_t graph) {
  size_t count = 0;
  for (const hipGraphNode_t node : nodes_of(graph)) {
    const hipGraph_t child = child_of(node);
    count += child == nullptr ? 1 : count_of(child);
  }
  return count;
}

// Whether the stream belongs to the device. HIP names no device of default streams: they belong to
// the current one.
bool is_on(hipStream_t stream, int device) {
  static const int devices = [] {
    int count = 1;
    (void)hipGetDeviceCount(&count);
    return count;
  }();
  if (devices <= 1) return true;
  if (stream != nullptr && stream != hipStreamPerThread)
    return hipGetStreamDeviceId(stream) == device;
  int current = 0;
  return hipGetDevice(&current) == hipSuccess && current == device;
}

}  // namespace

Takeover& Takeover::instance() {
  alignas(Takeover) static std::byte storage[sizeof(Takeover)];
  static Takeover* const takeover = ::new (storage) Takeover;
  return *takeover;
}

std::shared_ptr<Takeover::Executable> Takeover::find(hipGraphExec_t executable) {
  const std::shared_lock lock(mutex_);
  const auto found = executables_.find(executable);
  return found == executables_.end() ? nullptr : found->second;
}

void Takeover::give_up(Executable& executable, const std::string& reason) {
  retire(std::exchange(executable.taken, nullptr));
  executable.left = &Report::instance().left(reason);
  executable.left->graphs.fetch_add(1, std::memory_order_relaxed);
}

void Takeover::retire(std::unique_ptr<TakenGraph> taken) {
  const std::lock_guard lock(retired_mutex_);
  std::erase_if(retired_, [](const auto& each) { return each->is_idle(); });
  if (taken != nullptr && !taken->is_idle()) retired_.push_back(std::move(taken));
}

void Takeover::instantiated(hipGraphExec_t executable, hipGraph_t graph, const std::string& refusal,
                            double microseconds) noexcept {
  try {
    const KeepLastError keep;
    const RelaxedCapture relaxed;
    auto entry = std::make_shared<Executable>();
    const std::lock_guard own(entry->mutex);
    {
      const std::lock_guard lock(mutex_);
      executables_.insert_or_assign(executable, entry);
    }
    entry->nodes = count_of(graph);
    CallTimes::instance().add(Timed::instantiation, entry->nodes, microseconds);
    if (!refusal.empty()) return give_up(*entry, refusal);
    if (entry->nodes < at_least())
      return give_up(*entry, fmt::format("fewer than {} nodes (--at-least)", at_least()));
    try {
      const Stopwatch watch;
      entry->taken = std::make_unique<TakenGraph>(graph);
      CallTimes::instance().add(Timed::import, entry->nodes, watch.read());
      Report::instance().taken().graphs.fetch_add(1, std::memory_order_relaxed);
    } catch (const std::exception& error) {
      give_up(*entry, error.what());
    }
  } catch (const std::exception&) {
    // Memory is exhausted: HIP launches what this object does not know.
  }
}

std::optional<hipError_t> Takeover::launch(hipGraphExec_t executable, hipStream_t stream) noexcept {
  const Stopwatch watch;
  try {
    const std::shared_ptr<Executable> entry = find(executable);
    if (entry == nullptr) return std::nullopt;
    const std::lock_guard lock(entry->mutex);
    if (entry->taken == nullptr) return std::nullopt;
    if (is_capturing(stream)) return std::nullopt;  // HIP adds a node to the captured graph
    if (!is_on(stream, entry->taken->device())) {
      give_up(*entry, "launched on another device than it was instantiated for");
      return std::nullopt;
    }
    const KeepLastError keep;
    const RelaxedCapture relaxed;
    try {
      entry->taken->launch(stream);
      Report::instance().taken().launched(entry->nodes);
      CallTimes::instance().add(Timed::launch_by_uptempo, entry->nodes, watch.read());
      return hipSuccess;
    } catch (const NotLaunched& error) {
      give_up(*entry, error.what());
      return std::nullopt;
    } catch (const std::exception& error) {
      // A part of the graph may have run, so HIP must not run it again.
      give_up(*entry, fmt::format("after a failed launch: {}", error.what()));
      return hipErrorLaunchFailure;
    }
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void Takeover::launched_by_hip(hipGraphExec_t executable, double microseconds) noexcept {
  try {
    const std::shared_ptr<Executable> entry = find(executable);
    if (entry == nullptr) {
      Report::instance().left("instantiated by a call that was not seen").launched(0);
      return;
    }
    const std::lock_guard lock(entry->mutex);
    CallTimes::instance().add(Timed::launch_by_hip, entry->nodes, microseconds);
    // A taken graph was captured into another one.
    if (entry->left != nullptr) entry->left->launched(entry->nodes);
  } catch (const std::exception&) {
    // Memory is exhausted: the launch is not counted.
  }
}

void Takeover::change(hipGraphExec_t executable,
                      const std::function<void(TakenGraph&)>& change) noexcept {
  try {
    const std::shared_ptr<Executable> entry = find(executable);
    if (entry == nullptr) return;
    const KeepLastError keep;
    const RelaxedCapture relaxed;
    const std::lock_guard lock(entry->mutex);
    if (entry->taken == nullptr) return;
    try {
      change(*entry->taken);
      Report::instance().updates().fetch_add(1, std::memory_order_relaxed);
    } catch (const std::exception& error) {
      give_up(*entry, fmt::format("after an update: {}", error.what()));
    }
  } catch (...) {
    // Memory is exhausted, and the old parameters must not be launched.
    std::terminate();
  }
}

void Takeover::updated(hipGraphExec_t executable, hipGraph_t graph) noexcept {
  change(executable, [&](TakenGraph& taken) { taken.update(graph); });
}

void Takeover::leave(hipGraphExec_t executable, const std::string& reason) noexcept {
  change(executable, [&](TakenGraph&) { throw std::runtime_error(reason); });
}

void Takeover::destroyed(hipGraphExec_t executable) noexcept {
  try {
    std::shared_ptr<Executable> entry;
    {
      const std::lock_guard lock(mutex_);
      const auto found = executables_.find(executable);
      if (found == executables_.end()) return;
      entry = std::move(found->second);
      executables_.erase(found);
    }
    const KeepLastError keep;
    const RelaxedCapture relaxed;
    const std::lock_guard lock(entry->mutex);
    retire(std::exchange(entry->taken, nullptr));
  } catch (const std::exception&) {
    // Memory is exhausted: the destructor of the graph waited for launches in flight.
  }
}

}  // namespace uptempo::graphs
