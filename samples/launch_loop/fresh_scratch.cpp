#include "fresh_scratch.hpp"

#include <hsa/hsa_ext_amd.h>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/aql/packet.hpp>

namespace uptempo::launch_loop {
namespace {

void copy_and_wait(void* to, const void* from, size_t bytes) {
  check(hsa_memory_copy(to, from, bytes), "hsa_memory_copy");
}

// Begins when all of `after` are zero.
void start_copy(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent,
                size_t bytes, hsa_signal_t done, std::span<const hsa_signal_t> after = {}) {
  check(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, bytes,
                                  static_cast<uint32_t>(after.size()),
                                  after.empty() ? nullptr : after.data(), done),
        "hsa_amd_memory_async_copy");
}

}  // namespace

FreshScratch::~FreshScratch() {
  try {
    finish();
  } catch (const Error&) {  // the queue has failed; the launches have reported it
  }
}

void FreshScratch::copy_in(void* room, std::span<const std::byte> host) {
  if (waits_) return copy_and_wait(room, host.data(), host.size());
  const PinnedBuffer<std::byte>& pinned = pinned_.emplace_back(gpu_, host.size());
  std::memcpy(pinned.data(), host.data(), host.size());
  const hsa_signal_t copied = signals_.emplace_back().handle();
  start_copy(room, gpu_.handle(), pinned.data(), host_, host.size(), copied);
  batch_.raw(aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::none},
                      .dependencies = {copied}}));
}

void FreshScratch::copy_out(std::span<std::byte> host, const void* room) {
  if (waits_) return copy_and_wait(host.data(), room, host.size());
  const hsa_signal_t computed = signals_.back().handle();
  const hsa_signal_t copied = signals_.emplace_back().handle();
  const PinnedBuffer<std::byte>& pinned = pinned_.emplace_back(gpu_, host.size());
  start_copy(pinned.data(), host_, room, gpu_.handle(), host.size(), copied, {&computed, 1});
  arrivals_.push_back({copied, pinned.data(), host});
}

void FreshScratch::finish() {
  last_.wait();
  for (const Arrival& arrival : arrivals_) {
    // An acquire of our own: a thread sanitizer does not see the one inside ROCr.
    while (aql::load_acquire(arrival.copied) > 0)
      hsa_signal_wait_scacquire(arrival.copied, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                HSA_WAIT_STATE_BLOCKED);
    if (aql::load_acquire(arrival.copied) < 0)
      throw Error({.code = uptempo::ErrorCode::failed,
                   .call = "hsa_amd_memory_async_copy",
                   .asked = "a copy of a device array to the host",
                   .found = "the copy engine reported a failure",
                   .remedy = "check that both ranges are mapped for this GPU"});
    std::memcpy(arrival.to.data(), arrival.from, arrival.to.size());
  }
  give_back();
}

void FreshScratch::give_back() {
  arrivals_.clear();
  blocks_.clear();
  scratch_.clear();
  pinned_.clear();
  signals_.clear();
}

}  // namespace uptempo::launch_loop
