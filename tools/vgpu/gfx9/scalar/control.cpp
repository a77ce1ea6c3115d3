// Program control: branches, calls, barriers, messages, hardware registers, and VGPR indexing
// (indexing.cpp).
#include "gfx9/observe.hpp"
#include "gfx9/scalar/scalar.hpp"
#include "gfx9/stop.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9::scalar {
namespace {

const Op* branch(const Op& op, Wave& wave) noexcept {
  const uint32_t target = op.index + 1 + op.in.literal;  // wraps for negative displacements
  if (target < Executor::kCodePageBytes / 4) return &op - op.index + target;
  return jump(
      op, wave,
      address_of(op) + 4 + static_cast<uint64_t>(int64_t{static_cast<int32_t>(op.in.literal)} * 4));
}

template <class Condition>
const Op* branch_if(const Op& op, Wave& wave) {
  return Condition{}(wave) ? branch(op, wave) : next<1>(op);
}
template <class Condition>
constexpr Handler when(Condition) {
  return &branch_if<Condition>;
}

const Op* nothing(const Op& op, Wave&) { return next<1>(op); }

const Op* get_pc(const Op& op, Wave& wave) {
  wave.set_pair(op.in.dst, address_of(op) + 4);
  return next<1>(op);
}
const Op* set_pc(const Op& op, Wave& wave) { return jump(op, wave, wave.pair(op.in.src[0])); }
const Op* swap_pc(const Op& op, Wave& wave) {
  const uint64_t target = operand<uint64_t>(wave, op.in.src[0]);
  wave.set_pair(op.in.dst, address_of(op) + 4);
  return jump(op, wave, target);
}
const Op* call(const Op& op, Wave& wave) {
  wave.set_pair(op.in.dst, address_of(op) + 4);
  return branch(op, wave);
}

const Op* end_program(const Op& op, Wave& wave) { return stop_after(op, wave, WaveStop::ended); }
const Op* barrier(const Op& op, Wave& wave) {
  if (wave.workgroup->waves() == 1) return next<1>(op);
  return stop_after(op, wave, WaveStop::barrier);
}
const Op* yield(const Op& op, Wave& wave) { return stop_after(op, wave, WaveStop::yield); }

const Op* halt(const Op& op, Wave& wave) {
  if ((op.in.literal & 1) == 0) return next<1>(op);
  return stop_error(op, wave, QueueError::trap,
                    "halts the wave, and there is no debugger to resume it");
}

// Trap ids of the HSA trap handler ABI (LLVM AMDGPUUsage, "Trap Handler ABI"): 2 is llvm.trap. 3 is
// llvm.debugtrap, which has no effect without a debugger.
const Op* trap(const Op& op, Wave& wave) {
  if (op.in.literal == 3) return next<1>(op);
  return stop_error(op, wave, QueueError::trap, "ends the dispatch");
}

// The fields of s_waitcnt (Vega ISA, "S_WAITCNT"): vmcnt [15:14] [3:0], lgkmcnt [11:8].
const Op* observe_wait(const Op& op, Wave& wave) {
  const bool vector = (op.in.literal & 0xc00f) == 0, lds = (op.in.literal & 0xf00) == 0;
  if (vector || lds)
    observe_order(op, wave, [&](MemoryObserver& observer, const ObservedWave& at) {
      observer.waited(at, vector, lds);
    });
  return next<1>(op);
}

// s_sendmsg. MSG_INTERRUPT (1) carries the low 8 bits of a KFD event id in M0. The driver sets each
// event with these bits that it finds signalled. A waiter woken for another event checks its signal
// and sleeps again. Other messages concern graphics.
const Op* send_message(const Op& op, Wave& wave) {
  constexpr uint32_t kInterrupt = 1, kEvents = 4096;
  Interrupts* interrupts = wave.executor->interrupts;
  if ((op.in.literal & 0xf) == kInterrupt && interrupts != nullptr) {
    for (uint32_t id = wave.scalar[kM0] & 0xff; id < kEvents; id += 256) {
      if (id != 0) interrupts->raise(id);
    }
  }
  return next<1>(op);
}

// The program may have written the code that follows. This drops decoded code and ends the slice,
// because a worker decodes again only after its next enter().
const Op* invalidate_code(const Op& op, Wave& wave) {
  wave.executor->code.invalidate();
  return stop_after(op, wave, WaveStop::yield);
}

// Hardware registers (LLVM AMDGPU hwreg): id [5:0], offset [10:6], width - 1 [15:11].
enum HardwareRegister : unsigned {
  kMode = 1,
  kStatus = 2,
  kTrapSts = 3,
  kHwId = 4,
  kGprAlloc = 5,
  kLdsAlloc = 6,
  kIbSts = 7,
  kShMemBases = 15,
  kXccId = 20  // gfx942
};

struct Field {
  explicit Field(uint32_t simm16)
      : id(simm16 & 0x3f),
        offset(simm16 >> 6 & 0x1f),
        mask(0xffffffffu >> (31 - (simm16 >> 11 & 0x1f))) {}
  unsigned id;
  unsigned offset;
  uint32_t mask;
};

// HW_ID: WAVE_ID [3:0], SIMD_ID [5:4], PIPE_ID [7:6], CU_ID [11:8], SH_ID [12], SE_ID [15:13],
// TG_ID [19:16], VM_ID [23:20], QUEUE_ID [26:24], STATE_ID [29:27], ME_ID [31:30]. Sources: the
// comment on HW_ID in HIP's amd_device_functions.h, and its later HW_ID_SE_ID_SIZE: 3 bits on
// gfx908 and gfx90a, which have eight engines. SH_ID is 0: one shader array per engine. STATE_ID is
// 0: only graphics has states.
//
// KFD runs compute queues on the first micro-engine, whose four pipes have eight queues each. The
// graphics driver keeps the first two queues of each pipe (amdgpu_gfx_compute_queue_acquire()).
// VMIDs 8 to 15 are KFD's, and the first process gets 8.
uint32_t hardware_id(Wave& wave) {
  constexpr uint32_t kVmId = 8, kMicroEngine = 1, kPipes = 4, kFirstQueue = 2;
  const WorkgroupPlace& place = wave.workgroup->place(*wave.executor);
  const WorkgroupPlace::Slot& slot = place.slots[wave.index_in_workgroup];
  const uint32_t queue = wave.workgroup->dispatch().hardware_queue;
  return slot.index | uint32_t{slot.simd} << 4 | queue % kPipes << 6 | uint32_t{place.unit} << 8 |
         uint32_t{place.engine} << 13 | uint32_t{place.group} << 16 | kVmId << 20 |
         (kFirstQueue + queue / kPipes) << 24 | kMicroEngine << 30;
}

bool read_register(Wave& wave, unsigned id, uint32_t& value) {
  switch (id) {
    case kMode:
      value = wave.mode;
      return true;
    case kStatus:  // SCC, EXECZ, VCCZ, IN_TG, VALID
      value = (wave.scc ? 1u : 0u) | (wave.exec() == 0 ? 1u << 9 : 0u) |
              (wave.vcc() == 0 ? 1u << 10 : 0u) | (wave.workgroup->waves() > 1 ? 1u << 11 : 0u) |
              1u << 16;
      return true;
    case kTrapSts:
      value = wave.trapsts;
      return true;
    case kHwId:
      value = hardware_id(wave);
      return true;
    case kGprAlloc:
      value = ((wave.workgroup->dispatch().kernel.vgprs / 4 - 1) & 0x3f) << 8;
      return true;
    case kLdsAlloc:
      value = ((wave.lds_bytes + 511) / 512) << 12;
      return true;  // LDS_SIZE in units of 128 dwords
    case kIbSts:
      value = 0;
      return true;
    case kXccId:
      if (wave.executor->target != Target::gfx942) return false;
      value = wave.workgroup->place(*wave.executor).xcd;
      return true;
    case kShMemBases:
      value = static_cast<uint32_t>(kSharedAperture << 16 | kPrivateAperture);
      return true;
    default:
      return false;
  }
}

const Op* get_register(const Op& op, Wave& wave) {
  const Field field(op.in.literal);
  uint32_t value = 0;
  if (!read_register(wave, field.id, value))
    return stop_error(op, wave, QueueError::illegal_instruction,
                      "reads a hardware register that is not supported");
  wave.scalar[op.in.dst] = value >> field.offset & field.mask;
  return next<1>(op);
}

const Op* write_register(const Op& op, Wave& wave, uint32_t simm16, uint32_t value) {
  const Field field(simm16);
  const auto merge = [&](uint32_t& word) {
    word = (word & ~(field.mask << field.offset)) | (value & field.mask) << field.offset;
  };
  switch (field.id) {
    case kMode:
      merge(wave.mode);
      break;
    case kTrapSts:
      merge(wave.trapsts);
      break;
    case kStatus:
      break;  // not writable by user programs
    default:
      return stop_error(op, wave, QueueError::illegal_instruction,
                        "writes a hardware register that is not supported");
  }
  return next(op);
}
const Op* set_register(const Op& op, Wave& wave) {
  return write_register(op, wave, op.in.literal, wave.scalar[op.in.src[0]]);
}
const Op* set_register_literal(const Op& op, Wave& wave) {
  return write_register(op, wave, op.in.dst, op.in.literal);
}

// s_movrel*: SGPR index relative to M0. An index past the file stops the wave. On hardware it is
// undefined.
template <unsigned Dwords, bool RelativeSource>
const Op* move_relative(const Op& op, Wave& wave) {
  uint64_t index = RelativeSource ? op.in.src[0] : op.in.dst;
  index += wave.scalar[kM0];
  if (index + Dwords > kFlatScratchLo)
    return stop_error(op, wave, QueueError::illegal_instruction, "indexes past the SGPRs");
  const auto at = static_cast<unsigned>(index);
  if constexpr (RelativeSource) {
    for (unsigned i = 0; i < Dwords; ++i) wave.scalar[op.in.dst + i] = wave.scalar[at + i];
    return next<1>(op);
  } else if constexpr (Dwords == 1) {
    wave.scalar[at] =
        op.in.src[0] == kLiteral ? op.in.literal : operand<uint32_t>(wave, op.in.src[0]);
  } else {
    wave.set_pair(at,
                  op.in.src[0] == kLiteral ? op.in.literal : operand<uint64_t>(wave, op.in.src[0]));
  }
  return next(op);
}

}  // namespace

Handler translate_control(Instruction& in, MemoryPolicy policy) noexcept {
  using enum Opcode;
  // s_swappc and s_movreld have no meaning with a status bit as their 64-bit source.
  if (in.format != Format::sopp && in.format != Format::sopk && in.src[0] >= kVccz &&
      in.src[0] <= kScc)
    return nullptr;
  switch (in.opcode) {
    case s_branch:
      return when([](const Wave&) { return true; });
    case s_cbranch_scc0:
      return when([](const Wave& w) { return !w.scc; });
    case s_cbranch_scc1:
      return when([](const Wave& w) { return w.scc; });
    case s_cbranch_vccz:
      return when([](const Wave& w) { return w.vcc() == 0; });
    case s_cbranch_vccnz:
      return when([](const Wave& w) { return w.vcc() != 0; });
    case s_cbranch_execz:
      return when([](const Wave& w) { return w.exec() == 0; });
    case s_cbranch_execnz:
      return when([](const Wave& w) { return w.exec() != 0; });
    case s_getpc_b64:
      return &get_pc;
    case s_setpc_b64:
      return &set_pc;
    case s_swappc_b64:
      return in.size_bytes == 4 ? &swap_pc : nullptr;
    case s_call_b64:
      return &call;
    case s_endpgm:
    case s_endpgm_saved:
      return &end_program;
    case s_barrier:
      return &barrier;
    case s_sleep:
      return &yield;
    case s_sethalt:
      return &halt;
    case s_trap:
      return &trap;
    case s_sendmsg:
      return &send_message;
    case s_icache_inv:
      return &invalidate_code;
    case s_getreg_b32:
      return &get_register;
    case s_setreg_b32:
      return &set_register;
    case s_setreg_imm32_b32:
      return &set_register_literal;
    case s_movrels_b32:
      return &move_relative<1, true>;
    case s_movrels_b64:
      return &move_relative<2, true>;
    case s_movreld_b32:
      return &move_relative<1, false>;
    case s_movreld_b64:
      return &move_relative<2, false>;
    case s_set_gpr_idx_on:
    case s_set_gpr_idx_off:
    case s_set_gpr_idx_mode:
    case s_set_gpr_idx_idx:
      return translate_indexing(in);
    // No-ops. Memory operations complete in program order, so waits are not needed. Priorities and
    // counters have no effect. The debugger's conditions are never true.
    case s_waitcnt:
      return policy == MemoryPolicy::direct ? &nothing : &observe_wait;
    case s_nop:
    case s_wakeup:
    case s_setprio:
    case s_incperflevel:
    case s_decperflevel:
    case s_ttracedata:
    case s_cbranch_cdbgsys:
    case s_cbranch_cdbguser:
    case s_cbranch_cdbgsys_or_user:
    case s_cbranch_cdbgsys_and_user:
      return &nothing;
    default:
      return nullptr;
  }
}

}  // namespace uptempo::vgpu::gfx9::scalar
