#include "test/vgpu/gfx9/llvm/llvm_fold.hpp"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <stdexcept>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetMC();
}

namespace uptempo::vgpu::gfx9::test {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";

llvm::TargetMachine& machine() {
  static const std::unique_ptr<llvm::TargetMachine> instance = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    std::string error;
    const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(kTriple, error);
    if (target == nullptr) throw std::runtime_error("LLVM has no AMDGPU target: " + error);
    return std::unique_ptr<llvm::TargetMachine>(
        target->createTargetMachine(kTriple, "gfx90a", "", llvm::TargetOptions(), llvm::None));
  }();
  return *instance;
}

}  // namespace

std::vector<std::optional<uint64_t>> llvm_fold(const std::string& declarations,
                                               const std::string& result_type,
                                               const std::vector<std::string>& bodies) {
  std::string text = "target triple = \"" + std::string(kTriple) + "\"\n" + declarations + "\n";
  for (size_t n = 0; n < bodies.size(); ++n)
    text += "define " + result_type + " @f" + std::to_string(n) + "() {\n" + bodies[n] + "\n}\n";

  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
  if (module == nullptr) {
    throw std::runtime_error("LLVM does not accept: " + diagnostic.getMessage().str() + " in \"" +
                             diagnostic.getLineContents().str() + "\"");
  }
  module->setDataLayout(machine().createDataLayout());

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(
      &machine());  // instruction combining asks the target about its intrinsics
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager pipeline;
  if (llvm::Error error = passes.parsePassPipeline(pipeline, "function(instcombine)"))
    throw std::runtime_error("LLVM has no instcombine: " + llvm::toString(std::move(error)));
  pipeline.run(*module, modules);

  std::vector<std::optional<uint64_t>> results(bodies.size());
  for (size_t n = 0; n < bodies.size(); ++n) {
    const llvm::Function* const function = module->getFunction("f" + std::to_string(n));
    const auto* const ending = llvm::cast<llvm::ReturnInst>(function->back().getTerminator());
    if (const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(ending->getReturnValue()))
      results[n] = constant->getZExtValue();
  }
  return results;
}

}  // namespace uptempo::vgpu::gfx9::test
