// Accesses through the caches of an incoherent device, lane by lane, and the instructions that
// control those caches.
#include "device/caches/incoherent.hpp"
#include "device/observer.hpp"
#include "gfx9/access_scope.hpp"
#include "gfx9/memory/memory.hpp"
#include "gfx9/observe.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9::memory {
namespace {

// The scope that the instruction names. Before gfx942 they name none: those that invalidate L1 are
// for an acquire of agent scope, the others for system scope.
AccessScope scope_in(const Op& op, const Wave& wave) noexcept {
  if (wave.executor->target == Target::gfx942) return named_scope(op.in);
  return op.in.opcode == Opcode::buffer_wbl2 || op.in.opcode == Opcode::buffer_invl2
             ? AccessScope::system
             : AccessScope::agent;
}

const Op* no_cache(const Op& op, Wave&) { return next<2>(op); }

const Op* invalidate_l1(const Op& op, Wave& wave) {
  wave.executor->caches->invalidate_vector_l1(wave.workgroup->compute_unit);
  return next<2>(op);
}

const Op* write_back_l2(const Op& op, Wave& wave) {
  wave.executor->caches->write_back_l2();
  return next<2>(op);
}

// Also invalidates lines of memory local to the L2. Hardware invalidates those by probes (LLVM
// SIMemoryLegalizer, insertAcquire of gfx90a).
const Op* invalidate_l2(const Op& op, Wave& wave) {
  wave.executor->caches->invalidate_l2();
  return next<2>(op);
}

const Op* invalidate(const Op& op, Wave& wave) {
  wave.executor->caches->invalidate(wave.workgroup->compute_unit, named_scope(op.in));
  return next<2>(op);
}

const Op* write_back(const Op& op, Wave& wave) {
  wave.executor->caches->write_back(wave.workgroup->compute_unit, named_scope(op.in));
  return next<2>(op);
}

const Op* observe_write_back(const Op& op, Wave& wave) {
  MemoryObserver* const observer = wave.workgroup->dispatch().observer;
  if (observer != nullptr) observer->wrote_back(observed_wave(op, wave), scope_in(op, wave));
  return next<2>(op);
}

const Op* observe_invalidate(const Op& op, Wave& wave) {
  MemoryObserver* const observer = wave.workgroup->dispatch().observer;
  if (observer != nullptr) observer->invalidated(observed_wave(op, wave), scope_in(op, wave));
  return next<2>(op);
}

// buffer_wbl2 is an instruction of gfx90a and gfx942.
const Op* write_back_either(const Op& op, Wave& wave) {
  return wave.executor->target == Target::gfx942 ? write_back(op, wave) : write_back_l2(op, wave);
}

const Mapping* mapping_for(const Op& op, Wave& wave, GpuAddress address, unsigned bytes,
                           Access access) {
  const Mapping* mapping = wave.executor->mapping(op, address);
  return mapping != nullptr && mapping->contains(address, bytes) && mapping->permits(access)
             ? mapping
             : nullptr;
}

}  // namespace

bool access_lane_cached(const Op& op, Wave& wave, GpuAddress address, unsigned bytes, void* buffer,
                        Access access) {
  const Mapping* mapping = mapping_for(op, wave, address, bytes, access);
  if (mapping == nullptr) return stop_memory_fault(op, wave, address, access) != nullptr;
  const std::span data(static_cast<std::byte*>(buffer), bytes);
  const AccessScope scope = scope_of(op.in, wave.executor->target, access);
  Caches& caches = *wave.executor->caches;
  if (access == Access::read) {
    caches.load(wave.workgroup->compute_unit, *mapping, address, data, scope);
  } else {
    caches.store(wave.workgroup->compute_unit, *mapping, address, data, scope);
  }
  return true;
}

std::byte* atomic_operand_cached(const Op& op, Wave& wave, GpuAddress address, unsigned bytes) {
  const Mapping* mapping = mapping_for(op, wave, address, bytes, Access::atomic);
  return mapping == nullptr ? nullptr
                            : wave.executor->caches->atomic(wave.workgroup->compute_unit, *mapping,
                                                            address, bytes);
}

Handler translate_cache_control(const Instruction& in, MemoryPolicy policy) noexcept {
  // With the other policies every access goes to memory that all agents see, so cache controls have
  // no effect.
  const bool cached = policy == MemoryPolicy::cached;
  const Handler otherwise = policy == MemoryPolicy::observed ? &observe_invalidate : &no_cache;
  switch (in.opcode) {
    case Opcode::buffer_wbinvl1:
    case Opcode::buffer_wbinvl1_vol:
      return cached ? &invalidate_l1 : otherwise;
    case Opcode::buffer_wbl2:
      return cached                             ? &write_back_either
             : policy == MemoryPolicy::observed ? &observe_write_back
                                                : &no_cache;
    case Opcode::buffer_inv:
      return cached ? &invalidate : otherwise;
    case Opcode::buffer_invl2:
      return cached ? &invalidate_l2 : otherwise;
    default:
      return nullptr;
  }
}

}  // namespace uptempo::vgpu::gfx9::memory
