// Where waves run, read by kernels from HW_ID through unmodified ROCr: the device's topology, CU
// masks, and the order of queues with different priorities. Expected numbers are those that ROCr
// reports, and the sets of masks are written down from the mapping that Linux documents.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <uptempo/kernels/placement.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "incoherent/device.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::test {
namespace {

// HW_ID as HIP's amd_device_functions.h describes it, with the third bit of SE_ID. On gfx942 SE_ID
// counts the engines of an XCD, whose number is in XCC_ID; `engine` counts those of the device.
struct Place {
  Place(uint32_t id, uint32_t the_xcd, uint32_t engines_per_xcd)
      : slot(id & 0xf),
        simd(id >> 4 & 3),
        unit(id >> 8 & 0xf),
        array(id >> 12 & 1),
        xcd(the_xcd),
        engine(the_xcd * engines_per_xcd + (id >> 13 & 7)),
        group(id >> 16 & 0xf),
        micro_engine(id >> 30) {}
  uint32_t slot, simd, unit, array, xcd, engine, group, micro_engine;

  std::pair<uint32_t, uint32_t> compute_unit() const { return {engine, unit}; }
};
using Units = std::set<std::pair<uint32_t, uint32_t>>;  // engine, unit

class Placement {
 public:
  Placement() : device(kernels::placement()) {
    char name[64] = {};
    check(hsa_agent_get_info(device.gpu, HSA_AGENT_INFO_NAME, name), "the agent's name");
    target = name;
    engines = info(HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES);
    units = info(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT);
    simds = info(HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU);
    waves_per_unit = info(HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU);
    units_per_engine = (units + engines - 1) / engines;
    // AMD, "AMD CDNA 3 architecture" (whitepaper): eight XCDs. ROCr 6.1 does not report them.
    xcds = target == "gfx942" ? 8 : 1;
  }
  ~Placement() {
    for (hsa_queue_t* created : queues_) CHECK(hsa_queue_destroy(created) == HSA_STATUS_SUCCESS);
    for (const hsa_signal_t created : signals_)
      CHECK(hsa_signal_destroy(created) == HSA_STATUS_SUCCESS);
  }

  hsa_queue_t* queue() {
    hsa_queue_t* created = nullptr;
    REQUIRE(hsa_queue_create(device.gpu, 256, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX,
                             UINT32_MAX, &created) == HSA_STATUS_SUCCESS);
    queues_.push_back(created);
    return created;
  }

  hsa_signal_t signal(hsa_signal_value_t value) {
    hsa_signal_t created{};
    REQUIRE(hsa_signal_create(value, 0, nullptr, &created) == HSA_STATUS_SUCCESS);
    signals_.push_back(created);
    return created;
  }

  // Writes one packet and its header last, without the doorbell. Dispatches may run concurrently.
  template <typename Packet>
  static void write(hsa_queue_t* queue, Packet packet, hsa_packet_type_t type, uint16_t setup) {
    const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    REQUIRE(index < queue->size);
    auto& slot = static_cast<Packet*>(queue->base_address)[index];
    const auto header =
        static_cast<uint16_t>(type << HSA_PACKET_HEADER_TYPE |
                              HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                              HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    packet.header = HSA_PACKET_TYPE_INVALID;
    slot = packet;
    __atomic_store_n(reinterpret_cast<uint32_t*>(&slot), header | uint32_t{setup} << 16,
                     __ATOMIC_RELEASE);
  }
  static void ring(hsa_queue_t* queue) {
    hsa_signal_store_screlease(
        queue->doorbell_signal,
        static_cast<hsa_signal_value_t>(hsa_queue_load_write_index_relaxed(queue) - 1));
  }

  static hsa_kernel_dispatch_packet_t dispatch(const TestDevice::Kernel& kernel, uint32_t groups,
                                               uint16_t work_items,
                                               const TestDevice::Arguments& arguments,
                                               hsa_signal_t done) {
    hsa_kernel_dispatch_packet_t packet{};
    packet.workgroup_size_x = work_items;
    packet.workgroup_size_y = packet.workgroup_size_z = 1;
    packet.grid_size_x = groups * work_items;
    packet.grid_size_y = packet.grid_size_z = 1;
    packet.kernel_object = kernel.object;
    packet.kernarg_address = arguments.address();
    packet.completion_signal = done;
    return packet;
  }

  // Runs `groups` workgroups, all resident at once if `together`, and returns the place of each
  // wave, workgroup after workgroup.
  std::vector<Place> run(hsa_queue_t* queue, uint32_t groups, uint16_t work_items, bool together) {
    const size_t waves = size_t{groups} * ((work_items + 63u) / 64);
    const auto ids = device.allocate(Memory::host_fine, 2 * waves);
    const auto arrived = device.allocate(Memory::host_fine, 1);
    const auto arguments =
        device.arguments().add(ids.data()).add(arrived.data()).add<uint32_t>(together ? groups : 0);
    const hsa_signal_t done = signal(1);
    write(queue, dispatch(device.kernel("where"), groups, work_items, arguments, done),
          HSA_PACKET_TYPE_KERNEL_DISPATCH, 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS);
    ring(queue);
    REQUIRE(wait(done));
    std::vector<Place> places;
    for (size_t wave = 0; wave < waves; ++wave)
      places.emplace_back(ids.data()[2 * wave], ids.data()[2 * wave + 1], engines / xcds);
    return places;
  }

  static bool wait(hsa_signal_t signal) {
    return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                     HSA_WAIT_STATE_BLOCKED) == 0;
  }

  static Units units_of(const std::vector<Place>& places) {
    Units found;
    for (const Place& place : places) found.insert(place.compute_unit());
    return found;
  }

  // An XCD of gfx942 has engines of 10 and of 9 units, which take workgroups in turn. So as many
  // workgroups as units, beginning at a small engine, visit up to two units of an XCD twice, and two
  // not at all.
  bool engines_are_equal() const { return units % engines == 0; }
  bool are_all(size_t visited) const {
    return visited <= units && visited >= units - (engines_are_equal() ? 0 : 2 * xcds);
  }

  TestDevice device;
  std::string target;
  // engines and units: of all XCDs; units_per_engine: of the largest
  uint32_t engines = 0, units = 0, simds = 0, waves_per_unit = 0, units_per_engine = 0, xcds = 0;

 private:
  uint32_t info(hsa_amd_agent_info_t attribute) {
    uint32_t value = 0;
    check(hsa_agent_get_info(device.gpu, static_cast<hsa_agent_info_t>(attribute), &value),
          "the topology");
    return value;
  }

  std::vector<hsa_queue_t*> queues_;
  std::vector<hsa_signal_t> signals_;
};

}  // namespace

TEST_CASE("waves of a workgroup share a compute unit and have different wave slots",
          "[every_seed]") {
  Placement gpu;
  constexpr uint32_t kGroups = 10, kWaves = 16;
  const auto places = gpu.run(gpu.queue(), kGroups, 1024, false);
  for (uint32_t group = 0; group < kGroups; ++group) {
    std::set<std::pair<uint32_t, uint32_t>> slots;
    const Place& first = places[group * kWaves];
    CHECK(first.engine < gpu.engines);
    CHECK(first.unit < gpu.units_per_engine);
    for (uint32_t wave = 0; wave < kWaves; ++wave) {
      const Place& place = places[group * kWaves + wave];
      CHECK(place.compute_unit() == first.compute_unit());
      CHECK(place.group == first.group);
      CHECK(place.array == 0);
      CHECK(place.micro_engine == 1);
      CHECK(place.simd < gpu.simds);
      CHECK(place.slot < gpu.waves_per_unit / gpu.simds);
      CHECK(slots.emplace(place.simd, place.slot).second);
    }
  }
}

TEST_CASE("workgroups visit every compute unit in turn") {
  Placement gpu;
  hsa_queue_t* const queue = gpu.queue();
  for (int round = 0; round < 3; ++round) {
    std::map<std::pair<uint32_t, uint32_t>, unsigned> visits;
    for (const Place& place : gpu.run(queue, gpu.units, 64, false)) ++visits[place.compute_unit()];
    CHECK(gpu.are_all(visits.size()));
    for (const auto& [unit, count] : visits) CHECK(count <= (gpu.engines_are_equal() ? 1u : 2u));
  }
  // Small dispatches continue where the one before ended, on each XCD.
  std::vector<uint32_t> engines;
  while (engines.size() < gpu.engines)
    for (const Place& place : gpu.run(queue, gpu.xcds, 64, false)) engines.push_back(place.engine);
  std::sort(engines.begin(), engines.end());
  for (uint32_t engine = 0; engine < gpu.engines; ++engine) CHECK(engines[engine] == engine);
}

TEST_CASE("workgroups are dealt to the XCDs in turn, from the queue's first one") {
  Placement gpu;
  hsa_queue_t* const queue = gpu.queue();
  std::optional<uint32_t> first;
  for (int round = 0; round < 3; ++round) {
    const auto places = gpu.run(queue, 3 * gpu.xcds + 1, 64, false);
    if (!first) first = places.front().xcd;
    for (uint32_t group = 0; group < places.size(); ++group)
      CHECK(places[group].xcd == (*first + group) % gpu.xcds);
  }
}

TEST_CASE("waves that are resident at once occupy every wave slot of the device, each one") {
  Placement gpu;
  constexpr uint32_t kWaves = 4;
  const uint32_t groups = gpu.units * gpu.waves_per_unit / kWaves;
  hsa_queue_t* const queue = gpu.queue();
  for (int round = 0; round < 2; ++round) {  // the second one uses the slots of the first
    const auto places = gpu.run(queue, groups, 64 * kWaves, true);
    std::set<std::pair<std::pair<uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>>> slots;
    for (const Place& place : places)
      slots.insert({place.compute_unit(), {place.simd, place.slot}});
    CHECK(slots.size() == gpu.units * gpu.waves_per_unit);
    // Workgroups of one compute unit have different numbers.
    std::set<std::pair<std::pair<uint32_t, uint32_t>, uint32_t>> numbers;
    for (size_t wave = 0; wave < places.size(); wave += kWaves)
      numbers.insert({places[wave].compute_unit(), places[wave].group});
    CHECK(numbers.size() == groups);
  }
}

TEST_CASE("a queue's workgroups run on the compute units of its mask alone") {
  struct Case {
    std::vector<uint32_t> mask;
    Units units;
  };
  // 8 engines: bit b is unit b / 8 of engine b % 8. 4 engines: unit b / 4 of engine b % 4.
  const std::map<std::string, std::vector<Case>> cases{
      {"gfx90a",
       {{{0x00000001, 0, 0, 0}, {{0, 0}}},
        {{0x00010101, 0, 0, 0}, {{0, 0}, {0, 1}, {0, 2}}},
        {{0x00008003, 0, 0, 0x80}, {{0, 0}, {1, 0}, {7, 1}, {7, 12}}},
        {{0, 0x00000210, 0, 0}, {{4, 4}, {1, 5}}}}},
      {"gfx908",
       {{{0x00000001, 0, 0, 0}, {{0, 0}}},
        {{0x00010101, 0, 0, 0}, {{0, 0}, {0, 1}, {0, 2}}},
        {{0x00008003, 0, 0, 0x00800000}, {{0, 0}, {1, 0}, {7, 1}, {7, 14}}}}},
      {"gfx906",
       {{{0x00000001, 0}, {{0, 0}}},
        {{0x00000111, 0}, {{0, 0}, {0, 1}, {0, 2}}},
        {{0x00000083, 0x80000000}, {{0, 0}, {1, 0}, {3, 1}, {3, 15}}}}},
      {"gfx900",
       {{{0x00000001, 0}, {{0, 0}}},
        {{0x00000083, 0x80000000}, {{0, 0}, {1, 0}, {3, 1}, {3, 15}}}}},
      // Bit b is bit b / 8 of XCD b % 8; that one is unit b / 32 of the XCD's engine b / 8 % 4.
      {"gfx942",
       {{{0x00000001}, {{0, 0}}},
        {{0x00000101, 0x00000001}, {{0, 0}, {1, 0}, {0, 1}}},
        {{0x00008003}, {{0, 0}, {4, 0}, {29, 0}}}}}};
  Placement gpu;
  hsa_queue_t* const masked = gpu.queue();
  hsa_queue_t* const other = gpu.queue();
  for (const Case& each : cases.at(gpu.target)) {
    REQUIRE(hsa_amd_queue_cu_set_mask(masked, static_cast<uint32_t>(each.mask.size() * 32),
                                      each.mask.data()) == HSA_STATUS_SUCCESS);
    CHECK(Placement::units_of(gpu.run(masked, 64, 256, false)) == each.units);
    CHECK(gpu.are_all(Placement::units_of(gpu.run(other, gpu.units, 64, false)).size()));
  }
  REQUIRE(hsa_amd_queue_cu_set_mask(masked, 0, nullptr) == HSA_STATUS_SUCCESS);
  CHECK(gpu.are_all(Placement::units_of(gpu.run(masked, gpu.units, 64, false)).size()));
}

TEST_CASE("workgroups never run outside of their queue's mask", "[every_seed]") {
  Placement gpu;
  hsa_queue_t* const queue = gpu.queue();
  // Without the mask, a device that uses few units would run on unit 0 of engine 0.
  const std::vector<uint32_t> mask{0x0000c002, 0};
  const Units units = gpu.xcds == 8      ? Units{{4, 0}, {25, 0}, {29, 0}}
                      : gpu.engines == 8 ? Units{{1, 0}, {6, 1}, {7, 1}}
                                         : Units{{1, 0}, {2, 3}, {3, 3}};
  REQUIRE(hsa_amd_queue_cu_set_mask(queue, 64, mask.data()) == HSA_STATUS_SUCCESS);
  const Units used = Placement::units_of(gpu.run(queue, 64, 256, false));
  CHECK(!used.empty());
  CHECK(std::includes(units.begin(), units.end(), used.begin(), used.end()));
}

TEST_CASE("one compute unit holds as many workgroups at once as its wave slots do") {
  Placement gpu;
  hsa_queue_t* const queue = gpu.queue();
  // unit 0 of engine 2, or of the first engine of XCD 2
  const std::vector<uint32_t> mask{0x4, 0};
  REQUIRE(hsa_amd_queue_cu_set_mask(queue, 64, mask.data()) == HSA_STATUS_SUCCESS);
  constexpr uint32_t kWaves = 4;
  const uint32_t groups = gpu.waves_per_unit / kWaves;
  std::set<std::pair<uint32_t, uint32_t>> slots;
  const auto places = gpu.run(queue, groups, 64 * kWaves, true);
  for (const Place& place : places) slots.emplace(place.simd, place.slot);
  CHECK(Placement::units_of(places) == Units{{gpu.xcds == 8 ? 8u : 2u, 0}});
  CHECK(slots.size() == gpu.waves_per_unit);
}

TEST_CASE("workgroups of queues with higher priority start first", "[priority]") {
  Placement gpu;
  struct Ranked {
    hsa_amd_queue_priority_t priority;
    uint32_t name;
  };
  constexpr uint32_t kDispatches = 4, kGroups = 50;
  constexpr Ranked kQueues[] = {{HSA_AMD_QUEUE_PRIORITY_LOW, 1},
                                {HSA_AMD_QUEUE_PRIORITY_NORMAL, 2},
                                {HSA_AMD_QUEUE_PRIORITY_HIGH, 3}};
  constexpr size_t kTotal = std::size(kQueues) * kDispatches * kGroups;
  const auto order = gpu.device.allocate(Memory::host_fine, kTotal);
  const auto count = gpu.device.allocate(Memory::host_fine, 1);
  const auto sign = gpu.device.kernel("sign");
  // All queues wait for the gate. The device reads every queue before it starts a workgroup.
  const hsa_signal_t gate = gpu.signal(1);
  const hsa_signal_t done = gpu.signal(std::size(kQueues) * kDispatches);
  for (const Ranked& each : kQueues) {
    hsa_queue_t* const queue = gpu.queue();
    REQUIRE(hsa_amd_queue_set_priority(queue, each.priority) == HSA_STATUS_SUCCESS);
    hsa_barrier_and_packet_t barrier{};
    barrier.dep_signal[0] = gate;
    Placement::write(queue, barrier, HSA_PACKET_TYPE_BARRIER_AND, 0);
    for (uint32_t dispatch = 0; dispatch < kDispatches; ++dispatch) {
      const auto arguments =
          gpu.device.arguments().add(order.data()).add(count.data()).add(each.name);
      Placement::write(queue, Placement::dispatch(sign, kGroups, 64, arguments, done),
                       HSA_PACKET_TYPE_KERNEL_DISPATCH,
                       1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS);
    }
    Placement::ring(queue);
  }
  hsa_signal_store_screlease(gate, 0);
  REQUIRE(Placement::wait(done));
  for (const Ranked& each : kQueues)
    CHECK(std::count(order.begin(), order.end(), each.name) == kDispatches * kGroups);
  CHECK(std::is_sorted(order.rbegin(), order.rend()));
}

}  // namespace uptempo::vgpu::test
