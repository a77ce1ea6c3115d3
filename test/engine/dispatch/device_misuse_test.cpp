// Objects whose Queue or Runtime was destroyed, and moved-from objects, on a device. Most of their
// uses would make ROCr end the process, so each use is harmless or throws an Error before it
// reaches ROCr.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <uptempo/memory/host_pin.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

using FillKernel = Kernel<uint32_t*, uint32_t>;
using PreparedFill = Prepared<uint32_t*, uint32_t>;
using Uses = std::map<std::string, std::function<void()>>;

FillKernel fill_of(const Program& program) { return program.kernel<uint32_t*, uint32_t>("fill"); }

void check_all_report(const Uses& uses, const std::string& found) {
  for (const auto& [name, use] : uses) {
    CAPTURE(name);
    const std::string error = error_of<Error>(use);
    CHECK(contains(error, found));
  }
}

// Every use of a batch that could reach its queue.
Uses uses_of(BatchSubmitter& batch, const PreparedFill& prepared, const FillKernel& fill,
             uint32_t* data) {
  return {
      {"dispatch", [&batch, &fill, data] { batch.dispatch(fill, Grid{64}, data, 1u); }},
      {"dispatch with another grid",
       [&batch, &fill, data] { batch.dispatch(fill, Grid{128}, data, 1u); }},
      {"try_dispatch",
       [&batch, &fill, data] { (void)batch.try_dispatch(fill, Grid{64}, data, 1u); }},
      {"raw", [&batch] { batch.raw(aql::to_packet(aql::BarrierAnd{})); }},
      {"prepare", [&batch, &fill] { (void)batch.prepare(fill, Grid{192}); }},
      {"Prepared::dispatch", [&prepared, data] { prepared.dispatch(data, 1u); }},
      {"Prepared::dispatch_each",
       [&prepared, data] {
         prepared.dispatch_each(9, [data](uint32_t i) noexcept { return std::tuple(data, i); });
       }},
      {"submit", [&batch] { (void)batch.submit(); }},
      {"submit until a deadline", [&batch] { (void)batch.submit(soon()); }},
      {"try_submit", [&batch] { (void)batch.try_submit(); }},
  };
}

Uses uses_of(Queue& queue) {
  return {
      {"last_submitted", [&queue] { (void)queue.last_submitted(); }},
      {"wait", [&queue] { queue.wait(); }},
      {"handle", [&queue] { (void)queue.handle(); }},
      {"agent", [&queue] { (void)queue.agent(); }},
      {"ring_size", [&queue] { (void)queue.ring_size(); }},
      {"pressure", [&queue] { (void)queue.pressure(); }},
      {"reclaim", [&queue] { queue.reclaim(); }},
      {"a batch", [&queue] { BatchSubmitter batch{queue}; }},
      {"a recording", [&queue] { Recording recording{queue}; }},
  };
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "a batch refuses its use after its queue was destroyed", "[misuse]") {
  const uint32_t unsubmitted = GENERATE(0u, 1u, 100u);
  CAPTURE(unsubmitted);
  const Program program{gpu, builtin_kernels::basics()};
  const FillKernel fill = fill_of(program);
  DeviceBuffer<uint32_t> data{gpu, 256};
  std::optional<Queue> queue{std::in_place, gpu};
  BatchSubmitter batch{*queue};
  const PreparedFill prepared = batch.prepare(fill, Grid{64});
  batch.dispatch(fill, Grid{256}, data.data(), 77u);
  const Completion before = batch.submit();
  for (uint32_t i = 0; i < unsubmitted; ++i) batch.dispatch(fill, Grid{256}, data.data(), i);
  queue.reset();
  check_all_report(uses_of(batch, prepared, fill, data.data()),
                   "its Queue no longer exists: it was destroyed");
  batch.clear();
  CHECK(batch.size() == 0);
  CHECK(before.ready());
  Copier copier{gpu};
  CHECK(download(copier, data) == std::vector<uint32_t>(256, 77u));
}

TEST_CASE_METHOD(OnDevice, "a batch refuses its use after another queue was assigned to its own",
                 "[misuse]") {
  const Program program{gpu, builtin_kernels::basics()};
  const FillKernel fill = fill_of(program);
  DeviceBuffer<uint32_t> data{gpu, 256};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  const PreparedFill prepared = batch.prepare(fill, Grid{64});
  batch.dispatch(fill, Grid{256}, data.data(), 1u);
  queue = Queue{gpu};
  check_all_report(uses_of(batch, prepared, fill, data.data()), "another one was assigned to it");
  BatchSubmitter next{queue};
  next.dispatch(fill, Grid{256}, data.data(), 5u);
  next.submit().wait();
}

TEST_CASE_METHOD(OnDevice, "a batch follows its queue when the queue is moved", "[misuse]") {
  const Program program{gpu, builtin_kernels::basics()};
  const FillKernel fill = fill_of(program);
  DeviceBuffer<uint32_t> data{gpu, 256};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(fill, Grid{256}, data.data(), 9u);
  Queue moved{std::move(queue)};
  batch.submit().wait();
  moved.wait();
  Copier copier{gpu};
  CHECK(download(copier, data) == std::vector<uint32_t>(256, 9u));
}

TEST_CASE_METHOD(OnDevice,
                 "every function of a moved-from queue is an error, and assignment repairs it",
                 "[misuse]") {
  const Program program{gpu, builtin_kernels::basics()};
  DeviceBuffer<uint32_t> data{gpu, 64};
  Queue queue{gpu};
  Queue moved{std::move(queue)};
  // NOLINT(bugprone-use-after-move): the subject
  check_all_report(uses_of(queue), "this one was moved from");
  Recording recording{moved};
  recording.dispatch(fill_of(program), Grid{64}, data.data(), 3u);
  check_all_report({{"replay", [&] { (void)recording.replay(queue); }},
                    {"replay until a deadline", [&] { (void)recording.replay(queue, soon()); }},
                    {"try_replay", [&] { (void)recording.try_replay(queue); }},
                    {"load_recording",
                     [&] {
                       std::stringstream file;
                       save_recording(recording, file, Bindings{}.add("data", data));
                       (void)load_recording(queue, file, {program}, Bindings{}.add("data", data));
                     }}},
                   "this one was moved from");
  recording.replay(moved).wait();
  queue = std::move(moved);
  queue.wait();
  recording.replay(queue).wait();
}

TEST_CASE_METHOD(OnDevice, "a moved-from shared queue is an error, and its producers still work",
                 "[misuse]") {
  const Program program{gpu, builtin_kernels::basics()};
  DeviceBuffer<uint32_t> data{gpu, 64};
  SharedQueue shared{gpu};
  Queue producer = shared.producer();
  SharedQueue moved{std::move(shared)};
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  check_all_report({{"producer", [&] { (void)shared.producer(); }},
                    {"handle", [&] { (void)shared.handle(); }},
                    {"ring_size", [&] { (void)shared.ring_size(); }}},
                   "this one was moved from");
  CHECK(shared.agent() == gpu);
  // NOLINTEND(bugprone-use-after-move)
  BatchSubmitter batch{producer};
  const FillKernel fill = fill_of(program);
  const PreparedFill prepared = batch.prepare(fill, Grid{64});
  batch.dispatch(fill, Grid{64}, data.data(), 4u);
  batch.submit().wait();
  batch.dispatch(fill, Grid{64}, data.data(), 5u);
  { const Queue temporary{std::move(producer)}; }
  check_all_report(uses_of(batch, prepared, fill, data.data()), "its Queue no longer exists");
  CHECK(moved.producer().ring_size() == moved.ring_size());
}

TEST_CASE_METHOD(OnDevice, "a batch and a recording that are moved keep their work", "[misuse]") {
  const Program program{gpu, builtin_kernels::basics()};
  const FillKernel fill = fill_of(program);
  DeviceBuffer<uint32_t> data{gpu, 256};
  Queue queue{gpu};
  const Signal done;
  BatchSubmitter batch{queue};
  const PreparedFill prepared = batch.prepare(fill, Grid{64});
  batch.complete_with(done);
  batch.dispatch(fill, Grid{256}, data.data(), 1u);
  BatchSubmitter moved{std::move(batch)};
  prepared.dispatch(data.data(), 2u);
  moved.submit().wait();
  CHECK(hsa_signal_load_scacquire(done.handle()) == 0);
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  check_all_report({{"dispatch", [&] { batch.dispatch(fill, Grid{64}, data.data(), 1u); }},
                    {"wait", [&] { batch.after(done); }},
                    {"complete_with", [&] { batch.complete_with(done); }},
                    {"submit", [&] { (void)batch.submit(); }}},
                   "this one was moved from");
  Recording recording{queue};
  const Node node = recording.dispatch(fill, Grid{128}, data.data(), 3u);
  const Completion replayed = recording.replay(queue);
  Recording kept{std::move(recording)};
  kept.set<1>(node, 4u);
  kept.replay(queue).wait();
  CHECK(replayed.ready());
  std::stringstream file;
  check_all_report(
      {{"save_recording", [&] { save_recording(recording, file, Bindings{}.add("data", data)); }}},
      "this one was moved from");
  // NOLINTEND(bugprone-use-after-move)
  save_recording(kept, file, Bindings{}.add("data", data));
  std::vector<uint32_t> expected(256, 1u);
  std::fill_n(expected.begin(), 128, 4u);
  Copier copier{gpu};
  CHECK(download(copier, data) == expected);
}

TEST_CASE_METHOD(OnDevice, "shared values are complete after a move", "[misuse]") {
  Agent mine = gpu;
  const Agent other{std::move(mine)};
  // NOLINT(bugprone-use-after-move): the subject, here and below
  Program program{mine, builtin_kernels::basics()};
  const Program same{std::move(program)};
  CHECK(program.target() == same.target());
  CHECK(program.identity().size_bytes == same.identity().size_bytes);
  FillKernel fill = fill_of(program);
  const FillKernel copy{std::move(fill)};
  CHECK(fill.name() == copy.name());
  CHECK(mine.name() == other.name());

  Streams streams{mine};
  Stream stream{streams};
  TimedEvent event;
  TimedEvent moved{std::move(event)};
  stream.record(event);
  event.wait();
  CHECK(event.ns() > 0);
  stream.record(moved);
  moved.wait();
  CHECK(moved.ns() >= event.ns());

  DeviceBuffer<uint32_t> data{mine, 64};
  Queue queue{mine};
  BatchSubmitter batch{queue};
  batch.dispatch(fill, Grid{64}, data.data(), 4u);
  batch.submit().wait();
  stream.launch(fill, Grid{64}, data.data(), 6u);
  stream.synchronize();
}

TEST_CASE_METHOD(OnDevice, "moved-from buffers are empty", "[misuse]") {
  DeviceBuffer<uint32_t> device{gpu, 64};
  PinnedBuffer<uint32_t> pinned{gpu, 64};
  KernargBuffer kernarg{gpu, 64};
  const DeviceBuffer<uint32_t> device_too{std::move(device)};
  const PinnedBuffer<uint32_t> pinned_too{std::move(pinned)};
  const KernargBuffer kernarg_too{std::move(kernarg)};
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  CHECK(device.data() == nullptr);
  CHECK(device.size() == 0);
  CHECK(pinned.data() == nullptr);
  CHECK(pinned.span().empty());
  CHECK(kernarg.data() == nullptr);
  CHECK_FALSE(kernarg.alive());
  Copier copier{gpu};
  CHECK(contains(error_of<Error>([&] { copier.copy(device, pinned_too); }), "a target of 0 bytes"));
  CHECK(contains(error_of<Error>([&] { copier.copy(pinned, device_too); }), "a target of 0 bytes"));
  copier.copy(device, pinned);
  Streams streams{gpu};
  Stream stream{streams};
  CHECK(contains(error_of<Error>([&] { stream.copy(device, pinned_too); }), "a target of 0 bytes"));
  stream.free_after_work(std::move(device));
  stream.synchronize();

  std::vector<uint32_t> host(1024);
  HostPin pin{gpu, host.data(), 4096};
  const HostPin pin_too{std::move(pin)};
  CHECK(pin.device_address() == nullptr);
  CHECK(pin_too.device_address() != nullptr);
  // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE_METHOD(OnDevice, "a moved-from signal is refused where one is required", "[misuse]") {
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  Streams streams{gpu};
  Stream stream{streams};
  Signal signal;
  const Signal moved{std::move(signal)};
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  CHECK(contains(error_of<Error>([&] { batch.complete_with(signal); }), "the null signal"));
  CHECK(contains(error_of<Error>([&] { stream.after(signal); }), "the null signal"));
  // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("a copier whose runtime was destroyed refuses copies and fills", "[misuse]") {
  std::optional<Runtime> runtime{std::in_place};
  const Agent gpu = runtime->gpu();
  DeviceBuffer<uint32_t> data{gpu, 64}, large{gpu, 1 << 20};
  PinnedBuffer<uint32_t> pinned{gpu, 64};
  std::vector<uint32_t> host(64, 1), large_host(1 << 20, 1);
  Copier copier{gpu}, unused{gpu};
  copier.copy(data, pinned);
  runtime.reset();
  for (Copier* each : {&copier, &unused}) {
    const auto copies = [&](const CopyTarget& to, const CopySource& from) {
      return [=] { each->copy(to, from); };
    };
    // The sizes of buffers are 0 now.
    const CopyTarget to = CopyTarget::device(host.data(), 256);
    const CopySource from = CopySource::device(host.data(), 256);
    check_all_report(
        {
            {"to the device", copies(to, CopySource::pinned(host.data(), 256))},
            {"to the host", copies(CopyTarget::pinned(host.data(), 256), from)},
            {"within the device", copies(to, from)},
            {"to the device, staged", copies(to, host)},
            {"to the host, staged", copies(host, from)},
            {"to the device, pinned for once",
             copies(CopyTarget::device(host.data(), 4 << 20), large_host)},
            {"to the host, pinned for once",
             copies(large_host, CopySource::device(host.data(), 4 << 20))},
            {"fill", [&] { each->fill(to, 1); }},
        },
        "the Runtime was destroyed");
  }
}

TEST_CASE("a moved-from runtime has no agents", "[misuse]") {
  Runtime runtime;
  const Runtime moved{std::move(runtime)};
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  check_all_report({{"gpu", [&] { (void)runtime.gpu(); }}, {"host", [&] { (void)runtime.host(); }}},
                   "this one was moved from");
  CHECK(runtime.gpus().empty());
  // NOLINTEND(bugprone-use-after-move)
  CHECK(moved.gpu().is_gpu());
}

TEST_CASE("batches and recordings refuse their use after the runtime was destroyed", "[misuse]") {
  const uint32_t unsubmitted = GENERATE(0u, 1u, 100u);
  CAPTURE(unsubmitted);
  std::optional<Runtime> runtime{std::in_place};
  const Agent gpu = runtime->gpu();
  const Program program{gpu, builtin_kernels::basics()};
  const FillKernel fill = fill_of(program);
  DeviceBuffer<uint32_t> data{gpu, 256};
  const Bindings bindings = Bindings{}.add("data", data);
  Queue queue{gpu};
  SharedQueue shared{gpu};
  BatchSubmitter batch{queue};
  const PreparedFill prepared = batch.prepare(fill, Grid{64});
  Recording recording{queue};
  const Node node = recording.dispatch(fill, Grid{256}, data.data(), 1u);
  batch.dispatch(fill, Grid{256}, data.data(), 77u);
  const Completion before = batch.submit();
  before.wait();
  recording.replay(queue).wait();
  for (uint32_t i = 0; i < unsubmitted; ++i) batch.dispatch(fill, Grid{256}, data.data(), i);
  uint32_t* const address = data.data();
  runtime.reset();

  check_all_report(uses_of(batch, prepared, fill, address), "the Runtime was destroyed");
  BatchSubmitter late{queue};
  const Uses of_late{{"dispatch", [&] { late.dispatch(fill, Grid{64}, address, 1u); }},
                     {"submit", [&] { (void)late.submit(); }},
                     {"prepare", [&] { (void)late.prepare(fill, Grid{64}); }}};
  check_all_report(of_late, "the Runtime was destroyed");
  check_all_report(
      {{"pressure", [&] { (void)queue.pressure(); }},
       {"a kernel", [&] { (void)program.kernel<uint32_t*, uint32_t, uint32_t>("iota"); }},
       {"dispatch", [&] { recording.dispatch(fill, Grid{64}, address, 1u); }},
       {"raw", [&] { recording.raw(aql::to_packet(aql::BarrierAnd{})); }},
       {"set", [&] { recording.set<1>(node, 5u); }},
       {"set_grid", [&] { recording.set_grid(node, Grid{64}); }},
       {"replace", [&] { recording.replace(node, fill, Grid{64}, address, 2u); }},
       {"replay", [&] { (void)recording.replay(queue); }},
       {"replay until a deadline", [&] { (void)recording.replay(queue, soon()); }},
       {"try_replay", [&] { (void)recording.try_replay(queue); }},
       {"save_recording",
        [&] {
          std::stringstream file;
          save_recording(recording, file, bindings);
        }},
       {"a recording", [&] { Recording another{queue}; }},
       {"producer", [&] { (void)shared.producer(); }}},
      "Runtime");
  CHECK(before.ready());
  queue.wait();
  queue.reclaim();
  recording.abandon();
  CHECK(recording.size() == 1);
  batch.clear();
  CHECK(batch.size() == 0);
}

TEST_CASE("a recording refuses its use after the runtime and the queue of a half-done replay",
          "[misuse]") {
  std::optional<Runtime> runtime{std::in_place};
  const Agent gpu = runtime->gpu();
  const Program program{gpu, builtin_kernels::basics()};
  const FillKernel fill = fill_of(program);
  DeviceBuffer<uint32_t> data{gpu, 64};
  std::optional<Queue> queue{
      std::in_place, gpu,
      QueueOptions{.packets = 256, .drain_timeout = std::chrono::milliseconds(100)}};
  Recording recording{*queue};
  Signal gate;  // blocks the queue, so that the ring is full
  aql::BarrierAnd barrier{};
  barrier.dependencies[0] = gate.handle();
  recording.raw(aql::to_packet(barrier));
  const Node node = recording.dispatch(fill, Grid{64}, data.data(), 0u);
  for (uint32_t i = 0; i < 600; ++i) recording.dispatch(fill, Grid{64}, data.data(), i);
  CHECK(contains(error_of<Error>([&] {
                   (void)recording.replay(*queue, Deadline::after(std::chrono::milliseconds(20)));
                 }),
                 "packets of this batch are published"));
  runtime.reset();
  const Uses uses{{"set", [&] { recording.set<1>(node, 5u); }},
                  {"dispatch", [&] { recording.dispatch(fill, Grid{64}, data.data(), 1u); }}};
  check_all_report(uses, "the Runtime was destroyed");
  check_all_report({{"replay", [&] { (void)recording.replay(*queue); }}},
                   "the Runtime was destroyed");
  queue.reset();
  check_all_report(uses, "the Runtime was destroyed");
  recording.abandon();
}

TEST_CASE("streams and launchers refuse their use after the runtime was destroyed", "[misuse]") {
  const bool idle = GENERATE(true, false);
  CAPTURE(idle);
  std::optional<Runtime> runtime{std::in_place};
  const Agent gpu = runtime->gpu();
  const Program program{gpu, builtin_kernels::basics()};
  const FillKernel fill = fill_of(program);
  DeviceBuffer<uint32_t> data{gpu, 256};
  PinnedBuffer<uint32_t> pinned{gpu, 256};
  std::vector<uint32_t> host(256);
  Signal signal;
  uint32_t* const address = data.data();
  Streams streams{gpu};
  Stream stream{streams}, other{streams};
  Launcher<uint32_t*, uint32_t> launcher{streams, fill};
  TimedEvent timed;
  stream.launch(fill, Grid{256}, address, 77u);
  launcher.launch(stream, Grid{256}, address, 78u);
  stream.record(timed);
  const Event event = stream.record();
  event.wait();
  if (!idle) {
    stream.launch(fill, Grid{256}, address, 79u);
    stream.copy(std::span(host), data);
  }
  runtime.reset();

  check_all_report(
      {{"launch", [&] { stream.launch(fill, Grid{256}, address, 1u); }},
       {"launch on another", [&] { other.launch(fill, Grid{256}, address, 1u); }},
       {"launch by a launcher", [&] { launcher.launch(stream, Grid{256}, address, 78u); }},
       {"launch with an array", [&] { launcher.launch(other, Grid{256}, out(host), 78u); }},
       {"copy, device to pinned", [&] { stream.copy(pinned, data); }},
       {"copy, pinned to device", [&] { other.copy(data, pinned); }},
       {"copy, pageable to device", [&] { other.copy(data, std::span<const uint32_t>(host)); }},
       {"copy, device to pageable", [&] { stream.copy(std::span(host), data); }},
       {"fill", [&] { other.fill(data, 1u); }},
       {"another stream",
        [&] {
          Stream late{streams};
          late.launch(fill, Grid{64}, address, 1u);
        }},
       {"the default stream",
        [&] { streams.default_stream().launch(fill, Grid{64}, address, 1u); }}},
      "Runtime");
  check_all_report({{"synchronize", [&] { stream.synchronize(); }},
                    {"synchronize until a deadline", [&] { (void)stream.synchronize(soon()); }},
                    {"ready", [&] { (void)stream.ready(); }},
                    {"record", [&] { (void)stream.record(); }}},
                   "the Runtime was destroyed");
  // Events that were complete by then stay complete.
  CHECK(event.ready());
  event.wait();
  timed.wait();
  other.after(event);
  stream.host_wrote();
}
