#include <uptempo/dispatch/flight/flight_log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <uptempo/aql/text.hpp>
#include <uptempo/program/kernel_names.hpp>

namespace uptempo::detail {
namespace {

using aql::Packet64;
using Content = FlightPackets::Content;

// Packets of a submission that FlightScope::unfinished reads: a ring in device memory is slow.
constexpr uint64_t kMostAroundReadIndex = 64;

// Producers and the packet processor write the slots meanwhile, without an order that
// ThreadSanitizer could know. Acquire order: what proves the packet's place is loaded later.
__attribute__((no_sanitize("thread"))) Packet64 load(const Packet64& slot) noexcept {
  Packet64 copy;
  for (size_t i = 0; i < std::size(copy.word); ++i)
    copy.word[i] = __atomic_load_n(&slot.word[i], __ATOMIC_ACQUIRE);
  return copy;
}

bool has_header(const Packet64& packet) noexcept {
  return aql::packet_type(packet.header()) != aql::PacketType::invalid;
}

void set_header(Packet64& packet, uint16_t header) noexcept {
  packet.word[0] = aql::first_word(header, packet.setup());
}

// Reads packets from the ring, and names their kernels.
class Reader {
 public:
  Reader(const FlightSource& source, FlightScope scope, uint64_t read, uint64_t written)
      : source_(source), scope_(scope), read_(read), written_(written) {}

  // Reads packets [from, from + count); `entry`: the submission that they are part of, or null.
  std::vector<FlightPackets> packets(uint64_t from, uint64_t count,
                                     const FlightRecorder::Entry* entry) {
    std::vector<FlightPackets> runs;
    for (uint64_t i = from; i < from + count; ++i) add(runs, packet(i, entry));
    return runs;
  }

  // Whether the packet was taken, as far as the indices and its slot tell. Requires a packet that
  // was published, or will be by the only producer.
  bool was_taken(uint64_t index) const noexcept {
    if (index < read_) return true;
    return index < written_ && !source_.writer.has_device_ring() && !has_header(load(slot(index)));
  }

  uint64_t read_index() const noexcept { return read_; }

 private:
  const Packet64& slot(uint64_t index) const noexcept {
    return source_.writer.ring()[index & (source_.writer.ring_size() - 1)];
  }

  FlightPackets packet(uint64_t index, const FlightRecorder::Entry* entry) {
    FlightPackets result{.first = index, .content = read(index, result.packet)};
    const bool has_body = result.content == Content::whole;
    // The record keeps headers, and the kernel of the submission's first packet.
    if (entry != nullptr && !has_header(result.packet) && (has_body || index == entry->first))
      set_header(result.packet, entry->headers.of(index - entry->first, entry->packets));
    const bool is_dispatch =
        aql::packet_type(result.packet.header()) == aql::PacketType::kernel_dispatch;
    if (!has_body) {
      if (is_dispatch) result.kernel = kernel(entry->kernel);
      return result;
    }
    const uint64_t object =
        aql::packet_as<hsa_kernel_dispatch_packet_t>(result.packet).kernel_object;
    if (!has_header(result.packet)) {
      result.content = Content::headless;
      result.kernel = name(object);  // a dispatch if that is a kernel
    } else if (is_dispatch) {
      result.kernel = kernel(object);
    }
    return result;
  }

  // Reads the packet if its slot holds it.
  Content read(uint64_t index, Packet64& packet) const noexcept {
    set_header(packet, aql::kInvalidHeader);
    // An Error may be about the loss of the GPU, whose memory then must not be read.
    if (scope_ == FlightScope::unfinished && source_.writer.has_device_ring())
      return Content::unread;
    // Before the look: the slots of packets from here on hold older packets.
    if (index >= source_.writer.visible_write_index()) return Content::unpublished;
    const Packet64 found = load(slot(index));
    // After the look: a later packet is claimed before it is written to the slot.
    if (source_.claimed() > index + source_.writer.ring_size()) return Content::overwritten;
    packet = found;
    return Content::whole;
  }

  // Empty if it is not known.
  const std::string& name(uint64_t object) {
    const auto [at, is_new] = names_.try_emplace(object);
    if (is_new)
      at->second = scope_ == FlightScope::all ? name_of_kernel(object, source_.agent)
                                              : KernelNames::of_process().find(object);
    return at->second;
  }
  std::string kernel(uint64_t object) {
    const std::string& known = name(object);
    return known.empty() ? fmt::format("0x{:x}", object) : known;
  }

  // Equal but for their kernel arguments.
  static bool is_like(const FlightPackets& a, const FlightPackets& b) noexcept {
    const bool has_body = a.content == Content::whole || a.content == Content::headless;
    if (a.content != b.content || a.kernel != b.kernel || (has_body && a.kernel.empty()))
      return false;
    Packet64 with_arguments_of_a = b.packet;
    std::copy_n(&a.packet.word[10], 2, &with_arguments_of_a.word[10]);  // kernarg_address
    return with_arguments_of_a.word == a.packet.word;
  }
  static void add(std::vector<FlightPackets>& runs, FlightPackets packet) {
    if (!runs.empty() && is_like(runs.back(), packet)) {
      ++runs.back().count;
    } else {
      runs.push_back(std::move(packet));
    }
  }

  const FlightSource& source_;
  const FlightScope scope_;
  const uint64_t read_, written_;
  std::map<uint64_t, std::string> names_;
};

// A barrier packet without dependencies, which ends an epoch and does not fail.
bool is_marker(const FlightPackets& packets) noexcept {
  return packets.content == Content::whole &&
         aql::packet_type(packets.packet.header()) == aql::PacketType::barrier_and &&
         std::ranges::all_of(aql::packet_as<hsa_barrier_and_packet_t>(packets.packet).dep_signal,
                             [](hsa_signal_t signal) { return signal.handle == 0; });
}

using Entries = std::vector<FlightRecorder::Entry>;

// The unfinished submissions that may run, oldest first: those of the first unfinished value (the
// packets of a stream's epoch), without those that are certainly complete, or certainly not
// launched. A packet with the barrier bit launches when all packets before it are complete (HSA
// Platform System Architecture 1.2, 2.9.1). So the last one taken divides them.
Entries may_run(Entries entries, const FlightSource& source, const Reader& reader) {
  std::erase_if(entries, [&](const FlightRecorder::Entry& entry) {
    return source.timeline.glimpse(entry.value).is_complete;
  });
  if (entries.empty()) return entries;
  const uint64_t value = entries.front().value;
  const auto end = std::ranges::find_if(
      entries, [&](const FlightRecorder::Entry& entry) { return entry.value != value; });
  entries.erase(end, entries.end());
  const auto has_barrier = [](const FlightRecorder::Entry& entry) {
    return aql::header_flags(entry.headers.of(0, entry.packets)).barrier == aql::Barrier::on;
  };
  ptrdiff_t first = 0, launched = 1;
  for (ptrdiff_t i = 0; const FlightRecorder::Entry& entry : entries) {
    const bool was_taken = reader.was_taken(entry.first);
    if (was_taken && has_barrier(entry)) first = i;
    // A processor that frees a slot when its packet is complete may run the one at the read index.
    if (was_taken || entry.first == reader.read_index() || (launched == i && !has_barrier(entry)))
      launched = i + 1;
    ++i;
  }
  return {entries.begin() + first, entries.begin() + std::max(launched, first + 1)};
}

FlightState state_of(bool is_complete, bool has_failed, bool was_taken) noexcept {
  if (is_complete) return FlightState::complete;
  if (has_failed) return FlightState::failed;
  return was_taken ? FlightState::running : FlightState::waiting;
}

std::string site_of(const CallSite& site) {
  if (site.file == nullptr) return {};
  return site.line == 0 ? site.file : fmt::format("{}:{}", site.file, site.line);
}

std::string range_of(uint64_t first, uint64_t count) {
  if (count == 1) return fmt::format("packet {}", first);
  return fmt::format("packets {} to {}", first, first + count - 1);
}

// In the order of Content. Null: the packet's body is known.
constexpr const char* kWithoutBody[] = {
    nullptr, nullptr, "overwritten by later packets", "not published yet",
    "not read, because the ring is in the memory of a GPU that may be lost"};

std::string line_of(const FlightPackets& packets) {
  std::string line = range_of(packets.first, packets.count) + ": ";
  if (const char* const why = kWithoutBody[static_cast<size_t>(packets.content)]) {
    line += why;
    return packets.kernel.empty() ? line : line + fmt::format("; kernel={}", packets.kernel);
  }
  const Packet64& packet = packets.packet;
  if (packets.content == Content::headless) {
    line += "taken, so its header is not known";
  } else {
    const aql::HeaderFlags flags = aql::header_flags(packet.header());
    line += fmt::format("{}{} acquire={} release={}", aql::kind_name(packet),
                        flags.barrier == aql::Barrier::on ? " barrier" : "",
                        aql::scope_name(flags.acquire), aql::scope_name(flags.release));
  }
  if (packets.kernel.empty()) {
    if (packets.content == Content::headless) return line;
    // After the kind and the flags: dependencies and conditions.
    const std::string all = aql::format(packet);
    const size_t fields = all.find(" dep_signal=");
    return fields == std::string::npos ? line : line + all.substr(fields);
  }
  const auto dispatch = aql::packet_as<hsa_kernel_dispatch_packet_t>(packet);
  line +=
      fmt::format(" kernel={} grid=[{},{},{}] workgroup=[{},{},{}]", packets.kernel,
                  dispatch.grid_size_x, dispatch.grid_size_y, dispatch.grid_size_z,
                  dispatch.workgroup_size_x, dispatch.workgroup_size_y, dispatch.workgroup_size_z);
  if (dispatch.completion_signal.handle != 0) line += " completion_signal";
  return line;
}

// "kernels a, b and 3 others", each once.
std::string kernels_of(const std::vector<FlightPackets>& packets) {
  constexpr size_t kMostNames = 3;
  std::vector<std::string> names;
  for (const FlightPackets& each : packets)
    if (!each.kernel.empty() && std::ranges::find(names, each.kernel) == names.end())
      names.push_back(each.kernel);
  if (names.empty()) return {};
  std::string text = names.size() == 1 ? "kernel " : "kernels ";
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  if (names.size() > kMostNames) text += fmt::format(" and {} others", names.size() - kMostNames);
  return text;
}

std::string described(const FlightSubmission& submission, uint64_t read_index) {
  const FlightRecorder::Entry& entry = submission.entry;
  const std::string site = site_of(entry.site), kernels = kernels_of(submission.packets);
  std::string text =
      fmt::format("submission {}{}{}", entry.number, site.empty() ? "" : " at ", site);
  text += fmt::format(", {}", range_of(entry.first, entry.packets));
  const uint64_t taken =
      std::clamp(read_index, entry.first, entry.first + entry.packets) - entry.first;
  const bool holds_read_index = taken != entry.packets && read_index >= entry.first;
  if (entry.packets == 1)
    text += submission.state == FlightState::running ? ", taken by the packet processor"
            : holds_read_index                       ? ", at the read index: it runs or is next"
                                                     : ", not taken yet";
  else if (holds_read_index)
    text += fmt::format(", {} taken by the packet processor: packet {} runs or is next", taken,
                        read_index);
  else
    text += taken == 0 ? ", none taken yet" : ", all taken by the packet processor";
  return kernels.empty() ? text : text + ", " + kernels;
}

// In the order of FlightState.
constexpr const char* kStateNames[] = {"complete", "running", "waiting", "failed"};

}  // namespace

uint64_t FlightRecorder::claimed() const noexcept {
  const uint64_t number = total();
  if (number == 0) return 0;
  const Record& record = records_[(number - 1) % records_.size()];
  const uint64_t packets =
      static_cast<uint32_t>(record.line_and_packets.load(std::memory_order_acquire));
  return record.first.load(std::memory_order_acquire) + packets;
}

std::vector<FlightRecorder::Entry> FlightRecorder::entries() const {
  std::vector<Entry> found;
  const uint64_t end = total();
  const uint64_t size = records_.size();
  for (uint64_t number = end - std::min(end, size); number < end; ++number) {
    const Record& record = records_[number % size];
    Entry entry{.number = number + 1,
                .value = record.value.load(std::memory_order_acquire),
                .first = record.first.load(std::memory_order_acquire),
                .kernel = record.kernel.load(std::memory_order_acquire)};
    const uint64_t line_and_packets = record.line_and_packets.load(std::memory_order_acquire);
    entry.packets = static_cast<uint32_t>(line_and_packets);
    entry.site = {record.file.load(std::memory_order_acquire),
                  static_cast<uint32_t>(line_and_packets >> 32)};
    entry.headers = record.headers.load(std::memory_order_acquire);
    // The writer overwrites this record once total() is number + size.
    if (total() >= number + size) continue;
    found.push_back(entry);
  }
  return found;
}

uint64_t FlightSource::claimed() const noexcept {
  // Only a shared cursor may be read by any thread.
  return std::max({records.claimed(), writer.visible_write_index(),
                   writer.is_shared() ? writer.next_index() : 0});
}

FlightLog read_flight_log(const FlightSource& source, FlightScope scope) {
  const aql::AqlQueueWriter& writer = source.writer;
  FlightLog log{.queue = writer.queue()->id,
                .agent = source.agent_name,
                .ring_size = writer.ring_size(),
                // first, so that it is not greater than the write index
                .read_index = writer.read_index(),
                .write_index = writer.visible_write_index(),
                .submissions = source.records.total(),
                .last_value = source.timeline.last_begun()};
  const bool all = scope == FlightScope::all;
  if (all && source.timeline.failed()) log.failure = source.timeline.failure();
  Reader reader(source, scope, log.read_index, log.write_index);
  uint64_t recorded = log.write_index;  // first packet index with a record
  std::vector<FlightRecorder::Entry> entries = source.records.entries();
  for (const FlightRecorder::Entry& entry : entries) recorded = std::min(recorded, entry.first);
  Entries running = may_run(entries, source, reader);
  if (!all) {
    entries = std::move(running);
  } else if (entries.size() > FlightLog::kLast) {
    entries.erase(entries.begin(), entries.end() - FlightLog::kLast);
    std::erase_if(running, [&](const FlightRecorder::Entry& entry) {
      return entry.number >= entries.front().number;
    });
    entries.insert(entries.begin(), running.begin(), running.end());
  }
  for (const FlightRecorder::Entry& entry : entries) {
    const Timeline::Glimpse glimpse = source.timeline.glimpse(entry.value);
    FlightSubmission submission{.entry = entry,
                                .state = state_of(glimpse.is_complete, log.failure.has_value(),
                                                  reader.was_taken(entry.first)),
                                .signal = glimpse.signal,
                                .packets = {}};
    uint64_t from = entry.first, count = entry.packets;
    if (!all) {
      // From the last packet taken on.
      const uint64_t end = from + count;
      if (log.read_index > from) from = std::min(log.read_index, end) - 1;
      count = std::min(end - from, kMostAroundReadIndex);
    }
    submission.packets = reader.packets(from, count, &entry);
    if (!all && !log.last.empty() && !submission.packets.empty() &&
        is_marker(submission.packets.front()))
      continue;
    log.last.push_back(std::move(submission));
  }
  const uint64_t oldest = log.write_index - std::min<uint64_t>(log.write_index, log.ring_size);
  if (const uint64_t from = std::max(log.read_index, oldest); from < recorded) {
    const uint64_t count = recorded - from;
    log.unrecorded =
        reader.packets(from, all ? count : std::min(count, kMostAroundReadIndex), nullptr);
  }
  return log;
}

std::string FlightLog::text() const {
  std::string text =
      fmt::format("queue {}{}: ring of {} packets, read index {}, write index {}\n", queue,
                  agent.empty() ? "" : " of " + agent, ring_size, read_index, write_index);
  if (failure) text += fmt::format("  failed: {}\n", failure->text);
  if (!unrecorded.empty()) {
    text += "  in the ring, with no record in this queue\n";
    for (const FlightPackets& packets : unrecorded)
      text += fmt::format("    {}\n", line_of(packets));
  }
  text += fmt::format("  {}the last {} of {} submissions\n",
                      last.size() > kLast ? "those that may run, and " : "",
                      std::min(last.size(), kLast), submissions);
  for (const FlightSubmission& each : last) {
    const FlightRecorder::Entry& entry = each.entry;
    const std::string site = site_of(entry.site);
    text += fmt::format("  submission {}{}{}: {}", entry.number, site.empty() ? "" : " at ", site,
                        kStateNames[static_cast<size_t>(each.state)]);
    if (each.signal) text += fmt::format(", completion signal {}", *each.signal);
    text += fmt::format(", {} packet{}\n", entry.packets, entry.packets == 1 ? "" : "s");
    for (const FlightPackets& packets : each.packets)
      text += fmt::format("    {}\n", line_of(packets));
  }
  return text;
}

std::string FlightLog::first_unfinished() const {
  constexpr size_t kMostNamed = 3;
  if (!unrecorded.empty()) {
    // They are older than every record.
    const std::string kernels = kernels_of(unrecorded);
    return fmt::format("packet {} in the ring, of which this queue has no record{}{}",
                       unrecorded.front().first, kernels.empty() ? "" : ": ", kernels);
  }
  std::string text;
  size_t unfinished = 0;
  uint64_t number = submissions;  // of the last one
  for (const FlightSubmission& each : last) {
    if (each.state == FlightState::complete) continue;
    number = each.entry.number;
    if (unfinished++ < kMostNamed)
      text += (text.empty() ? "" : ", or ") + described(each, read_index);
  }
  if (unfinished == 0) return {};
  if (unfinished > kMostNamed) text += fmt::format(", or {} others", unfinished - kMostNamed);
  if (submissions > number) text += fmt::format("; {} submissions follow", submissions - number);
  if (submissions > number && unfinished == 1) text += " it";
  return text;
}

}  // namespace uptempo::detail
