// A program under test: a kernel fills a buffer and another one reads it, with the order and the
// fences that the first argument names. It ends as the second argument says, after text on standard
// output that it has not flushed. With UPTEMPO_REPORT_QUEUE it prints its queue on stderr:
// "hsa_queue_t ADDRESS of id NUMBER".
//
//   clean          all that is needed
//   specification  no fences; the caches of gfx90a tolerate that
//   unordered      no barrier bit
//   repeated       `unordered`, 100 times
//   copy           clean, and a copy engine reads the result
#include <unistd.h>
#include <uptempo/kernels/findings.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "incoherent/device.hpp"

void use_library();

namespace {

using namespace uptempo::vgpu::test;
using Words = std::span<uint32_t>;

constexpr uint32_t kCount = 64;

struct Header {
  bool barrier = true;
  Fences fences{};
};

void publish(hsa_queue_t* queue, uint64_t index, uint32_t first) {
  auto* const packet = static_cast<std::byte*>(queue->base_address) + index % queue->size * 64;
  __atomic_store_n(reinterpret_cast<uint32_t*>(packet), first, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

template <class Packet>
std::pair<Packet&, uint64_t> claim(hsa_queue_t* queue) {
  const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
  auto& packet = static_cast<Packet*>(queue->base_address)[index % queue->size];
  std::memset(reinterpret_cast<std::byte*>(&packet) + 4, 0, sizeof packet - 4);
  return {packet, index};
}

// Later packets wait until the signal is 0.
void wait_on_device(hsa_queue_t* queue, hsa_signal_t signal) {
  const auto [packet, index] = claim<hsa_barrier_and_packet_t>(queue);
  packet.dep_signal[0] = signal;
  publish(queue, index, HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE);
}

void dispatch(hsa_queue_t* queue, const TestDevice::Kernel& kernel,
              const TestDevice::Arguments& arguments, Header header, hsa_signal_t done) {
  const auto [packet, index] = claim<hsa_kernel_dispatch_packet_t>(queue);
  packet.workgroup_size_x = kCount;
  packet.grid_size_x = kCount;
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = kernel.object;
  packet.kernarg_address = arguments.address();
  packet.completion_signal = done;
  const auto first =
      static_cast<uint32_t>(HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                            (header.barrier ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
                            header.fences.acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                            header.fences.release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE |
                            1 << (16 + HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS));
  publish(queue, index, first);
}

class Program {
 public:
  Program() {
    for (hsa_signal_t* signal : {&done_, &published_})
      check(hsa_signal_create(0, 0, nullptr, signal), "hsa_signal_create");
  }

  // The names of these functions appear in findings.
  [[gnu::noinline]] Words allocate_words() { return allocate_inline(); }
  // Not a call in the machine code, as HIP's allocations are in optimised programs.
  [[gnu::always_inline]] inline Words allocate_inline() {
    return device_.allocate(Memory::local, kCount);
  }
  [[gnu::noinline]] void launch_fill(Words out, Header header) {
    auto arguments = device_.arguments();
    arguments.add(out.data()).add(uint32_t{1});
    dispatch(device_.queue(), device_.kernel("_Z4fillPjj"), arguments, header, done_);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
  }
  [[gnu::noinline]] void launch_add(Words in, Words out, Header header) {
    auto arguments = device_.arguments();
    arguments.add(in.data()).add(out.data());
    dispatch(device_.queue(), device_.kernel("_Z3addPKjPj"), arguments, header, done_);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
  }

  // fill, then add. Neither runs before both are published, so that the host cannot know that fill
  // has ended when it publishes add.
  void pass(Words words, Words sums, Header fill, Header add) {
    hsa_signal_store_relaxed(done_, 2);
    hsa_signal_store_relaxed(published_, 1);
    wait_on_device(device_.queue(), published_);
    launch_fill(words, fill);
    launch_add(words, sums, add);
    hsa_signal_store_screlease(published_, 0);
    while (hsa_signal_wait_scacquire(done_, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                     HSA_WAIT_STATE_BLOCKED) > 0)
      continue;
  }

  void run(const std::string& what) {
    constexpr Fences kNone{HSA_FENCE_SCOPE_NONE, HSA_FENCE_SCOPE_NONE};
    const Words words = allocate_words(), sums = allocate_words();
    const Header ordered{}, unfenced{.barrier = true, .fences = kNone}, unordered{.barrier = false};
    if (what == "specification") return pass(words, sums, {.fences = kNone}, unfenced);
    if (what == "repeated") {
      for (int i = 0; i < 100; ++i) pass(words, sums, ordered, unordered);
      return;
    }
    pass(words, sums, ordered, what == "unordered" ? unordered : ordered);
    if (what == "copy") device_.copy(words.data(), sums.data(), sums.size_bytes());
  }

  void report_queue() {
    const hsa_queue_t* const queue = device_.queue();
    std::fprintf(stderr, "hsa_queue_t 0x%llx of id %llu\n",
                 static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(queue)),
                 static_cast<unsigned long long>(queue->id));
  }

 private:
  TestDevice device_{kernels::findings()};
  hsa_signal_t done_{}, published_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  use_library();
  std::ios::sync_with_stdio(false);
  const std::string how = argv[2];
  auto* const program = new Program;  // never deleted: the runtime is not shut down
  program->run(argv[1]);
  if (std::getenv("UPTEMPO_REPORT_QUEUE") != nullptr) program->report_queue();
  std::cout << "cout ";
  std::printf("printf");
  if (how == "exit") std::exit(3);
  if (how == "_exit") _exit(3);
  if (how == "_Exit") std::_Exit(3);
  if (how == "quick_exit") std::quick_exit(3);
  if (how == "abort") std::abort();
  return how == "fail" ? 3 : 0;
}
