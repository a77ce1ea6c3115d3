// Whether a kernel sees what the host has written since an earlier kernel has read it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "aql/store_fence.hpp"
#include "engine/memory/access.hpp"
#include "engine/memory/buffer.hpp"
#include "engine/memory/kernarg_placement.hpp"
#include "engine/program/program.hpp"
#include "engine/runtime/memory_model.hpp"
#include "engine/runtime/signal.hpp"
#include "kernels/basics.hpp"
#include "tools/hardware/packets.hpp"
#include "tools/hardware/probe.hpp"
#include "tools/support/packet_queue.hpp"

namespace uptempo::hardware {
namespace {

using aql::FenceScope;

constexpr uint32_t kWords = 1024, kWorkgroup = 64;
constexpr uint32_t kRepeats = 300;
constexpr std::array kScopes{FenceScope::none, FenceScope::agent, FenceScope::system};
constexpr std::array kScopeNames{"none", "agent", "system"};

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
  volatile uint32_t* line() const { return reinterpret_cast<uint32_t*>(block() + kBlockBytes); }
  bool is_on_device() const { return on_device_; }
  // HDP_MEM_FLUSH_CNTL, or null.
  volatile uint32_t* flush_register() const {
    if (!on_device_) return nullptr;
    return choose_kernarg_place(gpu_, KernargPlacement::device).hdp_flush;
  }
  void arrive(Arrival arrival) {
    if (!on_device_) return;
    aql::store_fence();
    if (arrival == Arrival::by_register) {
      volatile uint32_t* const flush = flush_register();
      *flush = 1;
      (void)*flush;
    } else if (arrival == Arrival::by_read_back) {
      *line() = ++turn_;
      aql::store_load_fence();
      (void)*line();
    }
  }

 private:
  static constexpr size_t kBytes = kWords * sizeof(uint32_t) + kBlockBytes + 64;
  Agent gpu_;
  bool on_device_;
  Allocation memory_;
  uint32_t turn_ = 0;
};

struct Reads {
  uint64_t stale = 0, of = 0;
  Reads& operator+=(const Reads& other) {
    stale += other.stale;
    of += other.of;
    return *this;
  }
};

class Reader {
 public:
  explicit Reader(const Agent& gpu)
      : queue_(gpu, 256, std::chrono::seconds(10)),
        program_(gpu, builtin_kernels::basics()),
        copy_(program_.kernel<uint32_t*, const uint32_t*>("copy")),
        fill_(program_.kernel<uint32_t*, uint32_t>("fill")),
        seen_(gpu, kWords),
        own_block_(gpu, kBlockBytes),
        done_(SignalKind::interrupt, 0) {}

  // The host writes all words anew; a kernel copies them. The kernel's own arguments stay the same.
  Reads data(Shared& shared, FenceScope acquire, Arrival arrival) {
    const auto* const from = const_cast<const uint32_t*>(shared.words());
    write_arguments(copy_, own_block_.data(), kWords, kWorkgroup, queue_.facts(), seen_.data(),
                    from);
    queue_.flush();
    Reads reads;
    for (uint32_t i = 0; i < kRepeats; ++i) {
      const uint32_t value = ++value_;
      for (uint32_t word = 0; word < kWords; ++word) shared.words()[word] = value;
      shared.arrive(arrival);
      run(copy_.info(), own_block_.data(), kWords, acquire);
      reads.stale += static_cast<uint64_t>(kWords - std::ranges::count(seen_.span(), value));
      reads.of += kWords;
    }
    return reads;
  }

  // The host writes the kernarg block anew; a kernel stores the argument that it has read.
  Reads arguments(Shared& shared, FenceScope acquire, Arrival arrival) {
    Reads reads;
    for (uint32_t i = 0; i < kRepeats; ++i) {
      const uint32_t value = ++value_;
      write_arguments(fill_, shared.block(), kWorkgroup, kWorkgroup, queue_.facts(), seen_.data(),
                      value);
      shared.arrive(arrival);
      run(fill_.info(), shared.block(), kWorkgroup, acquire);
      reads.stale += seen_[0] != value;
      ++reads.of;
    }
    return reads;
  }

 private:
  void run(const KernelInfo& kernel, std::byte* block, uint32_t work_items, FenceScope acquire) {
    hsa_signal_store_relaxed(done_.handle(), 1);
    const aql::Packet64 packet =
        dispatch_of(kernel, work_items, kWorkgroup, block,
                    {aql::Barrier::on, acquire, FenceScope::system}, done_.handle());
    queue_.publish({&packet, 1});
    queue_.wait(done_.handle(), "a kernel that reads what the host wrote",
                std::chrono::milliseconds(1));
  }

  support::PacketQueue queue_;
  Program program_;
  Kernel<uint32_t*, const uint32_t*> copy_;
  Kernel<uint32_t*, uint32_t> fill_;
  PinnedBuffer<uint32_t> seen_;
  KernargBuffer own_block_;
  Signal done_;
  uint32_t value_ = 0;
};

constexpr std::string_view kNoBar = "the host does not reach device memory: no large BAR";

Arrival best_arrival(const Shared& shared) {
  return shared.flush_register() != nullptr ? Arrival::by_register : Arrival::by_read_back;
}

Answer stale_reads(const support::Device& device, bool on_device) {
  if (on_device && !host_can_reach(device.gpu)) return {Verdict::not_asked, std::string(kNoBar)};
  const MemoryModel& model = memory_model(device.gpu);
  // An unproved row is compared, too, though the engine does not use it: this is its proof.
  const bool agent_suffices =
      on_device ? model.assumes.device_memory_is_probed : model.assumes.host_memory_bypasses_l2;
  Shared shared(device.gpu, on_device);
  Reader reader(device.gpu);
  const Arrival arrival = best_arrival(shared);
  nlohmann::ordered_json measured;
  std::array<Reads, kScopes.size()> by_scope{};
  for (size_t i = 0; i < kScopes.size(); ++i) {
    const Reads data = reader.data(shared, kScopes[i], arrival);
    const Reads arguments = reader.arguments(shared, kScopes[i], arrival);
    measured[std::string("acquire_") + kScopeNames[i]] = {{"data_words", data.of},
                                                          {"data_words_stale", data.stale},
                                                          {"kernargs", arguments.of},
                                                          {"kernargs_stale", arguments.stale}};
    by_scope[i] += data;
    by_scope[i] += arguments;
  }
  measured["row"] = model.name;
  measured["row_is_proved"] = model.proved;
  measured["agent_scope_suffices"] = agent_suffices;
  const uint64_t agent = by_scope[1].stale, system = by_scope[2].stale;
  const std::string counts = fmt::format(
      "stale reads of {}: {} without an acquire, {} with agent scope, {} with system scope. The "
      "row '{}'{} asks for {} scope",
      by_scope[0].of, by_scope[0].stale, agent, system, model.name,
      model.proved ? "" : " (unproved, not used)", agent_suffices ? "agent" : "system");
  const bool differs = system != 0 || (agent_suffices && agent != 0);
  return {differs ? Verdict::differs : Verdict::as_assumed, counts, measured};
}

}  // namespace

Answer probe_stale_host_memory(const support::Device& device) { return stale_reads(device, false); }
Answer probe_stale_device_memory(const support::Device& device) {
  return stale_reads(device, true);
}

Answer probe_hdp_flush(const support::Device& device) {
  if (!host_can_reach(device.gpu)) return {Verdict::not_asked, std::string(kNoBar)};
  Shared shared(device.gpu, true);
  Reader reader(device.gpu);
  nlohmann::ordered_json measured;
  const auto stale = [&](const char* name, Arrival arrival) {
    Reads reads = reader.data(shared, FenceScope::system, arrival);
    reads += reader.arguments(shared, FenceScope::system, arrival);
    measured[name] = {{"reads", reads.of}, {"stale", reads.stale}};
    return reads.stale;
  };
  std::optional<uint64_t> by_register;
  if (shared.flush_register() != nullptr) by_register = stale("register", Arrival::by_register);
  const uint64_t by_read_back = stale("read_back", Arrival::by_read_back);
  const uint64_t without = stale("neither", Arrival::not_at_all);
  const std::string first = by_register ? fmt::format("{} after the register's flush", *by_register)
                                        : "the flush register is not mapped";
  return {by_register.value_or(0) + by_read_back == 0 ? Verdict::as_assumed : Verdict::differs,
          fmt::format("stale reads: {}, {} after a read-back, {} without both", first, by_read_back,
                      without),
          measured};
}

}  // namespace uptempo::hardware
