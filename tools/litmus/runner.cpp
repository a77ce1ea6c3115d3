#include "tools/litmus/runner.hpp"

#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include <uptempo/kernels/litmus.hpp>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/signal.hpp>
#include "tools/support/packet_queue.hpp"
#include "tools/support/packets.hpp"

namespace uptempo::litmus {
namespace {

using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;
using namespace std::chrono_literals;

constexpr size_t kPageBytes = 4096;
constexpr uint32_t kWorkgroup = 64;
// The delay kernel: one workgroup.
const Grid kDelayGrid = Grid{kWorkgroup}.by(kWorkgroup);
constexpr uint32_t kFirstOfOne = 1 << 16;  // `turn` of litmus.cl
constexpr auto kPatience = 60s;
constexpr HeaderFlags kSystemScopes{Barrier::on, FenceScope::system, FenceScope::system};
constexpr HeaderFlags kOrderOnly{Barrier::off, FenceScope::none, FenceScope::none};

// splitmix64's increment and finaliser.
uint64_t mix(uint64_t value) {
  uint64_t mixed = (value + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  return (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
}
uint64_t mix(uint64_t iteration, StepId step) { return mix(iteration * 64 + step) >> 8; }

// Delays of a kernel before and after its access: none, or up to some tens of microseconds, each
// with probability one half.
uint32_t rounds_of(uint64_t iteration, StepId step) {
  const uint64_t chance = mix(iteration, step);
  const auto half = [](uint64_t bits) {
    return static_cast<uint32_t>((bits & 1) != 0 ? 0 : (bits >> 1) % 300);
  };
  return half(chance) | half(chance >> 20) << 16;
}

// The same for the host, and for copy engines, which wait for a kernel that has no other purpose.
std::chrono::microseconds host_delay(uint64_t iteration, StepId step) {
  const uint64_t chance = mix(iteration, step);
  return std::chrono::microseconds((chance & 1) != 0 ? 0 : (chance >> 1) % 400);
}
uint32_t engine_delay(uint64_t iteration, StepId step) {
  const uint64_t chance = mix(iteration, step);
  return static_cast<uint32_t>((chance & 3) == 0 ? 0 : (chance >> 2) % 20000);
}

}  // namespace

MemoryKind memory_kind(CellKind kind) noexcept {
  constexpr MemoryKind kinds[] = {MemoryKind::device, MemoryKind::pinned_coarse,
                                  MemoryKind::pinned};
  return kinds[static_cast<size_t>(kind)];
}

struct Runner::Impl {
  explicit Impl(const Agent& the_gpu)
      : gpu(the_gpu),
        host(find_pool(gpu, MemoryKind::pinned).owner),
        own_program(gpu, litmus::kernels::litmus()),
        sort_program(gpu, uptempo::builtin_kernels::workgroups_of_256()),
        store(own_program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("litmus_store")),
        copy(own_program.kernel<const uint32_t*, uint32_t*, uint32_t, uint32_t>("litmus_copy")),
        add(own_program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("litmus_add")),
        sort(sort_program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort")),
        unused(gpu, MemoryKind::pinned, kWorkgroup * sizeof(uint32_t)),
        done(SignalKind::interrupt) {
    for (uint32_t i = 0; i <= kDelayQueue; ++i) queues.emplace_back(gpu, 1024, kPatience);
    for (const ArgumentLayout* layout : {&store.info().arguments, &copy.info().arguments,
                                         &add.info().arguments, &sort.info().arguments})
      block_bytes = std::max<size_t>(block_bytes, std::bit_ceil(layout->size_bytes()));
  }

  // ---- memory and signals, created when a test first needs that many

  uint32_t* words(const Test& test, CellId cell) {
    size_t number = 0;
    for (CellId other = 0; other < cell; ++other)
      if (test.cells[other].kind == test.cells[cell].kind) ++number;
    std::vector<Allocation>& pages = cells[static_cast<size_t>(test.cells[cell].kind)];
    if (pages.size() <= number) pages.resize(number + 1);
    return room(pages[number], memory_kind(test.cells[cell].kind), test.cell_bytes());
  }
  uint32_t* room(Allocation& memory, MemoryKind kind, size_t bytes) {
    if (memory.size_bytes() < bytes) memory = Allocation(gpu, kind, bytes);
    return static_cast<uint32_t*>(memory.data());
  }
  std::byte* block(size_t number) {
    const size_t per_page = kPageBytes / block_bytes;
    while (blocks.size() <= number / per_page)
      blocks.emplace_back(gpu, MemoryKind::kernarg, kPageBytes);
    return static_cast<std::byte*>(blocks[number / per_page].data()) +
           number % per_page * block_bytes;
  }
  // Blocks of single dispatches follow the shared blocks, of which there are at most 15.
  static constexpr size_t kDelayBlock = 15, kFirstOwnBlock = 16;
  // The queue after those of the tests.
  static constexpr uint32_t kDelayQueue = kQueueCount;
  std::byte* block_of(const Test& test, StepId step) {
    const int shared = test.steps[step].shared_block;
    return block(shared >= 0 ? static_cast<size_t>(shared) : kFirstOwnBlock + step);
  }
  static hsa_signal_t pooled(std::vector<Signal>& pool, size_t number) {
    while (pool.size() <= number) pool.emplace_back(SignalKind::interrupt);
    return pool[number].handle();
  }
  hsa_signal_t completion(StepId step) { return pooled(completions, step); }

  static void spin(std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
  }

  // Completes all work in all queues and makes its writes visible system-wide.
  void flush() {
    for (support::PacketQueue& queue : queues) queue.flush();
  }

  void engine_copy(void* to, const void* from, size_t bytes, bool to_device,
                   std::span<const hsa_signal_t> after, hsa_signal_t signal) {
    // The agents choose the engine; both reach memory of either side.
    check(hsa_amd_memory_async_copy(
              to, to_device ? gpu.handle() : host, from, to_device ? host : gpu.handle(), bytes,
              static_cast<uint32_t>(after.size()), after.empty() ? nullptr : after.data(), signal),
          "hsa_amd_memory_async_copy", "a cell of " + std::to_string(bytes) + " bytes");
  }

  void initialise(const Test& test) {
    for (CellId cell = 0; cell < test.cells.size(); ++cell) {
      uint32_t* const to = words(test, cell);
      const bool upload = test.cells[cell].kind == CellKind::device_local;
      uint32_t* const at = upload ? room(staging, MemoryKind::pinned, test.cell_bytes()) : to;
      for (uint32_t word = 0; word < test.words; ++word)
        at[word] = initial_word(test.cells[cell], word);
      if (!upload) continue;
      hsa_signal_store_relaxed(done.handle(), 1);
      engine_copy(to, at, test.cell_bytes(), true, {}, done.handle());
      queues[0].wait(done.handle(), "the upload of a cell");
    }
    flush();
  }

  // ---- steps

  const KernelInfo& kernel_of(const Step& step) const {
    switch (step.kernel) {
      case Step::Kernel::store:
        return store.info();
      case Step::Kernel::copy:
        return copy.info();
      case Step::Kernel::add:
        return add.info();
      case Step::Kernel::sort_pass:
        break;
    }
    return sort.info();
  }
  static Grid grid_of(const Test& test, const Step& step) {
    return step.kernel == Step::Kernel::sort_pass ? Grid{test.words / 2}.by(kSortWorkgroup)
                                                  : Grid{test.words}.by(kWorkgroup);
  }

  void write_arguments(const Test& test, StepId number, uint64_t iteration) {
    const Step& step = test.steps[number];
    const Grid grid = grid_of(test, step);
    std::byte* const to = block_of(test, number);
    uint32_t* const target = words(test, step.to);
    const uint32_t rounds = rounds_of(iteration, number);
    const uint32_t groups = grid.items.x / grid.workgroup.x;
    const uint32_t turn = static_cast<uint32_t>(number % groups) | groups << 16;
    switch (step.kernel) {
      case Step::Kernel::copy:
        support::write_arguments(copy, to, grid, {}, words(test, step.from), target, rounds, turn);
        break;
      case Step::Kernel::store:
      case Step::Kernel::add:
        support::write_arguments(step.kernel == Step::Kernel::add ? add : store, to, grid, {},
                                 target, step.value, rounds, turn);
        break;
      case Step::Kernel::sort_pass:
        support::write_arguments(sort, to, grid, {}, target, step.stage, step.pass, 1u);
        break;
    }
  }

  aql::Packet64 packet_of(const Test& test, StepId number, hsa_signal_t signal) {
    const Step& step = test.steps[number];
    if (step.kind == Step::Kind::dispatch)
      return aql::to_packet(support::dispatch_of(kernel_of(step), grid_of(test, step),
                                                 block_of(test, number), step.flags, signal));
    std::array<hsa_signal_t, 5> dependencies{};
    for (size_t i = 0; i < step.after.size(); ++i) dependencies.at(i) = completion(step.after[i]);
    if (step.kind == Step::Kind::barrier_and)
      return aql::to_packet(aql::BarrierAnd{step.flags, dependencies, signal});
    return aql::to_packet(aql::BarrierOr{step.flags, dependencies, signal});
  }

  // Writes the delay kernel's arguments, before the fences that begin every test.
  void write_delay(uint32_t rounds) {
    support::write_arguments(store, block(kDelayBlock), kDelayGrid, {},
                             static_cast<uint32_t*>(unused.data()), 0u, rounds, kFirstOfOne);
  }
  void publish_delay(hsa_signal_t the_gate, hsa_signal_t delayed) {
    hsa_signal_store_relaxed(delayed, 1);
    const aql::Packet64 packets[] = {
        aql::to_packet(aql::BarrierAnd{kOrderOnly, {the_gate}, {}}),
        aql::to_packet(support::dispatch_of(store.info(), kDelayGrid, block(kDelayBlock),
                                            {Barrier::on, FenceScope::none, FenceScope::none},
                                            delayed))};
    queues[kDelayQueue].publish(packets);
  }

  // Publishes steps [first, last), all on the device.
  void publish_steps(const Test& test, StepId first, StepId last, std::span<const bool> awaited,
                     bool delays_engines, size_t publication, Run& run) {
    const hsa_signal_t the_gate = pooled(gates, publication), delayed = pooled(delays, publication);
    hsa_signal_store_relaxed(the_gate, 1);
    std::vector<aql::Packet64> packets[kQueueCount];
    const bool late = delays_engines &&
                      std::any_of(test.steps.begin() + static_cast<ptrdiff_t>(first),
                                  test.steps.begin() + static_cast<ptrdiff_t>(last),
                                  [](const Step& step) { return step.kind == Step::Kind::copy; });
    if (late) publish_delay(the_gate, delayed);
    const aql::Packet64 gate_packet = aql::to_packet(aql::BarrierAnd{kOrderOnly, {the_gate}, {}});
    for (StepId number = first; number < last; ++number) {
      const Step& step = test.steps[number];
      const hsa_signal_t completed = awaited[number] ? completion(number) : hsa_signal_t{0};
      if (step.kind == Step::Kind::copy) {
        std::vector<hsa_signal_t> after{the_gate};
        if (late) after.push_back(delayed);
        for (const StepId dependency : step.after) after.push_back(completion(dependency));
        engine_copy(words(test, step.to), words(test, step.from), test.cell_bytes(),
                    test.cells[step.to].kind == CellKind::device_local, after, completion(number));
        continue;
      }
      std::vector<aql::Packet64>& queue = packets[step.queue];
      if (queue.empty()) queue.push_back(gate_packet);
      run.placement[number].packet_index = queues[step.queue].next_index() + queue.size();
      queue.push_back(packet_of(test, number, completed));
    }
    for (uint32_t queue = 0; queue < kQueueCount; ++queue)
      if (!packets[queue].empty()) queues[queue].publish(packets[queue]);
    hsa_signal_store_screlease(the_gate, 0);
  }

  Run run(const Test& test, uint64_t iteration) {
    if (is_for_rules_alone(test))
      throw std::invalid_argument(test.name +
                                  ": has steps with declared accesses, which no kernel can make");
    Run result;
    result.placement.resize(test.steps.size());
    const std::unique_ptr<bool[]> awaited(new bool[test.steps.size()]());
    for (const Step& step : test.steps)
      for (const StepId dependency : step.after) awaited[dependency] = true;

    for (StepId number = 0; number < test.steps.size(); ++number) {
      const bool by_step = std::ranges::any_of(test.steps, [&](const Step& step) {
        return step.kind == Step::Kind::host_arguments && step.of == number;
      });
      if (test.steps[number].kind == Step::Kind::dispatch && !by_step)
        write_arguments(test, number, iteration);
      hsa_signal_store_relaxed(completion(number), 1);
    }
    const uint32_t delay = engine_delay(iteration, test.steps.size());
    write_delay(delay);
    initialise(test);

    size_t publications = 0;
    for (StepId number = 0; number < test.steps.size(); ++number) {
      const Step& step = test.steps[number];
      if (!step.is_on_device() && step.kind != Step::Kind::host_wait)
        spin(host_delay(iteration, number));
      switch (step.kind) {
        case Step::Kind::host_store:
          std::fill_n(words(test, step.to), test.words, step.value);
          break;
        case Step::Kind::host_arguments:
          write_arguments(test, step.of, iteration);
          break;
        case Step::Kind::host_load: {
          const uint32_t* const from = words(test, step.from);
          result.outcome.emplace_back(from, from + test.words);
          break;
        }
        case Step::Kind::host_wait:
          for (const StepId awaited_step : step.after)
            queues[0].wait(completion(awaited_step), "step " + std::to_string(awaited_step) + " (" +
                                                         name_of(test.steps[awaited_step]) +
                                                         ") of " + test.name);
          break;
        case Step::Kind::dispatch:
        case Step::Kind::barrier_and:
        case Step::Kind::barrier_or:
        case Step::Kind::copy: {
          StepId last = number;
          while (last < test.steps.size() && test.steps[last].is_on_device()) ++last;
          publish_steps(test, number, last, {awaited.get(), test.steps.size()}, delay != 0,
                        publications++, result);
          number = last - 1;
          break;
        }
      }
    }
    for (StepId number = 0; number < test.steps.size(); ++number)
      if (test.steps[number].kind == Step::Kind::copy)
        queues[0].wait(completion(number), "a copy of " + test.name);
    flush();
    return result;
  }

  const Agent gpu;
  const hsa_agent_t host;
  Program own_program, sort_program;
  Kernel<uint32_t*, uint32_t, uint32_t, uint32_t> store;
  Kernel<const uint32_t*, uint32_t*, uint32_t, uint32_t> copy;
  Kernel<uint32_t*, uint32_t, uint32_t, uint32_t> add;
  Kernel<uint32_t*, uint32_t, uint32_t, uint32_t> sort;
  std::vector<Allocation> cells[3];  // by CellKind
  size_t block_bytes = 64;           // of each kernel's kernargs, and a power of two
  std::vector<Allocation> blocks;
  Allocation staging, unused;
  std::vector<Signal> completions, gates, delays;
  Signal done;
  // last member: destroyed before the memory and signals that the queues use
  std::vector<support::PacketQueue> queues;
};

Runner::Runner(const Agent& gpu) : impl_(std::make_unique<Impl>(gpu)) {}
Runner::~Runner() = default;

Run Runner::run(const Test& test, uint64_t iteration) { return impl_->run(test, iteration); }

}  // namespace uptempo::litmus
