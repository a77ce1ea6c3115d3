#include "tools/bench/vgpu/consume/rows.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/bench/vgpu/consume/clock.hpp"
#include "tools/bench/vgpu/consume/cores.hpp"

namespace uptempo::vgpu::consume {
namespace {

std::vector<Queue> make_queues(const Gpu& gpu, size_t count, uint32_t packets) {
  std::vector<Queue> queues;
  for (size_t made = 0; made < count; ++made) queues.emplace_back(gpu, packets);
  return queues;
}

void pause(unsigned microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

}  // namespace

// Checks that the device completes exactly `packets` packets between construction and met().
class Measurer::Expect {
 public:
  Expect(const Gpu& gpu, uint64_t packets) : gpu_(gpu), goal_(gpu.completed() + packets) {}
  void met() const {
    const uint64_t found = gpu_.completed();
    if (found != goal_)
      throw std::runtime_error("the device has completed " + std::to_string(found) + " packets; " +
                               std::to_string(goal_) + " were expected");
  }

 private:
  const Gpu& gpu_;
  const uint64_t goal_;
};

Measurer::Measurer(const Gpu& gpu) : gpu_(gpu), ring_(gpu, kRing), single_(gpu, 64) {}

void Measurer::fill(Queue& queue, const Packet& packet, uint64_t count) {
  for (uint64_t index = 0; index < count; ++index) queue.write(packet);
}

double Measurer::full_ring(Kind kind) {
  const uint64_t count = kRing - 2;  // all but the gate and the packet that reports that it is open
  const Expect expect(gpu_, kRing);
  gate_.set(1);
  begun_.set(1);
  done_.set(1);
  ring_.write(empty_barrier({0}, gate_.handle()));
  ring_.write(empty_barrier(begun_.handle()));
  fill(ring_, packet(kind), count - 1);
  ring_.write(packet(kind, done_.handle()));
  ring_.ring();
  gate_.set(0);
  begun_.spin();
  const double begin = now_ns();
  const bool late = done_.fired();
  done_.spin();
  const double ns = now_ns() - begin;
  expect.met();
  if (late) throw Interrupted();
  return ns / static_cast<double>(count);
}

double Measurer::fed_ring(Kind kind, unsigned rings) {
  const uint64_t count = uint64_t{rings} * kRing;
  const Expect expect(gpu_, count);
  done_.set(1);
  const Packet middle = packet(kind);
  const double begin = now_ns();
  uint64_t room = 0;
  for (uint64_t index = 1; index <= count; ++index) {
    while (room == 0) room = kRing - (ring_.written() - ring_.read_index());
    --room;
    ring_.write(index == count ? packet(kind, done_.handle()) : middle);
    if (index % 64 == 0) ring_.ring();
  }
  done_.spin();
  const double ns = now_ns() - begin;
  expect.met();
  return ns / static_cast<double>(count);
}

double Measurer::trip(Kind kind, double* doorbell_ns) {
  const Signal& done = kind == Kind::event ? event_done_ : done_;
  done.set(1);
  const Packet one = packet(kind, done.handle());
  const double begin = now_ns();
  single_.write(one);
  single_.ring();
  if (doorbell_ns != nullptr) *doorbell_ns = now_ns() - begin;
  done.spin();
  return now_ns() - begin;
}

std::vector<double> Measurer::trips(Kind kind, size_t count, unsigned pause_us) {
  const Expect expect(gpu_, count);
  std::vector<double> result(count);
  doorbell_ns_.assign(pause_us == 0 ? 0 : count, 0);
  for (size_t trip_index = 0; trip_index < count; ++trip_index) {
    if (pause_us != 0) pause(pause_us);
    result[trip_index] = trip(kind, pause_us == 0 ? nullptr : &doorbell_ns_[trip_index]);
  }
  expect.met();
  return result;
}

Measurer::Busy Measurer::busy_queues(size_t count, uint32_t packets) {
  std::vector<Queue> all = make_queues(gpu_, count, packets);
  const Expect expect(gpu_, uint64_t{packets} * count);
  gate_.set(1);
  for (Queue& queue : all) {
    queue.write(empty_barrier({0}, gate_.handle()));
    fill(queue, null_dispatch(gpu_), packets - 1);
    queue.ring();
  }
  std::vector<Snapshot> snapshots;
  gate_.set(0);
  // Only while every queue has packets left. Reads are rare, because each takes the cache line of a
  // read index from the device.
  constexpr double kBetweenLooksNs = 20'000, kLookNs = 10'000;
  for (double looked = 0;;) {
    const double now = now_ns();
    if (now - looked < kBetweenLooksNs) continue;
    looked = now;
    Snapshot snapshot{now, {}};
    bool begun = true, busy = true;
    for (const Queue& queue : all) {
      const uint64_t index = queue.read_index();
      snapshot.read_indices.push_back(index);
      begun = begun && queue.written() - index < packets;
      busy = busy && index != queue.written();
    }
    if (!busy) break;
    // false if this thread was interrupted between two queues
    const bool at_once = now_ns() - now < kLookNs;
    if (begun && at_once) snapshots.push_back(std::move(snapshot));
  }
  for (const Queue& queue : all) queue.wait_until_empty();
  expect.met();
  const Fairness shares = fairness(snapshots, kWindow);
  if (shares.windows == 0) throw Interrupted();
  const Snapshot &first = snapshots.front(), &last = snapshots.back();
  double consumed = 0;
  for (size_t queue = 0; queue < count; ++queue)
    consumed += static_cast<double>(last.read_indices[queue] - first.read_indices[queue]);
  // most of the work was not observed
  if (consumed < 0.5 * packets * static_cast<double>(count)) throw Interrupted();
  return {(last.ns - first.ns) / consumed, shares};
}

Measurer::Beside Measurer::trips_beside(size_t count, uint32_t packets) {
  std::vector<Queue> all = make_queues(gpu_, count, packets);
  uint64_t expected = gpu_.completed() + uint64_t{packets} * count;
  gate_.set(1);
  begun_.set(static_cast<hsa_signal_value_t>(count));
  for (Queue& queue : all) {
    queue.write(empty_barrier({0}, gate_.handle()));
    queue.write(empty_barrier(begun_.handle()));
    fill(queue, null_dispatch(gpu_), packets - 2);
    queue.ring();
  }
  const auto left = [&all] {
    uint64_t sum = 0;
    for (const Queue& queue : all) sum += queue.written() - queue.read_index();
    return sum;
  };
  gate_.set(0);
  begun_.spin();
  Beside result;
  for (uint64_t before = left(); before != 0;) {
    const double ns = trip(Kind::barrier);
    ++expected;
    const uint64_t after = left();
    if (std::any_of(all.begin(), all.end(),
                    [](const Queue& queue) { return queue.written() == queue.read_index(); }))
      break;  // a queue that ended meanwhile left more device time to the trip
    result.trips.push_back(ns);
    result.overtaken.push_back(static_cast<double>(before - after));
    before = after;
  }
  for (const Queue& queue : all) queue.wait_until_empty();
  if (gpu_.completed() != expected)
    throw std::runtime_error("the device has completed " + std::to_string(gpu_.completed()) +
                             " packets; " + std::to_string(expected) + " were expected");
  if (result.trips.size() < 10) throw Interrupted();
  return result;
}

double Measurer::lone_packet_cpu_ns(unsigned packets) {
  const Expect expect(gpu_, packets);
  const Packet one = packet(Kind::barrier);
  pause(20000);
  const double before = device_cpu_ns();
  for (unsigned sent = 0; sent < packets; ++sent) {
    single_.write(one);
    single_.ring();
    pause(20000);
  }
  single_.wait_until_empty();  // on a busy machine the last packet may take longer than the pause
  const double ns = (device_cpu_ns() - before) / packets;
  expect.met();
  return ns;
}

double Measurer::idle_share(size_t count, unsigned milliseconds) {
  const std::vector<Queue> open = make_queues(gpu_, count, 64);
  pause(100000);
  const double before = device_cpu_ns(), begin = now_ns();
  pause(milliseconds * 1000);
  return (device_cpu_ns() - before) / (now_ns() - begin);
}

}  // namespace uptempo::vgpu::consume
