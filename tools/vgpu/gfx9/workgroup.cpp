#include "gfx9/workgroup.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "gfx9/stop.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

constexpr unsigned kMaxWaves = 16;  // 1024 work-items
constexpr size_t kLdsBytes = 64 * 1024;
constexpr unsigned kAccumulation = 256;  // Vgpr index of the first accumulation register

// Vector registers of all waves, wave after wave, as many as the kernel allocates. A register
// number past the allocation (a broken kernel) names a register of another wave or of the spare one
// at the end, never memory of the host program.
constexpr size_t kRegistersPerWave = 2 * kAccumulation;
constexpr size_t kStorageBytes = kLdsBytes + (kMaxWaves + 1) * kRegistersPerWave * sizeof(Vgpr);

// Kernel code properties, llvm AMDHSAKernelDescriptor.h; bits 7 to 9 only in amd_kernel_code_t.
enum : uint16_t {
  kPrivateSegmentBuffer = 1u << 0,
  kDispatchPtr = 1u << 1,
  kQueuePtr = 1u << 2,
  kKernargSegmentPtr = 1u << 3,
  kDispatchId = 1u << 4,
  kFlatScratchInit = 1u << 5,
  kPrivateSegmentSize = 1u << 6,
  kGridWorkgroupCountX = 1u << 7,
};

constexpr auto kConstants32 = [] {
  std::array<uint32_t, 128> value{};
  for (unsigned i = 0; i < value.size(); ++i) value[i] = constant32(kFirstConstant + i);
  return value;
}();

std::byte* map_storage() {
  // Untouched pages take no memory, so each workgroup object reserves what the largest kernel
  // needs.
  void* storage = mmap(nullptr, kStorageBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (storage == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(storage);
}

}  // namespace

bool DispatchState::preload_kernargs(AddressSpace::Reader& memory) {
  if (kernel.preload_dwords == 0) return true;
  const std::byte* host = memory.translate(preloaded_address(), preloaded_bytes(), Access::read);
  if (host == nullptr) return false;
  std::memcpy(preloaded_kernargs.emplace().data(), host, preloaded_bytes());
  return true;
}

struct Workgroup::Impl {
  Impl() {
    for (Wave& each : wave)
      std::memcpy(each.scalar + kFirstConstant, kConstants32.data(), sizeof kConstants32);
  }
  ~Impl() { munmap(storage, kStorageBytes); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Vgpr* vgprs() noexcept { return reinterpret_cast<Vgpr*>(storage + kLdsBytes); }
  void set_scalars(Wave& one, uint32_t slot, unsigned index) noexcept;
  void set_work_item_ids(unsigned items) noexcept;
  void observe(void (MemoryObserver::*event)(const ObservedWorkgroup&) noexcept) const noexcept;

  Wave wave[kMaxWaves];
  std::byte* const storage = map_storage();  // LDS, then vector registers
  const DispatchState* dispatch = nullptr;
  std::array<uint32_t, 3> id{};
  std::array<uint32_t, 3> size{};  // in work-items, smaller at the grid's far edges
  unsigned waves = 0;
  uint32_t live = 0;     // bit i: wave i has not ended
  uint32_t waiting = 0;  // at the barrier
  std::optional<WorkgroupPlace> place;
  WaveSlots* place_of = nullptr;  // gave the place
};

Workgroup::Workgroup() : impl_(std::make_unique<Impl>()) {}
Workgroup::~Workgroup() = default;
Workgroup::Workgroup(Workgroup&&) noexcept = default;
Workgroup& Workgroup::operator=(Workgroup&&) noexcept = default;

unsigned Workgroup::waves() const noexcept { return impl_->waves; }
const DispatchState& Workgroup::dispatch() const noexcept { return *impl_->dispatch; }
std::array<uint32_t, 3> Workgroup::id() const noexcept { return impl_->id; }
Wave& Workgroup::wave(unsigned index) noexcept { return impl_->wave[index]; }

const WorkgroupPlace& Workgroup::place(Executor& executor) {
  Impl& impl = *impl_;
  if (impl.place) return *impl.place;
  impl.place_of = executor.wave_slots;
  // As many waves as this workgroup has: those at the far edges of a grid may have fewer.
  WorkgroupNeeds needs = impl.dispatch->needs();
  needs.waves = static_cast<uint16_t>(impl.waves);
  if (impl.place_of == nullptr) {
    impl.place = WorkgroupPlace::alone(impl.waves);
  } else if (executor.caches != nullptr) {
    impl.place = impl.place_of->take_on(compute_unit, needs);
  } else {
    impl.place = impl.place_of->take(units, turn, needs);
  }
  return *impl.place;
}

void Workgroup::leave_place() noexcept {
  Impl& impl = *impl_;
  if (!impl.place) return;
  if (impl.place_of != nullptr) impl.place_of->give_back(*impl.place);
  impl.place.reset();
}

// Initial SGPRs, in the order of "Initial Kernel Execution State" in LLVM's AMDGPUUsage: the user
// SGPRs that the properties enable, as many as rsrc2 states, then the system SGPRs.
void Workgroup::Impl::set_scalars(Wave& one, uint32_t slot, unsigned index) noexcept {
  const DispatchState& state = *dispatch;
  const Kernel& kernel = state.kernel;
  // Hides the size from the compiler. GCC compiles a known size to `rep stos`, which takes four
  // times as long as the library's memset.
  size_t size_bytes = kFirstConstant * sizeof one.scalar[0];
  asm("" : "+r"(size_bytes));
  std::memset(one.scalar, 0, size_bytes);
  one.scalar[kVccz] = one.scalar[kExecz] = one.scalar[kScc] = one.scalar[kLiteral] = 0;

  unsigned next = 0;
  const auto put = [&](uint32_t value) { one.scalar[next++] = value; };
  const auto put_pair = [&](uint64_t value) {
    put(static_cast<uint32_t>(value));
    put(static_cast<uint32_t>(value >> 32));
  };
  if (kernel.properties & kPrivateSegmentBuffer) {
    for (const uint32_t word : state.scratch_descriptor) put(word);
  }
  if (kernel.properties & kDispatchPtr) put_pair(state.packet_address);
  if (kernel.properties & kQueuePtr) put_pair(state.queue_address);
  if (kernel.properties & kKernargSegmentPtr)
    put_pair(reinterpret_cast<uint64_t>(state.packet.kernarg_address));
  if (kernel.properties & kDispatchId) put_pair(state.dispatch_id);
  if (kernel.properties & kFlatScratchInit) put_pair(state.scratch_base);
  if (kernel.properties & kPrivateSegmentSize) put(state.packet.private_segment_size);
  for (unsigned i = 0; i < 3; ++i) {
    if (kernel.properties & (kGridWorkgroupCountX << i)) put(state.workgroups()[i]);
  }
  if (state.preloaded_kernargs) {
    for (unsigned i = 0; i < kernel.preload_dwords; ++i) put((*state.preloaded_kernargs)[i]);
  }
  next = kernel.rsrc2 >> 1 & 0x1f;
  for (unsigned i = 0; i < 3; ++i) {
    if (kernel.rsrc2 & (1u << (7 + i))) put(id[i]);
  }
  // TG_SIZE_EN: waves in the workgroup [5:0], this wave [11:6] (ordered append term), first wave
  // [31].
  if (kernel.rsrc2 & (1u << 10)) put(waves | index << 6 | (index == 0 ? 1u << 31 : 0));
  const uint32_t wave_offset = (slot + index) * state.scratch_bytes_per_wave;
  // gfx942 has architected flat scratch: the wave starts with the address of its private segment in
  // FLAT_SCRATCH, and gets no offset (LLVM AMDGPUUsage, "Flat Scratch").
  const bool architected = kernel.target == Target::gfx942;
  if ((kernel.rsrc2 & 1u) && !architected) put(wave_offset);

  // FLOAT_MODE, DX10_CLAMP, IEEE_MODE and FP16_OVFL of rsrc1 at their places in MODE.
  one.mode = (kernel.rsrc1 >> 12 & 0xff) | (kernel.rsrc1 >> 21 & 1) << 8 |
             (kernel.rsrc1 >> 23 & 1) << 9 | (kernel.rsrc1 >> 26 & 1) << 23;
  one.trapsts = 0;
  one.scc = false;
  one.scratch_base = state.scratch_base != 0 ? state.scratch_base + wave_offset : 0;
  one.scratch_bytes = state.scratch_base != 0 ? state.scratch_bytes_per_wave : UINT64_MAX;
  if ((kernel.rsrc2 & 1u) && architected) one.set_pair(kFlatScratchLo, one.scratch_base);
}

void Workgroup::Impl::observe(
    void (MemoryObserver::*event)(const ObservedWorkgroup&) noexcept) const noexcept {
  if (!dispatch->observer->interests().order) return;
  (dispatch->observer->*event)({.dispatch_id = dispatch->dispatch_id,
                                .workgroup = id,
                                .waves = waves,
                                .lds_bytes = dispatch->packet.group_segment_size});
}

// Lanes are numbered x first, then y, z, over the existing work-items. gfx90a and gfx942 pack x, y,
// z into v0, 10 bits each. The others use v0..v2, as ENABLE_VGPR_WORKITEM_ID states.
void Workgroup::Impl::set_work_item_ids(unsigned items) noexcept {
  const bool packed = has_merged_registers(dispatch->kernel.target);
  const unsigned components = dispatch->kernel.rsrc2 >> 11 & 3;
  uint32_t x = 0, y = 0, z = 0;
  for (unsigned w = 0; w < waves; ++w) {
    Vgpr* vgpr = wave[w].vgpr;
    const unsigned lanes = std::min(kLanes, items - w * kLanes);
    if (size[1] == 1 && size[2] == 1) {
      for (unsigned lane = 0; lane < kLanes; ++lane) vgpr[0].lane[lane] = w * kLanes + lane;
      if (!packed && components >= 1) vgpr[1] = {};
      if (!packed && components >= 2) vgpr[2] = {};
      continue;
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
      if (packed) {
        vgpr[0].lane[lane] = x | y << 10 | z << 20;
      } else {
        vgpr[0].lane[lane] = x;
        if (components >= 1) vgpr[1].lane[lane] = y;
        if (components >= 2) vgpr[2].lane[lane] = z;
      }
      if (++x == size[0]) {
        x = 0;
        if (++y == size[1]) {
          y = 0;
          ++z;
        }
      }
    }
  }
}

void Workgroup::start(const DispatchState& dispatch, std::array<uint32_t, 3> id,
                      uint32_t scratch_slot) {
  Impl& impl = *impl_;
  leave_place();
  impl.dispatch = &dispatch;
  impl.id = id;
  const hsa_kernel_dispatch_packet_t& packet = impl.dispatch->packet;
  const Kernel& kernel = impl.dispatch->kernel;
  impl.size = {std::min<uint32_t>(packet.workgroup_size_x,
                                  packet.grid_size_x - id[0] * packet.workgroup_size_x),
               std::min<uint32_t>(packet.workgroup_size_y,
                                  packet.grid_size_y - id[1] * packet.workgroup_size_y),
               std::min<uint32_t>(packet.workgroup_size_z,
                                  packet.grid_size_z - id[2] * packet.workgroup_size_z)};
  const unsigned items = impl.size[0] * impl.size[1] * impl.size[2];
  impl.waves = waves_of(items);
  impl.live = (1u << impl.waves) - 1;
  impl.waiting = 0;
  const size_t registers =
      kernel.accumulation_vgprs != 0 ? kAccumulation + kernel.accumulation_vgprs : kernel.vgprs;
  for (unsigned w = 0; w < impl.waves; ++w) {
    Wave& wave = impl.wave[w];
    impl.set_scalars(wave, scratch_slot, w);
    const unsigned lanes = std::min(kLanes, items - w * kLanes);
    wave.set_exec(lanes == kLanes ? ~uint64_t{0} : (uint64_t{1} << lanes) - 1);
    wave.vgpr = impl.vgprs() + w * registers;
    wave.pc = kernel.entry + (impl.dispatch->preloaded_kernargs ? Kernel::kPreloadHeaderBytes : 0);
    wave.stop = WaveStop::quantum;
    wave.lds = impl.storage;
    wave.lds_bytes = packet.group_segment_size;
    wave.index_in_workgroup = w;
    wave.sync_phase = 0;
    wave.workgroup = this;
  }
  impl.set_work_item_ids(items);
  if (dispatch.observer != nullptr) [[unlikely]]
    impl.observe(&MemoryObserver::workgroup_started);
}

namespace {

// Runs one wave for at most `limit` instructions and returns how many it executed. The loop counts
// each instruction, which preempts every loop of the program. The count costs less than the branch
// mispredictions of a check at branches only.
uint64_t run_wave(Executor& executor, Wave& wave, uint64_t limit) {
  const Op* op = executor.code_at(wave.pc);
  wave.stop = WaveStop::running;
  uint64_t left = limit;
  while (left != 0) {
    --left;
    // acquire: the worker that decoded the entry published its operands before the handler.
    const Handler handler =
        std::atomic_ref(const_cast<Handler&>(op->handler)).load(std::memory_order_acquire);
    const Op* following = handler(*op, wave);
    if (following == nullptr) return limit - left;
    op = following;
  }
  wave.pc = address_of(*op);
  wave.stop = WaveStop::quantum;
  return limit;
}

}  // namespace

Workgroup::Result Workgroup::run(Executor& executor, uint64_t instructions) {
  Impl& impl = *impl_;
  std::array<uint64_t, kMaxWaves> left;
  left.fill(instructions);
  uint32_t done = 0;  // used up its slice, or yielded
  for (uint32_t runnable = impl.live & ~impl.waiting; runnable != 0;
       runnable = impl.live & ~impl.waiting & ~done) {
    for (; runnable != 0; runnable &= runnable - 1) {
      const auto index = static_cast<unsigned>(std::countr_zero(runnable));
      const uint32_t bit = 1u << index;
      Wave& wave = impl.wave[index];
      wave.workgroup = this;  // the workgroup may have moved
      wave.executor = &executor;
      const uint64_t executed = run_wave(executor, wave, left[index]);
      executor.instructions += executed;
      left[index] -= executed;
      if (left[index] == 0) done |= bit;
      switch (wave.stop) {
        case WaveStop::running:
        case WaveStop::quantum:
        case WaveStop::yield:
          done |= bit;
          break;
        case WaveStop::barrier:
          impl.waiting |= bit;
          break;
        case WaveStop::ended:
          impl.live &= ~bit;
          break;
        case WaveStop::faulted:
          return Result::faulted;
      }
    }
    if (impl.live == 0) break;
    if (impl.waiting == impl.live) {
      if (impl.dispatch->observer != nullptr) [[unlikely]]
        impl.observe(&MemoryObserver::barrier);
      impl.waiting = 0;  // ended waves do not count (Vega ISA, S_BARRIER)
      // Waves that do not run again in this slice do not wait at the barrier any more.
      for (uint32_t resting = impl.live & done; resting != 0; resting &= resting - 1)
        impl.wave[std::countr_zero(resting)].stop = WaveStop::quantum;
    }
  }
  if (impl.live != 0) return Result::preempted;
  if (impl.dispatch->observer != nullptr) [[unlikely]]
    impl.observe(&MemoryObserver::workgroup_ended);
  return Result::ended;
}

}  // namespace uptempo::vgpu::gfx9
