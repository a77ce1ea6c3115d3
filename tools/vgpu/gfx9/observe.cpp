#include "gfx9/observe.hpp"

#include "device/observer.hpp"
#include "gfx9/access_scope.hpp"
#include "gfx9/stop.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

void report(const Op& op, const Wave& wave, ObservedAccess access) noexcept {
  const DispatchState& dispatch = wave.workgroup->dispatch();
  if (dispatch.observer == nullptr) return;
  access.dispatch_id = dispatch.dispatch_id;
  access.workgroup = wave.workgroup->id();
  access.wave = wave.index_in_workgroup;
  access.instruction = address_of(op);
  dispatch.observer->access(access);
}

}  // namespace

void Observed::access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                      uint64_t lanes, const GpuAddress* address) noexcept {
  report(op, wave,
         {.access = access,
          .scope = scope_of(op.in, wave.executor->target, access),
          .size_bytes = size_bytes,
          .lanes = lanes,
          .address = address});
}

void Observed::scalar_access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                             GpuAddress address) noexcept {
  report(op, wave,
         {.access = access,
          .scalar = true,
          .size_bytes = size_bytes,
          .lanes = 1,
          .address = &address});
}

}  // namespace uptempo::vgpu::gfx9
