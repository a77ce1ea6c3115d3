// The loss of one of several GPUs: the work of the others goes on.
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/engine/runtime/lost_gpu.hpp"
#include "test/support/own_process.hpp"

using namespace uptempo;
using namespace uptempo::test;

TEST_CASE("the loss of a GPU ends no work of another one", "[loss]") {
  for (const uint32_t lost : {0u, 1u}) {
    in_own_process("GPU " + std::to_string(lost), [&] {
      end_if_it_hangs();
      const Runtime runtime;
      const EndlessWork first{runtime.gpu(0)}, second{runtime.gpu(1)};
      Queue of_first{first.gpu, first.options}, of_second{second.gpu, second.options};
      const Completion works[] = {first.submit(of_first), second.submit(of_second)};
      lose_gpu(lost);
      check_loss(error_of<Error>([&] { works[lost].wait(); }));
      const EndlessWork& other = lost == 0 ? second : first;
      CHECK_FALSE(works[1 - lost].ready());
      std::atomic_ref(other.words.data()[0]).store(1, std::memory_order_release);
      works[1 - lost].wait();
      Queue& goes_on = lost == 0 ? of_second : of_first;
      other.submit_short(goes_on, 5);
      CHECK(other.words.data()[64 + 63] == 5);
    });
  }
}

// ROCr numbers the GPUs that it shows, and the driver reports the loss of all.
TEST_CASE("the loss of a GPU that is hidden from ROCr ends no work", "[loss]") {
  for (const uint32_t lost : {0u, 1u}) {
    in_own_process("GPU " + std::to_string(lost), [&] {
      end_if_it_hangs();
      setenv("ROCR_VISIBLE_DEVICES", "1", 1);
      const Runtime runtime;
      REQUIRE(runtime.gpus().size() == 1);
      const EndlessWork work{runtime.gpu()};
      Queue queue{work.gpu, work.options};
      const Completion endless = work.submit(queue);
      lose_gpu(lost);
      if (lost == 1) {
        check_loss(error_of<Error>([&] { endless.wait(); }));
      } else {
        std::atomic_ref(work.words.data()[0]).store(1, std::memory_order_release);
        endless.wait();
        work.submit_short(queue, 5);
      }
    });
  }
}
