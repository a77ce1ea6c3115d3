// Recordings on a real HSA queue, saved by one process and loaded by another.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

constexpr const char* kFileVariable = "UPTEMPO_TEST_RECORDING";
constexpr size_t kLength = 1024;

struct Buffers {
  explicit Buffers(const Agent& gpu) : words(gpu, kLength), total(gpu, 1) {
    memory.add("words", words).add("total", total);
  }
  DeviceBuffer<uint32_t> words, total;
  Bindings memory;
};

// The sum that the recording leaves in `total`.
uint32_t sum_of(uint32_t first, uint32_t addend) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < kLength; ++i) sum += (first + 3 * i) * 3 + addend;
  return sum;
}

}  // namespace

// The next test case runs this in a process of its own.
TEST_CASE_METHOD(OnDevice, "child: saves a recording", "[.child]") {
  const DeviceBuffer<uint32_t> elsewhere{gpu, 5 << 20};
  const Buffers buffers{gpu};
  const Program program{gpu, builtin_kernels::basics()};
  const auto iota = program.kernel<uint32_t*, uint32_t, uint32_t>("iota");
  const auto increment = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const auto reduce = program.kernel<uint32_t*, const uint32_t*, uint32_t>("reduce_lds");
  Queue queue{gpu};
  Recording recording{queue};
  for (size_t half : {size_t{0}, kLength / 2})
    recording
        .dispatch(iota, Grid{kLength / 2}.by(64), buffers.words.data() + half,
                  5u + 3u * static_cast<uint32_t>(half), 3u)
        .writes(buffers.words.data() + half, kLength / 2);
  recording.dispatch(increment, Grid{kLength}.by(256), buffers.words.data(), 7u);
  recording
      .dispatch(reduce, Grid{kLength}.by(256), buffers.total.data(), buffers.words.data(),
                static_cast<uint32_t>(kLength))
      .reads(buffers.words.data(), kLength)
      .writes(buffers.total.data(), 1);
  save_recording(recording, std::getenv(kFileVariable), buffers.memory);
  std::printf("words at %p\n", static_cast<void*>(buffers.words.data()));
}

TEST_CASE_METHOD(OnDevice,
                 "a recording that another process saved runs here, in memory of this process",
                 "[recording]") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("sum.recording");
  const auto child = run_command({"/proc/self/exe", "child: saves a recording"},
                                 {.environment = {std::string(kFileVariable) + '=' + file}});
  CAPTURE(child.out, child.err);
  REQUIRE(child.exit_code == 0);

  const Buffers buffers{gpu};
  const Program program{gpu, builtin_kernels::basics()};
  Queue queue{gpu};
  Copier copier{gpu};
  char here[64];
  std::snprintf(here, sizeof here, "words at %p\n", static_cast<void*>(buffers.words.data()));
  CHECK(contains(child.out, "words at 0x"));
  CHECK(!contains(child.out, here));

  const auto recording = load_recording(queue, file, {program}, buffers.memory);
  const auto run = [&] {
    copier.fill(buffers.total, 0);
    recording->replay(queue).wait();
    uint32_t sum = 0;
    copier.copy(std::span(&sum, 1), buffers.total);
    return sum;
  };
  CHECK(recording->size() == 4);
  CHECK(run() == sum_of(5, 7));
  CHECK(contains(recording->explain(), "packet 1: no barrier bit"));
  recording->set<1>(recording->node<uint32_t*, uint32_t>(2), 100u);
  CHECK(run() == sum_of(5, 100));

  const auto refusal = [&](const std::vector<KernelSource>& kernels) {
    return error_of([&] { load_recording(queue, file, kernels, buffers.memory); });
  };
  CHECK(contains(refusal({Program(gpu, builtin_kernels::probes())}),
                 "it needs kernel 'iota' of " + program.target()));
  // The same code except for a byte without meaning.
  const CodeObject object =
      select_code_object(builtin_kernels::basics(), *parse_target_id(gpu.isa()));
  std::vector<std::byte> bytes(object.bytes.begin(), object.bytes.end());
  CHECK(program.identity() == CodeIdentity(program.target(), bytes.size(), content_hash(bytes)));
  bytes[15] ^= std::byte{1};
  CHECK(contains(refusal({Program(gpu, bytes)}),
                 "the caller passed one from another code object: " + program.target()));
  CHECK(refusal({Program(gpu, bytes), program}) == "no error");
  CHECK(contains(
      error_of([&] { load_recording(queue, directory.file("none"), {program}, buffers.memory); }),
      "No such file or directory"));
  CHECK(contains(
      error_of([&] { load_recording(queue, directory.file(""), {program}, buffers.memory); }),
      "cannot be read"));
}

TEST_CASE_METHOD(OnDevice, "a recording ends at the end of its file", "[recording]") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("empty.recording");
  Queue queue{gpu};
  save_recording(Recording(queue), file, {});
  CHECK(load_recording(queue, file, {}, {})->size() == 0);
  std::FILE* const more = std::fopen(file.c_str(), "a");
  REQUIRE(more != nullptr);
  std::fputc('\n', more);
  std::fclose(more);
  CHECK(contains(error_of([&] { load_recording(queue, file, {}, {}); }), "more than the"));
}
