// Executes a few instructions, given as text, in one wave whose registers the test sets and reads.
#pragma once

#include <optional>
#include <string_view>

#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"
#include "test/vgpu/gfx9/machine.hpp"

namespace uptempo::vgpu::gfx9::test {

class Fragment {
 public:
  explicit Fragment(Target target = Target::gfx90a, MemoryPolicy policy = policy_of_run());

  Machine machine;

  // Returns a new wave at the start of `text`: all registers 0, EXEC all ones, `lds_bytes` of LDS
  // that hold 0.
  Wave& prepare(std::string_view text, uint32_t lds_bytes = 0);
  // Runs the wave to its end. Returns the fault, if any.
  std::optional<Executor::Fault> run();
  // Runs the wave, and fails the test on a fault.
  Wave& finish();
  // prepare() without set-up, then finish().
  Wave& finish(std::string_view text, uint32_t lds_bytes = 0) {
    prepare(text, lds_bytes);
    return finish();
  }

 private:
  LlvmMc assembler_;
  std::shared_ptr<const DispatchState> dispatch_;  // outlives the workgroup's run
  Workgroup workgroup_;
};

}  // namespace uptempo::vgpu::gfx9::test
