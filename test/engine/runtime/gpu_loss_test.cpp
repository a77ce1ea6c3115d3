// The driver resets the GPU, or it is removed: everything that waits for its work ends, with every
// release of ROCr, and the process can end.
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test/engine/completion/task.hpp"
#include "test/engine/runtime/lost_gpu.hpp"
#include "test/support/own_process.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// The test is over when all of its objects are destroyed.
struct World : EndlessWork {
  World() : EndlessWork(runtime().gpu()) {}

  Queue queue{gpu, options};
  const Completion done = submit_short(queue, 1);
  const Completion endless = submit(queue);

 private:
  static Runtime& runtime() {
    end_if_it_hangs();
    static Runtime instance;
    return instance;
  }
};

// The errors of calls that wait in threads of their own while the GPU is lost.
template <class... Wait>
void check_waits(const Wait&... wait) {
  std::vector<std::string> errors(sizeof...(wait));
  std::vector<std::thread> threads;
  std::atomic<size_t> waiting{0};
  const auto start = [&](const auto& call) {
    threads.emplace_back([&, error = &errors[threads.size()]] {
      ++waiting;
      *error = error_of<Error>(call);
    });
  };
  (start(wait), ...);
  CHECK(eventually([&] { return waiting == sizeof...(wait); }));
  std::this_thread::sleep_for(20ms);  // most of them sleep by now; they may also begin later
  lose_gpu(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) check_loss(error);
}

}  // namespace

TEST_CASE("every wait for a batch of a lost GPU ends with an Error", "[loss]") {
  in_own_process("", [] {
    World world;
    check_waits([&] { world.endless.wait(); }, [&] { world.endless.wait(WaitPolicy::active()); },
                [&] { world.endless.wait(WaitPolicy::blocked()); },
                [&] { (void)world.endless.wait(Deadline::after(24h)); },
                [&] { world.queue.drain(Deadline::never()); });
    CHECK(world.done.ready());
    check_loss(error_of<Error>([&] { (void)world.endless.ready(); }));
    check_loss(error_of<Error>([&] { world.endless.wait(); }));
    check_loss(error_of<Error>([&] { world.submit(world.queue); }));
    // Objects made after the loss.
    Queue later{world.gpu, world.options};
    check_loss(error_of<Error>([&] { world.submit(later).wait(); }));
  });
}

TEST_CASE("a call that waits for room ends when the GPU is lost", "[loss]") {
  in_own_process("", [] {
    World world;
    check_waits([&] {
      for (;;) world.submit(world.queue);
    });
  });
}

TEST_CASE("a wait for a replay on a lost GPU ends with an Error", "[loss]") {
  in_own_process("", [] {
    World world;
    Queue queue{world.gpu, world.options};
    Recording recording{queue};
    recording.dispatch(world.gate, Grid{1}, world.words.data(), UINT32_MAX, world.words.data() + 1);
    const Completion replayed = recording.replay(queue);
    check_waits([&] { replayed.wait(); });
    check_loss(error_of<Error>([&] { recording.replay(queue); }));
  });
}

TEST_CASE("waits for streams of a lost GPU end with an Error", "[loss]") {
  in_own_process("", [] {
    World world;
    const DeviceBuffer<uint32_t> device{world.gpu, 64};
    std::vector<uint32_t> host(64);
    Streams streams{world.gpu, {.queue = world.options}};
    Stream launches{streams}, copies{streams};
    launches.launch(world.gate, Grid{1}, world.words.data(), UINT32_MAX, world.words.data() + 1);
    const Event event = launches.record();
    copies.after(event);
    copies.copy(std::span(host), device);
    check_waits([&] { launches.synchronize(); }, [&] { copies.synchronize(); },
                [&] { event.wait(); }, [&] { streams.synchronize(); });
    check_loss(error_of<Error>([&] { copies.copy(std::span(host), device); }));
  });
}

TEST_CASE("producers that share a lost GPU's queue end with an Error", "[loss]") {
  in_own_process("", [] {
    World world;
    SharedQueue shared{world.gpu, world.options};
    Queue first = shared.producer(), second = shared.producer();
    const Completion endless = world.submit(first);
    check_waits([&] { endless.wait(); },
                [&] {
                  for (;;) world.submit(second);
                });
  });
}

TEST_CASE("notifiers and coroutines hand back the work of a lost GPU as failed", "[loss]") {
  in_own_process("", [] {
    World world;
    CompletionNotifier notifier{1};
    notifier.watch(world.endless, 7);
    std::atomic<int> count{0};
    const Task task = await(world.endless, count);
    lose_gpu(0);
    pollfd entry{.fd = notifier.fd(), .events = POLLIN, .revents = 0};
    REQUIRE(poll(&entry, 1, -1) == 1);
    const auto notice = notifier.take();
    REQUIRE(notice.has_value());
    CHECK(notice->failed);
    CHECK(notice->tag == 7);
    CHECK(eventually([&] { return task.done(); }));
    check_loss(task.error());
    CHECK(count == 0);
  });
}

TEST_CASE("a Copier of a lost GPU ends with an Error", "[loss]") {
  in_own_process("", [] {
    World world;
    constexpr size_t kBytes = 16 << 20;
    const DeviceBuffer<std::byte> device{world.gpu, kBytes};
    const PinnedBuffer<std::byte> pinned{world.gpu, kBytes};
    Copier copier{world.gpu};
    check_waits([&] {
      for (;;) copier.copy(device, pinned);
    });
    check_loss(error_of<Error>([&] { copier.copy(pinned, device); }));
    check_loss(error_of<Error>([&] { copier.fill(device, 1u); }));
    Copier unused{world.gpu};
    check_loss(error_of<Error>([&] { unused.fill(device, 1u); }));
  });
}

TEST_CASE("a process cannot use a GPU again after its loss", "[loss]") {
  in_own_process("", [] {
    end_if_it_hangs();
    {
      const Runtime runtime;
      const EndlessWork work{runtime.gpu()};
      Queue queue{work.gpu, work.options};
      const Completion endless = work.submit(queue);
      lose_gpu(0);
      check_loss(error_of<Error>([&] { endless.wait(); }));
    }
    CHECK(contains(error_of<Error>([] { const Runtime again; }),
                   "another Runtime after the loss of a GPU"));
  });
}

// A ROCr from 6.1 on asks itself. The engine goes on without the driver's event.
TEST_CASE("a Runtime describes that the loss of a GPU would not be noticed", "[loss]") {
  in_own_process("", [] {
    end_if_it_hangs();
    const Runtime runtime;
    const EndlessWork work{runtime.gpu()};
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    const MemoryFaultListener first(work.gpu, [](hsa_status_t, const std::string&) {});
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    const std::string text = runtime.describe();
    CAPTURE(text);
    CHECK((contains(text, "loss of a GPU: not noticed: /") ||
           contains(text, "loss of a GPU: reported by ROCr")));
    Queue queue{work.gpu};
    work.submit_short(queue, 1);
  });
}

// Nothing waits, so only the destructors learn of the loss.
TEST_CASE("destructors do not wait for the work of a lost GPU", "[loss]") {
  in_own_process("", [] {
    World world;
    Streams streams{world.gpu, {.queue = world.options}};
    Stream stream{streams};
    stream.launch(world.gate, Grid{1}, world.words.data(), UINT32_MAX, world.words.data() + 1);
    Recording recording{world.queue};
    recording.dispatch(world.gate, Grid{1}, world.words.data(), UINT32_MAX, world.words.data() + 1);
    recording.replay(world.queue);
    lose_gpu(0);
  });
}
