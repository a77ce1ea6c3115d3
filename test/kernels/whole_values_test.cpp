// Workgroups that run at once on several workers see each other's aligned stores of 8 and 16 bytes
// whole, as on hardware.
#include <uptempo/uptempo.hpp>

#include <uptempo/kernels/whole_values.hpp>
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

TEST_CASE("a workgroup sees all of another one's store of 8 or 16 bytes, or nothing of it") {
  test::OnDevice device;
  Program program{device.gpu, test::kernels::whole_values()};
  Queue queue{device.gpu};
  Copier copier{device.gpu};
  BatchSubmitter batch{queue};
  DeviceBuffer<uint32_t> places{device.gpu, 4 * 64}, torn{device.gpu, 1};
  for (const char* name : {"exchange2", "exchange4"}) {
    auto exchange = program.kernel<uint32_t*, uint32_t*, uint32_t, uint32_t, uint32_t>(name);
    for (const uint32_t step : {1u, 2u}) {
      for (const uint32_t spread : {1u, 7u}) {
        CAPTURE(name, step, spread);
        uint32_t count = 0;
        copier.copy(torn, std::span<const uint32_t>(&count, 1));
        copier.copy(places, std::span<const uint32_t>(std::vector<uint32_t>(4 * 64)));
        batch.dispatch(exchange, Grid{64 * 32}.by(64), places.data(), torn.data(), 2000u, step,
                       spread);
        batch.submit().wait();
        copier.copy(std::span(&count, 1), torn);
        CHECK(count == 0);
      }
    }
  }
}
