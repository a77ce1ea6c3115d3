#include <uptempo/hip/device_waits.hpp>

#include <utility>

#include <uptempo/aql/packet.hpp>
#include <uptempo/hip/current_device.hpp>
#include <uptempo/hip/device_agent.hpp>
#include <uptempo/hip/per_device.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {
namespace {

using aql::Barrier;
using aql::FenceScope;

// Waits that a queue has unfinished at a time. Each has a signal of the process's budget.
constexpr uint32_t kWaits = 16;
constexpr uint32_t kSlabBytes = 64;  // the packets have no arguments
const QueueOptions kOptions{.packets = 4 * kWaits,
                            .publications = kWaits,
                            .timing_signals = 0,
                            .kernarg_bytes = kSlabBytes,
                            .kernarg_slab_bytes = kSlabBytes};

}  // namespace

DeviceWaits& DeviceWaits::of(int device) {
  static constinit PerDevice<DeviceWaits> all;
  return all.of(device,
                [](int number) { return std::unique_ptr<DeviceWaits>(new DeviceWaits(number)); });
}

bool DeviceWaits::Line::has_ended() const {
  if (!queue || !session->alive()) return true;
  try {
    (void)packets.ready();
    return false;
  } catch (const Error&) {  // its packets are lost, and those behind them would be, too
    return true;
  }
}

bool DeviceWaits::Line::takes(const Completion& wait) const {
  return packets.ready() || detail::LentSignal::are_in_order(awaited, wait);
}

void DeviceWaits::Line::open(int device) {
  close();
  session = Session::current();
  const CurrentDevice current(device);
  queue.emplace(current_agent(), kOptions);
  batch.emplace(*queue);
}

void DeviceWaits::Line::close() {
  batch.reset();
  queue.reset();
  session.reset();
  awaited = packets = {};
}

// Returns false if there is no room. Throws Error if the queue has failed. Nothing is published
// then.
bool DeviceWaits::Line::publish(hsa_signal_t awaited_signal, Word word) {
  batch->raw(
      aql::to_packet(aql::BarrierAnd{.flags = {Barrier::on, FenceScope::system, FenceScope::system},
                                     .dependencies = {awaited_signal},
                                     .completion_signal = word.signal()}));
  const Tried<Completion> published = batch->try_submit();
  if (published) {
    packets = *published;
    return true;
  }
  batch->clear();
  if (!is_exhausted(published.code())) throw published.error();
  return false;
}

std::optional<Completion> DeviceWaits::decrement(Word word, const Completion& awaited) {
  const std::lock_guard lock(mutex_);
  std::optional<detail::LentSignal> signal = detail::LentSignal::borrow(awaited);
  if (!signal) return {};
  for (Line& line : lines_) {
    try {
      if (line.has_ended()) line.open(device_);
      if (!line.takes(awaited)) continue;
      signal->expect_reader(line.queue->last_submitted());
      if (!line.publish(signal->signal(), word)) continue;
    } catch (const Error&) {  // no Runtime, no queue left, or the queue has just failed
      line.close();
      continue;
    }
    line.awaited = awaited;
    signal->read_by(line.packets);
    return line.packets;
  }
  return {};
}

}  // namespace uptempo::hip
