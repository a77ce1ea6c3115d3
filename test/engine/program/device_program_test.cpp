// Code objects on the running ROCr: versions, compressed bundles, and kernels that declare hidden
// arguments without need.
#include <zstd.h>
#include <uptempo/kernels/host_call.hpp>
#include <uptempo/kernels/unoptimized_v4.hpp>
#include <uptempo/kernels/unoptimized_v5.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/loaded_kernel.hpp>
#include <uptempo/program/metadata.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::download;
using uptempo::test::error_of;
using uptempo::test::OnDevice;

CodeObject code_for(const Agent& gpu, std::span<const std::byte> bundle) {
  const auto target = parse_target_id(gpu.isa());
  REQUIRE(target);
  return select_code_object(bundle, *target);
}

bool declares(const CodeObject& object, ArgumentKind kind) {
  const ProgramMetadata metadata = read_metadata(metadata_note(object));
  return std::ranges::count(metadata.kernels[0].arguments, kind, &ArgumentMetadata::kind) != 0;
}

// Four words for each work-item: workgroup size plus `add`, grid size, workgroups, dimensions.
std::vector<uint32_t> geometry_of(const Grid& grid, uint32_t add) {
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < grid.items.x; ++i) {
    // The last workgroup may be partial.
    const uint32_t group =
        std::min(grid.workgroup.x, grid.items.x - i / grid.workgroup.x * grid.workgroup.x);
    const uint32_t groups = (grid.items.x + grid.workgroup.x - 1) / grid.workgroup.x;
    words.insert(words.end(), {group + add, grid.items.x, groups, grid.dimensions});
  }
  return words;
}

struct Geometry : OnDevice {
  explicit Geometry(std::span<const std::byte> code)
      : kernel(Program(gpu, code).kernel<uint32_t*, uint32_t>("geometry")) {}

  // The first `grid` of the results.
  std::vector<uint32_t> results(const Grid& grid) {
    std::vector<uint32_t> words = download(copier, out);
    words.resize(size_t{grid.items.x} * 4);
    return words;
  }

  Kernel<uint32_t*, uint32_t> kernel;
  Copier copier{gpu};
  DeviceBuffer<uint32_t> out{gpu, 4000};
  Queue queue{gpu};
};

}  // namespace

TEST_CASE("a kernel that declares host services and cannot use them runs in every kind of dispatch",
          "[program]") {
  const bool is_v5 = GENERATE(false, true);
  CAPTURE(is_v5);
  Geometry work(is_v5 ? kernels::unoptimized_v5() : kernels::unoptimized_v4());
  const CodeObject object =
      code_for(work.gpu, is_v5 ? kernels::unoptimized_v5() : kernels::unoptimized_v4());
  CHECK(object.version == (is_v5 ? 5 : 4));
  CHECK(declares(object, ArgumentKind::hidden_hostcall_buffer));
  CHECK(declares(object, ArgumentKind::hidden_heap_v1) == is_v5);
  CHECK_FALSE(can_call_host(object));

  const Grid grid = Grid{1000}.by(96);
  {
    BatchSubmitter batch{work.queue};
    batch.dispatch(work.kernel, grid, work.out.data(), 7u);
    batch.submit().wait();
    CHECK(work.results(grid) == geometry_of(grid, 7));
    const Grid other = Grid{640}.by(64);
    const auto prepared = batch.prepare(work.kernel, other);
    prepared.dispatch(work.out.data(), 8u);
    batch.submit().wait();
    CHECK(work.results(other) == geometry_of(other, 8));
  }
  {
    Recording recording{work.queue};
    const Node node = recording.dispatch(work.kernel, grid, work.out.data(), 9u);
    recording.replay(work.queue).wait();
    CHECK(work.results(grid) == geometry_of(grid, 9));
    const Grid patched = Grid{500}.by(128);
    recording.set_grid(node, patched);
    recording.replay(work.queue).wait();
    CHECK(work.results(patched) == geometry_of(patched, 9));
  }
  {
    Streams streams{work.gpu};
    Stream stream{streams};
    const Grid other = Grid{333}.by(32);
    stream.launch(work.kernel, other, work.out.data(), 10u);
    stream.synchronize();
    CHECK(work.results(other) == geometry_of(other, 10));
    Launcher launcher{streams, work.kernel};
    for (const Grid& next : {Grid{256}.by(64), Grid{100}.by(32)}) {
      launcher.launch(stream, next, work.out.data(), 11u);
      stream.synchronize();
      CHECK(work.results(next) == geometry_of(next, 11));
    }
  }
}

TEST_CASE_METHOD(OnDevice, "a kernel that can call the host is refused by the argument's name",
                 "[program]") {
  CHECK(can_call_host(code_for(gpu, kernels::host_call())));
  const Program program(gpu, kernels::host_call());
  CHECK(contains(error_of<Error>([&] { (void)program.kernel<uint64_t*, uint32_t>("host_call"); }),
                 "hidden argument 'hidden_hostcall_buffer': it uses host calls"));
}

TEST_CASE_METHOD(OnDevice, "a compressed bundle is loaded, and may end before its program",
                 "[program]") {
  const auto program = [&] {
    const auto bundle = kernels::unoptimized_v5();
    std::vector<std::byte> packed(ZSTD_compressBound(bundle.size()) + 32);
    const size_t size =
        ZSTD_compress(packed.data() + 32, packed.size() - 32, bundle.data(), bundle.size(), 3);
    REQUIRE(ZSTD_isError(size) == 0);
    packed.resize(size + 32);
    // Version 3 (compressed_bundle.hpp).
    const uint16_t version_and_method[] = {3, 1};
    const uint64_t sizes[] = {packed.size(), bundle.size(), 0};
    std::memcpy(packed.data(), "CCOB", 4);
    std::memcpy(packed.data() + 4, version_and_method, 4);
    std::memcpy(packed.data() + 8, sizes, 24);
    return Program(gpu, packed);
  }();
  const auto kernel = program.kernel<uint32_t*, uint32_t>("geometry");
  const DeviceBuffer<uint32_t> out{gpu, 256};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  const Grid grid = Grid{64}.by(64);
  batch.dispatch(kernel, grid, out.data(), 3u);
  batch.submit().wait();
  Copier copier{gpu};
  CHECK(download(copier, out) == geometry_of(grid, 3));
}

TEST_CASE_METHOD(OnDevice, "code object version 6 loads where ROCr knows it, and is else refused",
                 "[program]") {
  // Versions 5 and 6 differ in nothing that ROCr reads but the ABI version, unless the target is
  // generic.
  const CodeObject object = code_for(gpu, kernels::unoptimized_v5());
  std::vector<std::byte> code(object.bytes.begin(), object.bytes.end());
  code[8] = std::byte{4};  // ABI version
  // ROCr 6.2 has version 1.6 of the AMD extension; older releases have less, or none to ask for.
  uint16_t minor = 0;
  const auto attribute = static_cast<hsa_system_info_t>(0x208);
  const bool knows = hsa_system_get_info(attribute, &minor) == HSA_STATUS_SUCCESS && minor >= 6;
  CAPTURE(minor);
  const std::string error = error_of<Error>([&] {
    const Program program(gpu, code);
    const auto kernel = program.kernel<uint32_t*, uint32_t>("geometry");
    const DeviceBuffer<uint32_t> out{gpu, 256};
    Queue queue{gpu};
    BatchSubmitter batch{queue};
    const Grid grid = Grid{64}.by(64);
    batch.dispatch(kernel, grid, out.data(), 3u);
    batch.submit().wait();
    Copier copier{gpu};
    CHECK(download(copier, out) == geometry_of(grid, 3));
  });
  if (knows) {
    CHECK(error == "no error");
  } else {
    CHECK(contains(error, "code object version 6, but the running ROCr loads versions up to 5"));
  }
}
