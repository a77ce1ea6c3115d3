// Kernels that refuse a partial workgroup, or too many workgroups: their metadata decides.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/code_object.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/program/code_object_bytes.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

namespace {

using nlohmann::json;
using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::target;

}  // namespace

namespace {

// Metadata of one kernel with one explicit argument, unless `type_name` is null.
json metadata_with(const json& extra, const char* type_name, const char* name = "k") {
  json kernel = {{".name", name},
                 {".symbol", std::string(name) + ".kd"},
                 {".kernarg_segment_size", 8},
                 {".kernarg_segment_align", 8},
                 {".group_segment_fixed_size", 0},
                 {".private_segment_fixed_size", 0},
                 {".max_flat_workgroup_size", 256},
                 {".wavefront_size", 64},
                 {".args", json::array()}};
  if (type_name != nullptr) {
    json argument = {{".offset", 0}, {".size", 8}, {".value_kind", "global_buffer"}};
    if (*type_name != 0) argument[".type_name"] = type_name;
    kernel[".args"].push_back(argument);
  }
  kernel.update(extra);
  return kernel;
}

ProgramMetadata read_kernels(const std::vector<json>& kernels) {
  json all;
  all["amdhsa.kernels"] = kernels;
  const std::vector<uint8_t> bytes = json::to_msgpack(all);
  return read_metadata(std::as_bytes(std::span(bytes)));
}

}  // namespace

// The entries are those of clang 15 and LLVM 19, at code object versions 4 and 5.
TEST_CASE("only kernels that are shown to be OpenCL C 2.0 may have partial workgroups",
          "[program]") {
  const auto opencl = [](int major) {
    json version;
    version[".language"] = "OpenCL C";
    version[".language_version"] = json::array({major, 0});
    return version;
  };
  json uniform = opencl(2);
  uniform[".uniform_work_group_size"] = 1;
  json not_uniform = opencl(2);
  not_uniform[".uniform_work_group_size"] = 0;
  json unversioned = opencl(2);
  unversioned.erase(".language_version");
  struct Row {
    const char* of;
    json kernel;
    bool whole;
  };
  const Row rows[] = {
      {"OpenCL C 2.0", metadata_with(opencl(2), "uint*"), false},
      {"OpenCL C 3.0", metadata_with(opencl(3), "uint*"), false},
      {"OpenCL C 2.0, not uniform", metadata_with(not_uniform, "uint*"), false},
      {"OpenCL C 1.2", metadata_with(opencl(1), "uint*"), true},
      {"OpenCL C 2.0 with -cl-uniform-work-group-size", metadata_with(uniform, "uint*"), true},
      {"HIP, linked with device libraries", metadata_with(opencl(2), ""), true},
      {"HIP of a newer clang", metadata_with(uniform, ""), true},
      {"HIP without device libraries", metadata_with(json::object(), ""), true},
      {"no arguments, in a program without others", metadata_with(opencl(2), nullptr), true},
      {"no version", metadata_with(unversioned, "uint*"), true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.of);
    CHECK(read_kernels({row.kernel}).kernels[0].whole_workgroups == row.whole);
  }
  // A kernel without explicit arguments is like the others of its program.
  const json none = metadata_with(opencl(2), nullptr, "none");
  CHECK_FALSE(read_kernels({none, metadata_with(opencl(2), "uint*")}).kernels[0].whole_workgroups);
  CHECK(read_kernels({none, metadata_with(opencl(2), "")}).kernels[0].whole_workgroups);
  uniform[".uniform_work_group_size"] = "yes";
  CHECK(contains(error_of<Error>([&] { read_kernels({metadata_with(uniform, "uint*")}); }),
                 "'.uniform_work_group_size' of kernel 'k' is not an unsigned number"));
}

// Whatever the device compiler of this build writes.
TEST_CASE("kernels from OpenCL C sources of this build may have partial workgroups", "[program]") {
  for (const auto& bundle : {builtin_kernels::basics(), builtin_kernels::probes()})
    for (const KernelMetadata& kernel :
         read_metadata(metadata_note(select_code_object(bundle, target("gfx90a")))).kernels) {
      CAPTURE(kernel.name);
      CHECK_FALSE(kernel.whole_workgroups);
    }
}

TEST_CASE("a grid of more workgroups than the kernel was compiled for is refused", "[program]") {
  json most;
  most[".max_num_workgroups_x"] = 7;
  most[".max_num_workgroups_z"] = 2;
  const ProgramMetadata program = read_kernels({metadata_with(most, "uint*")});
  const KernelMetadata& metadata = program.kernels[0];
  const KernelInfo kernel{.name = "k",
                          .max_workgroup_size = 256,
                          .max_workgroups = {metadata.max_workgroups[0], metadata.max_workgroups[1],
                                             metadata.max_workgroups[2]},
                          .arguments = ArgumentLayout(metadata, false)};
  require_geometry(kernel, Grid(7 * 64, 1000, 2).by(64, 1, 1));
  require_geometry(kernel, Grid(7 * 64 - 3, 1, 1).by(64));
  const std::string error =
      error_of<Error>([&] { require_geometry(kernel, Grid{7 * 64 + 1}.by(64)); });
  CHECK(contains(error, "8 workgroups in dimension 0, but the kernel was compiled for 7"));
  CHECK(contains(error_of<Error>([&] { require_geometry(kernel, Grid(64, 1, 3).by(64)); }),
                 "3 workgroups in dimension 2, but the kernel was compiled for 2"));
}
