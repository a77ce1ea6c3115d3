// HSA calls, counted outside the engine, on a device.
#include "test/support/hsa_calls.hpp"

#include <uptempo/uptempo.hpp>

#include <vector>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using support::HsaCalls;

TEST_CASE_METHOD(test::OnDevice,
                 "allocations, signals and their releases are counted, and nothing else") {
  HsaCalls before = HsaCalls::now();
  {
    const DeviceBuffer<uint32_t> device(gpu, 64);
    const PinnedBuffer<uint32_t> pinned(gpu, 64);
    const KernargBuffer arguments(gpu, 64);
    CHECK(HsaCalls::now() - before == HsaCalls{.allocations = 3});
  }
  CHECK(HsaCalls::now() - before == HsaCalls{.allocations = 3, .frees = 3});

  before = HsaCalls::now();
  { const Signal interrupt, event_less(SignalKind::event_less); }
  CHECK(HsaCalls::now() - before == HsaCalls{.signals_created = 2});
  hsa_signal_t signal{};
  REQUIRE(hsa_signal_create(1, 0, nullptr, &signal) == HSA_STATUS_SUCCESS);
  hsa_signal_store_screlease(signal, 0);
  CHECK(hsa_signal_destroy(signal) == HSA_STATUS_SUCCESS);
  CHECK(HsaCalls::now() - before == HsaCalls{.signals_created = 3});
}

TEST_CASE_METHOD(
    test::OnDevice,
    "blocking copies and started copies are counted separately, and copy to the right place") {
  const DeviceBuffer<uint32_t> device(gpu, 64);
  Copier copier(gpu);
  const std::vector<uint32_t> in(64, 7);
  std::vector<uint32_t> out(64);
  copier.copy(out, device);  // creates the signals and staging memory
  Streams streams(gpu, {.copies = {.stage_bytes = 0}});
  Stream pinning(streams);
  pinning.copy(out, device, CopyPath::engine);
  pinning.synchronize();
  const HsaCalls before = HsaCalls::now();
  REQUIRE(hsa_memory_copy(device.data(), in.data(), device.size_bytes()) == HSA_STATUS_SUCCESS);
  CHECK(HsaCalls::now() - before == HsaCalls{.blocking_copies = 1});
  copier.copy(out, device);
  CHECK(HsaCalls::now() - before == HsaCalls{.blocking_copies = 1, .started_copies = 1});
  pinning.copy(out, device, CopyPath::engine);
  pinning.synchronize();
  CHECK(HsaCalls::now() - before == HsaCalls{.pins = 1, .blocking_copies = 1, .started_copies = 2});
  CHECK(out == in);
}
