#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"

#include <elf.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCAsmBackend.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCObjectWriter.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>
#include <stdexcept>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmParser();
void LLVMInitializeAMDGPUDisassembler();
}

namespace uptempo::vgpu::gfx9::test {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";

const llvm::Target& amdgpu() {
  static const llvm::Target& target = []() -> const llvm::Target& {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    LLVMInitializeAMDGPUDisassembler();
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
    if (!found) throw std::runtime_error("LLVM has no AMDGPU target: " + error);
    return *found;
  }();
  return target;
}

std::vector<uint32_t> text_section(llvm::StringRef object) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  const auto section = [&](unsigned i) {
    Elf64_Shdr s;
    std::memcpy(&s, object.data() + header.e_shoff + i * sizeof s, sizeof s);
    return s;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (std::string_view(object.data() + names.sh_offset + s.sh_name) != ".text") continue;
    std::vector<uint32_t> words(s.sh_size / 4);
    std::memcpy(words.data(), object.data() + s.sh_offset, words.size() * 4);
    return words;
  }
  throw std::runtime_error("LLVM's object has no .text section");
}

}  // namespace

struct LlvmMc::Impl {
  explicit Impl(Target target)
      : triple(kTriple),
        registers(amdgpu().createMCRegInfo(kTriple)),
        assembly(amdgpu().createMCAsmInfo(*registers, kTriple, options)),
        instructions(amdgpu().createMCInstrInfo()),
        subtarget(amdgpu().createMCSubtargetInfo(kTriple, cpu_name(target), "")),
        context(triple, assembly.get(), registers.get(), subtarget.get()),
        disassembler(amdgpu().createMCDisassembler(*subtarget, context)),
        printer(amdgpu().createMCInstPrinter(triple, 0, *assembly, *instructions, *registers)) {
    printer->setCommentStream(llvm::nulls());
  }

  llvm::Triple triple;
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  llvm::MCContext context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

LlvmMc::LlvmMc(Target target) : impl_(std::make_unique<Impl>(target)) {}
LlvmMc::~LlvmMc() = default;

std::optional<LlvmMc::Disassembled> LlvmMc::disassemble(std::span<const uint32_t> words) {
  const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(words.data()),
                                      words.size_bytes());
  llvm::MCInst instruction;
  uint64_t size = 0;
  if (impl_->disassembler->getInstruction(instruction, size, bytes, 0, llvm::nulls()) !=
      llvm::MCDisassembler::Success) {
    return std::nullopt;
  }
  Disassembled out{static_cast<unsigned>(size), {}};
  llvm::raw_string_ostream stream(out.text);
  impl_->printer->printInst(&instruction, 0, "", *impl_->subtarget, stream);
  stream.flush();
  const size_t first = out.text.find_first_not_of(" \t");
  out.text.erase(0, first);
  out.text.erase(out.text.find_last_not_of(" \t") + 1);
  return out;
}

bool LlvmMc::is_fatal(std::span<const uint32_t> words) noexcept {
  if (words.size() < 2) return false;
  const auto field = [&](unsigned low, unsigned width) {
    return words[1] >> low & ((1u << width) - 1);
  };
#if LLVM_VERSION_MAJOR >= 21
  const unsigned encoding = words[0] >> 26;
  const bool vop3 = encoding == 0x34, buffer = encoding == 0x38 || encoding == 0x3a;
  if (vop3 && (field(0, 9) == 255 || field(9, 9) == 255 || field(18, 9) == 255)) return true;
  const bool compare_vop3 = vop3 && (words[0] >> 16 & 0x3ff) < 256;
  if (compare_vop3 && (words[0] & 0xff) == 255) return true;
  if (buffer && field(24, 8) == 255) return true;
#endif
  const bool sdwa = (words[0] >> 31) == 0 && (words[0] & 0x1ff) == 249;
  if (!sdwa) return false;
  const unsigned format = words[0] >> 25;
  const bool compare = format == 0x3e, one_source = format == 0x3f;
  return field(16, 3) == 7 || (!one_source && field(24, 3) == 7) ||
         (!compare && (field(8, 3) == 7 || field(11, 2) == 3));
}

std::vector<uint32_t> LlvmMc::assemble(std::string_view text) {
  std::string message;
  llvm::SourceMgr source;
  source.setDiagHandler(
      [](const llvm::SMDiagnostic& diagnostic, void* out) {
        *static_cast<std::string*>(out) +=
            diagnostic.getMessage().str() + " in \"" + diagnostic.getLineContents().str() + "\"; ";
      },
      &message);
  source.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(text.data(), text.size())),
      llvm::SMLoc());

  const llvm::Target& target = amdgpu();
  llvm::MCContext context(impl_->triple, impl_->assembly.get(), impl_->registers.get(),
                          impl_->subtarget.get(), &source);
  std::unique_ptr<llvm::MCObjectFileInfo> file(
      target.createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(file.get());
  llvm::SmallString<1024> object;
  llvm::raw_svector_ostream stream(object);
  std::unique_ptr<llvm::MCAsmBackend> backend(
      target.createMCAsmBackend(*impl_->subtarget, *impl_->registers, impl_->options));
  std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(stream);
  std::unique_ptr<llvm::MCCodeEmitter> emitter(
      target.createMCCodeEmitter(*impl_->instructions, context));
  std::unique_ptr<llvm::MCStreamer> streamer(target.createMCObjectStreamer(
      impl_->triple, context, std::move(backend), std::move(writer), std::move(emitter),
      *impl_->subtarget
#if LLVM_VERSION_MAJOR < 19
      ,
      /*RelaxAll=*/false, /*IncrementalLinkerCompatible=*/false, /*DWARFMustBeAtTheEnd=*/false
#endif
      ));
  std::unique_ptr<llvm::MCAsmParser> parser(
      llvm::createMCAsmParser(source, context, *streamer, *impl_->assembly));
  std::unique_ptr<llvm::MCTargetAsmParser> specific(
      target.createMCAsmParser(*impl_->subtarget, *parser, *impl_->instructions, impl_->options));
  parser->setTargetParser(*specific);
  if (parser->Run(false) || !message.empty()) {
    throw std::runtime_error("LLVM does not assemble: " + message);
  }
  return text_section(object.str());
}

std::span<const Target> llvm_targets() noexcept {
  static constexpr Target kTargets[] = {
    Target::gfx900,
    Target::gfx906,
    Target::gfx908,
    Target::gfx90a,
#if LLVM_VERSION_MAJOR >= 19
    Target::gfx942
#endif
  };
  return kTargets;
}

const char* cpu_name(Target target) noexcept {
  switch (target) {
    case Target::gfx900:
      return "gfx900";
    case Target::gfx906:
      return "gfx906";
    case Target::gfx908:
      return "gfx908";
    case Target::gfx90a:
      return "gfx90a";
    case Target::gfx942:
      return "gfx942";
  }
  return "";
}

}  // namespace uptempo::vgpu::gfx9::test
