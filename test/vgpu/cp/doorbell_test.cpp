// Sleeping and waking: an idle device uses no processor time and misses no doorbell.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cp/doorbell/doorbell_watch.hpp"
#include "cp/doorbell/idle_policy.hpp"
#include "cp/doorbell/userfaults.hpp"
#include "device/fault_chain.hpp"
#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;
using namespace std::chrono_literals;

namespace {

// Counts what the threads of the process did while a test slept. A busy machine makes each wake-up
// dearer, so the bounds are on how often threads went to sleep, and on spinning, which takes a
// whole core.
class Load {
 public:
  Load() { getrusage(RUSAGE_SELF, &begin_); }
  // Shares of one core's time since the construction.
  double cores() const { return (cpu(now()) - cpu(begin_)) / elapsed(); }
  double sleeps_per_second() const {
    return static_cast<double>(now().ru_nvcsw - begin_.ru_nvcsw) / elapsed();
  }

 private:
  static rusage now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage;
  }
  static double cpu(const rusage& usage) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  rusage begin_{};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool completes(DeviceFixture& device, ComputeQueue& queue) {
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_and({}, false, done));
  return fires(done);
}

std::atomic<unsigned> program_faults{0};
// atomic: stored before the access that faults
std::atomic<std::byte*> program_fault_page{nullptr};

void program_handler(int, siginfo_t*, void*) {
  ++program_faults;
  mprotect(program_fault_page.load(), 4096, PROT_READ | PROT_WRITE);
}

// A page of the program that faults on the next store.
volatile std::byte* guarded_page() {
  program_fault_page =
      static_cast<std::byte*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return program_fault_page.load();
}

volatile std::sig_atomic_t trapped_calls = 0;
thread_local volatile char sigsys_switch = 0;  // 1: system calls of this thread raise SIGSYS

// In a kernel: whether it runs on the command processor's thread, not on a helper.
bool on_processor_thread() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string(name) == "vgpu-cp";
}

// A kernel for grids of two workgroups, on a device with two workers. The helper runs one workgroup
// and calls `body` in it; the processor's thread runs the other one and is then free.
//
// A helper that finds no work for a while sleeps, and the scheduler wakes it only for work that
// pays: two workgroups that both take long. So neither workgroup ends before the helper has taken
// one, and their slices are long.
struct HelpersKernel {
  HelpersKernel(DeviceFixture& device, std::function<void()> body) {
    kernel = device.kernel([this, run = std::move(body)](const Slice&) {
      if (on_processor_thread())
        return taken ? gfx9::Workgroup::Result::ended : gfx9::Workgroup::Result::preempted;
      if (!taken.exchange(true)) run();
      return gfx9::Workgroup::Result::ended;
    });
    kernel->instructions_per_slice = 8192;
  }
  // Submits it and waits until the helper runs one workgroup and only that one is left.
  bool runs_on_helper(ComputeQueue& queue, const amd_signal_t* done) {
    queue.submit(dispatch(kernel, 2, 1, false, done));
    return eventually([&] { return taken.load(); }) && falls_asleep("vgpu-cp");
  }

  ScriptedKernel* kernel;
  std::atomic<bool> taken{false};
};

class SegvAction {
 public:
  SegvAction() {
    struct sigaction action {};
    action.sa_sigaction = program_handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &previous_);
  }
  ~SegvAction() { sigaction(SIGSEGV, &previous_, nullptr); }

 private:
  struct sigaction previous_ {};
};

}  // namespace

TEST_CASE("idle with open queues wakes no thread") {
  DeviceFixture device(with_workers(2));
  ComputeQueue first(device);
  ComputeQueue second(device);
  REQUIRE(completes(device, first));
  REQUIRE(completes(device, second));
  REQUIRE(falls_asleep("vgpu-cp"));
  REQUIRE(falls_asleep("vgpu-worker"));
  const Load load;
  std::this_thread::sleep_for(1s);
  CHECK(load.sleeps_per_second() < 20);
  CHECK(load.cores() < 0.5);
}

TEST_CASE("a dependency that the host will resolve is polled about once a millisecond") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* dependency = device.signal(1);
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_and({dependency}, false, done));
  std::this_thread::sleep_for(100ms);
  const Load load;
  std::this_thread::sleep_for(500ms);
  CHECK(load.sleeps_per_second() < 1500);
  CHECK(load.cores() < 0.5);
  DeviceFixture::set(dependency, 0);
  CHECK(fires(done));
}

TEST_CASE("a doorbell on a sleeping device is seen, however often it has slept") {
  DeviceFixture device;
  ComputeQueue queue(device);
  for (int round = 0; round < 100; ++round) {
    std::this_thread::sleep_for(round % 3 == 0 ? 3ms : 100us);
    REQUIRE(completes(device, queue));
  }
}

TEST_CASE("a doorbell rung by an instruction that the fault handler does not decode is seen too") {
  DeviceFixture device;
  ComputeQueue queue(device);
  for (int round = 0; round < 20; ++round) {
    amd_signal_t* done = device.signal(1);
    const uint64_t index = queue.write(barrier_and({}, false, done));
    std::this_thread::sleep_for(3ms);
    __asm__ volatile("movq %1, %%xmm0; movq %%xmm0, %0"
                     : "=m"(*queue.bell.program)
                     : "r"(index)
                     : "xmm0", "memory");
    REQUIRE(fires(done));
  }
}

TEST_CASE("a doorbell that a kernel rings is seen while the processor only waits for that kernel") {
  Options options;
  options.workers = 2;
  DeviceFixture device(options);
  ComputeQueue parent(device);
  ComputeQueue child(device);
  amd_signal_t* inner = device.signal(1);
  amd_signal_t* outer = device.signal(1);
  const uint64_t index =
      child.write(barrier_and({}, false, inner));  // a kernel rings its doorbell later
  std::atomic<bool> answered{false}, waits{false};
  HelpersKernel ringer(device, [&] {
    waits = falls_asleep("vgpu-cp");
    std::atomic_ref<uint64_t>(*child.bell.alias).store(index, std::memory_order_release);
    answered = fires(inner);
  });
  parent.submit(dispatch(ringer.kernel, 2, 1, false, outer));
  REQUIRE(fires(outer));
  CHECK(waits);
  CHECK(answered);
}

TEST_CASE("the end of a long kernel on another worker is polled about once a millisecond") {
  Options options;
  options.workers = 2;
  DeviceFixture device(options);
  ComputeQueue queue(device);
  std::atomic<bool> end{false};
  HelpersKernel kernel(device, [&] { end.wait(false); });
  amd_signal_t* done = device.signal(1);
  REQUIRE(kernel.runs_on_helper(queue, done));
  std::this_thread::sleep_for(100ms);  // the processor's dozes have reached their full length
  const Load load;
  std::this_thread::sleep_for(500ms);
  CHECK(load.sleeps_per_second() < 1500);
  CHECK(load.cores() < 0.5);
  end = true;
  end.notify_all();
  CHECK(fires(done));
}

TEST_CASE("doorbells of many threads, rung just as the device goes to sleep, are all seen") {
  DeviceFixture device;
  std::vector<std::thread> threads;
  std::atomic<unsigned> failed{0};
  std::vector<std::unique_ptr<ComputeQueue>> queues;
  std::vector<amd_signal_t*> signals;
  for (unsigned thread = 0; thread < 4; ++thread) {
    queues.push_back(std::make_unique<ComputeQueue>(device));
    signals.push_back(device.signal(0));
  }
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 300; ++round) {
        std::this_thread::sleep_for(
            std::chrono::microseconds(10 + (round * 37 + thread * 11) % 90));
        DeviceFixture::set(signals[thread], 1);
        queues[thread]->submit(barrier_and({}, false, signals[thread]));
        if (!fires(signals[thread])) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

TEST_CASE(
    "faults of the program go to the program's handler, installed before or after the device's") {
  bool before = false;
  SECTION("before") { before = true; }
  SECTION("after") { before = false; }
  std::unique_ptr<SegvAction> action;
  if (before) action = std::make_unique<SegvAction>();
  {
    DeviceFixture device;
    ComputeQueue queue(device);
    REQUIRE(completes(device, queue));
    if (!before) {
      // While the device is busy its pages are writable, so the exchange loses nothing. The
      // interposed sigaction makes it safe at any time.
      std::atomic<bool> end{false};
      ScriptedKernel* kernel = device.kernel([&](const Slice&) {
        return end ? gfx9::Workgroup::Result::ended : gfx9::Workgroup::Result::preempted;
      });
      amd_signal_t* done = device.signal(1);
      queue.submit(dispatch(kernel, 1, 1, true, done));
      action = std::make_unique<SegvAction>();
      end = true;
      REQUIRE(fires(done));
    }
    // Falling asleep installs the device's handler first again.
    device.processor->doorbell_rung();
    REQUIRE(falls_asleep("vgpu-cp"));
    const unsigned faults = program_faults;
    guarded_page()[0] = std::byte{1};
    CHECK(program_faults == faults + 1);
    CHECK(completes(device, queue));
    CHECK(program_faults == faults + 1);
    munmap(program_fault_page.load(), 4096);
  }
}

TEST_CASE("the program can replace its SIGSEGV action while the device's handler is installed") {
  DeviceFixture device;
  struct sigaction mine {};
  mine.sa_sigaction = program_handler;
  mine.sa_flags = SA_SIGINFO;
  struct sigaction before {};
  struct sigaction now {};
  REQUIRE(replace_program_action(SIGSEGV, &mine, &before));
  REQUIRE(replace_program_action(SIGSEGV, nullptr, &now));
  CHECK(now.sa_sigaction == program_handler);
  const unsigned faults = program_faults;
  guarded_page()[0] = std::byte{1};
  CHECK(program_faults == faults + 1);
  munmap(program_fault_page.load(), 4096);
  REQUIRE(replace_program_action(SIGSEGV, &before, nullptr));
}

TEST_CASE("a mask that blocks every signal leaves SIGSEGV unblocked") {
  sigset_t all;
  sigfillset(&all);
  const sigset_t mask = block_all_but_segv(all);
  CHECK(sigismember(&mask, SIGSEGV) == 0);
  CHECK(sigismember(&mask, SIGUSR1) == 1);
}

TEST_CASE("ringing a sleeping device works in a program that traps system calls") {
  constexpr int set_user_dispatch = 59, off = 0, on = 1;  // linux/prctl.h of Linux 5.11
  DeviceFixture device;
  ComputeQueue queue(device);
  REQUIRE(completes(device, queue));
  struct sigaction pass_on {
  }, before{};
  pass_on.sa_flags = SA_SIGINFO;
  pass_on.sa_sigaction = [](int, siginfo_t*, void* context) {
    sigsys_switch = 0;
    trapped_calls = trapped_calls + 1;
    // the repeated call is not trapped
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] -= 2;
  };
  REQUIRE(sigaction(SIGSYS, &pass_on, &before) == 0);
  REQUIRE(prctl(set_user_dispatch, on, 0, 0, const_cast<char*>(&sigsys_switch)) == 0);
  trapped_calls = 0;
  for (int round = 0; round < 10; ++round) {
    amd_signal_t* done = device.signal(1);
    const uint64_t index = queue.write(barrier_and({}, false, done));
    REQUIRE(falls_asleep("vgpu-cp"));
    sigsys_switch = 1;
    __atomic_store_n(queue.bell.program, index, __ATOMIC_RELEASE);
    sigsys_switch = 0;
    REQUIRE(fires(done));
  }
  // The device slept. Its handler woke it by a system call, unless the kernel did.
  CHECK((trapped_calls == 0) == Userfaults().available());
  prctl(set_user_dispatch, off, 0, 0, nullptr);
  sigaction(SIGSYS, &before, nullptr);
}

TEST_CASE("detaching makes the page writable and removes it; its queues see no more doorbells") {
  DeviceFixture device;
  ComputeQueue queue(device);
  REQUIRE(completes(device, queue));
  REQUIRE(falls_asleep("vgpu-cp"));  // and has protected the page
  device.detach_doorbells();
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_and({}, false, done));  // an ordinary store now
  settle();
  CHECK(DeviceFixture::value(done) == 1);
}

TEST_CASE("a doorbell whose page is not attached is polled") {
  DeviceFixture device;
  auto* bare = device.allocate_object<uint64_t>();
  *bare = ~uint64_t{0};
  auto* queue = device.allocate_object<amd_queue_t>();
  auto* ring = static_cast<hsa_barrier_and_packet_t*>(device.allocate(4096, 4096));
  for (int index = 0; index < 64; ++index) ring[index].header = HSA_PACKET_TYPE_INVALID;
  ComputeQueueConfig config;
  config.ring = DeviceFixture::address(ring);
  config.ring_bytes = 4096;
  config.read_index = reinterpret_cast<GpuAddress>(&queue->read_dispatch_id);
  config.write_index = reinterpret_cast<GpuAddress>(&queue->write_dispatch_id);
  config.doorbell = bare;
  const QueueId id = device.processor->create_compute_queue(config);
  REQUIRE(falls_asleep("vgpu-cp"));
  amd_signal_t* done = device.signal(1);
  ring[0] = barrier_and({}, false, done);
  std::atomic_ref<uint64_t>(const_cast<uint64_t&>(queue->write_dispatch_id))
      .store(1, std::memory_order_release);
  std::atomic_ref<uint64_t>(*bare).store(0, std::memory_order_release);
  CHECK(fires(done));
  device.processor->destroy_queue(id);
}

TEST_CASE(
    "a held producer continues after passes without progress, not while there is progress or no "
    "pass",
    "[prompt]") {
  DoorbellWatch watch;
  std::atomic<uint64_t> unheld{0};
  watch.hold_producers(unheld);
  std::atomic<bool> continued{false};
  std::thread producer([&] {
    watch.hold_until_rest();
    continued = true;
  });
  SECTION("progress") {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < DoorbellWatch::kHoldLimit + 300ms) {
      watch.passed(true);
      std::this_thread::sleep_for(1ms);
    }
    CHECK_FALSE(continued);
    watch.rested(watch.rings());
    CHECK(eventually([&] { return continued.load(); }));
    CHECK(unheld == 0);
  }
  SECTION("a processor without a core, then passes") {
    std::this_thread::sleep_for(DoorbellWatch::kHoldLimit + 300ms);
    CHECK_FALSE(continued);
    CHECK(eventually([&] {
      watch.passed(false);
      return continued.load();
    }));
    CHECK(unheld == 1);
  }
  watch.release_producers();
  producer.join();
}

TEST_CASE("idle policy: spin, then sleep; more spinning after short sleeps, less after long ones") {
  IdlePolicy policy;
  CHECK(policy.decide(0us, false).action == IdlePolicy::Action::spin);
  CHECK(policy.decide(IdlePolicy::kMinSpin - 1us, false).action == IdlePolicy::Action::spin);
  CHECK(policy.decide(IdlePolicy::kMinSpin, false).action == IdlePolicy::Action::sleep);
  for (int round = 0; round < 10; ++round) policy.slept(100us);
  CHECK(policy.spin() == IdlePolicy::kMaxSpin);
  for (int round = 0; round < 10; ++round) policy.slept(100ms);
  CHECK(policy.spin() == IdlePolicy::kMinSpin);
}

TEST_CASE("idle policy: a thread whose store is awaited soon gets the processor's core") {
  IdlePolicy policy;
  constexpr auto kSpin = IdlePolicy::kStoreSpin;
  CHECK(policy.decide(0us, true, kSpin).action == IdlePolicy::Action::spin);
  CHECK(policy.decide(kSpin, true, kSpin).action == IdlePolicy::Action::doze);
  CHECK(kSpin < IdlePolicy::kPollSpin);
}

TEST_CASE(
    "idle policy: changes without a doorbell are polled at growing intervals, and progress resets "
    "the "
    "intervals") {
  IdlePolicy policy;
  CHECK(policy.decide(0us, true).action == IdlePolicy::Action::spin);
  const auto first = policy.decide(IdlePolicy::kPollSpin, true);
  CHECK(first.action == IdlePolicy::Action::doze);
  CHECK(first.duration == IdlePolicy::kFirstDoze);
  CHECK(policy.decide(IdlePolicy::kPollSpin, true).duration > first.duration);
  for (int round = 0; round < 100; ++round) policy.decide(IdlePolicy::kPollSpin, true);
  CHECK(policy.decide(IdlePolicy::kPollSpin, true).duration == IdlePolicy::kLastDoze);
  policy.progressed();
  CHECK(policy.decide(1s, true).action == IdlePolicy::Action::spin);
  CHECK(policy.decide(2s, true).duration == IdlePolicy::kFirstDoze);
}
