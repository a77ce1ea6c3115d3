// A program under test: waits WAY ROUNDS. In each round, the GPU writes or reads memory, and the
// host reads or writes the same memory after a wait. In ways with a leading "!", the wait is
// missing or is for something else. Prints "right" if the host saw all results, else "wrong".
#include <fcntl.h>
#include <hsa/amd_hsa_signal.h>
#include <unistd.h>
#include <uptempo/kernels/waits.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "incoherent/device.hpp"

namespace {

using namespace uptempo::vgpu::test;

constexpr uint32_t kCount = 256;

using Words = std::span<uint32_t>;

class Waits {
 public:
  Waits() {
    for (hsa_signal_t* signal : {&done_, &other_})
      check(hsa_signal_create(0, 0, nullptr, signal), "hsa_signal_create");
    check(hsa_queue_create(device_.gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX,
                           UINT32_MAX, &queue_),
          "hsa_queue_create");
  }
  ~Waits() {
    check(hsa_queue_destroy(queue_), "hsa_queue_destroy");
    for (const hsa_signal_t signal : {done_, other_})
      check(hsa_signal_destroy(signal), "hsa_signal_destroy");
  }

  // Each way is one round. It leaves nothing that runs.
  using Way = bool (Waits::*)();
  static const std::map<std::string, Way>& ways() {
    static const std::map<std::string, Way> all{
        {"!reads", &Waits::reads_at_once},
        {"!writes", &Waits::writes_at_once},
        {"!writes-arguments", &Waits::writes_arguments_at_once},
        {"!other-signal", &Waits::waits_for_other_signal},
        {"!reads-copy", &Waits::reads_copy_at_once},
        {"!writes-copied", &Waits::writes_copied_at_once},
        {"!system-call", &Waits::system_call_at_once},
        {"!host-signal", &Waits::reads_after_host_signal},
        {"!other-queue", &Waits::reads_after_first_queue},
        {"!copies-out", &Waits::copies_out_at_once},
        {"!reads-freed", &Waits::reads_and_frees},
        {"!writes-freed", &Waits::writes_and_frees},
        {"!reads-last", &Waits::reads_and_ends<std::exit>},
        {"!reads-last-_exit", &Waits::reads_and_ends<_exit>},
        {"!reads-last-quick_exit", &Waits::reads_and_ends<std::quick_exit>},
        {"blocked", &Waits::waits<HSA_WAIT_STATE_BLOCKED>},
        {"active", &Waits::waits<HSA_WAIT_STATE_ACTIVE>},
        {"load", &Waits::loads},
        {"pointer", &Waits::loads_by_pointer},
        {"exchange", &Waits::exchanges},
        {"any", &Waits::waits_for_any},
        {"later-packet", &Waits::waits_for_later_packet},
        {"other-queue", &Waits::waits_for_other_queue},
        {"copy", &Waits::waits_for_copy},
        {"handler", &Waits::waits_for_handler},
        {"thread", &Waits::waits_on_thread},
        {"counter", &Waits::waits_for_counter},
        {"flag", &Waits::waits_for_flag},
        {"host-flag", &Waits::tells_kernel},
        {"host-signal", &Waits::tells_packet},
        {"destroyed", &Waits::destroys_queue},
        {"system-calls", &Waits::system_calls},
        {"writes", &Waits::writes},
    };
    return all;
  }

  bool run(Way way, unsigned rounds) {
    bool right = true;
    for (unsigned round = 0; round < rounds; ++round) {
      value_ += kCount;
      right = (this->*way)() && right;
    }
    return right;
  }

 private:
  // ---- a wait is missing

  bool reads_at_once() {
    produce(done_);
    look(result_[3]);
    return finish();
  }
  bool writes_at_once() {
    consume(done_);
    source_[5] = value_;
    return finish();
  }
  bool writes_arguments_at_once() {
    auto arguments = produce(done_);
    arguments.rewrite().add(result_.data());
    return finish();
  }
  bool waits_for_other_signal() {
    // Signals are neighbours, and the other one has been completed, too.
    consume(other_);
    produce(done_);
    wait(other_);
    look(result_[3]);
    return finish();
  }
  bool reads_copy_at_once() {
    wait_for_source();
    copy(done_);
    look(copied_[3]);
    return finish();
  }
  bool writes_copied_at_once() {
    wait_for_source();
    copy(done_);
    source_[5] = value_;
    return finish();
  }
  bool system_call_at_once() {
    produce(done_);
    std::fflush(stdout);
    const int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool written = write(file, result_.data(), result_.size_bytes()) ==
                         static_cast<ssize_t>(result_.size_bytes());
    close(file);
    return finish() && written;
  }

  bool reads_after_host_signal() {
    hsa_signal_store_relaxed(other_, 1);
    barrier(device_.queue(), other_, {});
    produce(done_);
    hsa_signal_store_screlease(other_, 0);
    look(result_[3]);
    return finish();
  }
  // The dispatch in the second queue waits for the first one's. The host waits for the first only.
  bool reads_after_first_queue() {
    hsa_signal_store_relaxed(done_, 1);
    hsa_signal_store_relaxed(other_, 1);
    barrier(queue_, other_, {});
    dispatch(iota_, kCount, result_arguments(), done_, queue_);
    dispatch(copy_, kCount, copy_arguments(), other_);
    wait(other_);
    look(result_[3]);
    return finish();
  }

  // A function of libc reads, on a thread of its own.
  bool copies_out_at_once() {
    std::thread([&] {
      produce(done_);
      volatile size_t bytes = result_.size_bytes();  // no inline code
      std::memcpy(copied_.data(), result_.data(), bytes);
    }).join();
    return finish();
  }
  // The memory is freed before the queue has another packet.
  bool reads_and_frees() {
    const Words words = device_.allocate(Memory::host_fine, kCount);
    hsa_signal_store_relaxed(done_, 1);
    dispatch(iota_, kCount, device_arguments().add(words.data()).add(value_), done_);
    look(words[3]);
    device_.free(words.data());
    return finish();
  }
  bool writes_and_frees() {
    const Words words = device_.allocate(Memory::host_fine, kCount);
    hsa_signal_store_relaxed(done_, 1);
    dispatch(copy_, kCount, device_arguments().add(copied_.data()).add(words.data()), done_);
    words[5] = value_;
    device_.free(words.data());
    return finish();
  }
  // The last act of the process.
  template <void (*kEnd)(int)>
  bool reads_and_ends() {
    produce(done_);
    look(result_[3]);
    std::puts("right");
    std::fflush(stdout);
    kEnd(3);
    return false;
  }

  // ---- correct

  template <hsa_wait_state_t kState>
  bool waits() {
    produce(done_);
    while (hsa_signal_wait_scacquire(done_, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, kState) > 0)
      continue;
    return holds(result_);
  }
  bool loads() {
    produce(done_);
    while (hsa_signal_load_scacquire(done_) != 0) continue;
    return holds(result_);
  }
  bool loads_by_pointer() {
    produce(done_);
    auto* const signal = reinterpret_cast<amd_signal_t*>(done_.handle);
    auto& value = const_cast<int64_t&>(signal->value);
    while (std::atomic_ref<int64_t>(value).load(std::memory_order_acquire) != 0) continue;
    return holds(result_);
  }
  bool exchanges() {
    produce(done_);
    while (hsa_signal_cas_scacq_screl(done_, 0, 7) != 0) continue;
    return holds(result_);
  }
  bool waits_for_any() {
    produce(done_);
    hsa_signal_store_relaxed(other_, 1);
    std::array<hsa_signal_t, 2> signals{done_, other_};
    std::array<hsa_signal_condition_t, 2> conditions{HSA_SIGNAL_CONDITION_LT,
                                                     HSA_SIGNAL_CONDITION_LT};
    std::array<hsa_signal_value_t, 2> values{1, 1};
    hsa_signal_value_t found = 0;
    hsa_amd_signal_wait_any(2, signals.data(), conditions.data(), values.data(), UINT64_MAX,
                            HSA_WAIT_STATE_BLOCKED, &found);
    return holds(result_);
  }
  bool waits_for_later_packet() {
    produce({});
    hsa_signal_store_relaxed(done_, 1);
    barrier(device_.queue(), {}, done_);
    wait(done_);
    return holds(result_);
  }
  bool waits_for_other_queue() {
    produce(other_);
    hsa_signal_store_relaxed(done_, 1);
    barrier(queue_, other_, done_);
    wait(done_);
    return holds(result_);
  }
  bool waits_for_copy() {
    wait_for_source();
    copy(done_);
    wait(done_);
    return holds(copied_);
  }
  bool waits_for_handler() {
    std::atomic<bool> called{false};
    hsa_signal_store_relaxed(done_, 1);
    check(hsa_amd_signal_async_handler(
              done_, HSA_SIGNAL_CONDITION_LT, 1,
              [](hsa_signal_value_t, void* flag) {
                static_cast<std::atomic<bool>*>(flag)->store(true);
                return false;
              },
              &called),
          "hsa_amd_signal_async_handler");
    produce(done_);
    while (!called) std::this_thread::yield();
    return holds(result_);
  }
  bool waits_on_thread() {
    produce(done_);
    std::thread([&] { wait(done_); }).join();
    return holds(result_);
  }
  bool waits_for_counter() {
    hsa_signal_store_relaxed(done_, 3);
    for (unsigned packet = 0; packet < 3; ++packet)
      dispatch(iota_, kCount, result_arguments(), done_);
    wait(done_);
    return holds(result_);
  }
  bool waits_for_flag() {
    dispatch(produce_, 1, device_arguments().add(result_.data()).add(flag_.data()).add(value_), {});
    while (__atomic_load_n(flag_.data(), __ATOMIC_ACQUIRE) != value_) std::this_thread::yield();
    return result_[0] == value_;
  }
  // A kernel that waits for the host: the host must not be held until it ends.
  bool tells_kernel() {
    __atomic_store_n(flag_.data(), 0, __ATOMIC_RELEASE);
    hsa_signal_store_relaxed(done_, 1);
    dispatch(wait_for_, 1, device_arguments().add(flag_.data()), done_);
    __atomic_store_n(flag_.data(), 1, __ATOMIC_RELEASE);
    wait(done_);
    return true;
  }
  bool tells_packet() {
    hsa_signal_store_relaxed(other_, 1);
    barrier(device_.queue(), other_, {});
    produce(done_);
    hsa_signal_store_screlease(other_, 0);
    wait(done_);
    return holds(result_);
  }
  bool destroys_queue() {
    hsa_queue_t* queue = nullptr;
    check(hsa_queue_create(device_.gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX,
                           UINT32_MAX, &queue),
          "hsa_queue_create");
    dispatch(copy_, kCount, copy_arguments(), {}, queue);
    check(hsa_queue_destroy(queue), "hsa_queue_destroy");
    source_[5] = value_;
    return true;
  }
  bool system_calls() {
    produce(done_);
    wait(done_);
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return false;
    const auto bytes = static_cast<ssize_t>(result_.size_bytes());
    const bool moved = write(ends[1], result_.data(), result_.size_bytes()) == bytes &&
                       read(ends[0], source_.data(), source_.size_bytes()) == bytes;
    for (const int end : ends) close(end);
    // Signals next to one that is not looked at.
    consume(other_);
    const bool held = write(open("/dev/null", O_WRONLY | O_CLOEXEC),
                            reinterpret_cast<void*>(done_.handle), 64) == 64;
    wait(other_);
    return moved && held && holds(source_);
  }
  bool writes() {
    consume(done_);
    wait(done_);
    source_[5] = value_;
    return true;
  }

  // ---- parts

  TestDevice::Arguments device_arguments() {
    // Blocks are used again when all packets have completed and the host has seen it.
    TestDevice::Arguments& block = blocks_[next_block_++ % blocks_.size()];
    return block.rewrite();
  }
  TestDevice::Arguments result_arguments() {
    return device_arguments().add(result_.data()).add(value_);
  }
  TestDevice::Arguments copy_arguments() {
    return device_arguments().add(copied_.data()).add(source_.data());
  }
  TestDevice::Arguments produce(hsa_signal_t done) {
    if (done.handle != 0) hsa_signal_store_relaxed(done, 1);
    const TestDevice::Arguments arguments = result_arguments();
    dispatch(iota_, kCount, arguments, done);
    return arguments;
  }
  void consume(hsa_signal_t done) {
    hsa_signal_store_relaxed(done, 1);
    dispatch(copy_, kCount, copy_arguments(), done);
  }
  // A kernel that the host waits for writes the source of copies.
  void wait_for_source() {
    hsa_signal_store_relaxed(other_, 1);
    dispatch(iota_, kCount, device_arguments().add(source_.data()).add(value_), other_);
    wait(other_);
  }
  void copy(hsa_signal_t done) {
    hsa_signal_store_relaxed(done, 1);
    check(hsa_amd_memory_async_copy(copied_.data(), device_.gpu, source_.data(), device_.gpu,
                                    copied_.size_bytes(), 0, nullptr, done),
          "hsa_amd_memory_async_copy");
  }

  template <class Packet>
  void submit(hsa_queue_t* queue, const Packet& packet, hsa_packet_type_t type, uint16_t setup) {
    static_assert(sizeof packet == 64);
    const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) continue;
    auto* const slot = static_cast<std::byte*>(queue->base_address) + index % queue->size * 64;
    std::memcpy(slot + 4, reinterpret_cast<const std::byte*>(&packet) + 4, 60);
    constexpr unsigned kSystem = HSA_FENCE_SCOPE_SYSTEM;
    const auto header =
        static_cast<uint32_t>(type << HSA_PACKET_HEADER_TYPE | 1u << HSA_PACKET_HEADER_BARRIER |
                              kSystem << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                              kSystem << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    __atomic_store_n(reinterpret_cast<uint32_t*>(slot), header | uint32_t{setup} << 16,
                     __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }
  void dispatch(const TestDevice::Kernel& kernel, uint32_t items,
                const TestDevice::Arguments& arguments, hsa_signal_t done) {
    dispatch(kernel, items, arguments, done, device_.queue());
  }
  void dispatch(const TestDevice::Kernel& kernel, uint32_t items,
                const TestDevice::Arguments& arguments, hsa_signal_t done, hsa_queue_t* queue) {
    hsa_kernel_dispatch_packet_t packet{};
    packet.setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
    packet.workgroup_size_x = static_cast<uint16_t>(items < 64 ? items : 64);
    packet.workgroup_size_y = packet.workgroup_size_z = 1;
    packet.grid_size_x = items;
    packet.grid_size_y = packet.grid_size_z = 1;
    packet.kernel_object = kernel.object;
    packet.kernarg_address = arguments.address();
    packet.completion_signal = done;
    submit(queue, packet, HSA_PACKET_TYPE_KERNEL_DISPATCH, packet.setup);
  }
  void barrier(hsa_queue_t* queue, hsa_signal_t dependency, hsa_signal_t done) {
    hsa_barrier_and_packet_t packet{};
    packet.dep_signal[0] = dependency;
    packet.completion_signal = done;
    submit(queue, packet, HSA_PACKET_TYPE_BARRIER_AND, 0);
  }

  static void wait(hsa_signal_t signal) {
    while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                     HSA_WAIT_STATE_BLOCKED) > 0)
      continue;
  }
  static void look(const uint32_t& word) { [[maybe_unused]] const volatile uint32_t now = word; }
  bool finish() {
    wait(done_);
    return true;
  }
  bool holds(Words words) const {
    for (uint32_t index = 0; index < kCount; ++index)
      if (words[index] != value_ + index) return false;
    return true;
  }

  TestDevice device_{kernels::waits()};
  const TestDevice::Kernel iota_ = device_.kernel("iota"), copy_ = device_.kernel("copy"),
                           produce_ = device_.kernel("produce"),
                           wait_for_ = device_.kernel("wait_for");
  hsa_queue_t* queue_ = nullptr;
  hsa_signal_t done_{}, other_{};
  // A page each.
  const Words result_ = device_.allocate(Memory::host_fine, kCount),
              copied_ = device_.allocate(Memory::host_fine, kCount),
              source_ = device_.allocate(Memory::host_fine, kCount),
              flag_ = device_.allocate(Memory::host_fine, 1);
  std::vector<TestDevice::Arguments> blocks_ = [this] {
    std::vector<TestDevice::Arguments> blocks;
    for (unsigned block = 0; block < 512; ++block) blocks.push_back(device_.arguments());
    return blocks;
  }();
  size_t next_block_ = 0;
  uint32_t value_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !Waits::ways().contains(argv[1])) {
    std::fprintf(stderr, "usage: waits WAY ROUNDS\n");
    for (const auto& [name, way] : Waits::ways()) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  Waits waits;
  const bool right = waits.run(Waits::ways().at(argv[1]),
                               static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)));
  std::printf("%s\n", right ? "right" : "wrong");
  return 0;
}
