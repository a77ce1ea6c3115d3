// Kernels of HIP, compiled by hipcc: group memory sized at launch on every dispatch path; bool
// arguments. Also the hidden argument of code object version 5 that holds the size of dynamic group
// memory.
#include <uptempo/kernels/dynamic_lds_size.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using nlohmann::json;
using uptempo::test::contains;
using uptempo::test::download;
using uptempo::test::error_of;
using uptempo::test::OnDevice;

// Made by hipcc.
const std::filesystem::path kHipKernels = UPTEMPO_HIP_KERNELS;

constexpr uint32_t kWorkgroup = 128, kGroups = 3;

// The result of through_lds(), computed on the host.
std::vector<uint32_t> expected_of(const std::vector<uint32_t>& in, uint32_t count) {
  std::vector<uint32_t> out;
  for (uint32_t group = 0; group < kGroups; ++group)
    for (uint32_t i = 0; i < count; ++i) out.push_back((in[count - 1 - i] + 1) * 3 + group + i % 3);
  return out;
}

struct ThroughLds : OnDevice {
  explicit ThroughLds(uint32_t words) : count(words) {
    std::mt19937 random(7);
    std::generate(host.begin(), host.end(), random);
    copier.copy(in, host);
    clear();
  }
  void clear() {
    const std::vector<uint32_t> zeros(out.size());
    copier.copy(out, zeros);
  }
  bool is_right() {
    const bool right = download(copier, out) == expected_of(host, count);
    clear();
    return right;
  }
  Grid grid(uint32_t lds) const { return Grid{kGroups * kWorkgroup}.by(kWorkgroup).lds(lds); }

  Program program{gpu, kHipKernels};
  Kernel<uint32_t*, const uint32_t*, uint32_t> kernel =
      program.kernel<uint32_t*, const uint32_t*, uint32_t>("through_lds");
  Copier copier{gpu};
  uint32_t count;
  std::vector<uint32_t> host = std::vector<uint32_t>(count);
  DeviceBuffer<uint32_t> in{gpu, count}, out{gpu, kGroups*size_t{count}};
};

// Returns the code object for the agent with an additional metadata entry that declares the hidden
// argument. clang writes this entry from version 18 on. Its space comes from entries that no loader
// reads.
std::vector<std::byte> with_dynamic_lds_size(const Agent& gpu, uint32_t offset) {
  const auto target = parse_target_id(gpu.isa());
  REQUIRE(target);
  const CodeObject object = select_code_object(kernels::dynamic_lds_size(), *target);
  REQUIRE(object.version == 5);
  std::vector<std::byte> code(object.bytes.begin(), object.bytes.end());
  const std::span<const std::byte> note = metadata_note(object);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(note.data());
  json metadata = json::from_msgpack(bytes, bytes + note.size());
  json& kernel = metadata["amdhsa.kernels"][0];
  kernel[".args"].push_back(
      {{".offset", offset}, {".size", 4}, {".value_kind", "hidden_dynamic_lds_size"}});
  for (const char* unread : {".language", ".language_version", ".agpr_count", ".sgpr_count",
                             ".vgpr_count", ".sgpr_spill_count", ".vgpr_spill_count"})
    kernel.erase(unread);
  // A replacement text that restores the original length.
  std::vector<uint8_t> packed;
  for (size_t length = 0; packed.size() != note.size(); ++length) {
    REQUIRE(length <= note.size());
    metadata["padding"] = std::string(length, '.');
    packed = json::to_msgpack(metadata);
  }
  std::memcpy(code.data() + (note.data() - object.bytes.data()), packed.data(), packed.size());
  return code;
}

}  // namespace

TEST_CASE("a kernel's array sized at launch has the size given in the grid", "[hip]") {
  ThroughLds work(1000);
  CHECK(work.kernel.info().group_segment_size == 16);
  const Grid grid = work.grid(8 * work.count);
  Queue queue{work.gpu};
  SECTION("in batches") {
    BatchSubmitter batch{queue};
    batch.dispatch(work.kernel, grid, work.out.data(), work.in.data(), work.count);
    batch.submit().wait();
    CHECK(work.is_right());
    const KernargBuffer block(work.gpu, 512);  // of code object version 4 or 5
    batch.dispatch_at(block.span(), work.kernel, grid, work.out.data(), work.in.data(), work.count);
    batch.submit().wait();
    CHECK(work.is_right());
    const auto prepared = batch.prepare(work.kernel, grid);
    prepared.dispatch(work.out.data(), work.in.data(), work.count);
    batch.submit().wait();
    CHECK(work.is_right());
    prepared.dispatch_each(2, [&](uint32_t) noexcept {
      return std::tuple<uint32_t*, const uint32_t*, uint32_t>(work.out.data(), work.in.data(),
                                                              work.count);
    });
    batch.submit().wait();
    CHECK(work.is_right());
  }
  SECTION("in recordings, patched ones and saved ones") {
    Recording recording{queue};
    const Node node =
        recording.dispatch(work.kernel, work.grid(0), work.out.data(), work.in.data(), work.count);
    recording.set_grid(node, grid);
    recording.replay(queue).wait();
    CHECK(work.is_right());
    Bindings memory;
    memory.add("in", work.in).add("out", work.out);
    std::stringstream file;
    save_recording(recording, file, memory);
    const auto loaded = load_recording(queue, file, {work.program}, memory);
    loaded->replay(queue).wait();
    CHECK(work.is_right());
  }
  SECTION("on streams") {
    Streams streams{work.gpu};
    Stream stream{streams};
    stream.launch(work.kernel, grid, work.out.data(), work.in.data(), work.count);
    stream.synchronize();
    CHECK(work.is_right());
    Launcher launcher{streams, work.kernel};
    for (int i = 0; i < 2; ++i) {
      launcher.launch(stream, grid, work.out.data(), work.in.data(), work.count);
      stream.synchronize();
      CHECK(work.is_right());
    }
  }
}

TEST_CASE("a grid can use all group memory of a compute unit, and one byte more is refused",
          "[hip]") {
  const uint32_t limit = [] {
    const Runtime runtime;
    return runtime.gpu().properties().group_segment_bytes;
  }();
  REQUIRE(limit == 64 << 10);  // gfx9
  ThroughLds work((limit - 16) / 8);
  Queue queue{work.gpu};
  Streams streams{work.gpu};
  Stream stream{streams};
  BatchSubmitter batch{queue};
  batch.dispatch(work.kernel, work.grid(limit - 16), work.out.data(), work.in.data(), work.count);
  batch.submit().wait();
  CHECK(work.is_right());
  const std::string refusal =
      "dispatch of 'through_lds': 65521 bytes of dynamic group memory: with 16 bytes of static "
      "group memory "
      "the sum is 65537; the limit is 65536";
  CHECK(contains(error_of<Error>([&] {
                   batch.dispatch(work.kernel, work.grid(limit - 15), work.out.data(),
                                  work.in.data(), work.count);
                 }),
                 refusal));
  CHECK(contains(error_of<Error>([&] {
                   stream.launch(work.kernel, work.grid(limit - 15), work.out.data(),
                                 work.in.data(), work.count);
                 }),
                 refusal));
  // The refused dispatch left no packet in a queue.
  batch.dispatch(work.kernel, work.grid(limit - 16), work.out.data(), work.in.data(), work.count);
  batch.submit().wait();
  CHECK(work.is_right());
}

TEST_CASE_METHOD(OnDevice,
                 "a kernel of code object version 5 reads the size of its dynamic group memory",
                 "[hip]") {
  constexpr uint32_t explicit_bytes = 16;  // an address and an LDS array's offset, up to 8 bytes
  const std::vector<std::byte> code = with_dynamic_lds_size(gpu, explicit_bytes + 120);
  const Program program{gpu, code};
  const auto kernel = program.kernel<uint32_t*, LocalBytes>("read_dynamic_lds_size");
  const DeviceBuffer<uint32_t> out{gpu, 64};
  Copier copier{gpu};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  for (const uint32_t bytes : {0u, 1u, 4096u, 20000u}) {
    CAPTURE(bytes);
    batch.dispatch(kernel, Grid{64}.lds(bytes), out.data(), LocalBytes{256});
    batch.submit().wait();
    CHECK(download(copier, out) == std::vector<uint32_t>(64, bytes));
  }
}

TEST_CASE_METHOD(OnDevice, "a bool parameter accepts a bool argument and no other type", "[hip]") {
  const Program program{gpu, kHipKernels};
  const auto choose = program.kernel<int32_t*, bool, int32_t, bool, int32_t>("choose");
  const DeviceBuffer<int32_t> out{gpu, 64};
  std::vector<int32_t> host(64);
  Copier copier{gpu};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  for (const bool first : {true, false}) {
    for (const bool negate : {true, false}) {
      batch.dispatch(choose, Grid{64}, out.data(), first, 5, negate, 7);
      batch.submit().wait();
      copier.copy(host, out);
      const int32_t chosen = first ? 5 : 7;
      CHECK(host == std::vector<int32_t>(64, negate ? -chosen : chosen));
    }
  }
  const std::string error =
      error_of<Error>([&] { program.kernel<int32_t*, int32_t, int32_t, bool, bool>("choose"); });
  CHECK(contains(error, "argument 1 as 'int' (4 bytes), argument 4 as 'bool' (1 byte)"));
}
