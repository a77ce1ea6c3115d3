#include "tools/lint/session.hpp"

#include <dlfcn.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <ranges>
#include <utility>

#include <uptempo/aql/whole_file.hpp>
#include "tools/lint/call_site.hpp"
#include "tools/lint/safe_read.hpp"

namespace uptempo::lint {
namespace {

std::optional<uint64_t> write_index_in_memory(const hsa_queue_t* queue) {
  const auto* const abi = reinterpret_cast<const amd_queue_t*>(queue);
  return safe_read<uint64_t>(const_cast<const uint64_t*>(&abi->write_dispatch_id));
}

std::optional<hsa_signal_value_t> value_in_memory(uint64_t handle) {
  const auto* const abi = reinterpret_cast<const amd_signal_t*>(handle);
  const auto kind = safe_read<amd_signal_kind64_t>(&abi->kind);
  if (!kind || *kind != AMD_SIGNAL_KIND_USER) return std::nullopt;
  return safe_read<hsa_signal_value_t>(const_cast<const int64_t*>(&abi->value));
}

std::string program_name() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view text(path.data(), length > 0 ? static_cast<size_t>(length) : 0);
  return std::string(text.substr(text.rfind('/') + 1));
}

}  // namespace

void DoorbellTimes::add(uint64_t nanoseconds) noexcept {
  const uint64_t number = count_.fetch_add(1, std::memory_order_relaxed);
  times_[number % times_.size()].store(
      static_cast<uint32_t>(std::min<uint64_t>(nanoseconds, ~uint32_t{0})),
      std::memory_order_relaxed);
}

std::optional<double> DoorbellTimes::median() const {
  std::vector<uint32_t> times;
  for (size_t i = 0; i < std::min<uint64_t>(samples(), times_.size()); ++i)
    times.push_back(times_[i].load(std::memory_order_relaxed));
  if (times.empty()) return std::nullopt;
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

Session::Session(const Settings& chosen, int standard_error, uint32_t number,
                 const CoreApiTable& original, const AmdEntries& amd_entries)
    : core(original),
      settings(chosen),
      sample_mask_(chosen.sites ? (uint64_t{1} << *chosen.sites) - 1 : ~uint64_t{0}),
      standard_error_(standard_error),
      number_(number),
      process_(getpid()) {
  for (size_t i = 0; i < kAmdFunctions; ++i)
    if (amd_entries.at[i] != nullptr) amd_[i] = *amd_entries.at[i];
}

std::string Session::describe(hsa_agent_t agent) {
  std::array<char, 64> name{};
  if (core.hsa_agent_get_info_fn(agent, HSA_AGENT_INFO_NAME, name.data()) != HSA_STATUS_SUCCESS)
    return "unknown agent";
  const auto known =
      std::ranges::find(devices_, std::string_view(name.data()), &DeviceBound::agent);
  if (known != devices_.end()) return known->agent;
  DeviceBound device{.agent = name.data()};
  std::array<uint32_t, 4> caches{};
  uint32_t megahertz = 0, bits = 0;
  const auto ask = [&](int what, void* value) {
    return core.hsa_agent_get_info_fn(agent, static_cast<hsa_agent_info_t>(what), value) ==
           HSA_STATUS_SUCCESS;
  };
  if (ask(HSA_AGENT_INFO_CACHE_SIZE, caches.data()) &&
      ask(HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY, &megahertz) &&
      ask(HSA_AMD_AGENT_INFO_MEMORY_WIDTH, &bits)) {
    device.l2_bytes = caches[1];
    device.bytes_per_ns = 2.0 * megahertz * bits / 8 / 1e3;
  }
  devices_.push_back(device);
  return device.agent;
}

// Loads from there would cost the doorbell path a microsecond each.
bool Session::is_ring_in_device_memory(const hsa_queue_t* queue) const {
  const auto pointer_info = amd<decltype(&hsa_amd_pointer_info)>(AmdFunction::pointer_info);
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  if (pointer_info == nullptr ||
      pointer_info(queue->base_address, &info, nullptr, nullptr, nullptr) != HSA_STATUS_SUCCESS)
    return false;
  if (info.type != HSA_EXT_POINTER_TYPE_HSA || info.agentOwner.handle == 0) return false;
  hsa_device_type_t type{};
  return core.hsa_agent_get_info_fn(info.agentOwner, HSA_AGENT_INFO_DEVICE, &type) ==
             HSA_STATUS_SUCCESS &&
         type == HSA_DEVICE_TYPE_GPU;
}

// A tool may have made this queue in the program's call of hsa_queue_create().
bool Session::is_known(const hsa_queue_t* queue) const {
  const auto is_it = [queue](const hsa_queue_t* other) { return other == queue; };
  return std::ranges::any_of(unwatched_, is_it, &Unwatched::queue) ||
         std::ranges::any_of(queues_, [&](const Watched& watched) {
           return watched.open && is_it(watched.watch->queue());
         });
}

void Session::add_queue(hsa_agent_t agent, hsa_queue_t* queue, bool is_device_ring) {
  const std::lock_guard lock(mutex_);
  if (is_known(queue)) return;
  const std::string name = describe(agent);
  const auto skip = [&](const char* reason) {
    QueueReport report{.id = queue->id, .agent = name};
    report.reason = reason;
    unwatched_.push_back({.queue = queue, .report = report});
  };
  if (is_device_ring || is_ring_in_device_memory(queue)) {
    skip("the ring is in the device's memory, which is slow to read");
    return;
  }
  const QueueCalls calls{core.hsa_queue_load_read_index_relaxed_fn,
                         core.hsa_queue_load_write_index_relaxed_fn};
  auto watch = std::make_unique<QueueWatch>(queue, queues_.size(), name, calls, ledger, signals);
  SignalTable::Entry* const entry = signals.add(queue->doorbell_signal.handle);
  if (entry == nullptr) {
    skip("the lint's table of signals is full");
    return;
  }
  entry->doorbell_of.store(watch.get(), std::memory_order_release);
  queues_.push_back({.watch = std::move(watch), .doorbell = entry});
}

void Session::add_queue_of_other_engine(hsa_agent_t agent, hsa_queue_t* queue) {
  const std::lock_guard lock(mutex_);
  if (is_known(queue)) return;
  QueueReport report{.id = queue->id, .agent = describe(agent)};
  report.reason = "its engine takes other commands than packets of AQL";
  unwatched_.push_back({.queue = queue, .report = report, .counts_packets = false});
}

void Session::add_unknown_queues(uint32_t count) {
  const std::lock_guard lock(mutex_);
  unknown_queues_ += count;
}

QueueReport Session::close(const QueueWatch& watch, std::optional<uint64_t> write_index) const {
  const QueueCounts counts = watch.counts();
  QueueReport report{.id = watch.id(),
                     .agent = watch.agent(),
                     .packets = counts.packets,
                     .missed = counts.missed,
                     .doorbells = counts.doorbells};
  if (!write_index) {
    report.reason = "its write index could not be read";
    return report;
  }
  const uint64_t unread = *write_index - std::min(*write_index, counts.read_end);
  report.not_seen = unread + counts.missed;
  if (counts.missed != 0)
    report.reason = "the device took them before the doorbell that announced them";
  if (unread != 0)
    report.reason = counts.rung_end >= *write_index
                        ? "another thread was reading when their doorbell was rung"
                        : "no call of hsa_signal_store rang their doorbell (a direct store, "
                          "perhaps)";
  return report;
}

void Session::remove_queue(const hsa_queue_t* queue) {
  const std::lock_guard lock(mutex_);
  for (Unwatched& unwatched : unwatched_) {
    if (unwatched.queue != queue) continue;
    if (unwatched.counts_packets)
      unwatched.report.not_seen = core.hsa_queue_load_write_index_relaxed_fn(queue);
    unwatched.queue = nullptr;
  }
  for (Watched& watched : queues_) {
    if (!watched.open || watched.watch->queue() != queue) continue;
    watched.doorbell->doorbell_of.store(nullptr, std::memory_order_release);
    watched.open = false;
    watched.closed = close(*watched.watch, core.hsa_queue_load_write_index_relaxed_fn(queue));
  }
}

void Session::add_queue_of_rocr(const hsa_queue_t* queue, hsa_agent_t agent) {
  const std::lock_guard lock(mutex_);
  of_rocr_.push_back({queue, queue->id, describe(agent)});
}

void Session::note_write_indices() {
  const std::lock_guard lock(mutex_);
  for (Watched& watched : queues_)
    if (watched.open) watched.noted = write_index_in_memory(watched.watch->queue());
  for (Unwatched& unwatched : unwatched_)
    if (unwatched.queue != nullptr && unwatched.counts_packets)
      unwatched.noted = write_index_in_memory(unwatched.queue);
  for (OfRocr& own : of_rocr_)
    if (own.queue != nullptr) own.noted = write_index_in_memory(own.queue);
}

void Session::close() {
  signals.end_all_lives([](uint64_t) { return std::nullopt; });
  const std::lock_guard lock(mutex_);
  for (Watched& watched : queues_) {
    if (!std::exchange(watched.open, false)) continue;
    watched.doorbell->doorbell_of.store(nullptr, std::memory_order_release);
    watched.closed = close(*watched.watch, watched.noted);
  }
  for (Unwatched& unwatched : unwatched_)
    if (std::exchange(unwatched.queue, nullptr) != nullptr)
      unwatched.report.not_seen = unwatched.noted;
  for (OfRocr& own : of_rocr_) own.queue = nullptr;
}

void Session::add_kernels(hsa_executable_t executable) {
  const auto add = [](hsa_executable_t, hsa_executable_symbol_t symbol, void* data) {
    auto& session = *static_cast<Session*>(data);
    const auto ask = session.core.hsa_executable_symbol_get_info_fn;
    hsa_symbol_kind_t kind{};
    uint32_t length = 0;
    uint64_t object = 0;
    if (ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind) != HSA_STATUS_SUCCESS ||
        kind != HSA_SYMBOL_KIND_KERNEL ||
        ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, &length) != HSA_STATUS_SUCCESS ||
        ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object) != HSA_STATUS_SUCCESS)
      return HSA_STATUS_SUCCESS;
    std::string name(length, '\0');
    if (ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME, name.data()) == HSA_STATUS_SUCCESS)
      session.names_.add(object, name);
    return HSA_STATUS_SUCCESS;
  };
  (void)core.hsa_executable_iterate_symbols_fn(executable, add, this);
}

Report Session::make_report() {
  Report report{.program = program_name(), .process = process_, .session = number_};
  report.virtual_gpu = dlsym(RTLD_DEFAULT, "uptempo_vgpu_packets") != nullptr;
  report.doorbell_ns = doorbell_times.median();
  report.doorbell_samples = doorbell_times.samples();
  signals.end_all_lives(value_in_memory);
  report.signals_rearmed = signals.rearmed();
  report.signals_not_followed = signals.not_followed();
  report.knows_queues_of_rocr = knows_queues_of_rocr_;

  // By their texts: the interpreter's calls of one line of Python come from several addresses.
  std::map<RecordNumber, std::map<std::string, uint64_t>> sites;
  ledger.for_each_site([&](RecordNumber record, uint64_t site, uint64_t samples) {
    sites[record][describe_site(site)] += samples;
  });
  struct Merged {
    std::array<uint64_t, kCountCount> counts{};
    std::map<std::string, uint64_t> sites;
  };
  std::map<Pair, Merged> merged;
  ledger.for_each_record([&](const Pair& pair, RecordNumber number, const auto& counts) {
    Merged& to = merged[number == kOtherPairs ? Pair{~uint64_t{0}, ~uint64_t{0}, 0}
                                              : Pair{pair.before, pair.packet, 0}];
    for (size_t i = 0; i < kCountCount; ++i) to.counts[i] += counts[i];
    for (const auto& [place, samples] : sites[number]) to.sites[place] += samples;
    if (number == kOtherPairs) report.other_pairs = counts[static_cast<size_t>(Count::packets)];
  });
  for (const auto& [pair, found] : merged) {
    if (found.counts[static_cast<size_t>(Count::packets)] == 0) continue;
    PairReport line{.before = names_.name(pair.before), .packet = names_.name(pair.packet)};
    if (pair.packet == ~uint64_t{0}) line.before = line.packet = "<other pairs>";
    line.counts = found.counts;
    if (pair.packet >= kPacketKinds && pair.packet != ~uint64_t{0})
      line[Count::dispatches] = line[Count::packets];
    for (const auto& [place, samples] : found.sites) line.sites.push_back({place, samples});
    std::ranges::stable_sort(line.sites, std::ranges::greater{}, &SiteReport::samples);
    report.pairs.push_back(std::move(line));
  }

  const std::lock_guard lock(mutex_);
  report.unknown_queues = unknown_queues_;
  for (const Watched& watched : queues_)
    report.queues.push_back(
        watched.open ? close(*watched.watch, write_index_in_memory(watched.watch->queue()))
                     : watched.closed);
  for (Unwatched& unwatched : unwatched_) {
    if (unwatched.queue != nullptr && unwatched.counts_packets)
      unwatched.report.not_seen = write_index_in_memory(unwatched.queue);
    report.queues.push_back(unwatched.report);
  }
  for (const OfRocr& own : of_rocr_) {
    QueueReport line{.id = own.id, .agent = own.agent, .of_rocr = true};
    line.not_seen = own.queue == nullptr ? own.noted : write_index_in_memory(own.queue);
    if (!line.not_seen || *line.not_seen != 0)
      line.reason = "ROCr rings the doorbells of its own queues itself";
    report.queues.push_back(line);
  }
  report.devices = devices_;
  return report;
}

void Session::write_report() {
  if (process_ != getpid() || reported_.exchange(true)) return;
  const Report report = make_report();
  const std::string text =
      settings.format == Format::json ? to_json_lines(report, settings) : to_text(report, settings);
  std::string reason, to = settings.file;
  if (!to.empty()) {
    reason = aql::append_to_file(to, text);
  } else if (const int error = aql::write_all(standard_error_, text); error != 0) {
    to = "standard error";
    reason = aql::write_error(error);
  }
  if (!reason.empty())
    (void)aql::write_all(STDERR_FILENO, "uptempo-lint: the report cannot be written to " + to +
                                            ": " + reason + "\n");
}

}  // namespace uptempo::lint
