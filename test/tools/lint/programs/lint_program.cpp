// A program with defects that it counts itself, for the lint's tests. Prints its counts as JSON.
//
//   lint_program defects     each kind of defect, a known number of times
//   lint_program clean       one batch without a defect
//   lint_program open        the same, and the process ends without hsa_shut_down()
//   lint_program twice       the same, in two HSA sessions
//   lint_program direct      packets whose doorbell is rung in its memory
//   lint_program threads     threads that publish to one queue before the device takes any packet
//   lint_program race        the same while the device executes, in a small queue
#include <hsa/hsa.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "test/tools/lint/programs/packets.hpp"

namespace {

using namespace uptempo;
using lint_test::Header;
using lint_test::kAgent;
using lint_test::kNone;
using lint_test::kSystem;
using lint_test::Producer;
using lint_test::Signal;

constexpr hsa_signal_t kNoSignal{0};
constexpr Header kEverything{kSystem, kSystem, true}, kLast{kAgent, kSystem, true};
constexpr Header kWithoutBarrier{kAgent, kAgent, false};

struct Setting {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, builtin_kernels::basics()};
  Kernel<> empty = program.kernel<>("empty");
  uint64_t object = empty.info().object;
  uint16_t workgroup =
      static_cast<uint16_t>(std::max(64u, empty.info().required_workgroup_size[0]));
  alignas(64) std::array<std::byte, 128> kernarg{};  // the kernel has no arguments

  void dispatch(Producer& to, Header header, hsa_signal_t done = kNoSignal, size_t offset = 0) {
    to.dispatch(object, workgroup, header, done, kernarg.data() + offset);
  }
};

void wait(hsa_signal_t signal) {
  while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                   HSA_WAIT_STATE_BLOCKED) >= 1) {
  }
}

// The device takes no packet behind this one until release(), so the lint reads them all in time.
class Hold {
 public:
  explicit Hold(Producer& to) {
    to.barrier({kNone, kNone, false}, signal_.handle());
    to.ring();
  }
  void release() { hsa_signal_store_screlease(signal_.handle(), 0); }

 private:
  Signal signal_{1};
};

void finish(Setting& with, Producer& to, Hold& hold) {
  const Signal done{1};
  with.dispatch(to, kLast, done.handle());
  ++to.counts["signals"];
  to.ring();
  to.wait(done.handle(), [&] { hold.release(); });
}

void defects(Setting& with, Producer& to) {
  constexpr int kFenced = 20, kRung = 7, kSignalled = 5, kWaited = 4, kUnaligned = 3, kIdle = 6;
  {
    Hold hold(to);  // one doorbell for packets with the widest fences
    const Signal done{1};
    for (int i = 0; i < kFenced; ++i)
      with.dispatch(to, kEverything, i + 1 == kFenced ? done.handle() : kNoSignal);
    ++to.counts["signals"];
    to.counts["wide_acquires"] += kFenced - 1;  // all but the first
    to.counts["wide_releases"] += kFenced - 1;  // all but the last
    to.ring();
    to.wait(done.handle(), [&] { hold.release(); });
  }
  {
    Hold hold(to);
    for (int i = 0; i < kRung; ++i) {
      with.dispatch(to, {});
      to.ring();  // counted there
    }
    finish(with, to, hold);
  }
  {
    Hold hold(to);
    std::vector<std::optional<Signal>> signals(kSignalled);
    for (auto& signal : signals) {
      signal.emplace(1);
      with.dispatch(to, {}, signal->handle());
    }
    to.counts["signals"] += kSignalled;
    to.counts["unused_signals"] += kSignalled;
    to.ring();
    finish(with, to, hold);
  }
  for (int i = 0; i < kWaited; ++i) {
    Hold hold(to);
    const Signal done{1};
    with.dispatch(to, {kSystem, kSystem, false}, done.handle());
    ++to.counts["signals"];
    to.ring();
    to.wait(done.handle(), [&] { hold.release(); });
  }
  {
    Hold hold(to);
    for (int i = 0; i < kUnaligned; ++i) with.dispatch(to, kWithoutBarrier, kNoSignal, 16);
    to.counts["unaligned_kernargs"] += kUnaligned;
    for (int i = 0; i < kIdle; ++i) {
      to.barrier({kNone, kNone, true}, kNoSignal);
      with.dispatch(to, {});
      with.dispatch(to, kWithoutBarrier);
    }
    to.counts["idle_barriers"] += kIdle;
    to.ring();
    finish(with, to, hold);
  }
}

void clean(Setting& with, Producer& to) {
  const Signal done{1};
  for (int i = 0; i < 10; ++i)
    with.dispatch(to, {i == 0 ? kSystem : kAgent, i == 9 ? kSystem : kAgent, i != 0},
                  i == 9 ? done.handle() : kNoSignal);
  ++to.counts["signals"];
  to.ring();
  wait(done.handle());
}

void direct(Setting& with, Producer& to) {
  const Signal done{1};
  for (int i = 0; i < 3; ++i) with.dispatch(to, {}, i == 2 ? done.handle() : kNoSignal);
  to.ring_directly();
  wait(done.handle());
}

// `held`: the device takes no packet before all are published.
void threads(Setting& with, bool held, std::map<std::string, uint64_t>& counts) {
  constexpr int kThreads = 4, kPackets = 500;
  hsa_queue_t* queue = nullptr;
  CHECK_HSA(hsa_queue_create(with.gpu.handle(), held ? 4096 : 64, HSA_QUEUE_TYPE_MULTI, nullptr,
                             nullptr, UINT32_MAX, UINT32_MAX, &queue));
  const Signal gate{held ? 1 : 0}, done{kThreads * kPackets};
  const auto publish = [&](hsa_signal_t dependency, hsa_signal_t completion) {
    const uint64_t index = hsa_queue_add_write_index_scacq_screl(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size)
      std::this_thread::yield();
    auto* const slot = static_cast<uint32_t*>(queue->base_address) + index % queue->size * 16;
    hsa_barrier_and_packet_t packet{};
    packet.dep_signal[0] = dependency;
    packet.completion_signal = completion;
    std::memcpy(slot + 1, reinterpret_cast<const uint32_t*>(&packet) + 1, 60);
    std::atomic_ref(*slot).store(HSA_PACKET_TYPE_BARRIER_AND, std::memory_order_release);
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  };
  publish(gate.handle(), kNoSignal);
  std::vector<std::thread> all;
  for (int i = 0; i < kThreads; ++i)
    all.emplace_back([&] {
      for (int k = 0; k < kPackets; ++k) publish(kNoSignal, done.handle());
    });
  for (std::thread& thread : all) thread.join();
  publish(kNoSignal, kNoSignal);  // the lint reads what came too late for its reader
  hsa_signal_store_screlease(gate.handle(), 0);
  wait(done.handle());
  counts["packets"] = counts["doorbells"] = uint64_t{kThreads} * kPackets + 2;
  CHECK_HSA(hsa_queue_destroy(queue));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  std::map<std::string, uint64_t> counts;
  for (int session = 0; session < (what == "twice" ? 2 : 1); ++session) {
    Setting with;
    if (what == "threads" || what == "race") {
      threads(with, what == "threads", counts);
      break;
    }
    Producer to(with.gpu.handle(), 128);
    if (what == "defects") {
      defects(with, to);
    } else if (what == "direct") {
      direct(with, to);
    } else if (what == "clean" || what == "open" || what == "twice") {
      clean(with, to);
    } else {
      return 2;
    }
    if (what == "open") CHECK_HSA(hsa_init());
    counts = to.counts;
  }
  std::printf("%s\n", nlohmann::json(counts).dump().c_str());
}
