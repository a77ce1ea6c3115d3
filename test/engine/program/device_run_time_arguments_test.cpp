// Arguments given at run time reach kernels on the device as the compiler placed them.
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::OnDevice;

// The parameters of probe_arguments (kernels/probes.cl) as a C++ struct: the host's compiler places
// them.
struct alignas(16) Float4 {
  float x, y, z, w;
};
struct ProbeStruct {
  uint32_t first;
  uint8_t second;
  uint64_t third;
};
struct Parameters {
  uint64_t* out;
  int8_t c = -5;
  int16_t s = -3000;
  int32_t i = -123456789;
  int64_t l = -1234567890123;
  uint8_t uc = 200;
  float f = 1.5f;
  double d = -2.25;
  Float4 v{1.f, 2.f, 3.f, 4.f};
  ProbeStruct p{11, 22, 33};
  const uint32_t* in;
};

std::vector<uint64_t> expected(const Parameters& given, uint32_t in) {
  return {static_cast<uint64_t>(given.c),
          static_cast<uint64_t>(given.s),
          static_cast<uint64_t>(given.i),
          static_cast<uint64_t>(given.l),
          given.uc,
          std::bit_cast<uint32_t>(given.f),
          std::bit_cast<uint64_t>(given.d),
          std::bit_cast<uint32_t>(given.v.x),
          std::bit_cast<uint32_t>(given.v.w),
          given.p.first,
          given.p.second,
          given.p.third,
          in};
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "a kernel finds its run-time arguments on every path", "[arguments]") {
  const Program program{gpu, builtin_kernels::probes()};
  const Kernel<Arguments> probe = program.kernel<Arguments>("probe_arguments");
  Copier copier{gpu};
  const DeviceBuffer<uint64_t> out{gpu, 13};
  const DeviceBuffer<uint32_t> in{gpu, 1};
  copier.fill(in, 424242);

  Parameters given{.out = out.data(), .in = in.data()};
  void* params[] = {&given.out, &given.c, &given.s, &given.i, &given.l, &given.uc,
                    &given.f,   &given.d, &given.v, &given.p, &given.in};
  const std::span<const std::byte> packed = std::as_bytes(std::span(&given, 1));
  const Grid grid = Grid::blocks(1).threads(64);
  const auto result = [&] {
    std::vector<uint64_t> words(13);
    copier.copy(words, out);
    return words;
  };
  // Each path has its own value of one argument, so that a path that does nothing is noticed.
  const auto next = [&] { return expected((++given.i, given), 424242); };

  Queue queue{gpu};
  BatchSubmitter batch{queue};
  for (const Arguments& form : {Arguments(packed), Arguments(params)}) {
    CAPTURE(form.is_packed());
    std::vector<uint64_t> words = next();
    batch.dispatch(probe, grid, form);
    batch.submit().wait();
    CHECK(result() == words);

    words = next();
    Recording recording{queue};
    const Node node = recording.dispatch(probe, grid, form);
    recording.replay(queue).wait();
    CHECK(result() == words);
    words = next();
    recording.set(node, 3, std::as_bytes(std::span(&given.i, 1)));
    recording.replay(queue).wait();
    CHECK(result() == words);
    words = next();
    recording.set(node, form);
    recording.replay(queue).wait();
    CHECK(result() == words);

    Streams streams{gpu};
    Stream stream{streams};
    words = next();
    stream.launch(probe, grid, form);
    stream.synchronize();
    CHECK(result() == words);
    Launcher launcher{streams, probe, 8};
    for (int repeat = 0; repeat < 2; ++repeat) {
      words = next();
      launcher.launch(stream, grid, form);
      launcher.launch(stream, grid, form);
      stream.synchronize();
      CHECK(result() == words);
    }
  }
}

TEST_CASE_METHOD(OnDevice, "types known at run time are checked when the kernel is looked up",
                 "[arguments]") {
  const Program program{gpu, builtin_kernels::probes()};
  std::vector<ArgumentType> types{
      argument_type<uint64_t*>(),   argument_type<int8_t>(),         argument_type<int16_t>(),
      argument_type<int32_t>(),     argument_type<int64_t>(),        argument_type<uint8_t>(),
      argument_type<float>(),       argument_type<double>(),         argument_type<Float4>(),
      argument_type<ProbeStruct>(), argument_type<const uint32_t*>()};
  CHECK(program.kernel("probe_arguments", types).name() == "probe_arguments");
  types[3] = argument_type<float>();
  const std::string error =
      error_of<Error>([&] { (void)program.kernel("probe_arguments", types); });
  CAPTURE(error);
  CHECK(contains(error, "argument 3 as 'float' (4 bytes): the kernel takes argument 3 'int'"));
}
