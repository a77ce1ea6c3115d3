// Faults that --inject asks for, at the launch of a packet.
#include <hsa/hsa.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "cp/aql_queue.hpp"
#include "cp/queue_exception.hpp"
#include "device/clock.hpp"
#include "device/inject/injector.hpp"

namespace uptempo::vgpu {
namespace {

// The address that injected memory faults report: a page that no program maps.
constexpr GpuAddress kInjectedFaultAddress = 0xbad000;

InjectRule::Packets kind_of(AqlHeader header) {
  switch (header.type()) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      return InjectRule::Packets::dispatch;
    case HSA_PACKET_TYPE_BARRIER_AND:
    case HSA_PACKET_TYPE_BARRIER_OR:
      return InjectRule::Packets::barrier;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      return InjectRule::Packets::vendor;
    default:
      return InjectRule::Packets::all;
  }
}

}  // namespace

// Executes a packet of which only the header and the 16 bits after it have arrived.
bool AqlQueue::launch_torn(AqlHeader header) {
  alignas(8) std::array<std::byte, kAqlPacketBytes> bytes{};
  std::memcpy(bytes.data(), slot(next_), sizeof(uint32_t));
  return launch(bytes.data(), header);
}

std::optional<bool> AqlQueue::inject(AqlHeader header) {
  if (injected_until_ns_ != 0) {
    if (host_clock_ns() < injected_until_ns_) return wait_for(Waiting::memory);
    injected_until_ns_ = 0;
  }
  if (torn_ == next_) return launch_torn(header);
  if (injector_asked_ == next_) return std::nullopt;
  injector_asked_ = next_;
  const InjectRule* const rule =
      context_.device.injector->packet({.gpu = context_.device.gpu,
                                        .queue = ordinal_,
                                        .index = next_,
                                        .type = kind_of(header),
                                        .runtime_owned = runtime_owned_});
  if (rule == nullptr) return std::nullopt;
  const std::string reason = "injected: " + rule->text;
  switch (rule->effect) {
    case InjectRule::Effect::exception:
      halt(next_, header.type(), reason);
      // relaxed: a flag on its own
      if (context_.device.reports_exceptions.load(std::memory_order_relaxed))
        report_exception(context_.device, context_.memory, config_.context_save_area,
                         rule->exception->code);
      send_inactive(static_cast<uint64_t>(rule->exception->bit));
      return false;
    case InjectRule::Effect::memory_fault: {
      MemoryFault fault;
      fault.address = kInjectedFaultAddress;
      fault.access = rule->fault == InjectRule::Fault::read_only ? Access::write : Access::read;
      fault.present = rule->fault != InjectRule::Fault::not_present;
      fault.poison = rule->fault == InjectRule::Fault::poison;
      fault.where = reason;
      stop_with_fault(next_, header.type(), std::move(fault));
      return false;
    }
    case InjectRule::Effect::torn: {
      if (kind_of(header) != InjectRule::Packets::dispatch) {
        torn_ = next_;
        return launch_torn(header);
      }
      const auto error = check_dispatch({}, *context_.device.options.device);
      stop(next_, header.type(), error ? error->error : QueueError::packet_format,
           reason + ": " + (error ? error->reason : "the packet names no kernel"));
      return false;
    }
    case InjectRule::Effect::late:
      injected_until_ns_ = host_clock_ns() + uint64_t{rule->late_ms} * 1'000'000;
      return wait_for(Waiting::memory);
    case InjectRule::Effect::untimed:
      start_ticks_ = kUntimed;
      start_ns_ = context_.device.trace.enabled() ? host_clock_ns() : 0;
      return std::nullopt;
    case InjectRule::Effect::stale:
      stale_ = next_;
      return std::nullopt;
    case InjectRule::Effect::reset:
    case InjectRule::Effect::gone:
      halt(next_, header.type(), reason);
      context_.device.interrupts.gpu_lost(rule->effect == InjectRule::Effect::gone);
      return false;
    case InjectRule::Effect::error_number:
    case InjectRule::Effect::lost:
    case InjectRule::Effect::doubled:
      break;  // of other places
  }
  return std::nullopt;
}

}  // namespace uptempo::vgpu
