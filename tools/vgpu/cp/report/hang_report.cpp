#include "cp/report/hang_report.hpp"

#include <hsa/amd_hsa_signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cp/kernel/kernel_name.hpp"
#include "cp/report/deadlocks.hpp"
#include "cp/report/packet_text.hpp"
#include "cp/report/queued_stores.hpp"
#include "cp/report/report_text.hpp"
#include "cp/report/wave_text.hpp"
#include "device/demangled.hpp"

namespace uptempo::vgpu {
namespace {

constexpr size_t kMaxRunning = 8;     // dispatches of a queue
constexpr size_t kMaxCompleters = 4;  // of a signal

// "packet 5", "packets 5 to 8"
std::string packets_text(uint64_t first, uint64_t end) {
  if (end - first == 1) return "packet " + std::to_string(first);
  return "packets " + std::to_string(first) + " to " + std::to_string(end - 1);
}

bool is_one(uint64_t first, uint64_t end) { return end - first == 1; }

class HangReport {
 public:
  HangReport(std::span<const ReportedGpu> gpus, bool several_gpus, SourceLookup* sources)
      : gpus_(gpus), several_gpus_(several_gpus), sources_(sources) {
    for (const ReportedGpu& gpu : gpus)
      for (const QueueSnapshot& queue : gpu.snapshot.queues) queues_.push_back(&queue);
  }

  std::string text(std::string_view reason) {
    text_.line(
        0, "uptempo-vgpu: " + std::string(reason) + " (process " + std::to_string(getpid()) + ")");
    for (const std::vector<Wait>& cycle : deadlocks(queues_)) add_deadlock(cycle);
    if (gpus_.empty()) text_.line(2, "the device has no queue yet");
    for (const ReportedGpu& gpu : gpus_) add_gpu(gpu);
    if (sources_ != nullptr)
      if (const std::string missing = sources_->missing(); !missing.empty()) text_.line(2, missing);
    text_.line(0, "uptempo-vgpu: end of the report; the program continues");
    return text_.text();
  }

 private:
  void add_deadlock(const std::vector<Wait>& cycle) {
    text_.line(2, "deadlock: " +
                      std::string(cycle.size() == 1
                                      ? "a packet waits for itself or for "
                                        "a later one of its queue"
                                      : std::to_string(cycle.size()) + " queues wait in a circle") +
                      "; only the host or a kernel can end it");
    for (const Wait& wait : cycle) {
      const QueueSnapshot& by = *wait.completer.queue;
      std::string line = place(*wait.queue, wait.queue->next) + " waits until " +
                         condition_text(*wait.dependency) + "; ";
      const bool itself = &by == wait.queue && wait.completer.packet->index == by.next;
      line += itself ? "it completes that signal itself"
                     : place(by, wait.completer.packet->index) + " completes it";
      if (!itself && wait.completer.packet->index != by.next)
        line += ", after " + place(by, by.next);
      text_.line(4, line);
    }
  }

  std::string place(const QueueSnapshot& queue, uint64_t index) const {
    return queue_text(queue, several_gpus_) + (queue.sdma ? " offset " : " packet ") +
           std::to_string(index);
  }

  void add_gpu(const ReportedGpu& gpu) {
    const std::string name =
        several_gpus_ ? "GPU " + std::to_string(gpu.snapshot.gpu) : std::string("the GPU");
    if (!gpu.snapshot.answered) {
      text_.line(2, name + ": its command processor did not answer in time; nothing is known");
      return;
    }
    AddressSpace::Reader memory(*gpu.memory);
    memory.enter();
    for (const QueueSnapshot& queue : gpu.snapshot.queues) add_queue(queue, memory);
    memory.leave();
    for (const uint32_t worker : gpu.snapshot.silent_workers)
      text_.line(2, name + ": worker " + std::to_string(worker) +
                        " did not answer in time; the workgroup that it runs is not listed");
  }

  void add_queue(const QueueSnapshot& queue, AddressSpace::Reader& memory) {
    std::string line = queue_text(queue, several_gpus_);
    line += queue.sdma ? ", SDMA engine " + std::to_string(queue.engine) : ", compute";
    if (queue.runtime_owned) line += " (the runtime's)";
    line += ": " + state(queue);
    text_.line(2, line);
    text_.line(4, indices(queue));
    if (queue.compute_units == 0 && !queue.sdma)
      text_.line(4, "its CU mask has no unit, so no workgroup starts");
    if (queue.stopped && !queue.sdma && queue.next < queue.write)
      text_.line(4, "packets " + std::to_string(queue.next) + " to " +
                        std::to_string(queue.write - 1) + " will not run");
    if (queue.stopped || queue.suspended) return;
    add_running(queue, memory);
    if (queue.sdma ? !queue.sdma_packet.empty() : queue.packet.has_value()) {
      if (queue.sdma) {
        text_.line(4, "offset " + std::to_string(queue.next) + ": " + queue.sdma_packet);
      } else {
        text_.line(4, "packet " + std::to_string(queue.next) + ": " +
                          packet_text(*queue.packet, kernel_of(*queue.packet, memory)));
        text_.line(6, packet_details(*queue.packet));
      }
    }
    add_front(queue, memory);
  }

  static std::string state(const QueueSnapshot& queue) {
    if (queue.stopped) return "stopped by an error";
    if (queue.suspended) return "suspended by the program";
    const std::string what = queue.sdma ? "offset " : "packet ";
    std::string text;
    if (queue.running.size() == 1) {
      text = "running packet " + std::to_string(queue.running.front().index);
    } else if (!queue.running.empty()) {
      text = "running " + std::to_string(queue.running.size()) + " packets from " +
             std::to_string(queue.running.front().index) + " on";
    }
    if (queue.front != Front::nothing && queue.front != Front::doorbell)
      return text + (text.empty() ? "" : "; ") + "waiting at " + what + std::to_string(queue.next);
    if (queue.front == Front::doorbell)
      return text + (text.empty() ? "" : "; ") + "waiting for its doorbell";
    if (text.empty() && queue.next < queue.write)
      return "executing " + what + std::to_string(queue.next);
    return text.empty() ? "idle" : text;
  }

  static std::string indices(const QueueSnapshot& queue) {
    const auto number = [](uint64_t value) { return std::to_string(value); };
    std::string doorbell = "unmapped";
    if (queue.doorbell)
      doorbell =
          !queue.sdma && *queue.doorbell == ~uint64_t{0} ? "never rung" : number(*queue.doorbell);
    if (queue.sdma)
      return "get " + number(queue.read) + ", put " + number(queue.write) + ", doorbell " +
             doorbell + ", ring of " + number(queue.ring) + " bytes at " +
             hex_text(queue.ring_address);
    std::string text = "read " + number(queue.read) + ", write " + number(queue.write) +
                       ", doorbell " + doorbell + ", ring of " + number(queue.ring) +
                       " packets at " + hex_text(queue.ring_address) + ", priority " +
                       number(queue.priority);
    if (queue.compute_units != queue.all_compute_units)
      text += ", CU mask of " + number(queue.compute_units) + " units";
    return text;
  }

  void add_running(const QueueSnapshot& queue, AddressSpace::Reader& memory) {
    for (const PacketSnapshot& packet :
         std::span(queue.running).first(std::min(queue.running.size(), kMaxRunning))) {
      const DispatchSnapshot& dispatch = *packet.dispatch;
      text_.line(4, "packet " + std::to_string(packet.index) + ": " +
                        packet_text(packet, shown_kernel(dispatch.kernel)));
      text_.line(6, packet_details(packet));
      if (!dispatch.opened) {
        text_.line(6, "starts when the packets before it have ended (barrier bit)");
        continue;
      }
      const uint64_t resident = dispatch.resident.size();
      const uint64_t done =
          dispatch.workgroups - std::min(dispatch.workgroups, dispatch.not_started + resident);
      text_.line(6, "workgroups: " + std::to_string(done) + " done, " + std::to_string(resident) +
                        " running, " + std::to_string(dispatch.not_started) + " not started");
      add_residency(queue, packet);
      add_waves(text_, 6, dispatch, queue.gpu, memory, sources_,
                [&](size_t indent, GpuAddress address, uint64_t bytes) {
                  add_writers(indent, address, bytes, memory);
                });
    }
    if (queue.running.size() > kMaxRunning)
      text_.line(4, "and " + std::to_string(queue.running.size() - kMaxRunning) +
                        " more packets that run");
  }

  // The reason why the rest of the workgroups does not start, if it is the compute units.
  void add_residency(const QueueSnapshot& queue, const PacketSnapshot& packet) {
    const DispatchSnapshot& dispatch = *packet.dispatch;
    if (dispatch.not_started == 0 || dispatch.units == 0) return;
    const uint64_t resident = dispatch.resident.size();
    if (resident >= uint64_t{dispatch.per_unit} * dispatch.units) {
      text_.line(8, "all that fit are running: " + std::to_string(dispatch.per_unit) +
                        " on each of " + std::to_string(dispatch.units) + " compute units (" +
                        dispatch.limits + "); another one starts when one of them ends");
    } else if (!dispatch.has_room) {
      text_.line(8, "no compute unit has room for another one (" + dispatch.limits + ")" +
                        others_text(queue, packet) + "; one starts when others end");
    }
  }

  // " beside those of queue 1 packet 0"
  std::string others_text(const QueueSnapshot& queue, const PacketSnapshot& packet) const {
    std::string text;
    size_t named = 0;
    for (const QueueSnapshot* other : queues_) {
      if (other->gpu != queue.gpu) continue;
      for (const PacketSnapshot& running : other->running) {
        if (&running == &packet || running.dispatch->resident.empty()) continue;
        if (++named > kMaxRunning) return text + ", ...";
        text += (named == 1 ? " beside those of " : ", ") + place(*other, running.index);
      }
    }
    return text;
  }

  std::string kernel_of(const PacketSnapshot& packet, AddressSpace::Reader& memory) const {
    if (packet.header().type() != HSA_PACKET_TYPE_KERNEL_DISPATCH) return {};
    hsa_kernel_dispatch_packet_t dispatch;
    std::memcpy(&dispatch, packet.bytes.data(), sizeof dispatch);
    return shown_kernel(kernel_name(memory, dispatch.kernel_object));
  }

  void add_front(const QueueSnapshot& queue, AddressSpace::Reader& memory) {
    const std::string number = std::to_string(queue.next);
    switch (queue.front) {
      case Front::nothing:
        return;
      case Front::doorbell:
        if (queue.sdma) {
          text_.line(6, "the put pointer is beyond the doorbell, which was not rung since");
        } else if (queue.packet) {
          text_.line(6, packets_text(queue.next, queue.write) +
                            (is_one(queue.next, queue.write) ? " is" : " are") +
                            " before the write index, but the doorbell was not rung for " +
                            (is_one(queue.next, queue.write) ? "it" : "them"));
        } else {
          text_.line(6, packets_text(queue.next, queue.write) +
                            (is_one(queue.next, queue.write) ? " is" : " are") +
                            " reserved; a producer has neither published packet " + number +
                            " nor rung the doorbell");
        }
        return;
      case Front::unpublished:
        text_.line(6, "packet " + number + " (slot " +
                          std::to_string(queue.next % std::max<uint64_t>(queue.ring, 1)) +
                          ") is reserved and not published: its header is still INVALID, but the "
                          "write index and the doorbell are beyond it; only its producer can "
                          "publish it");
        return;
      case Front::earlier:
        text_.line(6, "waits for " +
                          std::string(queue.packet && queue.packet->header().barrier()
                                          ? "all packets before it, because of its barrier bit"
                                          : "a packet before it that waits itself") +
                          running_list(queue));
        return;
      case Front::room:
        text_.line(6, "waits until packets before it complete: the device or the ring has no room");
        return;
      case Front::scratch:
        text_.line(6, "waits for the runtime, which was asked for scratch memory");
        return;
      case Front::delay:
        text_.line(6, "waits for the end of a delay (--delay, or late= of --inject)");
        return;
      case Front::memory:
        text_.line(6, "waits until " + condition_text(*queue.poll));
        if (!add_writers(8, queue.poll->address, sizeof queue.poll->reference, memory))
          text_.line(8, "only the host, a copy or a kernel can store it");
        return;
      case Front::dependencies:
        break;
    }
    if (queue.dependencies.empty()) {
      text_.line(6, "waits for one of no signals: an OR without dependencies never holds");
      return;
    }
    if (queue.any_dependency && queue.dependencies.size() > 1)
      text_.line(6, "waits for one of these signals:");
    for (const Dependency& dependency : queue.dependencies) {
      text_.line(6, "waits until " + condition_text(dependency));
      if (!add_writers(8, dependency.signal.handle + offsetof(amd_signal_t, value),
                       sizeof(amd_signal_t::value), memory))
        text_.line(8, "no packet on this device completes it; only the host or a kernel can");
    }
  }

  static std::string running_list(const QueueSnapshot& queue) {
    std::string text;
    for (const PacketSnapshot& packet :
         std::span(queue.running).first(std::min(queue.running.size(), kMaxRunning)))
      text += (text.empty() ? ": " : ", ") + std::to_string(packet.index);
    return queue.running.size() > kMaxRunning ? text + ", ..." : text;
  }

  // Packets that have not run and change these bytes. Returns whether there are any.
  bool add_writers(size_t indent, GpuAddress address, uint64_t bytes,
                   AddressSpace::Reader& memory) {
    constexpr uint64_t kValueOffset = offsetof(amd_signal_t, value);
    const uint64_t signal = address / sizeof(int64_t) * sizeof(int64_t) - kValueOffset;
    const bool completed = add_completers(indent, signal, memory);
    return add_stores(indent, address, bytes) || completed;
  }

  bool add_stores(size_t indent, GpuAddress address, uint64_t bytes) {
    const std::vector<QueuedStore> found = queued_stores(queues_, address, bytes);
    for (const QueuedStore& each : std::span(found).first(std::min(found.size(), kMaxCompleters))) {
      std::string line = place(*each.queue, each.copy->offset) +
                         " stores there: " + each.copy->packet.name + ", not executed";
      if (each.copy->offset != each.queue->next)
        line += "; the queue is at " + std::to_string(each.queue->next);
      text_.line(indent, line);
    }
    if (found.size() > kMaxCompleters)
      text_.line(indent, "and " + std::to_string(found.size() - kMaxCompleters) +
                             " more packets store there");
    return !found.empty();
  }

  // Returns whether there are any.
  bool add_completers(size_t indent, uint64_t signal, AddressSpace::Reader& memory) {
    const std::vector<CompleterOf> found = completers_of(queues_, signal);
    for (const CompleterOf& each : std::span(found).first(std::min(found.size(), kMaxCompleters))) {
      const Completer& packet = *each.packet;
      std::string line = place(*each.queue, packet.index) + " completes it";
      if (packet.type == HSA_PACKET_TYPE_KERNEL_DISPATCH) {
        line += ": kernel_dispatch";
        // Names are in the memory of the queue's GPU.
        for (const ReportedGpu& gpu : gpus_)
          if (gpu.snapshot.gpu == each.queue->gpu)
            line += ' ' + name_on(*gpu.memory, packet.kernel_object, memory);
      } else if (!each.queue->sdma) {
        line += ": " + std::string(packet_type_name(packet.type));
      }
      line += packet.launched ? ", running" : ", not launched";
      if (!packet.launched && packet.index != each.queue->next)
        line += "; the queue is at " + std::to_string(each.queue->next);
      text_.line(indent, line);
    }
    if (found.size() > kMaxCompleters)
      text_.line(indent, "and " + std::to_string(found.size() - kMaxCompleters) +
                             " more packets complete it");
    return !found.empty();
  }

  std::string name_on(AddressSpace& space, GpuAddress kernel_object,
                      AddressSpace::Reader& current) const {
    if (current.find(kernel_object) != nullptr)
      return shown_kernel(kernel_name(current, kernel_object));
    // reclaim() holds the lock that a Reader registers with while it waits for the end of sections.
    current.leave();
    std::string name;
    {
      AddressSpace::Reader memory(space);
      memory.enter();
      name = shown_kernel(kernel_name(memory, kernel_object));
      memory.leave();
    }
    current.enter();
    return name;
  }

  const std::span<const ReportedGpu> gpus_;
  const bool several_gpus_;
  SourceLookup* const sources_;
  std::vector<const QueueSnapshot*> queues_;
  ReportText text_;
};

}  // namespace

std::string hang_report(std::string_view reason, std::span<const ReportedGpu> gpus,
                        bool several_gpus, SourceLookup* sources) {
  return HangReport(gpus, several_gpus, sources).text(reason);
}

}  // namespace uptempo::vgpu
