#include "tools/hardware/memory_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include <uptempo/aql/store_fence.hpp>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/memory/kernarg_placement.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/signal.hpp>
#include "tools/support/packet_queue.hpp"
#include "tools/support/packets.hpp"

namespace uptempo::hardware {
namespace {

using aql::FenceScope;

constexpr uint32_t kWords = 1024, kWorkgroup = 64;
constexpr uint32_t kRepeats = 300;
constexpr std::array kScopes{FenceScope::none, FenceScope::agent, FenceScope::system};

// How the host's stores to device memory are made to arrive before a packet is published.
enum class Arrival { by_register, by_read_back, not_at_all };

// Memory that host and kernels share: words that a kernel reads by vector loads, and a kernarg
// block, which it reads by scalar loads. And a line of the same memory for read-backs.
class Shared {
 public:
  Shared(const Agent& gpu, bool on_device)
      : gpu_(gpu),
        on_device_(on_device),
        memory_(gpu, on_device ? MemoryKind::device : MemoryKind::kernarg, kBytes) {
    if (on_device) allow_host_access(gpu, memory_.data());
  }
  volatile uint32_t* words() const { return static_cast<uint32_t*>(memory_.data()); }
  std::byte* block() const {
    return static_cast<std::byte*>(memory_.data()) + kWords * sizeof(uint32_t);
  }
  volatile uint32_t* line() const {
    return reinterpret_cast<uint32_t*>(block() + support::kBlockBytes);
  }
  // Fewer over the BAR, where a store is dear, above all on a virtual GPU that holds stores back.
  uint32_t word_count() const { return on_device_ ? kWords / 8 : kWords; }
  // Where the engine would put kernargs that shall be in device memory.
  KernargPlace place() const { return choose_kernarg_place(gpu_, KernargPlacement::device); }
  void arrive(Arrival arrival) {
    if (!on_device_) return;
    aql::store_fence();
    if (arrival == Arrival::by_register) {
      volatile uint32_t* const flush = place().hdp_flush;
      *flush = 1;
      (void)*flush;
    } else if (arrival == Arrival::by_read_back) {
      *line() = ++turn_;
      aql::store_load_fence();
      (void)*line();
    }
  }

 private:
  static constexpr size_t kBytes = kWords * sizeof(uint32_t) + support::kBlockBytes + 64;
  Agent gpu_;
  bool on_device_;
  Allocation memory_;
  uint32_t turn_ = 0;
};

// Kernels that read what the host has written. No packet between two reads has a fence but the
// acquire under test, and each read stores its result in a place of its own, so that a cache is
// emptied by that acquire alone.
class Reader {
 public:
  explicit Reader(const Agent& gpu)
      : program_(gpu, builtin_kernels::basics()),
        copy_(program_.kernel<uint32_t*, const uint32_t*>("copy")),
        fill_(program_.kernel<uint32_t*, uint32_t>("fill")),
        seen_(gpu, size_t{kRepeats} * kWords),
        blocks_(gpu, size_t{kRepeats} * support::kBlockBytes),
        done_(SignalKind::interrupt, 0),
        queue_(gpu, 256, std::chrono::seconds(10)) {}

  // The host writes all words anew; a kernel copies them. The kernels' own arguments stay the same.
  Reads data(Shared& shared, FenceScope acquire, Arrival arrival) {
    const uint32_t words = shared.word_count();
    const auto* const from = const_cast<const uint32_t*>(shared.words());
    for (uint32_t i = 0; i < kRepeats; ++i)
      support::write_arguments(copy_, block(i), Grid{words}.by(kWorkgroup), queue_.facts(), seen(i),
                               from);
    begin();
    for (uint32_t i = 0; i < kRepeats; ++i) {
      for (uint32_t word = 0; word < words; ++word) shared.words()[word] = value_of(i);
      shared.arrive(arrival);
      run(copy_.info(), block(i), words, acquire);
    }
    return finish(words);
  }

  // The host writes the kernarg block anew; a kernel stores the argument that it has read.
  Reads arguments(Shared& shared, FenceScope acquire, Arrival arrival) {
    begin();
    for (uint32_t i = 0; i < kRepeats; ++i) {
      support::write_arguments(fill_, shared.block(), Grid{kWorkgroup}.by(kWorkgroup),
                               queue_.facts(), seen(i), value_of(i));
      shared.arrive(arrival);
      run(fill_.info(), shared.block(), kWorkgroup, acquire);
    }
    return finish(1);
  }

 private:
  std::byte* block(uint32_t i) const { return blocks_.data() + i * support::kBlockBytes; }
  uint32_t* seen(uint32_t i) const { return seen_.data() + size_t{i} * kWords; }
  uint32_t value_of(uint32_t i) const { return round_ * kRepeats + i + 1; }

  void begin() {
    ++round_;
    std::ranges::fill(seen_.span(), 0u);
    queue_.flush();
  }
  // Counts the reads whose first `words` words are not those of their turn.
  Reads finish(uint32_t words) {
    queue_.flush();
    Reads reads;
    for (uint32_t i = 0; i < kRepeats; ++i) {
      const uint32_t* const first = seen(i);
      reads.stale += static_cast<uint64_t>(words - std::count(first, first + words, value_of(i)));
      reads.of += words;
    }
    return reads;
  }
  void run(const KernelInfo& kernel, std::byte* block, uint32_t work_items, FenceScope acquire) {
    hsa_signal_store_relaxed(done_.handle(), 1);
    const aql::Packet64 packet = aql::to_packet(
        support::dispatch_of(kernel, Grid{work_items}.by(kWorkgroup), block,
                             {aql::Barrier::on, acquire, FenceScope::none}, done_.handle()));
    queue_.publish({&packet, 1});
    queue_.wait(done_.handle(), "a kernel that reads what the host wrote",
                std::chrono::milliseconds(1));
  }

  Program program_;
  Kernel<uint32_t*, const uint32_t*> copy_;
  Kernel<uint32_t*, uint32_t> fill_;
  PinnedBuffer<uint32_t> seen_;
  KernargBuffer blocks_;
  Signal done_;
  uint32_t round_ = 0;
  support::PacketQueue queue_;  // destroyed before what its packets use
};

constexpr std::string_view kNoBar = "the host does not reach device memory: no large BAR";

// As the engine does it.
Arrival usual_arrival(const Shared& shared) {
  const KernargPlace place = shared.place();
  return place.coherent_link          ? Arrival::not_at_all
         : place.hdp_flush != nullptr ? Arrival::by_register
                                      : Arrival::by_read_back;
}

Answer stale_reads(const support::Device& device, bool on_device) {
  if (on_device && !host_can_reach(device.gpu)) return {Verdict::not_asked, std::string(kNoBar)};
  Shared shared(device.gpu, on_device);
  Reader reader(device.gpu);
  const Arrival arrival = usual_arrival(shared);
  StaleReads found;
  for (size_t i = 0; i < kScopes.size(); ++i) {
    found.data[i] = reader.data(shared, kScopes[i], arrival);
    found.kernargs[i] = reader.arguments(shared, kScopes[i], arrival);
  }
  return answer_of_stale_reads(found, memory_model(device.gpu), on_device);
}

}  // namespace

Answer answer_of_stale_reads(const StaleReads& found, const MemoryModel& model, bool on_device) {
  constexpr std::array kNames{"none", "agent", "system"};
  // An unproved row is compared, too, though the engine does not use it: this is its proof.
  const bool agent_suffices =
      on_device ? model.device_memory_is_probed : model.host_memory_bypasses_l2;
  nlohmann::ordered_json measured{{"row", model.name},
                                  {"row_is_proved", model.proved},
                                  {"agent_scope_suffices", agent_suffices}};
  std::array<Reads, 3> all = found.data;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] += found.kernargs[i];
    measured[std::string("acquire_") + kNames[i]] = {{"data_words", found.data[i].of},
                                                     {"data_words_stale", found.data[i].stale},
                                                     {"kernargs", found.kernargs[i].of},
                                                     {"kernargs_stale", found.kernargs[i].stale}};
  }
  const bool differs = all[2].stale != 0 || (agent_suffices && all[1].stale != 0);
  return {
      differs ? Verdict::differs : Verdict::as_assumed,
      fmt::format("stale reads of {}: {} without an acquire{}, {} with agent scope, {} with "
                  "system scope. The row '{}'{} asks for {} scope",
                  all[0].of, all[0].stale, all[0].stale == 0 ? " (no cache held old words)" : "",
                  all[1].stale, all[2].stale, model.name,
                  model.proved ? "" : " (unproved, not used)", agent_suffices ? "agent" : "system"),
      measured};
}

Answer probe_stale_host_memory(const support::Device& device) { return stale_reads(device, false); }
Answer probe_stale_device_memory(const support::Device& device) {
  return stale_reads(device, true);
}

Answer probe_hdp_flush(const support::Device& device) {
  if (!host_can_reach(device.gpu)) return {Verdict::not_asked, std::string(kNoBar)};
  Shared shared(device.gpu, true);
  Reader reader(device.gpu);
  const KernargPlace place = shared.place();
  nlohmann::ordered_json measured{{"coherent_link", place.coherent_link}};
  const auto stale = [&](const char* name, Arrival arrival) {
    Reads reads = reader.data(shared, FenceScope::system, arrival);
    reads += reader.arguments(shared, FenceScope::system, arrival);
    measured[name] = {{"reads", reads.of}, {"stale", reads.stale}};
    return reads.stale;
  };
  std::optional<uint64_t> by_register;
  if (place.hdp_flush != nullptr) by_register = stale("register", Arrival::by_register);
  const uint64_t by_read_back = stale("read_back", Arrival::by_read_back);
  const uint64_t without = stale("neither", Arrival::not_at_all);
  // Over xGMI the engine flushes nothing.
  const uint64_t wrong =
      by_register.value_or(0) + by_read_back + (place.coherent_link ? without : 0);
  return {wrong == 0 ? Verdict::as_assumed : Verdict::differs,
          fmt::format("stale reads: {}, {} after a read-back, {} without both{}",
                      by_register ? fmt::format("{} after the register's flush", *by_register)
                                  : "the flush register is not used",
                      by_read_back, without,
                      place.coherent_link ? " (the link is xGMI, so none may be stale)" : ""),
          measured};
}

}  // namespace uptempo::hardware
