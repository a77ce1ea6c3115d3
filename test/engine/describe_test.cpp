// describe() of Runtime, Queue and Streams: each fact is compared with what HSA, the driver or the
// process itself says, not with the library's own records.
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <bit>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::OnDevice;
using uptempo::test::soon;
using uptempo::test::submit_gated;

// The value of the line "  WHAT: value"; fails if there is none, or more than one.
std::string value_of(const std::string& text, const std::string& what) {
  const std::string start = " " + what + ": ";
  const size_t at = text.find(start);
  CAPTURE(text, what);
  REQUIRE(at != std::string::npos);
  CHECK(text.find(start, at + 1) == std::string::npos);
  const size_t from = at + start.size();
  return text.substr(from, text.find('\n', from) - from);
}

template <class T>
std::string info(hsa_system_info_t attribute) {
  T value{};
  REQUIRE(hsa_system_get_info(attribute, &value) == HSA_STATUS_SUCCESS);
  if constexpr (std::is_same_v<T, const char*>)
    return value;
  else
    return std::to_string(value);
}

uint32_t node_of(hsa_agent_t agent) {
  uint32_t node = 0;
  // Beyond the range of hsa.h's enumeration.
  constexpr int attribute = HSA_AMD_AGENT_INFO_DRIVER_NODE_ID;
  REQUIRE(hsa_agent_get_info(agent, std::bit_cast<hsa_agent_info_t>(attribute), &node) ==
          HSA_STATUS_SUCCESS);
  return node;
}

std::vector<hsa_agent_t> agents_of_hsa() {
  std::vector<hsa_agent_t> agents;
  hsa_iterate_agents(
      [](hsa_agent_t agent, void* data) {
        static_cast<std::vector<hsa_agent_t>*>(data)->push_back(agent);
        return HSA_STATUS_SUCCESS;
      },
      &agents);
  return agents;
}

// Files that the process has mapped and whose name begins with `name`.
std::set<std::string> mapped_files(const std::string& name) {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (const size_t at = line.find('/'); at != std::string::npos && contains(line, '/' + name))
      files.insert(line.substr(at));
  return files;
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "a Runtime describes ROCr, tools, signals and agents", "[describe]") {
  const std::string text = runtime.describe();
  INFO(text);
  CHECK(value_of(text, "Uptempo") == "the program (" UPTEMPO_TEST_VERSION ")");
  CHECK(value_of(text, "HSA interface") == info<uint16_t>(HSA_SYSTEM_INFO_VERSION_MAJOR) + "." +
                                               info<uint16_t>(HSA_SYSTEM_INFO_VERSION_MINOR));
  constexpr int build = HSA_AMD_SYSTEM_INFO_BUILD_VERSION;
  CHECK(value_of(text, "ROCr build") == info<const char*>(std::bit_cast<hsa_system_info_t>(build)));
  // The dynamic linker knows the library by a link, and the kernel by the file.
  const std::set<std::string> libraries = mapped_files("libhsa-runtime64.so");
  REQUIRE(libraries.size() == 1);
  CHECK(std::filesystem::equivalent(value_of(text, "ROCr library"), *libraries.begin()));

  // HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR of ROCr from 6.1 on.
  uint16_t major = 0;
  const bool reports =
      hsa_system_get_info(std::bit_cast<hsa_system_info_t>(0x207), &major) == HSA_STATUS_SUCCESS;
  CHECK(value_of(text, "AMD extension")
            .starts_with(reports ? std::to_string(major) + "." : "not reported"));

  CHECK(value_of(text, "loss of a GPU")
            .starts_with(reports ? "reported by ROCr" : "reported by the driver"));
  CHECK(value_of(text, "tools") == "no tool interposes");
  const std::vector<hsa_agent_t> agents = agents_of_hsa();
  for (size_t i = 0; i < agents.size(); ++i) {
    const std::string facts = value_of(text, "agent " + std::to_string(i));
    char name[64] = {};
    REQUIRE(hsa_agent_get_info(agents[i], HSA_AGENT_INFO_NAME, name) == HSA_STATUS_SUCCESS);
    CHECK(contains(facts, name));
    CHECK(contains(facts, "node " + std::to_string(node_of(agents[i]))));
    hsa_isa_t isa{};
    if (hsa_agent_get_info(agents[i], HSA_AGENT_INFO_ISA, &isa) != HSA_STATUS_SUCCESS) continue;
    char isa_name[256] = {};
    hsa_device_type_t type{};
    hsa_agent_get_info(agents[i], HSA_AGENT_INFO_DEVICE, &type);
    if (type != HSA_DEVICE_TYPE_GPU) continue;
    REQUIRE(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, isa_name) == HSA_STATUS_SUCCESS);
    CHECK(contains(facts, std::string("ISA ") + isa_name));
  }
  CHECK_FALSE(contains(text, "agent " + std::to_string(agents.size())));
}

TEST_CASE_METHOD(OnDevice, "a Queue describes how it publishes, and with which resources",
                 "[describe]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto counter = program.kernel<uint32_t*>("count_work_items");
  const PinnedBuffer<uint32_t> items{gpu, 1};
  items.data()[0] = 0;
  Queue queue{gpu,
              {.packets = 256, .publications = 5, .timing_signals = 3, .kernarg_bytes = 64 << 10}};
  BatchSubmitter batch{queue};
  batch.dispatch(counter, Grid{64}, items.data());
  REQUIRE(batch.submit().wait(soon()));
  const std::string text = queue.describe();
  INFO(text);

  hsa_queue_t* const handle = queue.handle();
  CHECK(text.starts_with("queue " + std::to_string(handle->id) + "\n"));
  CHECK(value_of(text, "ring") == std::to_string(handle->size) + " packets in host memory");
  CHECK(value_of(text, "HSA queue") == "used by this Queue alone");
  const auto* const doorbell =
      reinterpret_cast<const amd_signal_t*>(handle->doorbell_signal.handle);
  CHECK((value_of(text, "doorbell") == "hardware doorbell") ==
        (doorbell->kind == AMD_SIGNAL_KIND_DOORBELL));
  CHECK(value_of(text, "publication") ==
        "indices by direct access, doorbell by direct access: no tool interposes");
  CHECK(value_of(text, "completion signals") ==
        "5 with events, so waiting threads sleep; 3 without, for timing");

  // The packet stays in its slot, except for the header. Its arguments are in the described memory,
  // and its signal has an event.
  hsa_amd_pointer_info_t memory{};
  memory.size = sizeof(memory);
  const auto* const packet = static_cast<const hsa_kernel_dispatch_packet_t*>(handle->base_address);
  REQUIRE(hsa_amd_pointer_info(packet->kernarg_address, &memory, nullptr, nullptr, nullptr) ==
          HSA_STATUS_SUCCESS);
  CHECK(
      reinterpret_cast<const amd_signal_t*>(packet->completion_signal.handle)->event_mailbox_ptr !=
      0);
  CHECK(contains(value_of(text, "kernargs"), "4 slabs of 16384 bytes in kernarg memory of node " +
                                                 std::to_string(node_of(memory.agentOwner))));
  // All targets of the virtual GPU up to gfx90a have one L2 (LLVM AMDGPUUsage, Memory Model).
  CHECK(value_of(text, "fences of " + gpu.name())
            .starts_with(gpu.name() == "gfx942"
                             ? "memory model gfx942: several L2s, fine-grained host memory "
                               "bypasses L2, "
                             : "memory model gfx900 to gfx90a: one L2, fine-grained host memory "
                               "bypasses L2, "));
}

TEST_CASE_METHOD(OnDevice, "a Queue describes other ways of publishing with their reasons",
                 "[describe]") {
  const Queue asked{gpu, {.packets = 64, .access = RingAccessMode::hsa_calls}};
  CHECK(value_of(asked.describe(), "publication") == "by HSA calls: the caller asked for it");
  SharedQueue shared{gpu, {.packets = 64}};
  const Queue producer = shared.producer();
  CHECK(value_of(producer.describe(), "HSA queue") == "that of a SharedQueue");
  CHECK(contains(value_of(producer.describe(), "producers"), "threads of this process"));
  CHECK(contains(value_of(producer.describe(), "publication"), "no tool interposes"));
  hsa_queue_t* handle = nullptr;
  REQUIRE(hsa_queue_create(gpu.handle(), 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                           UINT32_MAX, &handle) == HSA_STATUS_SUCCESS);
  {
    const Queue borrowed = Queue::borrow(gpu, handle);
    CHECK(value_of(borrowed.describe(), "HSA queue") == "borrowed");
    CHECK(contains(value_of(borrowed.describe(), "producers"), "with a private cursor"));
  }
  CHECK(hsa_queue_destroy(handle) == HSA_STATUS_SUCCESS);
}

TEST_CASE_METHOD(OnDevice, "a Queue without events says that its waits poll", "[describe]") {
  const SignalBudget before = signal_budget();
  set_signal_budget({.interrupts = 0, .event_less_beyond = true});
  {
    const Queue queue{gpu, {.packets = 64, .publications = 2, .timing_signals = 1}};
    CHECK(value_of(queue.describe(), "completion signals").starts_with("3, without events"));
    CHECK(contains(value_of(runtime.describe(), "interrupt signals"),
                   "of a budget of 0; beyond it, "
                   "signals without an event"));
  }
  set_signal_budget(before);
}

TEST_CASE_METHOD(OnDevice, "the completion thread's sleep is described once it serves a Runtime",
                 "[describe]") {
  Queue queue{gpu};
  CHECK(value_of(queue.describe(), "completion thread").starts_with("not started; "));
  const Signal gate;
  CompletionNotifier notifier{4};
  notifier.watch(submit_gated(queue, gate));  // a finished completion needs no thread
  const std::string sleep = value_of(queue.describe(), "completion thread");
  // From AMD extension 1.7 on, hsa_amd_signal_wait_any is not used (amd_extension.hpp).
  uint16_t major = 0, minor = 0;
  hsa_system_get_info(std::bit_cast<hsa_system_info_t>(0x207), &major);
  hsa_system_get_info(std::bit_cast<hsa_system_info_t>(0x208), &minor);
  CHECK(sleep.starts_with(major * 100 + minor >= 107 ? "sleeps until a signal handler wakes it"
                                                     : "sleeps in hsa_amd_signal_wait_any"));
  hsa_signal_store_screlease(gate.handle(), 0);
  queue.wait();
}

TEST_CASE_METHOD(OnDevice, "Streams describe their queues, launches and copies", "[describe]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto counter = program.kernel<uint32_t*>("count_work_items");
  const DeviceBuffer<uint32_t> items{gpu, 1 << 20};
  const std::vector<uint32_t> host(items.size());
  Streams streams{gpu, {.hardware_queues = 2, .own_queues = 3, .queue = {.packets = 64}}};
  CHECK(value_of(streams.describe(), "shared hardware queues") ==
        "0, of at most 2 for each priority and mask");
  Stream one{streams}, two{streams}, three{streams};
  Stream fast{streams, {.priority = StreamPriority::high}};
  one.launch(counter, Grid{64}, items.data());
  two.copy(items, std::span(host));
  streams.synchronize();
  const std::string text = streams.describe();
  INFO(text);
  CHECK(value_of(text, "shared hardware queues") == "3, of at most 2 for each priority and mask");
  CHECK(value_of(text, "queues of streams that wait for the host") == "0, of at most 3");
  CHECK(contains(text, "shared queue, priority normal, 2 streams\n"));
  CHECK(contains(text, "shared queue, priority normal, 1 streams\n"));
  CHECK(contains(text, "shared queue, priority high, 1 streams\n"));
  CHECK(contains(text, "    compute units: all\n"));
  CHECK(value_of(text, "copies so far")
            .ends_with(": 1, " + std::to_string(items.size() * 4) + " bytes"));
  size_t queues = 0;
  for (size_t at = 0;
       (at = text.find("  publication: indices by direct access", at)) != std::string::npos; ++at)
    ++queues;
  CHECK(queues == streams.hardware_queues());
}

TEST_CASE_METHOD(OnDevice, "Streams describe where arguments are, and what they acquire for them",
                 "[describe]") {
  const auto described = [&](KernargPlacement placement, const char* line) {
    const Streams streams{gpu, {.queue = {.packets = 64, .kernargs = placement}}};
    return value_of(streams.describe(), line);
  };
  CHECK(described(KernargPlacement::host, "kernargs") ==
        "in host memory (placement host memory: asked for)");
  CHECK(described(KernargPlacement::host, "launches acquire").starts_with("at agent scope"));
  CHECK(described(KernargPlacement::device, "kernargs")
            .starts_with("in device memory (placement device memory: asked for"));
  // The host's stores invalidate the copies in gfx942's L2s alone.
  CHECK(described(KernargPlacement::device, "launches acquire")
            .starts_with(gpu.name() == "gfx942" ? "at agent scope" : "at system scope"));
  // An epoch is at most a quarter of the ring.
  CHECK(described(KernargPlacement::host, "completion signals") ==
        "with markers, and with at least one launch of 16 of a queue");
}

TEST_CASE("after the end of the Runtime there is nothing to describe", "[describe]") {
  std::optional<Runtime> runtime;
  runtime.emplace();
  Queue queue{runtime->gpu()};
  Streams streams{runtime->gpu()};
  const Stream stream{streams};
  Runtime moved(std::move(*runtime));
  CHECK(contains(error_of([&] { (void)runtime->describe(); }), "this one was moved from"));
  CHECK_NOTHROW(moved.describe());
  { const Runtime last(std::move(moved)); }
  runtime.reset();
  CHECK(contains(error_of([&] { (void)queue.describe(); }), "the Runtime was destroyed"));
  CHECK(contains(error_of([&] { (void)streams.describe(); }), "the Runtime was destroyed"));
}
