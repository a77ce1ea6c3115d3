#include "gfx9/observe.hpp"

#include "gfx9/access_scope.hpp"
#include "gfx9/stop.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

ObservedAccess placed(const Op& op, const Wave& wave, ObservedAccess access) noexcept {
  access.dispatch_id = wave.workgroup->dispatch().dispatch_id;
  access.workgroup = wave.workgroup->id();
  access.wave = wave.index_in_workgroup;
  access.instruction = address_of(op);
  return access;
}

bool is_compare_and_swap(Opcode opcode) noexcept {
  using enum Opcode;
  switch (opcode) {
    case flat_atomic_cmpswap:
    case flat_atomic_cmpswap_x2:
    case global_atomic_cmpswap:
    case global_atomic_cmpswap_x2:
    case buffer_atomic_cmpswap:
    case buffer_atomic_cmpswap_x2:
    case ds_cmpst_b32:
    case ds_cmpst_b64:
    case ds_cmpst_f32:
    case ds_cmpst_f64:
    case ds_cmpst_rtn_b32:
    case ds_cmpst_rtn_b64:
    case ds_cmpst_rtn_f32:
    case ds_cmpst_rtn_f64:
      return true;
    default:
      return false;
  }
}

ObservedAccess vector_access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                             uint64_t lanes, const GpuAddress* address) noexcept {
  return placed(op, wave,
                {.access = access,
                 .scope = scope_of(op.in, wave.executor->target, access),
                 // glc of an atomic asks for the old value; a load has none
                 .returns = access == Access::atomic && op.in.glc,
                 .compares = access == Access::atomic && is_compare_and_swap(op.in.opcode),
                 .size_bytes = size_bytes,
                 .lanes = lanes,
                 .address = address});
}

MemoryObserver* observer_of(const Wave& wave) noexcept {
  return wave.workgroup->dispatch().observer;
}

}  // namespace

ObservedWave observed_wave(const Op& op, const Wave& wave) noexcept {
  return {.dispatch_id = wave.workgroup->dispatch().dispatch_id,
          .workgroup = wave.workgroup->id(),
          .wave = wave.index_in_workgroup,
          .instruction = address_of(op)};
}

void Observed::access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                      uint64_t lanes, const GpuAddress* address,
                      const ChangingLanes& changing) noexcept {
  MemoryObserver* const observer = observer_of(wave);
  if (observer == nullptr) return;
  ObservedAccess observed = vector_access(op, wave, access, size_bytes, lanes, address);
  observed.changing = changing;
  observer->access(observed);
}

void Observed::accessed(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                        uint64_t lanes, const GpuAddress* address) noexcept {
  MemoryObserver* const observer = observer_of(wave);
  if (observer == nullptr || !observer->interests().order || access == Access::write ||
      scope_of(op.in, wave.executor->target, access) == AccessScope::wave)
    return;
  observer->accessed(vector_access(op, wave, access, size_bytes, lanes, address));
}

void Observed::out_of_range(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                            uint64_t lanes, const GpuAddress* address) noexcept {
  MemoryObserver* const observer = observer_of(wave);
  if (observer == nullptr || !observer->interests().ranges || lanes == 0) return;
  observer->out_of_range(vector_access(op, wave, access, size_bytes, lanes, address));
}

void Observed::lds_access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                          uint64_t lanes, const uint32_t* offset, bool returns,
                          const ChangingLanes& changing) noexcept {
  MemoryObserver* const observer = observer_of(wave);
  if (observer == nullptr || !observer->interests().lds || lanes == 0) return;
  observer->lds_access({.access = access,
                        .returns = returns,
                        .compares = access == Access::atomic && is_compare_and_swap(op.in.opcode),
                        .size_bytes = size_bytes,
                        .lanes = lanes,
                        .changing = changing,
                        .offset = offset,
                        .segment_bytes = wave.lds_bytes,
                        .dispatch_id = wave.workgroup->dispatch().dispatch_id,
                        .workgroup = wave.workgroup->id(),
                        .wave = wave.index_in_workgroup,
                        .instruction = address_of(op)});
}

void Observed::scalar_access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                             GpuAddress address) noexcept {
  if (MemoryObserver* const observer = observer_of(wave))
    observer->access(placed(op, wave,
                            {.access = access,
                             .scalar = true,
                             .size_bytes = size_bytes,
                             .lanes = 1,
                             .address = &address}));
}

}  // namespace uptempo::vgpu::gfx9
