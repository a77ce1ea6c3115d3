// Kernels, batches and recordings of two GPUs: a kernel runs on its own GPU only, and batches of
// one GPU wait for batches of the other on the device.
#include <sstream>
#include <string>
#include <thread>

#include "test/engine/error_code.hpp"
#include "test/engine/peers.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

constexpr uint32_t kBatchItems = 4096;
constexpr Grid kBatchGrid = Grid{kBatchItems}.by(64);

std::vector<uint32_t> incremented(uint32_t first, uint32_t step, uint32_t times) {
  std::vector<uint32_t> words(kBatchItems);
  for (uint32_t i = 0; i < kBatchItems; ++i) {
    words[i] = first + i * step;
    for (uint32_t n = 0; n < times; ++n) words[i] = words[i] * 3 + n;
  }
  return words;
}

}  // namespace

TEST_CASE_METHOD(OnPeers, "a kernel of one GPU is refused on queues of another one, which is named",
                 "[peers][refused]") {
  const DeviceBuffer<uint32_t> words{gpus, kBatchItems};
  const auto& fill = programs[1].fill;
  const auto refused = [&](auto&& f) {
    const std::string error = error_of<Error>(f);
    CAPTURE(error);
    CHECK(contains(error, "'fill'"));
    CHECK(contains(error, "on a queue of " + name(0)));
    CHECK(contains(error, "loaded for " + name(1)));
  };
  Queue queue{gpus[0]};
  BatchSubmitter batch{queue};
  refused([&] { batch.dispatch(fill, kBatchGrid, words.data(), 1u); });
  refused([&] { throw_refusal(batch.try_dispatch(fill, kBatchGrid, words.data(), 1u)); });
  refused([&] { batch.prepare(fill, kBatchGrid); });
  const KernargBuffer block{gpus[0], 512};
  refused([&] { batch.dispatch_at(block.span(), fill, kBatchGrid, words.data(), 1u); });
  CHECK(batch.size() == 0);

  SharedQueue shared{gpus[0]};
  Queue producer = shared.producer();
  BatchSubmitter other{producer};
  refused([&] { other.dispatch(fill, kBatchGrid, words.data(), 1u); });

  Recording recording{queue};
  refused([&] { recording.dispatch(fill, kBatchGrid, words.data(), 1u); });
  const Node node = recording.dispatch(programs[0].fill, kBatchGrid, words.data(), 1u);
  refused([&] { recording.replace(node, fill, kBatchGrid, words.data(), 1u); });

  Streams streams{gpus[0]};
  Stream stream{streams};
  refused([&] { stream.launch(fill, kBatchGrid, words.data(), 1u); });
  Launcher launcher{streams, fill};
  refused([&] { launcher.launch(stream, kBatchGrid, words.data(), 1u); });

  // Each refusal has changed nothing.
  batch.dispatch(programs[0].fill, kBatchGrid, words.data(), 7u);
  batch.submit().wait();
  recording.replay(queue).wait();
  stream.launch(programs[0].increment, kBatchGrid, words.data(), 2u);
  stream.synchronize();
  Copier copier{gpus[0]};
  CHECK(download(copier, words) == std::vector<uint32_t>(kBatchItems, 5));
}

TEST_CASE_METHOD(OnPeers, "a recording of one GPU is refused on queues of another one",
                 "[peers][refused][recording]") {
  Queue first{gpus[0]}, second{gpus[1]};
  const DeviceBuffer<uint32_t> words{gpus, kBatchItems};
  Bindings memory;
  memory.add("words", words);
  Recording recording{first};
  recording.dispatch(programs[0].fill, kBatchGrid, words.data(), 1u);
  CHECK(contains(error_of<Error>([&] { recording.replay(second); }), "it was recorded for"));
  std::stringstream file;
  save_recording(recording, file, memory);
  // A file names code, not an agent: with the program of another GPU it is that GPU's recording.
  const std::string text = file.str();
  const auto load = [&](Queue& queue, const Program& program) {
    std::istringstream in(text);
    return load_recording(queue, in, {program}, memory);
  };
  if (gpus[0].isa() == gpus[1].isa()) {
    load(second, programs[1].basics)->replay(second).wait();
    Copier copier{gpus[1]};
    CHECK(download(copier, words) == std::vector<uint32_t>(kBatchItems, 1));
  }
  CHECK(contains(error_of<Error>([&] { load(second, programs[0].basics); }), name(0)));
}

TEST_CASE_METHOD(OnPeers, "a batch of one GPU waits on the device for a batch of another one",
                 "[peers][batch]") {
  const DeviceBuffer<uint32_t> words{gpus, kBatchItems};
  std::array<Queue, 2> queues{Queue{gpus[0]}, Queue{gpus[1]}};
  for (const FencePolicy fences : {FencePolicy::by_need, FencePolicy::system_everywhere}) {
    constexpr uint32_t kHops = 20;
    const BatchOptions options{.fences = fences};
    std::array<BatchSubmitter, 2> batches{BatchSubmitter{queues[0], options},
                                          BatchSubmitter{queues[1], options}};
    // A signal for each hop, because it must stay zero until the waiting batch is complete.
    std::vector<Signal> done;
    for (uint32_t hop = 0; hop <= kHops; ++hop) done.emplace_back(SignalKind::interrupt, 1);
    Completion last;
    batches[0].dispatch(programs[0].iota, kBatchGrid, words.data(), 5u, 3u);
    batches[0].complete_with(done[0]);
    batches[0].submit();
    for (uint32_t hop = 0; hop < kHops; ++hop) {
      const size_t which = (hop + 1) % 2;
      batches[which].after(done[hop]);
      batches[which]
          .dispatch(programs[which].increment, kBatchGrid, words.data(), hop)
          .reads(words.data(), kBatchItems)
          .writes(words.data(), kBatchItems);
      batches[which].complete_with(done[hop + 1]);
      last = batches[which].submit();
    }
    last.wait();
    for (const Queue& queue : queues) queue.wait();  // the signals must live until then
    Copier copier{gpus[0]};
    CHECK(download(copier, words) == incremented(5, 3, kHops));
  }
}

TEST_CASE_METHOD(OnPeers, "a batch may be submitted before the batch that it waits for",
                 "[peers][batch]") {
  const DeviceBuffer<uint32_t> words{gpus, kBatchItems};
  Queue first{gpus[0]}, second{gpus[1]};
  BatchSubmitter setter{first}, waiter{second};
  const Signal done{SignalKind::interrupt, 1};
  waiter.after(done);
  waiter.dispatch(programs[1].increment, kBatchGrid, words.data(), 0u);
  const Completion end = waiter.submit();
  CHECK_FALSE(end.ready());
  setter.dispatch(programs[0].iota, kBatchGrid, words.data(), 4u, 2u);
  setter.complete_with(done);
  const Completion set = setter.submit();
  end.wait();
  set.wait();
  Copier copier{gpus[1]};
  CHECK(download(copier, words) == incremented(4, 2, 1));
  Signal empty{SignalKind::interrupt, 0};
  const Signal moved_to = std::move(empty);
  CHECK(contains(error_of<Error>([&] { waiter.after(empty); }), "the null signal"));
}

TEST_CASE_METHOD(OnPeers, "a batch per GPU, from one thread and from a thread each",
                 "[peers][batch]") {
  const std::array<DeviceBuffer<uint32_t>, 2> words{DeviceBuffer<uint32_t>{gpus[0], kBatchItems},
                                                    DeviceBuffer<uint32_t>{gpus[1], kBatchItems}};
  constexpr uint32_t kTimes = 200;
  std::array<Queue, 2> queues{Queue{gpus[0]}, Queue{gpus[1]}};
  const auto add_all = [&](size_t which, BatchSubmitter& batch) {
    batch.dispatch(programs[which].iota, kBatchGrid, words[which].data(),
                   static_cast<uint32_t>(which), 3u);
    const Prepared step = batch.prepare(programs[which].increment, kBatchGrid);
    step.dispatch_each(kTimes,
                       [&](uint32_t n) noexcept { return std::tuple(words[which].data(), n); });
  };
  const auto check_all = [&] {
    for (size_t which = 0; which < 2; ++which) {
      Copier copier{gpus[which]};
      CHECK(download(copier, words[which]) == incremented(static_cast<uint32_t>(which), 3, kTimes));
    }
  };
  {
    std::array<BatchSubmitter, 2> batches{BatchSubmitter{queues[0]}, BatchSubmitter{queues[1]}};
    for (size_t which = 0; which < 2; ++which) add_all(which, batches[which]);
    const std::array<Completion, 2> ends{batches[0].submit(), batches[1].submit()};
    for (const Completion& end : ends) end.wait();
    check_all();
  }
  std::vector<std::thread> threads;
  std::array<std::string, 2> errors;
  for (size_t which = 0; which < 2; ++which)
    threads.emplace_back([&, which] {
      errors[which] = error_of([&] {
        BatchSubmitter batch{queues[which]};
        for (int round = 0; round < 5; ++round) {
          add_all(which, batch);
          batch.submit().wait();
        }
      });
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error == "no error");
  check_all();
}

TEST_CASE_METHOD(OnPeers, "a recording per GPU, replayed in lockstep", "[peers][recording]") {
  // Each GPU reads the half that the other wrote in the round before, and writes the other copy of
  // its own half.
  constexpr uint32_t kHalf = kBatchItems / 2, kRounds = 12;
  const std::array<DeviceBuffer<uint32_t>, 2> state{DeviceBuffer<uint32_t>{gpus, kBatchItems},
                                                    DeviceBuffer<uint32_t>{gpus, kBatchItems}};
  std::array<Queue, 2> queues{Queue{gpus[0]}, Queue{gpus[1]}};
  std::vector<std::unique_ptr<Recording>> recordings;  // by round parity, then GPU
  for (size_t parity = 0; parity < 2; ++parity) {
    for (size_t which = 0; which < 2; ++which) {
      recordings.push_back(std::make_unique<Recording>(queues[which]));
      const uint32_t *const from = state[parity].data(), *const other = from + kHalf * (1 - which);
      recordings.back()->dispatch(programs[which].combine, Grid{kHalf}.by(64),
                                  state[1 - parity].data() + kHalf * which, other,
                                  from + kHalf * which, 3u);
    }
  }
  std::array<std::vector<uint32_t>, 2> expected{std::vector<uint32_t>(kBatchItems, 1),
                                                std::vector<uint32_t>(kBatchItems, 1)};
  Copier copier{gpus[0]};
  for (const auto& each : state) copier.fill(each, 1);
  for (uint32_t round = 0; round < kRounds; ++round) {
    const size_t parity = round % 2;
    const Completion ends[] = {recordings[2 * parity]->replay(queues[0]),
                               recordings[2 * parity + 1]->replay(queues[1])};
    for (const Completion& end : ends) end.wait();
    const std::vector<uint32_t>& from = expected[parity];
    std::vector<uint32_t>& to = expected[1 - parity];
    for (size_t which = 0; which < 2; ++which)
      for (uint32_t i = 0; i < kHalf; ++i) {
        uint32_t& out = to[kHalf * which + i];
        out = out * 7u + from[kHalf * (1 - which) + kHalf - 1 - i] * 3u +
              from[kHalf * which + i] * 5u + 3u;
      }
  }
  for (size_t i = 0; i < 2; ++i) CHECK(download(copier, state[i]) == expected[i]);
}
