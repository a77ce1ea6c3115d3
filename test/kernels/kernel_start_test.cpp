// Reads of the repository's kernels at their start. The oracle for kernel_starts() is the
// compiler's assembly: descriptors as directives, metadata as YAML.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/large_arguments.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/kernels/probes_v4.hpp>
#include <uptempo/kernels/transfer.hpp>
#include <uptempo/kernels/workgroups_of_256.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/kernel_start.hpp>
#include <uptempo/runtime/error.hpp>
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
    {"fill", kAnySize},          {"iota", kAnySize},         {"copy", kAnySize},
    {"vector_add", kAnySize},    {"saxpy", kAnySize},        {"chain_increment", kAnySize},
    {"reduce_lds", kAnySize},    {"bitonic_sort", kAnySize}, {"copy_bytes", kAnyGrid},
    {"copy_slices", kAnyGrid},   {"copy_rows", kAnyGrid},    {"fill_bytes", kAnyGrid},
    {"fill_rows", kAnyGrid},     {"spin", kProbe},           {"combine", kProbe},
    {"probe_arguments", kProbe}, {"probe_geometry", kProbe}, {"probe_private", kProbe},
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

// The assembly of a source of kernels/, with the options of UptempoKernels.cmake that decide what a
// kernel reads.
std::string assembly_of(const std::string& source, const std::string& target, int version) {
  const auto outcome = uptempo::test::run_command(
      {DEVICE_CLANG, "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + target,
       "-O3", "-mcode-object-version=" + std::to_string(version),
       std::string("--rocm-device-lib-path=") + DEVICE_LIBRARIES, "-mllvm",
       "-amdgpu-internalize-symbols", "-S", std::string(KERNELS_FOLDER) + "/" + source, "-o", "-"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome.out;
}

// The assembler's directives for a kernel's descriptor, without ".amdhsa_".
std::map<std::string, unsigned long> directives_of(const std::string& assembly,
                                                   const std::string& kernel) {
  const size_t begin = assembly.find(".amdhsa_kernel " + kernel + "\n");
  REQUIRE(begin != std::string::npos);
  const std::string text =
      assembly.substr(begin, assembly.find(".end_amdhsa_kernel", begin) - begin);
  static const std::regex kDirective(R"(\.amdhsa_(\w+) (\d+)\n)");
  std::map<std::string, unsigned long> directives;
  for (std::sregex_iterator it(text.begin(), text.end(), kDirective), end; it != end; ++it)
    directives[(*it)[1]] = std::stoul((*it)[2]);
  return directives;
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

TEST_CASE("the compiler's assembly says the same of each kernel", "[kernels]") {
  struct Source {
    std::span<const std::byte> bundle;
    const char* file;
    const char* target;
    int version;
  };
  size_t packets = 0, compared = 0;
  for (const Source& source :
       {Source{test::kernels::probes_v4(), "probes.cl", "gfx90a", 4},
        Source{builtin_kernels::probes(), "probes.cl", "gfx90a", 5},
        Source{builtin_kernels::probes(), "probes.cl", "gfx1030", 5},
        Source{builtin_kernels::workgroups_of_256(), "workgroups_of_256.cl", "gfx90a", 5}}) {
    const std::string text = assembly_of(source.file, source.target, source.version);
    for (const KernelStart& kernel : kernel_starts(source.bundle)) {
      if (kernel.target != source.target) continue;
      CAPTURE(kernel.target, kernel.code_object_version, kernel.name);
      ++compared;
      const auto directives = directives_of(text, kernel.name);
      CHECK(kernel.packet == (directives.at("user_sgpr_dispatch_ptr") != 0));
      CHECK(kernel.queue == (directives.at("user_sgpr_queue_ptr") != 0));
      CHECK(kernel.dispatch_id == (directives.at("user_sgpr_dispatch_id") != 0));
      CHECK(kernel.kernarg_segment == (directives.at("user_sgpr_kernarg_segment_ptr") != 0));
      CHECK(kernel.kernarg_bytes == directives.at("kernarg_size"));
      CHECK(kernel.private_segment_bytes == directives.at("private_segment_fixed_size"));
      CHECK(kernel.scratch == (directives.at("system_sgpr_private_segment_wavefront_offset") != 0));
      packets += kernel.packet;
      // The kernel's entry of the metadata, from the end of the entry before it to its name.
      const size_t name = text.find(".name:           " + kernel.name + "\n");
      REQUIRE(name != std::string::npos);
      const size_t all = text.find("amdhsa.kernels:"),
                   before = text.rfind(".wavefront_size:", name);
      const size_t begin = before == std::string::npos ? all : std::max(all, before);
      static const std::regex kHidden(R"(hidden_(\w+))");
      const std::string entry = text.substr(begin, name - begin);
      std::vector<std::string> hidden;
      for (std::sregex_iterator it(entry.begin(), entry.end(), kHidden), end; it != end; ++it)
        if ((*it)[1] != "none") hidden.push_back((*it)[1]);
      CHECK(kernel.hidden_arguments == hidden);
    }
  }
  CHECK(compared == 3 * 7 + 11);
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
