#include "test/vgpu/gfx9/fragment.hpp"

#include "test/support/catch.hpp"

namespace uptempo::vgpu::gfx9::test {

Fragment::Fragment(Target target, MemoryPolicy policy)
    : machine(target, policy), assembler_(target) {}

Wave& Fragment::prepare(std::string_view text, uint32_t lds_bytes) {
  const auto words = assembler_.assemble(std::string(text) + "\ns_endpgm\n");
  Launch launch;
  launch.dynamic_lds = lds_bytes;
  dispatch_ = machine.prepare(machine.assemble_kernel(words), launch, {});
  workgroup_.start(*dispatch_, {0, 0, 0}, 0);
  Wave& wave = workgroup_.wave(0);
  std::memset(wave.scalar, 0, kVccLo * sizeof wave.scalar[0]);
  std::fill_n(wave.vgpr, 128, Vgpr{});
  if (lds_bytes != 0) std::memset(wave.lds, 0, lds_bytes);
  return wave;
}

std::optional<Executor::Fault> Fragment::run() {
  machine.executor.fault.reset();
  machine.acquire(FenceScope::system);
  machine.place(workgroup_);
  for (auto result = Workgroup::Result::preempted; result == Workgroup::Result::preempted;) {
    machine.executor.enter();
    result = workgroup_.run(machine.executor, 10000);
    machine.executor.leave();
  }
  machine.release(FenceScope::system);
  return machine.executor.fault;
}

Wave& Fragment::finish() {
  const auto fault = run();
  INFO((fault ? fault->message : std::string()));
  REQUIRE_FALSE(fault);
  return workgroup_.wave(0);
}

}  // namespace uptempo::vgpu::gfx9::test
