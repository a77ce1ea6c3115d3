// A device that fails.
#include "samples/sample_sort/gpu_sorter.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace uptempo::sample_sort;

TEST_CASE("a memory fault ends later work with an error that names the address") {
  const test::OnDevice device;
  GpuSorter sorter(device.gpu, 512, 512);
  CHECK(test::contains(test::error_of<Error>([&] { sorter.fault().wait(); }),
                       "the GPU accessed address 0x0"));
  const PinnedBuffer<uint32_t> keys(device.gpu, 512);
  CHECK(test::error_of<Error>([&] { sorter.sort(keys.span()).end.wait(); }) != "no error");
}
