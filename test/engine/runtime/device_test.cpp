// The engine on a real HSA runtime: start and end, agents, memory, copies, programs. Runs on any
// device that HSA finds; in CI on the virtual GPU.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <uptempo/topology/topology.hpp>
#include "test/engine/error_code.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::OnDevice;

// In static storage: destroyed after every Runtime of this process.
std::optional<DeviceBuffer<uint32_t>> static_buffer;
std::optional<Queue> static_queue;
std::optional<Program> static_program;
std::optional<Signal> static_signal;

}  // namespace

TEST_CASE("a runtime starts, ends and starts again in one process", "[runtime]") {
  for (int round = 0; round < 5; ++round) {
    const Runtime runtime;
    const Agent gpu = runtime.gpu();
    CHECK(gpu.is_gpu());
    CHECK(gpu.properties().wavefront_size == 64);
    CHECK(gpu.properties().compute_units > 0);
    CHECK(gpu.isa().starts_with("amdgcn-amd-amdhsa--" + gpu.name()));
    CHECK(runtime.host().properties().type == HSA_DEVICE_TYPE_CPU);
    Queue queue{gpu};
    DeviceBuffer<uint32_t> buffer{gpu, 1000};
    CHECK(buffer.size() == 1000);
  }
}

TEST_CASE("two runtimes share one session, which ends with the second", "[runtime]") {
  std::optional<Runtime> first;
  first.emplace();
  {
    const Runtime second;
    CHECK(second.gpu() == first->gpu());
  }
  DeviceBuffer<int> still_works{first->gpu(), 1};
  first.reset();
  CHECK(contains(error_of<Error>([] { Signal signal; }), "no Runtime exists"));
}

TEST_CASE_METHOD(OnDevice,
                 "a request for an agent that does not exist is refused and lists those that exist",
                 "[runtime]") {
  const std::string error = error_of<Error>([&] { runtime.gpu(99); });
  CHECK(contains(error, "no GPU agent with index 99"));
  CHECK(contains(error, "is a CPU"));
  CHECK(contains(error, "is GPU 0"));
}

TEST_CASE_METHOD(OnDevice, "a GPU is selected by index, UUID or PCI address", "[runtime]") {
  const AgentProperties& properties = gpu.properties();
  const std::string address = pci_address(properties);
  CHECK(runtime.gpu("0") == gpu);
  CHECK(runtime.gpu(address) == gpu);
  REQUIRE(properties.uuid.starts_with("GPU-"));
  CHECK(properties.uuid.size() == 20);
  CHECK(runtime.gpu(properties.uuid) == gpu);
  std::string lower = properties.uuid;
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  CHECK(runtime.gpu(lower) == gpu);
  if (address.starts_with("0000:")) CHECK(runtime.gpu(address.substr(5)) == gpu);
  for (const char* unknown : {"", "1", "00", "GPU-", "GPU-0", "0001:00:00.0", "gfx90a"}) {
    const std::string error = error_of<Error>([&] { runtime.gpu(unknown); });
    CHECK(contains(error, "GPU '" + std::string(unknown) + "'"));
    CHECK(contains(error, "GPU 0 (" + properties.name + ", " + properties.uuid + ", " + address));
  }
}

TEST_CASE_METHOD(OnDevice, "a queue smaller than the agent's smallest gets that size",
                 "[runtime]") {
  Queue queue{gpu, {.packets = 1}};
  BatchSubmitter batch{queue};
  const Program program(gpu, builtin_kernels::basics());
  for (int i = 0; i < 8; ++i) batch.dispatch(program.kernel<>("empty"), Grid{64});
  batch.submit().wait();
}

TEST_CASE("objects that outlive the runtime are harmless", "[runtime]") {
  Completion submitted;
  std::string target;
  {
    const Runtime runtime;
    const Agent gpu = runtime.gpu();
    target = gpu.name();
    static_buffer.emplace(gpu, 4096);
    static_queue.emplace(gpu);
    static_program.emplace(gpu, builtin_kernels::basics());
    static_signal.emplace();
    BatchSubmitter batch{*static_queue};
    batch.dispatch(static_program->kernel<>("empty"), Grid{64});
    submitted = batch.submit();
    submitted.wait();
  }
  CHECK(submitted.ready());
  CHECK_FALSE(static_signal->alive());
  CHECK(static_program->target() == target);
  // The session has released everything; these destructors have nothing to do.
  static_queue.reset();
  static_buffer.reset();
  static_program.reset();
  static_signal.reset();
  const Runtime again;
  static_buffer.emplace(again.gpu(), 16);  // destroyed at the end of the process
  static_queue.emplace(again.gpu());
}

TEST_CASE_METHOD(OnDevice, "each kind of memory is found, sized and aligned", "[memory]") {
  for (const MemoryKind kind :
       {MemoryKind::device, MemoryKind::pinned, MemoryKind::pinned_coarse, MemoryKind::kernarg}) {
    const MemoryPool pool = find_pool(gpu, kind);
    CHECK(pool.size_bytes > 0);
    CHECK((pool.owner.handle == gpu.handle().handle) == (kind == MemoryKind::device));
  }
  KernargBuffer kernargs{gpu, 100};
  CHECK(reinterpret_cast<uintptr_t>(kernargs.data()) % 64 == 0);
  CHECK(kernargs.size_bytes() == 100);
}

TEST_CASE_METHOD(
    OnDevice,
    "an impossible allocation is an error that names the requested and the available size",
    "[memory]") {
  CHECK(contains(error_of<Error>([&] { DeviceBuffer<char>{gpu, 0}; }), "a size of zero"));
  CHECK(contains(error_of<Error>([&] {
                   DeviceBuffer<uint64_t>{gpu, SIZE_MAX / 4};
                 }),
                 "more than the address space holds"));
  CHECK(contains(error_of<Error>([&] {
                   DeviceBuffer<char>{gpu, size_t{1} << 46};
                 }),
                 "bytes of device memory for agent " + gpu.name()));
}

TEST_CASE_METHOD(OnDevice, "a program lists its kernels and checks argument types", "[program]") {
  const Program program{gpu, builtin_kernels::bitonic_sort()};
  CHECK(program.target() == gpu.name());
  CHECK(program.kernel_names() == std::vector<std::string>{"bitonic_sort"});
  const auto sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
  CHECK(sort.info().object != 0);
  CHECK(contains(error_of<Error>([&] { program.kernel<>("merge_sort"); }),
                 "the program has bitonic_sort"));
  CHECK(contains(error_of<Error>([&] { program.kernel<uint32_t*>("bitonic_sort"); }),
                 "1 arguments: the kernel takes 4"));
}

TEST_CASE_METHOD(OnDevice, "what set-up refuses has a code", "[runtime]") {
  const Program program{gpu, builtin_kernels::bitonic_sort()};
  CHECK(test::code_of_error([&] { runtime.gpu(99); }) == "unavailable");
  CHECK(test::code_of_error([&] { program.kernel<>("merge_sort"); }) == "program");
  CHECK(test::code_of_error([&] { program.kernel<uint32_t*>("bitonic_sort"); }) == "argument");
  CHECK(test::code_of_error([&] { Program(gpu, std::filesystem::path("/nonexistent")); }) ==
        "file");
  CHECK(test::code_of_error([&] { Program(gpu, std::as_bytes(std::span("no code object"))); }) ==
        "program");
  CHECK(test::code_of_error([&] { DeviceBuffer<char>{gpu, size_t{1} << 46}; }) == "memory");
}

TEST_CASE_METHOD(OnDevice, "the driver's topology can be read without a runtime", "[topology]") {
  const size_t alone = read_gpu_topology().size();
  CHECK(alone > 0);
  CHECK(runtime.gpus().size() == alone);
  CHECK(read_gpu_topology().size() == alone);
}

TEST_CASE_METHOD(OnDevice, "the driver's topology describes the agent", "[topology]") {
  const AgentProperties& agent = gpu.properties();
  const std::vector<GpuTopology> all = read_gpu_topology();
  const auto found = std::ranges::find(all, agent.node, &GpuTopology::node);
  REQUIRE(found != all.end());
  const GpuTopology& topology = *found;
  uint32_t chip_id = 0;
  constexpr int kAttribute = HSA_AMD_AGENT_INFO_CHIP_ID;
  REQUIRE(hsa_agent_get_info(gpu.handle(), std::bit_cast<hsa_agent_info_t>(kAttribute), &chip_id) ==
          HSA_STATUS_SUCCESS);
  CHECK(topology.device_id == chip_id);
  uint32_t simds = 0;  // of a compute unit
  constexpr int kSimds = HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU;
  REQUIRE(hsa_agent_get_info(gpu.handle(), std::bit_cast<hsa_agent_info_t>(kSimds), &simds) ==
          HSA_STATUS_SUCCESS);
  CHECK(topology.simds == agent.compute_units * simds);
  CHECK(topology.bdf_id == agent.bdf_id);
  CHECK(topology.compute_queues > 0);
  CHECK(topology.sdma_engines + topology.sdma_xgmi_engines > 0);
  CHECK(topology.doorbell == DoorbellType::version_2);
  CHECK(topology.local_memory_bytes > 0);
  // ROCr still works after the read.
  const DeviceBuffer<int> buffer{gpu, 10};
  CHECK(buffer.data() != nullptr);
}

// The next test case runs this in a process of its own.
TEST_CASE_METHOD(OnDevice, "child: leaves a Runtime behind", "[.child]") {
  static Runtime* const left = new Runtime;
  CHECK(left->gpu() == gpu);
}

TEST_CASE("a test that leaves a Runtime behind fails at its end", "[runtime]") {
  const char* const options = std::getenv("ASAN_OPTIONS");  // ROCr leaks with the Runtime
  const auto result = test::run_command(
      {"/proc/self/exe", "child: leaves a Runtime behind"},
      {.environment = {"ASAN_OPTIONS=" + std::string(options == nullptr ? "" : options) +
                       ":detect_leaks=0"}});
  CAPTURE(result.out, result.err);
  // Catch2 2 ends with the number of failed assertions, Catch2 3.7 with 42.
  CHECK((result.exit_code == 1 || result.exit_code == 42));
  CHECK(contains(result.out, "left == idle()"));
}
