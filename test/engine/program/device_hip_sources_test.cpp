// HIP sources that uptempo_add_kernels compiles, and programs from files.
#include <uptempo/kernels/hip_sources.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "test/engine/error_code.hpp"
#include "test/engine/recording/file_content.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::download;
using uptempo::test::error_of;
using uptempo::test::framed;
using uptempo::test::OnDevice;
using uptempo::test::payload_of;

struct HipSources : OnDevice {
  const Program program{gpu, kernels::hip_sources()};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  Copier copier{gpu};
};

}  // namespace

TEST_CASE_METHOD(HipSources, "a HIP kernel runs under its C++ name", "[hip]") {
  constexpr uint32_t kLength = 1000;
  std::vector<float> x(kLength), y(kLength, 0.5f);
  std::iota(x.begin(), x.end(), 1.f);
  const DeviceBuffer<float> on_x{gpu, kLength}, on_y{gpu, kLength};
  copier.copy(on_x, x);
  copier.copy(on_y, y);
  const auto step = program.kernel<float*, const float*, float, uint32_t>("physics::step");
  const uint32_t blocks = (kLength + 127) / 128;
  batch.dispatch(step, Grid::blocks(blocks).threads(128), on_y.data(), on_x.data(), 0.25f, kLength);
  batch.submit().wait();
  std::vector<float> result(kLength), expected(kLength);
  copier.copy(result, on_y);
  for (uint32_t i = 0; i < kLength; ++i) expected[i] = 0.25f * x[i] + y[i];
  CHECK(result == expected);
}

// The last workgroup would have 16 work-items, and blockDim.x with it: all its indices would be
// those of other work-items.
TEST_CASE_METHOD(HipSources, "a HIP kernel refuses a partial workgroup, however its grid is given",
                 "[hip]") {
  constexpr uint32_t kLength = 10000;
  const DeviceBuffer<float> x{gpu, kLength}, y{gpu, kLength};
  copier.fill(x, 1.0f);
  copier.fill(y, 0.0f);
  const auto step = program.kernel<float*, const float*, float, uint32_t>("physics::step");
  const Grid partial = Grid{kLength}.by(256), whole = Grid::blocks(40).threads(256);
  const auto refuses = [](const char* remedy, auto&& launch) {
    const std::string error = error_of<Error>(launch);
    CAPTURE(error);
    CHECK(contains(error, "work-items, and the kernel is compiled for whole workgroups"));
    CHECK(contains(error, remedy));
  };
  const auto refused = [&](auto&& launch) {
    refuses("launch Grid::blocks(40).threads(256), and", launch);
  };
  const auto dispatch = [&](auto& to, const Grid& grid) {
    return to.dispatch(step, grid, y.data(), x.data(), 0.25f, kLength);
  };
  const KernargBuffer block{gpu, 512};
  refused([&] { dispatch(batch, partial); });
  refused([&] {
    test::throw_refusal(batch.try_dispatch(step, partial, y.data(), x.data(), 0.25f, kLength));
  });
  refused(
      [&] { batch.dispatch_at(block.span(), step, partial, y.data(), x.data(), 0.25f, kLength); });
  refused([&] { (void)batch.prepare(step, partial); });
  CHECK(batch.size() == 0);
  SharedQueue shared{gpu};
  Queue producer = shared.producer();
  BatchSubmitter of_producer{producer};
  refused([&] { dispatch(of_producer, partial); });

  Recording recording{queue};
  refused([&] { dispatch(recording, partial); });
  const Node node = dispatch(recording, whole);
  refused([&] { recording.set_grid(node, partial); });
  refused([&] { recording.replace(node, step, partial, y.data(), x.data(), 0.25f, kLength); });
  Bindings memory;
  memory.add("x", x).add("y", y);
  std::stringstream file;
  save_recording(recording, file, memory);
  std::string payload = payload_of(file.str());
  const size_t items = payload.find("10240");
  REQUIRE(items != std::string::npos);
  std::stringstream edited(framed(payload.replace(items, 5, "10000")));
  refused([&] { (void)load_recording(queue, edited, {program}, memory); });

  Streams streams{gpu};
  Stream stream{streams};
  refused([&] { stream.launch(step, partial, y.data(), x.data(), 0.25f, kLength); });
  Launcher launcher{streams, step};
  refused([&] { launcher.launch(stream, partial, y.data(), x.data(), 0.25f, kLength); });

  // Other shapes of the same kind, with the next larger grid.
  refuses("Grid::blocks(157).threads(64),", [&] { dispatch(batch, Grid{kLength}); });
  refuses("Grid::blocks(1).threads(256),", [&] { dispatch(batch, Grid{10}.by(256)); });
  refuses("Grid::blocks(7, 2).threads(16, 16),",
          [&] { dispatch(batch, Grid(100, 30).by(16, 16)); });
  refuses("Grid::blocks(1, 1, 3).threads(8, 1, 2),",
          [&] { dispatch(batch, Grid(8, 1, 5).by(8, 1, 2)); });

  const std::string zero = error_of<Error>([&] { dispatch(batch, Grid(100, 30).by(16, 0)); });
  CHECK(contains(zero, "a size of zero"));

  dispatch(batch, whole);
  batch.submit().wait();
  recording.replay(queue).wait();
  std::vector<float> result(kLength);
  copier.copy(result, y);
  CHECK(result == std::vector<float>(kLength, 0.5f));
}

TEST_CASE_METHOD(HipSources, "overloads and templates of HIP are told apart", "[hip]") {
  const DeviceBuffer<uint32_t> words{gpu, 64};
  copier.fill(words, 7);
  const auto scale = program.kernel<uint32_t*, uint32_t>("scale(unsigned int*, unsigned int)");
  const auto fill = program.kernel<uint64_t*, uint64_t>("fill<unsigned long long>");
  batch.dispatch(scale, Grid{64}, words.data(), 6u);
  batch.dispatch(fill, Grid{1}, reinterpret_cast<uint64_t*>(words.data()), 0x500000003ull);
  batch.submit().wait();
  std::vector<uint32_t> expected(64, 42);
  expected[0] = 3;
  expected[1] = 5;
  CHECK(download(copier, words) == expected);
  // One kernel, however it is named.
  CHECK(program.kernel_info("_Z5scalePjj") == scale.shared_info());

  const std::string ambiguous = error_of<Error>([&] { (void)program.kernel_info("scale"); });
  CAPTURE(ambiguous);
  CHECK(contains(ambiguous, "kernel 'scale': several have this name: "));
  CHECK(contains(ambiguous, "_Z5scalePff (scale(float*, float))"));
  CHECK(contains(ambiguous, "_Z5scalePjj (scale(unsigned int*, unsigned int))"));
  CHECK(contains(ambiguous, "add the parameters as listed, or use the symbol"));
  const std::string unknown = error_of<Error>([&] { (void)program.kernel_info("step"); });
  CAPTURE(unknown);
  CHECK(contains(unknown, "kernel 'step': the program has "));
  CHECK(contains(unknown, "physics::step(float*, float const*, float, unsigned int)"));
}

TEST_CASE_METHOD(HipSources, "a HIP kernel that prints is refused by name", "[hip]") {
  const std::string error =
      error_of<Error>([&] { (void)program.kernel<const uint32_t*>("prints"); });
  CAPTURE(error);
  CHECK(contains(error, "kernel '_Z6printsPKj'"));
  CHECK(contains(error, "host calls (printf, assert or malloc on the device)"));
}

TEST_CASE_METHOD(OnDevice, "a program from a file keeps its bytes", "[hip]") {
  const support::TemporaryDirectory directory;
  const std::filesystem::path file = directory.file("hip_sources");
  const std::filesystem::path folder = file.parent_path();
  const std::span<const std::byte> code = kernels::hip_sources();
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(code.data()), static_cast<std::streamsize>(code.size()));
  const Program program{gpu, file};
  std::filesystem::remove(file);
  const DeviceBuffer<uint32_t> words{gpu, 64};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(program.kernel<uint32_t*, uint32_t>("fill<unsigned int>"), Grid{64}, words.data(),
                 9u);
  batch.submit().wait();
  Copier copier{gpu};
  CHECK(download(copier, words) == std::vector<uint32_t>(64, 9));

  const std::string missing = error_of<Error>([&] { Program(gpu, file); });
  CAPTURE(missing);
  CHECK(contains(missing, file.string() + "': it cannot be read: No such file or directory"));
  const std::string not_a_file = error_of<Error>([&] { Program(gpu, folder); });
  CAPTURE(not_a_file);
  CHECK(contains(not_a_file, "it cannot be read: Is a directory"));
  std::ofstream(file) << "some text";
  const std::string foreign = error_of<Error>([&] { Program(gpu, file); });
  CAPTURE(foreign);
  CHECK(contains(foreign, "'" + file.string() + "': "));
}
