// ds_gws_init and ds_gws_barrier. Rules: Vega ISA, "DS_GWS_*". The resource is M0[21:16] plus the
// offset, modulo 64 (LLVM, SelectDS_GWS in AMDGPUISelDAGToDAG.cpp). The count comes from the first
// active lane. With EXEC 0 they execute too (LLVM, SIInstrInfo::hasUnwantedEffectsWhenEXECEmpty).
// The lane is then 0, as for v_readfirstlane_b32.
#include "gfx9/wave_sync.hpp"
#include "gfx9/memory/memory.hpp"
#include "gfx9/observe.hpp"

namespace uptempo::vgpu::gfx9::memory {
namespace {

unsigned resource_of(const Op& op, const Wave& wave) noexcept {
  return ((wave.scalar[kM0] >> 16) + static_cast<uint32_t>(op.in.offset)) % WaveSync::kResources;
}

// The data register occupies the address field of other DS instructions.
uint32_t count_of(const Op& op, const Wave& wave) noexcept {
  const unsigned accumulation = (op.in.acc & 8) != 0 ? 256 : 0;
  const int lane = wave.exec() == 0 ? 0 : std::countr_zero(wave.exec());
  return wave.vgpr[op.in.addr + accumulation].lane[lane];
}

const Op* stop_without_resource(const Op& op, Wave& wave) {
  return stop_error(op, wave, QueueError::illegal_instruction,
                    "needs global wave sync, which this dispatch does not have");
}

const Op* initialize(const Op& op, Wave& wave) {
  WaveSync* sync = wave.workgroup->dispatch().wave_sync.get();
  if (sync == nullptr) return stop_without_resource(op, wave);
  sync->initialize(resource_of(op, wave), count_of(op, wave));
  return next<2>(op);
}

// The wave executes it again in each slice until the barrier is passed. wave.sync_phase
// distinguishes a repeated execution from an arrival.
template <bool IsObserved>
const Op* barrier(const Op& op, Wave& wave) {
  WaveSync* sync = wave.workgroup->dispatch().wave_sync.get();
  if (sync == nullptr) return stop_without_resource(op, wave);
  const unsigned resource = resource_of(op, wave);
  if (wave.sync_phase == 0) {
    // Before it arrives, since the last arrival ends the phase.
    if constexpr (IsObserved)
      observe_order(op, wave, [&](MemoryObserver& observer, const ObservedWave& at) {
        observer.arrived(at, resource);
      });
    const auto phase = sync->arrive(resource, count_of(op, wave));
    if (!phase)
      return stop_error(op, wave, QueueError::illegal_instruction,
                        "waits at a resource that no ds_gws_init of this queue has initialised");
    wave.sync_phase = *phase;
  }
  if (!sync->passed(resource, wave.sync_phase)) return stop_at(op, wave, WaveStop::yield);
  if constexpr (IsObserved)
    observe_order(op, wave, [&](MemoryObserver& observer, const ObservedWave& at) {
      observer.passed(at, resource);
    });
  wave.sync_phase = 0;
  return next<2>(op);
}

}  // namespace

Handler translate_wave_sync(const Instruction& in, MemoryPolicy policy) noexcept {
  switch (in.opcode) {
    case Opcode::ds_gws_init:
      return &initialize;
    case Opcode::ds_gws_barrier:
      return policy == MemoryPolicy::direct ? &barrier<false> : &barrier<true>;
    default:
      return nullptr;
  }
}

}  // namespace uptempo::vgpu::gfx9::memory
