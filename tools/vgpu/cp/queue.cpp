#include "cp/queue.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "device/clock.hpp"
#include "device/device_counts.hpp"
#include "device/inject/injector.hpp"

namespace uptempo::vgpu {

Queue::Queue(QueueContext& context, uint32_t ordinal, fences::Checker::QueueKind kind)
    : context_(context),
      ordinal_(ordinal),
      fences_(context.device, context.memory, kind, ordinal),
      memory_watch_(context.device, context.memory, ordinal),
      delays_(context.late_interrupts == nullptr
                  ? nullptr
                  : std::make_unique<QueueDelays>(context.device.options.delay.value(), ordinal,
                                                  *context.late_interrupts)),
      reported_doorbell_(kind == fences::Checker::QueueKind::compute ? ~uint64_t{0} : 0) {}

void Queue::report(std::string_view packet, std::string_view reason) const {
  note(packet, std::string(reason) + "; the queue is stopped");
}

void Queue::note(std::string_view packet, std::string_view text) const {
  std::string line = "uptempo-vgpu: " + gpu_name() + "queue " + std::to_string(ordinal_) + ", ";
  line += packet;
  line += ": ";
  line += text;
  line += '\n';
  // One write(), so that lines of several threads and of the program's stdio do not mix.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::string Queue::gpu_name() const {
  if (!is_one_of_several(context_.device)) return {};
  return "GPU " + std::to_string(context_.device.gpu) + ", ";
}

std::string Queue::gpu_field() const {
  if (!is_one_of_several(context_.device)) return {};
  return R"(,"gpu":)" + std::to_string(context_.device.gpu);
}

void Queue::trace_doorbell(uint64_t value, uint64_t host_ns) {
  char line[160];
  std::snprintf(line, sizeof line, R"({"type":"doorbell","queue":%u%s,"value":%lld,"ns":%llu%s})",
                ordinal_, gpu_field().c_str(), static_cast<long long>(value),
                static_cast<unsigned long long>(host_ns),
                drawn_delay(DelayPlace::doorbell, value).c_str());
  context_.device.trace.write(line);
}

void Queue::noted_doorbell(const DoorbellWatch::Record& record) {
  fences_.published(record.value, record.publisher);
  if (!context_.device.trace.enabled()) return;
  if (doorbell_lines_.noted(record.value, record.host_ns))
    trace_doorbell(record.value, record.host_ns);
}

void Queue::look_for_checker(uint64_t host_ns) {
  if (doorbell() == nullptr) return;
  // acquire: the host's actions before it rang are observed before this doorbell is reported.
  const uint64_t value =
      std::atomic_ref<uint64_t>(*const_cast<uint64_t*>(doorbell())).load(std::memory_order_acquire);
  if (value == reported_doorbell_) return;
  reported_doorbell_ = value;
  fences_.doorbell(value, host_ns);
}

void Queue::announcing() {
  if (fences_.enabled()) context_.look_for_checker(fences_.before_completion_ns());
}

std::string Queue::drawn_delay(DelayPlace place, uint64_t number) const {
  if (delays_ == nullptr) return {};
  return R"(,"delay_ns":)" + std::to_string(delays_->drawn_ns(place, number));
}

void Queue::raise(uint32_t event_id, uint64_t number) {
  if (Injector* const injector = context_.device.injector; injector != nullptr) [[unlikely]] {
    if (const InjectRule* const rule = injector->interrupt(context_.device.gpu, ordinal_)) {
      if (rule->effect == InjectRule::Effect::lost) return;
      context_.device.interrupts.raise(event_id);  // doubled
    }
  }
  if (delays_ == nullptr) return context_.device.interrupts.raise(event_id);
  delays_->raise(event_id, number);
}

void Queue::note_doorbells() {
  if (context_.device.trace.enabled() || checks_publishers()) context_.take_noted_doorbells();
  if (!fences_.enabled()) return;
  const auto section = fences_.section();
  look_for_checker(host_clock_ns());
}

void Queue::found_doorbell(uint64_t value) {
  if (context_.device.counts != nullptr) context_.device.counts->doorbell();
  // The handler notes a doorbell before it stores it. If the program rang this one, its note is
  // therefore there, perhaps after others.
  note_doorbells();
  if (!context_.device.trace.enabled()) return;
  const uint64_t now = host_clock_ns();
  if (doorbell_lines_.found(value, now)) trace_doorbell(value, now);
}

}  // namespace uptempo::vgpu
