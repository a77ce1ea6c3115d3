// What the kernels of the repository read at their start. LLVM's tools are the oracle for
// kernel_starts(): they print the descriptor as the assembler's directives, and the metadata as
// YAML.
#include <kernels/basics.hpp>
#include <kernels/bitonic_sort.hpp>
#include <kernels/large_arguments.hpp>
#include <kernels/probes.hpp>
#include <kernels/probes_v4.hpp>
#include <kernels/transfer.hpp>
#include <kernels/workgroups_of_256.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/program/code_object.hpp"
#include "engine/program/kernel_start.hpp"
#include "engine/runtime/error.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using uptempo::test::contains;
using uptempo::test::error_of;

namespace {

struct Reader {
  const char* kernel;
  const char* reason;
};
constexpr const char* kAnySize =
    "runs with workgroups of any size; workgroups_of_256 reads nothing";
constexpr const char* kAnyGrid = "any grid serves any size: work-items advance by the grid's size";
constexpr const char* kProbe = "a probe of tests, which launch it with many geometries";
// The kernels that read hidden arguments. There is no list for the packet: no kernel reads it.
constexpr Reader kReaders[] = {
    {"fill", kAnySize},         {"iota", kAnySize},         {"copy", kAnySize},
    {"vector_add", kAnySize},   {"saxpy", kAnySize},        {"chain_increment", kAnySize},
    {"reduce_lds", kAnySize},   {"bitonic_sort", kAnySize}, {"copy_bytes", kAnyGrid},
    {"copy_rows", kAnyGrid},    {"fill_bytes", kAnyGrid},   {"fill_rows", kAnyGrid},
    {"spin", kProbe},           {"combine", kProbe},        {"probe_arguments", kProbe},
    {"probe_geometry", kProbe}, {"probe_private", kProbe},
};

bool may_read_geometry(const std::string& kernel) {
  return std::ranges::any_of(kReaders, [&](const Reader& it) { return it.kernel == kernel; });
}

void check_starts(const KernelStart& kernel, bool may_read) {
  CAPTURE(kernel.origin, kernel.target, kernel.name);
  CHECK_FALSE(kernel.packet);
  CHECK_FALSE(kernel.queue);
  CHECK_FALSE(kernel.dispatch_id);
  if (!may_read) CHECK(kernel.hidden_arguments.empty());
}

std::string bytes_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::byte> as_span(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace

TEST_CASE("kernels with a known geometry read neither the packet nor hidden arguments",
          "[kernels]") {
  for (const auto& bundle :
       {builtin_kernels::workgroups_of_256(), builtin_kernels::large_arguments()})
    for (const KernelStart& kernel : kernel_starts(bundle)) check_starts(kernel, false);
  std::set<std::string> readers;
  for (const auto& bundle : {builtin_kernels::basics(), builtin_kernels::bitonic_sort(),
                             builtin_kernels::probes(), builtin_kernels::transfer()}) {
    for (const KernelStart& kernel : kernel_starts(bundle)) {
      check_starts(kernel, may_read_geometry(kernel.name));
      if (!kernel.hidden_arguments.empty()) readers.insert(kernel.name);
    }
  }
  // Every exception is needed.
  CHECK(readers.size() == std::size(kReaders));
}

TEST_CASE("the kernels of the samples and tools read neither, too", "[kernels]") {
  std::set<std::string> seen;
  for (const char* program : {LAUNCH_LOOP, STREAM_BENCH, FENCE_SCOPE}) {
    CAPTURE(program);
    for (const KernelStart& kernel : kernel_starts(as_span(bytes_of(program)))) {
      check_starts(kernel, may_read_geometry(kernel.name));
      seen.insert(kernel.name);
    }
  }
  for (const char* kernel : {"tension", "hold", "observe", "arguments_of_16", "arguments_of_4096",
                             "litmus_store", "litmus_copy", "litmus_add"}) {
    CAPTURE(kernel);
    CHECK(seen.contains(kernel));
  }
}

TEST_CASE("LLVM's tools find the same in each code object", "[kernels]") {
  const uptempo::test::TemporaryDirectory directory;
  static const std::regex kDirective(R"(\.amdhsa_(\w+) (\d+))");
  size_t packets = 0, compared = 0;
  for (const auto& bundle :
       {builtin_kernels::basics(), builtin_kernels::probes(), test::kernels::probes_v4()}) {
    for (const CodeObjectCandidate& candidate : candidates_in(bundle)) {
      const std::string file = directory.file("code");
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(candidate.bytes.data()),
                 static_cast<std::streamsize>(candidate.bytes.size()));
      const std::string notes = uptempo::test::run_command({LLVM_READOBJ, "--notes", file}).out;
      for (const KernelStart& kernel : kernel_starts(candidate.bytes)) {
        CAPTURE(kernel.target, kernel.name);
        const std::string text =
            uptempo::test::run_command(
                {LLVM_OBJDUMP, "-D", "--disassemble-symbols=" + kernel.name + ".kd", file})
                .out;
        std::map<std::string, unsigned long> directives;
        for (std::sregex_iterator it(text.begin(), text.end(), kDirective), end; it != end; ++it)
          directives[(*it)[1]] = std::stoul((*it)[2]);
        // LLVM 15 does not decode the descriptors of newer targets.
        if (directives.empty()) continue;
        ++compared;
        CHECK(kernel.packet == (directives.at("user_sgpr_dispatch_ptr") != 0));
        CHECK(kernel.queue == (directives.at("user_sgpr_queue_ptr") != 0));
        CHECK(kernel.dispatch_id == (directives.at("user_sgpr_dispatch_id") != 0));
        CHECK(kernel.kernarg_segment == (directives.at("user_sgpr_kernarg_segment_ptr") != 0));
        CHECK(kernel.kernarg_bytes == directives.at("kernarg_size"));
        CHECK(kernel.private_segment_bytes == directives.at("private_segment_fixed_size"));
        packets += kernel.packet;
        // The kernel's entry of the notes, from its arguments to its name.
        const size_t name = notes.find(".name:           " + kernel.name + "\n");
        REQUIRE(name != std::string::npos);
        const size_t previous = notes.rfind(".wavefront_size:", name);
        const std::string entry =
            notes.substr(previous == std::string::npos ? 0 : previous,
                         name - (previous == std::string::npos ? 0 : previous));
        for (const std::string& hidden : kernel.hidden_arguments)
          CHECK(contains(entry, "hidden_" + hidden + "\n"));
        if (kernel.hidden_arguments.empty()) CHECK_FALSE(contains(entry, "hidden_block_count_x"));
      }
    }
  }
  CHECK(compared >= 17);
  CHECK(packets == 5);  // those of probes_v4 that use geometry
}

TEST_CASE("a program without kernels and bytes that are no code are refused by name", "[kernels]") {
  CHECK(contains(error_of([] { kernel_starts(as_span(bytes_of("/bin/true"))); }),
                 "no offload bundle"));
  const std::string text = "neither";
  CHECK(contains(error_of([&] { kernel_starts(as_span(text)); }), "7 bytes that are neither"));
  // A descriptor that its symbol table does not name.
  const auto bundle = builtin_kernels::bitonic_sort();
  const auto entry = candidates_in(bundle).front().bytes;
  std::string damaged(reinterpret_cast<const char*>(entry.data()), entry.size());
  for (size_t at = damaged.find("bitonic_sort.kd"); at != std::string::npos;
       at = damaged.find("bitonic_sort.kd", at + 1)) {
    // In the dynamic string table the name ends with a zero; in the metadata it does not.
    if (damaged[at + 15] == '\0') damaged[at] = 'x';
  }
  CHECK(contains(error_of([&] { kernel_starts(as_span(damaged)); }), "bitonic_sort.kd"));
}
