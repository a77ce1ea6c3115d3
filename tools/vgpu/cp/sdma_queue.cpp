#include "cp/sdma_queue.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "device/bar/lazy_bar.hpp"
#include "device/caches/probes.hpp"
#include "device/clock.hpp"
#include "device/device_counts.hpp"
#include "device/inject/injector.hpp"

namespace uptempo::vgpu {
namespace {

// A peer's L2 answers the probe of an engine that writes to its memory by coherent requests.
void probe(const Mapping& mapping, GpuAddress written, uint64_t size_bytes) noexcept {
  if (mapping.probes != nullptr) mapping.probes->announce({mapping.at(written), size_bytes});
}

uint64_t bytes_of(const sdma::Packet& packet) {
  if (const auto* copy = std::get_if<sdma::CopyLinear>(&packet)) return copy->bytes;
  if (const auto* rect = std::get_if<sdma::CopyRect>(&packet))
    return rect->row_bytes * rect->rows * rect->slices;
  if (const auto* fill = std::get_if<sdma::ConstFill>(&packet)) return fill->bytes;
  if (const auto* write = std::get_if<sdma::WriteLinear>(&packet))
    return uint64_t{write->dwords} * sizeof(uint32_t);
  return 0;
}

bool is_copy(const sdma::Packet& packet) {
  return std::holds_alternative<sdma::CopyLinear>(packet) ||
         std::holds_alternative<sdma::CopyRect>(packet);
}

// Whether the injector loses the packet's bytes.
bool is_lost(const Device& device, uint32_t queue, const sdma::Packet& packet) {
  return (is_copy(packet) || std::holds_alternative<sdma::ConstFill>(packet)) &&
         device.injector->copy(device.gpu, queue);
}

// Addresses that the packet reads and writes, as fields of its trace line.
std::string addresses_of(const sdma::Packet& packet) {
  const auto field = [](const char* name, GpuAddress address) {
    return std::string(",\"") + name + "\":" + std::to_string(address);
  };
  if (const auto* copy = std::get_if<sdma::CopyLinear>(&packet))
    return field("from", copy->source) + field("to", copy->destination);
  if (const auto* rect = std::get_if<sdma::CopyRect>(&packet))
    return field("from", rect->source.base) + field("to", rect->destination.base);
  if (const auto* fill = std::get_if<sdma::ConstFill>(&packet))
    return field("to", fill->destination);
  if (const auto* write = std::get_if<sdma::WriteLinear>(&packet))
    return field("to", write->destination);
  return {};
}

}  // namespace

SdmaQueue::SdmaQueue(QueueContext& context, uint32_t ordinal, const SdmaQueueConfig& config)
    : Queue(context, ordinal, fences::Checker::QueueKind::sdma), config_(config) {
  suspended_ = config.ring_bytes == 0;
}

bool SdmaQueue::advance() {
  if (stopped_ || suspended_) {
    waiting_ = Waiting::nothing;
    return false;
  }
  ring_ = context_.memory.translate(config_.ring, config_.ring_bytes, Access::read);
  if (ring_ == nullptr) {
    fault(config_.ring, Access::read);
    return false;
  }
  read_pointer_ = reinterpret_cast<uint64_t*>(
      context_.memory.translate(config_.read_pointer, sizeof(uint64_t), Access::write));
  if (read_pointer_ == nullptr) {
    fault(config_.read_pointer, Access::write);
    return false;
  }
  if (config_.doorbell != nullptr) {
    // acquire: the packets were written before the doorbell was rung.
    const uint64_t doorbell =
        std::atomic_ref<uint64_t>(*config_.doorbell).load(std::memory_order_acquire);
    if (doorbell != doorbell_seen_ && (delays_ == nullptr || delays_->doorbell_over(doorbell))) {
      doorbell_seen_ = doorbell;
      const uint64_t before = written_;
      written_ = std::max(written_, doorbell);
      found_doorbell(doorbell);
      expect_copies(before);
    }
  }
  bool progressed = false;
  uint64_t budget = kBytesPerTurn;
  for (unsigned taken = 0; taken < kPacketsPerTurn && budget > 0; ++taken) {
    if (!fetched_ && !fetch()) return progressed;
    const uint64_t before = progress_;
    const Outcome outcome = execute(budget);
    if (outcome == Outcome::stopped) return true;
    if (outcome == Outcome::blocked) {
      waiting_ = Waiting::memory;
      return progressed;
    }
    progressed = progressed || outcome == Outcome::done || progress_ != before;
    if (outcome == Outcome::done) finish_packet();
  }
  return progressed;
}

bool SdmaQueue::fetch() {
  if (read_ >= written_) {
    waiting_ = Waiting::doorbell;
    return false;
  }
  if (delays_ != nullptr && !delays_->over(DelayPlace::copy, read_)) {
    waiting_ = Waiting::delay;
    return false;
  }
  const uint64_t available = (written_ - read_) / sizeof(uint32_t);
  if (available == 0) {
    stop("the write pointer is not a multiple of 4");
    return false;
  }
  current_ = decode_at(read_);
  if (std::holds_alternative<sdma::WriteLinear>(current_.packet) && current_.dwords > available) {
    stop("SDMA WRITE of " + std::to_string(current_.dwords) + " dwords: the packet is cut off");
    return false;
  }
  progress_ = 0;
  if (context_.device.injector != nullptr) [[unlikely]]
    if (is_lost(context_.device, ordinal_, current_.packet)) progress_ = bytes_of(current_.packet);
  fetched_ = true;
  fences_.begin_copy(current_);
  start_ns_ = context_.device.trace.enabled() ? host_clock_ns() : 0;
  return true;
}

uint32_t SdmaQueue::dword_at(uint64_t offset) const {
  uint32_t word;
  std::memcpy(&word, ring_ + (offset & (config_.ring_bytes - 1)), sizeof word);
  return word;
}

sdma::Decoded SdmaQueue::decode_at(uint64_t offset) const { return decode_at(offset, ring_); }

// Requires at least one written dword of the packet.
sdma::Decoded SdmaQueue::decode_at(uint64_t offset, const std::byte* ring) const {
  std::array<uint32_t, sdma::kMaxDwords> words{};
  const size_t count = std::min<uint64_t>(words.size(), (written_ - offset) / sizeof(uint32_t));
  for (size_t index = 0; index < count; ++index)
    std::memcpy(&words[index],
                ring + ((offset + index * sizeof(uint32_t)) & (config_.ring_bytes - 1)),
                sizeof words[index]);
  return sdma::decode(std::span(words).first(count));
}

// Calls use(packet, end) for the packets in the ring from `offset` on, until it returns false.
template <class Use>
void SdmaQueue::look_ahead(uint64_t offset, Use use) const {
  while (offset + sizeof(uint32_t) <= written_) {
    const sdma::Decoded packet = decode_at(offset);
    if (packet.dwords == 0 || std::holds_alternative<sdma::Unsupported>(packet.packet)) return;
    offset += uint64_t{packet.dwords} * sizeof(uint32_t);
    if (!use(packet, offset)) return;
  }
}

// Reports copies in the ring from `from` on to the fence checker, because they may wait there for
// long.
void SdmaQueue::expect_copies(uint64_t from) {
  if (!fences_.enabled()) return;
  look_ahead(from, [&](const sdma::Decoded& packet, uint64_t) {
    fences_.expect_copy(packet);
    return true;
  });
}

// Counts the interrupt that announces the update of a signal, current_, before that update. A
// thread that has seen the signal may read the counts at once.
void SdmaQueue::count_interrupt_ahead() {
  const uint64_t next = read_ + uint64_t{current_.dwords} * sizeof(uint32_t);
  look_ahead(next, [&](const sdma::Decoded& packet, uint64_t end) {
    if (std::holds_alternative<sdma::Trap>(packet.packet)) {
      context_.device.counts->interrupt();
      interrupts_counted_to_ = end;
      return false;
    }
    return !std::holds_alternative<sdma::AtomicAdd64>(packet.packet);  // the next signal
  });
}

SdmaQueue::Outcome SdmaQueue::execute(uint64_t& budget) {
  const sdma::Packet& packet = current_.packet;
  if (const auto* copy = std::get_if<sdma::CopyLinear>(&packet)) return run(*copy, budget);
  if (const auto* rect = std::get_if<sdma::CopyRect>(&packet)) return run(*rect, budget);
  if (const auto* fill = std::get_if<sdma::ConstFill>(&packet)) return run(*fill, budget);
  if (const auto* write = std::get_if<sdma::WriteLinear>(&packet)) return run(*write, budget);
  if (const auto* poll = std::get_if<sdma::PollMemory>(&packet)) return run(*poll);
  if (const auto* fence = std::get_if<sdma::Fence>(&packet))
    return store(fence->address, &fence->value, sizeof fence->value);
  if (const auto* stamp = std::get_if<sdma::Timestamp>(&packet)) {
    const uint64_t ticks = gpu_clock_ticks();
    return store(stamp->address, &ticks, sizeof ticks);
  }
  if (const auto* atomic = std::get_if<sdma::AtomicAdd64>(&packet)) {
    std::byte* word = atomic->address % 8 == 0
                          ? context_.memory.translate(atomic->address, 8, Access::atomic)
                          : nullptr;
    if (word == nullptr) {
      fault(atomic->address, Access::atomic);
      return Outcome::stopped;
    }
    const auto section = fences_.section();
    fences_.signal(read_, atomic->address);
    announcing();
    if (context_.device.counts != nullptr) {
      context_.device.counts->signal_update();
      count_interrupt_ahead();
    }
    // release: a thread that sees the signal's new value sees the copied data.
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word))
        .fetch_add(atomic->addend, std::memory_order_release);
    return Outcome::done;
  }
  if (const auto* trap = std::get_if<sdma::Trap>(&packet)) {
    if (context_.device.counts != nullptr && read_ >= interrupts_counted_to_)
      context_.device.counts->interrupt();
    raise(trap->event, read_);
    return Outcome::done;
  }
  if (const auto* unsupported = std::get_if<sdma::Unsupported>(&packet)) {
    stop(unsupported->reason);
    return Outcome::stopped;
  }
  if (std::holds_alternative<sdma::HdpFlush>(packet) && context_.device.lazy_bar != nullptr)
    context_.device.lazy_bar->acquire();
  return Outcome::done;  // NOP, HDP flush
}

uint64_t SdmaQueue::copy_some(GpuAddress destination, GpuAddress source, uint64_t bytes,
                              uint64_t budget) {
  const Mapping* from = context_.memory.find(source);
  if (from == nullptr) {
    fault(source, Access::read);
    return 0;
  }
  const Mapping* to = context_.memory.find(destination);
  if (to == nullptr || !to->writable) {
    fault(destination, Access::write);
    return 0;
  }
  const uint64_t count = std::min({bytes, budget, from->end - source, to->end - destination});
  std::memmove(to->at(destination), from->at(source), count);
  probe(*to, destination, count);
  return count;
}

SdmaQueue::Outcome SdmaQueue::run(const sdma::CopyLinear& copy, uint64_t& budget) {
  while (progress_ < copy.bytes) {
    if (budget == 0) return Outcome::again;
    const uint64_t count = copy_some(copy.destination + progress_, copy.source + progress_,
                                     copy.bytes - progress_, budget);
    if (count == 0) return Outcome::stopped;
    progress_ += count;
    budget -= count;
  }
  return Outcome::done;
}

SdmaQueue::Outcome SdmaQueue::run(const sdma::CopyRect& copy, uint64_t& budget) {
  const uint64_t total = copy.row_bytes * copy.rows * copy.slices;
  while (progress_ < total) {
    if (budget == 0) return Outcome::again;
    const uint64_t row = progress_ / copy.row_bytes;
    const uint64_t x = progress_ % copy.row_bytes;
    const uint64_t y = row % copy.rows;
    const uint64_t z = row / copy.rows;
    const GpuAddress source =
        copy.source.base + z * copy.source.slice_bytes + y * copy.source.pitch_bytes + x;
    const GpuAddress destination = copy.destination.base + z * copy.destination.slice_bytes +
                                   y * copy.destination.pitch_bytes + x;
    const uint64_t count = copy_some(destination, source, copy.row_bytes - x, budget);
    if (count == 0) return Outcome::stopped;
    progress_ += count;
    budget -= count;
  }
  return Outcome::done;
}

SdmaQueue::Outcome SdmaQueue::run(const sdma::ConstFill& fill, uint64_t& budget) {
  while (progress_ < fill.bytes) {
    if (budget == 0) return Outcome::again;
    const GpuAddress destination = fill.destination + progress_;
    const Mapping* to = context_.memory.find(destination);
    if (to == nullptr || !to->writable) {
      fault(destination, Access::write);
      return Outcome::stopped;
    }
    const uint64_t count = std::min({fill.bytes - progress_, budget, to->end - destination});
    std::byte* bytes = to->at(destination);
    for (uint64_t at = 0; at < count; ++at)
      bytes[at] = static_cast<std::byte>(fill.value >> ((progress_ + at) % fill.unit_bytes * 8));
    probe(*to, destination, count);
    progress_ += count;
    budget -= count;
  }
  return Outcome::done;
}

// Stores each dword at once: a program may poll for one of them.
SdmaQueue::Outcome SdmaQueue::run(const sdma::WriteLinear& write, uint64_t& budget) {
  const uint64_t bytes = uint64_t{write.dwords} * sizeof(uint32_t);
  const uint64_t data = read_ + sdma::kWriteLinearHeaderDwords * sizeof(uint32_t);
  while (progress_ < bytes) {
    if (budget < sizeof(uint32_t)) {
      budget = 0;
      return Outcome::again;
    }
    const uint32_t word = dword_at(data + progress_);
    if (store(write.destination + progress_, &word, sizeof word) == Outcome::stopped)
      return Outcome::stopped;
    progress_ += sizeof word;
    budget -= sizeof word;
  }
  return Outcome::done;
}

SdmaQueue::Outcome SdmaQueue::run(const sdma::PollMemory& poll) {
  std::byte* word =
      poll.address % 4 == 0 ? context_.memory.translate(poll.address, 4, Access::read) : nullptr;
  if (word == nullptr) {
    fault(poll.address, Access::read);
    return Outcome::stopped;
  }
  // acquire: the copy sees what the signal's decrement publishes.
  const uint32_t value =
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(word)).load(std::memory_order_acquire);
  if (!sdma::poll_holds(poll, value)) {
    fences_.unsatisfied(poll.address);
    return Outcome::blocked;
  }
  if (poll.address % 8 == 0)
    fences_.wait(read_, poll.address);  // the low half of a signal's value, polled last
  return Outcome::done;
}

SdmaQueue::Outcome SdmaQueue::store(GpuAddress address, const void* value, size_t size_bytes) {
  std::byte* bytes =
      address % 4 == 0 ? context_.memory.translate(address, size_bytes, Access::write) : nullptr;
  if (bytes == nullptr) {
    fault(address, Access::write);
    return Outcome::stopped;
  }
  // release: a fence packet publishes all earlier work. Stored word by word, because a timestamp
  // need not be 8-byte aligned. The program reads it after the signal.
  for (size_t at = 0; at < size_bytes; at += sizeof(uint32_t)) {
    uint32_t word;
    std::memcpy(&word, static_cast<const std::byte*>(value) + at, sizeof word);
    std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(bytes + at))
        .store(word, std::memory_order_release);
  }
  probe(*context_.memory.find(address), address, size_bytes);
  return Outcome::done;
}

void SdmaQueue::finish_packet() {
  fences_.copy(read_, current_);
  memory_watch_.copied(read_, current_, fences_.publisher_of(read_ + 1));
  const uint64_t bytes = bytes_of(current_.packet);
  if (context_.device.counts != nullptr && is_copy(current_.packet))
    context_.device.counts->copy(config_.engine, bytes);
  if (context_.device.trace.enabled() && !std::holds_alternative<sdma::Nop>(current_.packet)) {
    char line[320];
    std::snprintf(
        line, sizeof line,
        R"({"type":"sdma","engine":"%s","sdma_engine":%u,"queue":%u%s,"offset":%llu,"bytes":%llu%s,"start_ns":%llu,"end_ns":%llu%s})",
        current_.name, config_.engine, ordinal_, gpu_field().c_str(),
        static_cast<unsigned long long>(read_), static_cast<unsigned long long>(bytes),
        addresses_of(current_.packet).c_str(), static_cast<unsigned long long>(start_ns_),
        static_cast<unsigned long long>(host_clock_ns()),
        drawn_delay(DelayPlace::copy, read_).c_str());
    context_.device.trace.write(line);
  }
  read_ = std::min(read_ + uint64_t{current_.dwords} * sizeof(uint32_t), written_);
  fetched_ = false;
  // release: the packet has executed when its space is free.
  std::atomic_ref<uint64_t>(*read_pointer_).store(read_, std::memory_order_release);
}

void SdmaQueue::fault(GpuAddress address, Access access) {
  MemoryFault fault;
  fault.address = address;
  fault.access = access;
  fault.present = context_.memory.find(address) != nullptr;
  fault.where = "SDMA queue " + std::to_string(ordinal_) + ", offset " + std::to_string(read_) +
                ": " + (fetched_ ? current_.name : "fetching packets");
  stop("GPU memory fault: " + fault.where);
  context_.device.interrupts.memory_fault(fault);
}

void SdmaQueue::stop(std::string_view reason) {
  report("offset " + std::to_string(read_), reason);
  stopped_ = true;
  waiting_ = Waiting::nothing;
}

}  // namespace uptempo::vgpu
