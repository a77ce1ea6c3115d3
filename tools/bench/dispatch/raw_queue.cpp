#include "tools/bench/dispatch/raw_queue.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <uptempo/aql/packet.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::bench {
namespace {

hsa_queue_t* create(const Agent& agent) {
  hsa_queue_t* queue = nullptr;
  check(hsa_queue_create(agent.handle(), kRing, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX,
                         UINT32_MAX, &queue),
        "hsa_queue_create", std::to_string(kRing) + " packets",
        "the agent allows " + std::to_string(agent.properties().queue_max_packets));
  return queue;
}

size_t stride_of(const Workload& workload) {
  return (workload.tally.info().arguments.size_bytes() + size_t{63}) / 64 * 64;
}

}  // namespace

uint32_t first_word_of(uint32_t i, uint32_t batch) noexcept {
  using aql::FenceScope;
  const aql::HeaderFlags flags{.barrier = aql::Barrier::on,
                               .acquire = i == 0 ? FenceScope::system : FenceScope::agent,
                               .release = i + 1 == batch ? FenceScope::system : FenceScope::agent};
  return aql::first_word(aql::make_header(aql::PacketType::kernel_dispatch, flags),
                         1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS);
}

RawQueue::RawQueue(const Workload& workload)
    : workload_(workload),
      queue_(create(workload.gpu)),
      kernarg_stride_(stride_of(workload)),
      kernargs_(workload.gpu, kMaxDispatches * kernarg_stride_) {
  uint32_t batches = 0;
  for (const uint32_t batch : kBatches) batches = std::max(batches, load_for(batch).repeats);
  for (uint32_t i = 0; i < batches; ++i) signals_.emplace_back();
  // Once: rows that write arguments later write the same values. Rows that write none therefore
  // find correct ones, and no row finds its lines in the cache because of this initialisation.
  std::memset(kernargs_.data(), 0, kernargs_.size_bytes());
  for (uint32_t i = 0; i < kMaxDispatches; ++i) {
    // The grid is one workgroup, so hidden arguments are the same for every dispatch.
    workload.tally.info().arguments.fill_hidden(kernargs(i), Grid{Workload::kItems}, {});
    const TallyArguments arguments{workload.tallies.data(), i};
    std::memcpy(kernargs(i), &arguments, sizeof arguments);
  }
}

hsa_kernel_dispatch_packet_t RawQueue::packet(const Load& load, uint32_t i) const noexcept {
  const uint32_t in_batch = i % load.batch;
  const uint32_t word = first_word_of(in_batch, load.batch);
  hsa_kernel_dispatch_packet_t packet{};
  packet.header = static_cast<uint16_t>(word);
  packet.setup = static_cast<uint16_t>(word >> 16);
  packet.workgroup_size_x = Workload::kItems;
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = Workload::kItems;
  packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = workload_.tally.info().object;
  packet.kernarg_address = kernargs(i);
  if (in_batch + 1 == load.batch) packet.completion_signal = signal(i / load.batch);
  return packet;
}

void RawQueue::prepare(const Load& load) noexcept {
  for (uint32_t i = 0; i < load.repeats; ++i) hsa_signal_store_relaxed(signal(i), 1);
}

void RawQueue::close_gate() noexcept {
  hsa_signal_store_screlease(gate_.handle(), 1);
  const aql::BarrierAnd barrier{
      .flags = {aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::none},
      .dependencies = {gate_.handle()}};
  const uint64_t index = hsa_queue_add_write_index_relaxed(queue(), 1);
  aql::Packet64* const slot = reinterpret_cast<aql::Packet64*>(ring() + (index & mask()));
  const uint32_t word = aql::fill(slot, barrier);
  std::atomic_ref(slot->word[0]).store(word, std::memory_order_release);
  hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

void RawQueue::open_gate() noexcept { hsa_signal_store_screlease(gate_.handle(), 0); }

void RawQueue::wait(const Load& load) const noexcept {
  for (uint32_t i = load.repeats; i-- > 0;)
    while (hsa_signal_wait_scacquire(signal(i), HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                     HSA_WAIT_STATE_ACTIVE) >= 1) {
    }
}

}  // namespace uptempo::bench
