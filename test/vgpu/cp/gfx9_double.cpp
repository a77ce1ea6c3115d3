#include "gfx9_double.hpp"

#include <utility>

namespace uptempo::vgpu::gfx9 {

struct CodePage {};

struct CodeCache::Impl {};
CodeCache::CodeCache(AddressSpace&, Target, MemoryPolicy) : impl_(std::make_unique<Impl>()) {}
CodeCache::~CodeCache() = default;
void CodeCache::invalidate() noexcept {}

Executor::Executor(AddressSpace& space, CodeCache& cache, Target the_target)
    : memory(space), code(cache), target(the_target) {}
Executor::Executor(Device& device, CodeCache& cache, Target the_target)
    : Executor(device.memory, cache, the_target) {}
Executor::~Executor() = default;
void Executor::enter() noexcept { memory.enter(); }
void Executor::leave() noexcept { memory.leave(); }

std::variant<Kernel, Kernel::Rejected> Kernel::load(AddressSpace::Reader& memory,
                                                    GpuAddress kernel_object, Target) {
  const auto* scripted = reinterpret_cast<const test::ScriptedKernel*>(
      memory.translate(kernel_object, sizeof(test::ScriptedKernel), Access::read));
  if (scripted == nullptr)
    return Rejected{QueueError::invalid_code_object, "the kernel object is not mapped"};
  if (scripted->rejected != QueueError::none)
    return Rejected{scripted->rejected, "rejected by the test"};
  Kernel kernel;
  kernel.entry = kernel_object;
  kernel.group_segment_bytes = scripted->group_segment_bytes;
  kernel.private_segment_bytes = scripted->private_segment_bytes;
  kernel.vgprs = scripted->vgprs;
  kernel.kernarg_bytes = scripted->kernarg_bytes;
  kernel.preload_dwords = scripted->preload_dwords;
  kernel.preload_offset_bytes = scripted->preload_offset_bytes;
  kernel.legacy = scripted->legacy;
  return kernel;
}

struct Workgroup::Impl {
  const DispatchState* dispatch = nullptr;
  test::WorkgroupId id{};
  uint32_t scratch_slot = 0;
  unsigned turn = 0;
  Wave wave{};  // the state of all waves: at the entry, with all lanes
  std::optional<WorkgroupPlace> place;
  WaveSlots* place_of = nullptr;
};

// As the core does, but the test never looks at the values.
bool DispatchState::preload_kernargs(AddressSpace::Reader&) {
  if (kernel.preload_dwords != 0) preloaded_kernargs.emplace();
  return true;
}

Workgroup::Workgroup() : impl_(std::make_unique<Impl>()) {}
Workgroup::~Workgroup() = default;
Workgroup::Workgroup(Workgroup&&) noexcept = default;
Workgroup& Workgroup::operator=(Workgroup&&) noexcept = default;

void Workgroup::start(const DispatchState& dispatch, std::array<uint32_t, 3> id,
                      uint32_t scratch_slot) {
  impl_->dispatch = &dispatch;
  impl_->id = id;
  impl_->scratch_slot = scratch_slot;
  impl_->turn = 0;
  impl_->wave.pc = dispatch.kernel.entry;
  impl_->wave.stop = WaveStop::quantum;
  impl_->wave.set_exec(~uint64_t{0});
}

const WorkgroupPlace& Workgroup::place(Executor& executor) {
  if (!impl_->place) {
    impl_->place_of = executor.wave_slots;
    impl_->place = executor.wave_slots->take(units, turn, impl_->dispatch->needs());
  }
  return *impl_->place;
}

void Workgroup::leave_place() noexcept {
  if (impl_->place) impl_->place_of->give_back(*impl_->place);
  impl_->place.reset();
}

unsigned Workgroup::waves() const noexcept { return impl_->dispatch->waves_per_workgroup(); }
std::array<uint32_t, 3> Workgroup::id() const noexcept { return impl_->id; }
Wave& Workgroup::wave(unsigned) noexcept { return impl_->wave; }
const DispatchState& Workgroup::dispatch() const noexcept { return *impl_->dispatch; }

Workgroup::Result Workgroup::run(Executor& executor, uint64_t) {
  const auto* scripted = reinterpret_cast<const test::ScriptedKernel*>(executor.memory.translate(
      impl_->dispatch->kernel.entry, sizeof(test::ScriptedKernel), Access::read));
  executor.instructions += scripted->instructions_per_slice;
  if (!scripted->body) return Result::ended;
  return scripted->body(
      {executor, *impl_->dispatch, impl_->id, impl_->scratch_slot, impl_->turn++, units});
}

}  // namespace uptempo::vgpu::gfx9
