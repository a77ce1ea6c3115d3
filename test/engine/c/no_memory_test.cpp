// The C interface from C++, and with every allocation of its calls failing in turn.
#include <uptempo/uptempo.h>

#include <uptempo/kernels/basics.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/failing_new.hpp"
#include "test/support/on_device.hpp"
#include "test/support/text.hpp"

using namespace uptempo::test;

namespace {

// A queue of the C interface, and a kernel.
struct World {
  World() {
    size_t bytes = 0;
    const void* const code = kernels_basics(&bytes);
    REQUIRE(uptempo_runtime_create(nullptr, &runtime) == UPTEMPO_OK);
    REQUIRE(uptempo_runtime_gpu(runtime, 0, &gpu) == UPTEMPO_OK);
    REQUIRE(uptempo_program_create(gpu, code, bytes, nullptr, &program) == UPTEMPO_OK);
    REQUIRE(uptempo_kernel_create(program, "iota", nullptr, &iota) == UPTEMPO_OK);
    REQUIRE(uptempo_queue_create(gpu, nullptr, &queue) == UPTEMPO_OK);
    REQUIRE(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, sizeof(uint32_t) * 256, nullptr,
                                  &buffer) == UPTEMPO_OK);
    words = static_cast<uint32_t*>(uptempo_buffer_data(buffer));
  }
  ~World() {
    uptempo_queue_destroy(queue);
    uptempo_buffer_destroy(buffer);
    uptempo_kernel_destroy(iota);
    uptempo_program_destroy(program);
    uptempo_runtime_destroy(runtime);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  uptempo_runtime* runtime = nullptr;
  const uptempo_agent* gpu = nullptr;
  uptempo_program* program = nullptr;
  uptempo_kernel* iota = nullptr;
  uptempo_queue* queue = nullptr;
  uptempo_buffer* buffer = nullptr;
  uint32_t* words = nullptr;
};

struct Iota {
  uint32_t* out;
  uint32_t first, step;
};

// Calls act() with the first allocation failing, then the second, and so on, until none fails.
// act() returns a status, which is UPTEMPO_ERROR_MEMORY if one failed. Returns how many failed.
template <class Act>
uint64_t fail_each(Act&& act) {
  for (uint64_t number = 1;; ++number) {
    uptempo_status status = UPTEMPO_OK;
    bool failed = false;
    {
      const FailingNew failing(number);
      status = act();
      failed = failing.has_failed();
    }
    if (!failed) {
      CHECK(status == UPTEMPO_OK);
      return number - 1;
    }
    CAPTURE(number, uptempo_error()->message);
    REQUIRE(status == UPTEMPO_ERROR_MEMORY);
    CHECK(contains(uptempo_error()->message, "the host's memory is exhausted"));
    CHECK(uptempo_error()->hsa_status == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  }
}

}  // namespace

TEST_CASE("without memory a batch of the C interface fails, and works again", "[c]") {
  World world;
  const Iota arguments{world.words, 5, 3};
  const uptempo_grid grid = uptempo_grid_of(256, 64);
  const uptempo_access writes{world.words, 1024, 1};
  uptempo_declaration declaration{};
  declaration.size = sizeof declaration;
  declaration.parts = UPTEMPO_DECLARES_ACCESSES;
  declaration.accesses = &writes;
  declaration.access_count = 1;

  uptempo_batch* batch = nullptr;
  CHECK(fail_each([&] { return uptempo_batch_create(world.queue, nullptr, &batch); }) > 0);
  // The packets of a batch grow, and the first dispatch of a shape allocates.
  size_t dispatched = 0;
  const auto dispatch = [&] {
    for (; dispatched < 200; ++dispatched) {
      if (const uptempo_status status = uptempo_batch_dispatch(
              batch, world.iota, &grid, uptempo_packed(&arguments, sizeof arguments));
          status != UPTEMPO_OK)
        return status;
      if (const uptempo_status status = uptempo_batch_declare(batch, &declaration);
          status != UPTEMPO_OK) {
        ++dispatched;
        return status;
      }
    }
    return UPTEMPO_OK;
  };
  CHECK(fail_each(dispatch) > 0);
  size_t size = 0;
  CHECK(uptempo_batch_size(batch, &size) == UPTEMPO_OK);
  CHECK(size == 200);
  uptempo_completion done{};
  CHECK(fail_each([&] {
          return uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done);
        }) > 0);
  CHECK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_OK);
  CHECK(world.words[255] == 5 + 3 * 255);
  CHECK(uptempo_batch_destroy(batch) == UPTEMPO_OK);
}

TEST_CASE("without memory a declaration declares nothing", "[c]") {
  World world;
  std::array<uint32_t, 256> elsewhere{};
  const Iota arguments{world.words, 5, 3};
  const uptempo_grid grid = uptempo_grid_of(256, 64);
  // The second dispatch of three needs its barrier bit for the second range that it declares.
  const std::array first{uptempo_access{world.words, 1024, 1}};
  const std::array second{uptempo_access{elsewhere.data(), 1024, 1}, first[0], first[0], first[0]};
  uptempo_declaration declaration{};
  declaration.size = sizeof declaration;
  declaration.parts = UPTEMPO_DECLARES_ACCESSES;

  uptempo_batch* batch = nullptr;
  REQUIRE(uptempo_batch_create(world.queue, nullptr, &batch) == UPTEMPO_OK);
  bool failed = true;
  for (uint64_t number = 1; failed; ++number) {
    // A new batch: its lists are empty.
    REQUIRE(uptempo_batch_destroy(batch) == UPTEMPO_OK);
    REQUIRE(uptempo_batch_create(world.queue, nullptr, &batch) == UPTEMPO_OK);
    const auto dispatch = [&] {
      return uptempo_batch_dispatch(batch, world.iota, &grid,
                                    uptempo_packed(&arguments, sizeof arguments));
    };
    REQUIRE(dispatch() == UPTEMPO_OK);
    declaration.accesses = first.data();
    declaration.access_count = first.size();
    REQUIRE(uptempo_batch_declare(batch, &declaration) == UPTEMPO_OK);
    REQUIRE(dispatch() == UPTEMPO_OK);
    declaration.accesses = second.data();
    declaration.access_count = second.size();
    uptempo_status status = UPTEMPO_OK;
    {
      const FailingNew failing(number);
      status = uptempo_batch_declare(batch, &declaration);
      failed = failing.has_failed();
    }
    CHECK(status == (failed ? UPTEMPO_ERROR_MEMORY : UPTEMPO_OK));
    REQUIRE(dispatch() == UPTEMPO_OK);
    uptempo_completion done{};
    REQUIRE(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done) == UPTEMPO_OK);
    CHECK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_OK);
    char* text = nullptr;
    REQUIRE(uptempo_batch_explain(batch, &text) == UPTEMPO_OK);
    CAPTURE(number, std::string_view(text));
    CHECK(contains(text, "packet 1: barrier bit"));
    uptempo_free(text);
    if (!failed) CHECK(number > 1);
  }
  CHECK(uptempo_batch_destroy(batch) == UPTEMPO_OK);
}

TEST_CASE("without memory a refusal is reported all the same", "[c]") {
  for (uint64_t number = 1;; ++number) {
    uptempo_status status = UPTEMPO_OK;
    bool failed = false;
    {
      const FailingNew failing(number);
      status = uptempo_queue_reclaim(nullptr);
      failed = failing.has_failed();
    }
    CAPTURE(number, uptempo_error()->message);
    CHECK(status == (failed ? UPTEMPO_ERROR_MEMORY : UPTEMPO_ERROR_ARGUMENT));
    CHECK(std::string_view(uptempo_error()->function) == "uptempo_queue_reclaim");
    CHECK(contains(uptempo_error()->message, "uptempo_queue_reclaim"));
    if (!failed) break;
  }
}

TEST_CASE("C++ and C share one Runtime, its agents and its handles' layouts", "[c]") {
  World world;
  const uptempo::Runtime runtime;
  uptempo_agent_info info{};
  info.size = sizeof info;
  CHECK(uptempo_agent_get_info(world.gpu, &info) == UPTEMPO_OK);
  CHECK(info.hsa_agent == runtime.gpu().handle().handle);
  CHECK(info.name == runtime.gpu().name());
  CHECK(sizeof(uptempo_completion) == 16);
}
