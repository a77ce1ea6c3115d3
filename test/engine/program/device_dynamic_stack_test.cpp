// Kernels whose stack has no static bound.
#include <uptempo/kernels/dynamic_stack.hpp>
#include <uptempo/uptempo.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

constexpr uint32_t kCount = 1000;
constexpr uint32_t kLevels = 400;  // of more than 64 bytes each
constexpr PrivateBytes kEnough{100 << 10};

// The kernel on the host. A call's own factor depends on the seed of the call above it.
uint32_t descend(uint32_t levels, uint32_t seed, uint32_t factor) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 16; ++i) sum += seed + i;
  return sum +
         factor * (levels == 0 ? 0 : descend(levels - 1, seed * 3 + 1, seed % 2 == 0 ? 5 : 7));
}

struct StackDevice : OnDevice {
  Program program{gpu, kernels::dynamic_stack()};
  PinnedBuffer<uint32_t> out{gpu, kCount};

  bool holds_results(uint32_t levels) {
    bool holds = true;
    for (uint32_t i = 0; i < kCount; ++i) {
      holds = holds && out[i] == descend(levels, i, i % 2 == 0 ? 5 : 7);
      out[i] = 0;
    }
    return holds;
  }
};

}  // namespace

TEST_CASE_METHOD(StackDevice, "a kernel with a dynamic stack is refused without its private memory",
                 "[device][program]") {
  const std::string error =
      error_of<Error>([&] { (void)program.kernel<uint32_t*, uint32_t>("descents"); });
  CHECK(error ==
        "Program::kernel: kernel 'descents': its stack has no static bound (recursion or calls "
        "through pointers); call Program::kernel with PrivateBytes{bytes}, the private memory that "
        "a work-item needs (HSA_STATUS_ERROR_INVALID_CODE_SYMBOL)");
  const std::string more = error_of<Error>([&] {
    (void)program.kernel<uint32_t*, uint32_t>("descents", PrivateBytes{PrivateBytes::kMost + 1});
  });
  CHECK(contains(more,
                 "kernel 'descents' with PrivateBytes{131057}: a work-item has at most 131056 "
                 "bytes"));
}

TEST_CASE_METHOD(StackDevice, "a kernel with a dynamic stack runs with the private memory given",
                 "[device][program]") {
  const auto descents = program.kernel<uint32_t*, uint32_t>("descents", kEnough);
  CHECK(descents.info().private_segment_size == kEnough.per_work_item);
  CHECK(descents.info().stack == kEnough);
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(descents, Grid{kCount}.by(64), out.data(), kLevels);
  batch.submit().wait();
  CHECK(holds_results(kLevels));
  Streams streams{gpu};
  Stream stream{streams};
  stream.launch(descents, Grid{kCount}.by(64), out.data(), kLevels / 2);
  stream.synchronize();
  CHECK(holds_results(kLevels / 2));
}

TEST_CASE_METHOD(StackDevice, "each size of private memory is a kernel of its own",
                 "[device][program]") {
  const auto small = program.kernel<uint32_t*, uint32_t>("descents", PrivateBytes{32 << 10});
  const auto large = program.kernel<uint32_t*, uint32_t>("descents", kEnough);
  CHECK(small.info().private_segment_size == 32 << 10);
  CHECK(small.info().identity.number() != large.info().identity.number());
  CHECK(program.kernel_info("descents", kEnough) == large.shared_info());
  const std::vector<ArgumentType> types{argument_type<uint32_t*>(), argument_type<uint32_t>()};
  CHECK(program.kernel("descents", types, kEnough).shared_info() == large.shared_info());
  // The compiler's own demand is the least.
  CHECK(program.kernel_info("descents", PrivateBytes{1})->private_segment_size > 1);
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(small, Grid{kCount}.by(64), out.data(), 3u);
  batch.dispatch(large, Grid{kCount}.by(64), out.data(), kLevels);
  batch.submit().wait();
  CHECK(holds_results(kLevels));
}

TEST_CASE_METHOD(StackDevice, "a kernel with a bounded stack needs no size and may have a larger",
                 "[device][program]") {
  const auto bounded = program.kernel<uint32_t*, uint32_t>("bounded");
  CHECK(bounded.info().private_segment_size < 64);
  const auto larger = program.kernel<uint32_t*, uint32_t>("bounded", PrivateBytes{64});
  CHECK(larger.info().private_segment_size == 64);
  CHECK(program.kernel_info("bounded") == bounded.shared_info());
}

TEST_CASE_METHOD(StackDevice, "a saved recording keeps the private memory of its kernels",
                 "[device][recording-file]") {
  const auto small = program.kernel<uint32_t*, uint32_t>("descents", PrivateBytes{32 << 10});
  const auto large = program.kernel<uint32_t*, uint32_t>("descents", kEnough);
  Queue queue{gpu};
  Bindings memory;
  memory.add("out", out.data(), out.size() * sizeof(uint32_t));
  std::stringstream file;
  {
    Recording recording{queue};
    recording.dispatch(small, Grid{kCount}.by(64), out.data(), 3u);
    recording.dispatch(large, Grid{kCount}.by(64), out.data(), kLevels);
    save_recording(recording, file, memory);
  }
  CHECK(file.str().starts_with("uptempo-recording 4 "));
  const std::string text = file.str();
  const auto loaded = [&](const std::vector<KernelSource>& sources) {
    std::istringstream in{text};
    return load_recording(queue, in, sources, memory);
  };
  for (const auto& sources :
       {std::vector<KernelSource>{program},
        std::vector<KernelSource>{large.shared_info(), small.shared_info()}}) {
    loaded(sources)->replay(queue).wait();
    CHECK(holds_results(kLevels));
  }
  const std::string error = error_of<Error>([&] { (void)loaded({large.shared_info()}); });
  CHECK(contains(error,
                 "it needs kernel 'descents' with PrivateBytes{32768}; the caller passed it "
                 "with PrivateBytes{102400}"));
}

// Hardware lets the stack of one wave overwrite another's; the virtual GPU stops the queue.
TEST_CASE_METHOD(StackDevice, "a stack that overflows its private memory is an error by name",
                 "[device][program]") {
  const auto descents = program.kernel<uint32_t*, uint32_t>("descents", PrivateBytes{20 << 10});
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(descents, Grid{kCount}.by(64), out.data(), kLevels);
  const std::string error = error_of<Error>([&] { batch.submit().wait(); });
  CAPTURE(error);
  CHECK(contains(error, "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION"));
  CHECK(contains(error, "kernel 'descents'"));
}
