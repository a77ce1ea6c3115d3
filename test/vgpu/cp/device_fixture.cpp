#include "device_fixture.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <thread>

#include "test/support/threads.hpp"

namespace uptempo::vgpu::test {

namespace {

constexpr const char* kProcessorThread = "vgpu-cp";
constexpr const char* kHelperThread = "vgpu-worker";

size_t device_threads() {
  return uptempo::test::threads_named(kProcessorThread).size() +
         uptempo::test::threads_named(kHelperThread).size();
}

}  // namespace

bool fires(const amd_signal_t* signal) {
  return eventually([&] { return DeviceFixture::value(signal) == 0; });
}

bool falls_asleep(const std::string& threads) {
  return eventually([&] { return uptempo::test::sleep_all(threads); });
}

void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

void RecordedInterrupts::raise(uint32_t event_id) {
  if (when_raised) when_raised(event_id);
  const std::lock_guard lock(mutex_);
  events_.push_back(event_id);
}

void RecordedInterrupts::memory_fault(const MemoryFault& fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}

unsigned RecordedInterrupts::raised(uint32_t event_id) const {
  const std::lock_guard lock(mutex_);
  return static_cast<unsigned>(std::count(events_.begin(), events_.end(), event_id));
}

std::vector<MemoryFault> RecordedInterrupts::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

Options traced(Options options) {
  options.trace_file = "trace";  // in the fixture's directory
  return options;
}

DeviceFixture::DeviceFixture(Options with)
    : options(std::move(with)), threads_before(device_threads()) {
  options.device = find_device_description("gfx90a");
  if (!options.delay)
    options.delay = Options::from_environment().delay;  // runs all tests with delays
  if (!options.trace_file.empty())
    options.trace_file = directory.emplace().file(options.trace_file);
  trace = std::make_unique<Trace>(options.trace_file);
  void* pages = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  arena = static_cast<std::byte*>(pages);
  Mapping mapping;
  mapping.begin = reinterpret_cast<GpuAddress>(arena);
  mapping.end = mapping.begin + kArenaBytes;
  mapping.host = arena;
  memory.map(mapping);

  const int file = memfd_create("doorbells", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kPageBytes) != 0)
    throw std::runtime_error("no memory file for doorbells");
  program_page = static_cast<std::byte*>(
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  alias_page = static_cast<std::byte*>(
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
#if defined(__SANITIZE_THREAD__)
  // The thread sanitizer treats two mappings of one page as two memories without order between
  // them. Recording needs both, because its handler stores through the alias.
  if (options.trace_file.empty()) {
    munmap(alias_page, kPageBytes);
    alias_page = program_page;
  }
#endif
  close(file);

  if (options.checks.fences)
    checker = std::make_unique<fences::Checker>(
        fences::JudgeOptions{.specification = options.checks.specification},
        [this](const auto& finding) {
          const std::lock_guard lock(findings_mutex_);
          findings_.push_back(finding);
        });
  if (options.incoherent)
    caches = std::make_unique<Caches>(*options.device,
                                      CacheHabits{.seed = *options.incoherent, .compute_units = 4});
  device.reset(new Device{options, memory, interrupts, *trace, checker.get(), nullptr, caches.get(),
                          &counts});
  processor = std::make_unique<CommandProcessor>(*device);
  processor->attach_doorbell_page(program_page, alias_page, kPageBytes);
}

DeviceFixture::~DeviceFixture() {
  processor.reset();
  for (ScriptedKernel* scripted : kernels) scripted->~ScriptedKernel();
  memory.unmap(reinterpret_cast<GpuAddress>(arena));
  munmap(arena, kArenaBytes);
  munmap(program_page, kPageBytes);
  if (alias_page != program_page) munmap(alias_page, kPageBytes);
  // The kernel removes a thread a little after the thread can be joined.
  if (!eventually([&] { return device_threads() <= threads_before; })) {
    std::fputs("DeviceFixture: a thread of the device outlives it\n", stderr);
    std::abort();
  }
}

std::vector<fences::Finding> DeviceFixture::findings() const {
  const std::lock_guard lock(findings_mutex_);
  return findings_;
}

void* DeviceFixture::allocate(size_t size_bytes, size_t alignment) {
  used = (used + alignment - 1) / alignment * alignment;
  if (used + size_bytes > kArenaBytes) throw std::bad_alloc();
  void* result = arena + used;
  used += size_bytes;
  return result;
}

amd_signal_t* DeviceFixture::signal(int64_t initial, uint32_t event_id) {
  auto* created = allocate_object<amd_signal_t>();
  created->kind = AMD_SIGNAL_KIND_USER;
  created->value = initial;
  created->event_id = event_id;
  if (event_id != 0) created->event_mailbox_ptr = address(allocate_object<uint64_t>());
  return created;
}

int64_t DeviceFixture::value(const amd_signal_t* signal) {
  return std::atomic_ref<int64_t>(const_cast<int64_t&>(signal->value))
      .load(std::memory_order_acquire);
}

void DeviceFixture::set(amd_signal_t* signal, int64_t value) {
  std::atomic_ref<int64_t>(const_cast<int64_t&>(signal->value))
      .store(value, std::memory_order_release);
}

ScriptedKernel* DeviceFixture::kernel(Body body) {
  auto* created = new (allocate_object<ScriptedKernel>()) ScriptedKernel;
  created->body = std::move(body);
  kernels.push_back(created);
  return created;
}

void DeviceFixture::end_turn() {
  processor->set_cu_mask(0, {});  // runs between two turns; no queue has this number
}

DeviceFixture::Doorbell DeviceFixture::doorbell(uint64_t initial) {
  const size_t offset = doorbells++ * sizeof(uint64_t);
  const Doorbell slot{reinterpret_cast<uint64_t*>(program_page + offset),
                      reinterpret_cast<uint64_t*>(alias_page + offset)};
  std::atomic_ref<uint64_t>(*slot.alias).store(initial, std::memory_order_relaxed);
  return slot;
}

void DeviceFixture::detach_doorbells() { processor->detach_doorbell_page(program_page); }

std::vector<std::string> DeviceFixture::trace_lines() const {
  std::vector<std::string> lines;
  std::ifstream stream(options.trace_file);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

ComputeQueue::ComputeQueue(DeviceFixture& fixture, uint32_t packet_count, bool suspended)
    : packets(packet_count), fixture_(fixture) {
  static std::atomic<uint32_t> next_event{1000};
  ring_ = static_cast<std::byte*>(fixture.allocate(packets * 64, 4096));
  queue = fixture.allocate_object<amd_queue_t>();
  inactive = fixture.signal(0, next_event++);
  exception_word = fixture.allocate_object<uint64_t>();
  save_area = fixture.allocate_object<uint32_t>(10);
  std::memcpy(save_area + 6, &exception_word, sizeof exception_word);
  save_area[8] = next_event++;
  for (uint64_t index = 0; index < packets; ++index)
    *static_cast<uint16_t*>(slot(index)) = HSA_PACKET_TYPE_INVALID;
  queue->hsa_queue.base_address = ring_;
  queue->hsa_queue.size = packets;
  queue->queue_inactive_signal = DeviceFixture::handle(inactive);
  AMD_HSA_BITS_SET(queue->queue_properties, AMD_QUEUE_PROPERTIES_IS_PTR64, 1);
  bell = fixture.doorbell(~uint64_t{0});
  ComputeQueueConfig config;
  config.ring = DeviceFixture::address(ring_);
  config.ring_bytes = packets * 64;
  config.read_index = reinterpret_cast<GpuAddress>(&queue->read_dispatch_id);
  config.write_index = reinterpret_cast<GpuAddress>(&queue->write_dispatch_id);
  config.doorbell = bell.alias;
  config.percentage = suspended ? 0 : 100;
  config.context_save_area = DeviceFixture::address(save_area);
  id = fixture.processor->create_compute_queue(config);
}

ComputeQueue::~ComputeQueue() { destroy(); }

uint64_t ComputeQueue::exceptions() const {
  return std::atomic_ref(*exception_word).load(std::memory_order_acquire);
}

void ComputeQueue::destroy() {
  if (id != 0 && fixture_.processor != nullptr) fixture_.processor->destroy_queue(id);
  id = 0;
}

uint64_t ComputeQueue::write_bytes(const void* packet) {
  const uint64_t index = write_index();
  if (!eventually([&] { return index - read_index() < packets; }))
    throw std::runtime_error("the ring stays full");
  auto* target = static_cast<std::byte*>(slot(index));
  std::memcpy(target + 4, static_cast<const std::byte*>(packet) + 4, 60);
  uint32_t first;
  std::memcpy(&first, packet, sizeof first);
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(target))
      .store(first, std::memory_order_release);
  set_write_index(index + 1);
  return index;
}

void ComputeQueue::ring(uint64_t value) {
  std::atomic_ref<uint64_t>(*bell.program).store(value, std::memory_order_release);
}

uint64_t ComputeQueue::read_index() const {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(queue->read_dispatch_id))
      .load(std::memory_order_acquire);
}
uint64_t ComputeQueue::write_index() const {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(queue->write_dispatch_id))
      .load(std::memory_order_relaxed);
}
void ComputeQueue::set_write_index(uint64_t index) {
  std::atomic_ref<uint64_t>(const_cast<uint64_t&>(queue->write_dispatch_id))
      .store(index, std::memory_order_release);
}
void* ComputeQueue::slot(uint64_t index) const { return ring_ + index % packets * 64; }
uint16_t ComputeQueue::header(uint64_t index) const {
  return std::atomic_ref<uint16_t>(*static_cast<uint16_t*>(slot(index)))
      .load(std::memory_order_acquire);
}
uint64_t ComputeQueue::error() const {
  return static_cast<uint64_t>(DeviceFixture::value(inactive));
}

void ComputeQueue::set_property(amd_queue_properties_t property, bool on) {
  const std::atomic_ref<amd_queue_properties32_t> properties(queue->queue_properties);
  const auto bit = static_cast<amd_queue_properties32_t>(property);
  if (on) {
    properties |= bit;
  } else {
    properties &= ~bit;
  }
}

hsa_kernel_dispatch_packet_t dispatch(const ScriptedKernel* kernel, uint32_t grid,
                                      uint16_t workgroup, bool barrier,
                                      const amd_signal_t* completion) {
  hsa_kernel_dispatch_packet_t packet{};
  packet.header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier, HSA_FENCE_SCOPE_AGENT,
                            HSA_FENCE_SCOPE_AGENT);
  packet.setup = 1;
  packet.workgroup_size_x = workgroup;
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = grid;
  packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = reinterpret_cast<uint64_t>(kernel);
  packet.completion_signal = DeviceFixture::handle(completion);
  return packet;
}

namespace {

template <typename Packet>
Packet barrier(hsa_packet_type_t type, const std::vector<const amd_signal_t*>& dependencies,
               bool bit, const amd_signal_t* completion) {
  Packet packet{};
  packet.header = header_of(type, bit);
  for (size_t index = 0; index < dependencies.size(); ++index)
    packet.dep_signal[index] = DeviceFixture::handle(dependencies[index]);
  packet.completion_signal = DeviceFixture::handle(completion);
  return packet;
}

}  // namespace

hsa_barrier_and_packet_t barrier_and(std::vector<const amd_signal_t*> dependencies, bool bit,
                                     const amd_signal_t* completion) {
  return barrier<hsa_barrier_and_packet_t>(HSA_PACKET_TYPE_BARRIER_AND, dependencies, bit,
                                           completion);
}

hsa_barrier_or_packet_t barrier_or(std::vector<const amd_signal_t*> dependencies, bool bit,
                                   const amd_signal_t* completion) {
  return barrier<hsa_barrier_or_packet_t>(HSA_PACKET_TYPE_BARRIER_OR, dependencies, bit,
                                          completion);
}

hsa_amd_barrier_value_packet_t barrier_value(const amd_signal_t* signal,
                                             hsa_signal_condition32_t condition, int64_t value,
                                             int64_t mask, const amd_signal_t* completion) {
  hsa_amd_barrier_value_packet_t packet{};
  packet.header.header = header_of(HSA_PACKET_TYPE_VENDOR_SPECIFIC);
  packet.header.AmdFormat = HSA_AMD_PACKET_TYPE_BARRIER_VALUE;
  packet.signal = DeviceFixture::handle(signal);
  packet.value = value;
  packet.mask = mask;
  packet.cond = condition;
  packet.completion_signal = DeviceFixture::handle(completion);
  return packet;
}

}  // namespace uptempo::vgpu::test
