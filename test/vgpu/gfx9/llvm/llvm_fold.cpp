#include "test/vgpu/gfx9/llvm/llvm_fold.hpp"

// LLVM's C interface, because it is the same in all releases since 15.
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <memory>
#include <stdexcept>
#include <type_traits>

namespace uptempo::vgpu::gfx9::test {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";

template <auto kDispose>
struct Dispose {
  template <class Handle>
  void operator()(Handle* handle) const {
    kDispose(handle);
  }
};
template <class Ref, auto kDispose>
using Owned = std::unique_ptr<std::remove_pointer_t<Ref>, Dispose<kDispose>>;

// Takes a message that LLVM allocated.
std::string text_of(char* message) {
  const std::string text = message == nullptr ? "" : message;
  LLVMDisposeMessage(message);
  return text;
}

LLVMTargetMachineRef machine() {
  static const Owned<LLVMTargetMachineRef, LLVMDisposeTargetMachine> instance([] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMTargetRef target = nullptr;
    char* message = nullptr;
    if (LLVMGetTargetFromTriple(kTriple, &target, &message) != 0)
      throw std::runtime_error("LLVM has no AMDGPU target: " + text_of(message));
    return LLVMCreateTargetMachine(target, kTriple, "gfx90a", "", LLVMCodeGenLevelDefault,
                                   LLVMRelocDefault, LLVMCodeModelDefault);
  }());
  return instance.get();
}

}  // namespace

std::vector<std::optional<uint64_t>> llvm_fold(const std::string& declarations,
                                               const std::string& result_type,
                                               const std::vector<std::string>& bodies) {
  std::string text = "target triple = \"" + std::string(kTriple) + "\"\n" + declarations + "\n";
  for (size_t n = 0; n < bodies.size(); ++n)
    text += "define " + result_type + " @f" + std::to_string(n) + "() {\n" + bodies[n] + "\n}\n";

  const Owned<LLVMContextRef, LLVMContextDispose> context(LLVMContextCreate());
  LLVMModuleRef parsed = nullptr;
  char* message = nullptr;
  // The parser takes the buffer.
  if (LLVMParseIRInContext(
          context.get(),
          LLVMCreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "text"), &parsed,
          &message) != 0)
    throw std::runtime_error("LLVM does not accept: " + text_of(message));
  const Owned<LLVMModuleRef, LLVMDisposeModule> module(parsed);
  const Owned<LLVMTargetDataRef, LLVMDisposeTargetData> layout(
      LLVMCreateTargetDataLayout(machine()));
  LLVMSetModuleDataLayout(module.get(), layout.get());

  const Owned<LLVMPassBuilderOptionsRef, LLVMDisposePassBuilderOptions> options(
      LLVMCreatePassBuilderOptions());
  // Instruction combining asks the target about its intrinsics.
  if (LLVMErrorRef error =
          LLVMRunPasses(module.get(), "function(instcombine)", machine(), options.get())) {
    char* const reason = LLVMGetErrorMessage(error);
    const std::string reason_text = reason;
    LLVMDisposeErrorMessage(reason);
    throw std::runtime_error("LLVM has no instcombine: " + reason_text);
  }

  std::vector<std::optional<uint64_t>> results(bodies.size());
  for (size_t n = 0; n < bodies.size(); ++n) {
    const LLVMValueRef function =
        LLVMGetNamedFunction(module.get(), ("f" + std::to_string(n)).c_str());
    const LLVMValueRef ending = LLVMGetBasicBlockTerminator(LLVMGetLastBasicBlock(function));
    if (const LLVMValueRef constant = LLVMIsAConstantInt(LLVMGetOperand(ending, 0)))
      results[n] = LLVMConstIntGetZExtValue(constant);
  }
  return results;
}

}  // namespace uptempo::vgpu::gfx9::test
