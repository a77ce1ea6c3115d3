#include "test/fuzz/seeds.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <stdexcept>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/kernels/transfer.hpp>

#include <uptempo/aql/text.hpp>
#include <uptempo/program/code_object.hpp>
#include <uptempo/program/elf_file.hpp>
#include <uptempo/program/metadata.hpp>
#include "test/fuzz/recording_world.hpp"
#include "test/fuzz/seed_texts.hpp"
#include "tools/fence_scope/report/report_json.hpp"

using namespace uptempo;

namespace {

std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
template <class T>
std::string bytes_of(const T& value) {
  return string_of(std::as_bytes(std::span(&value, 1)));
}

class Corpus {
 public:
  Corpus(const std::filesystem::path& directory, const char* target) : at_(directory / target) {
    std::filesystem::create_directories(at_);
  }
  void add(std::string_view seed) {
    std::ofstream file(at_ / fmt::format("seed-{:04}", count_++), std::ios::binary);
    if (!file.write(seed.data(), static_cast<std::streamsize>(seed.size())))
      throw std::runtime_error("cannot write to " + at_.string());
  }

 private:
  std::filesystem::path at_;
  size_t count_ = 0;
};

std::string bundle_of(std::span<const CodeObject> objects) {
  std::string table, data;
  const size_t names_bytes = objects.size() * 40;
  const size_t table_bytes = 32 + objects.size() * 24 + names_bytes;
  for (const CodeObject& object : objects) {
    std::string name = "hipv4-amdgcn-amd-amdhsa--" + to_string(object.target);
    name.resize(40, '-');
    const uint64_t numbers[] = {table_bytes + data.size(), object.bytes.size(), name.size()};
    table += bytes_of(numbers) + name;
    data += string_of(object.bytes);
  }
  return "__CLANG_OFFLOAD_BUNDLE__" + bytes_of(uint64_t{objects.size()}) + table + data;
}

// A program for x86-64 with a bundle in its data.
std::string program_with(const std::string& bundle) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_X86_64;
  header.e_type = ET_EXEC;
  return bytes_of(header) + std::string(64, '\0') + bundle;
}

// The code object's segments as ROCr loads them.
std::string loaded(const CodeObject& object) {
  std::string image;
  Elf64_Ehdr header;
  std::memcpy(&header, object.bytes.data(), sizeof header);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, object.bytes.data() + header.e_phoff + i * sizeof segment,
                sizeof segment);
    if (segment.p_type != PT_LOAD) continue;
    image.resize(std::max(image.size(), segment.p_vaddr + segment.p_memsz));
    std::memcpy(image.data() + segment.p_vaddr, object.bytes.data() + segment.p_offset,
                segment.p_filesz);
  }
  return image;
}

// The executable segments of a code object.
std::string code_of(const CodeObject& object) {
  std::string code;
  Elf64_Ehdr header;
  std::memcpy(&header, object.bytes.data(), sizeof header);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, object.bytes.data() + header.e_phoff + i * sizeof segment,
                sizeof segment);
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      code += string_of(object.bytes.subspan(segment.p_offset, segment.p_filesz));
  }
  return code;
}

void write_code(const std::filesystem::path& directory) {
  Corpus objects(directory, "code_object"), notes(directory, "metadata"),
      instructions(directory, "instruction"), memory(directory, "device_memory");
  constexpr const char* kTargets[] = {"gfx900", "gfx906", "gfx908", "gfx90a"};
  const std::span<const std::byte> bundles[] = {
      builtin_kernels::transfer(), builtin_kernels::probes(), builtin_kernels::basics(),
      builtin_kernels::bitonic_sort()};
  for (const auto& bundle : bundles) {
    std::vector<CodeObject> both;
    for (size_t target = 0; target < std::size(kTargets); ++target) {
      const CodeObject object = select_code_object(bundle, {*parse_target_id(kTargets[target]), 6});
      const std::string code = code_of(object);
      for (size_t at = 0; at < code.size() && at < 64 * 64; at += 64)
        instructions.add(static_cast<char>(target) + code.substr(at, 64));
      if (target < 2) continue;
      both.push_back(object);
      objects.add(string_of(object.bytes));
      notes.add(string_of(metadata_note(object)));
      for (const KernelMetadata& kernel : read_metadata(metadata_note(object)).kernels)
        if (const auto* const symbol = object.elf->find(kernel.symbol))
          memory.add(bytes_of(static_cast<uint32_t>(symbol->st_value)) + loaded(object));
    }
    objects.add(bundle_of(both));
    objects.add(program_with(bundle_of(both)));
  }
  memory.add(fuzz::sdma_packets());
}

void write_recordings(const std::filesystem::path& directory) {
  Corpus corpus(directory, "recording");
  fuzz::RecordingWorld world;
  const std::string file = world.save(*world.full_recording());
  corpus.add(file);
  for (const char version : {'1', '2', '3'}) corpus.add(version + file.substr(file.find('\n') + 1));
}

void write_packets(const std::filesystem::path& directory) {
  Corpus corpus(directory, "packet");
  const aql::HeaderFlags flags{aql::Barrier::on, aql::FenceScope::agent, aql::FenceScope::system};
  for (const aql::Packet64& packet :
       {aql::to_packet(aql::KernelDispatch{.flags = flags,
       .grid = {256, 4, 2},
       .workgroup = {64, 2, 1},
       .dimensions = 3,
       .kernel_object = 0x7f0000001000,
       .completion_signal = {0x40}}),
        aql::to_packet(aql::BarrierAnd{flags, {{{0x40}, {0x80}}}, {0xc0}}),
        aql::to_packet(aql::BarrierOr{flags, {{{0x40}}}, {0xc0}}),
        aql::to_packet(
            aql::BarrierValue{.flags = flags, .signal = {0x40}, .value = 7, .mask = 15})}) {
    corpus.add(bytes_of(packet));
    corpus.add(aql::format_words(packet));
  }
}

void write_texts(const std::filesystem::path& directory) {
  const auto add = [&](const char* target, std::span<const std::string_view> texts) {
    Corpus corpus(directory, target);
    for (const std::string_view text : texts) corpus.add(text);
  };
  add("program_file", fuzz::kPrograms);
  add("trace", fuzz::kTraces);
  add("names", fuzz::kNames);
  add("host_instruction", fuzz::kHostInstructions);
  Corpus reports(directory, "report");
  fence_scope::Report report;
  report.schema = fence_scope::kReportSchema;
  report.cells.resize(1);
  report.cells[0].headers.resize(2);
  reports.add(fence_scope::json_text(report));
  reports.add(fuzz::kEarlierReport);
}

}  // namespace

void uptempo::fuzz::write_seeds(const std::filesystem::path& directory) {
  write_code(directory);
  write_recordings(directory);
  write_packets(directory);
  write_texts(directory);
}
