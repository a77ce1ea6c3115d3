// Masks of compute units, on a device whose process may use the first eight only (HSA_CU_MASK).
#include <dlfcn.h>
#include <hsa/hsa_ext_amd.h>
#include <uptempo/kernels/basics.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "test/engine/runtime/replaced_agent.hpp"
#include "test/engine/state_access.hpp"
#include "test/engine/told_masks.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

// The first 32 bits of the mask that ROCr has for the stream's queue.
uint32_t mask_of(const Stream& stream) {
  uint32_t word = 0;
  REQUIRE(hsa_amd_queue_cu_get_mask(hardware_queue(stream), 32, &word) == HSA_STATUS_SUCCESS);
  return word;
}

// As in ROCr 7.0, which tells neither the mask that was set nor that HSA_CU_MASK has reduced it.
bool is_silent = false;

// Under a ROCr that does not tell masks.
void check_refused(Streams& streams, std::vector<uint32_t> mask) {
  const std::string error = error_of<Error>([&] {
    const Stream none{streams, {.cu_mask = std::move(mask)}};
  });
  CHECK(contains(error, "this ROCr does not tell which compute units it leaves"));
}

bool runs(ReplacedDevice& device, Stream& stream) {
  const Program program{device.gpu, builtin_kernels::basics()};
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const PinnedBuffer<uint32_t> values{device.gpu, 64};
  std::ranges::fill(values.span(), 1u);
  stream.launch(chain, Grid{64}, values.data(), 4u);
  stream.synchronize();
  return std::ranges::count(values.span(), 7u) == 64;
}

}  // namespace

// These replace ROCr's functions and call them.
extern "C" hsa_status_t hsa_amd_queue_cu_set_mask(const hsa_queue_t* queue, uint32_t bits,
                                                  const uint32_t* mask) {
  static const auto real = reinterpret_cast<decltype(&hsa_amd_queue_cu_set_mask)>(
      dlsym(RTLD_NEXT, "hsa_amd_queue_cu_set_mask"));
  const hsa_status_t status = real(queue, bits, mask);
  const bool reduced = static_cast<int>(status) == HSA_STATUS_CU_MASK_REDUCED;
  return is_silent && reduced ? HSA_STATUS_SUCCESS : status;
}
extern "C" hsa_status_t hsa_amd_queue_cu_get_mask(const hsa_queue_t* queue, uint32_t bits,
                                                  uint32_t* mask) {
  static const auto real = reinterpret_cast<decltype(&hsa_amd_queue_cu_get_mask)>(
      dlsym(RTLD_NEXT, "hsa_amd_queue_cu_get_mask"));
  const hsa_status_t status = real(queue, bits, mask);
  if (is_silent) std::fill_n(mask, bits / 32, 0u);
  return status;
}

TEST_CASE("a mask beside HSA_CU_MASK is refused if ROCr does not tell what is left",
          "[device][stream]") {
  ReplacedDevice device{{}};
  Streams streams{device.gpu};
  is_silent = true;
  check_refused(streams, {0x0000000f});
  check_refused(streams, {0x00000f00});
  is_silent = false;
  Stream whole{streams};
  CHECK(runs(device, whole));
}

// hsa_ext_amd.h: HSA_STATUS_CU_MASK_REDUCED, the mask is set without the units that HSA_CU_MASK
// disables.
TEST_CASE("a mask that HSA_CU_MASK reduces is accepted and described", "[device][stream]") {
  ReplacedDevice device{{}};
  Streams streams{device.gpu};
  if (!rocr_tells_masks(device.gpu)) return check_refused(streams, {0x00000ff0});
  Stream whole{streams, {.cu_mask = {0x0000000f}}}, part{streams, {.cu_mask = {0x00000ff0}}};
  CHECK(mask_of(whole) == 0x0f);
  CHECK(mask_of(part) == 0xf0);
  CHECK(runs(device, part));
  const std::string text = streams.describe();
  CAPTURE(text);
  CHECK(contains(text, "compute units: 0x0000000f\n"));
  CHECK(contains(text,
                 "compute units: 0x000000f0; asked for: 0x00000ff0, HSA_CU_MASK disables some\n"));
}

TEST_CASE("a mask that HSA_CU_MASK leaves no compute unit is refused", "[device][stream]") {
  ReplacedDevice device{{}};
  Streams streams{device.gpu};
  if (!rocr_tells_masks(device.gpu)) return check_refused(streams, {0x00000f00});
  const std::string error = error_of<Error>([&] {
    const Stream none{streams, {.cu_mask = {0x00000f00}}};
  });
  CAPTURE(error);
  CHECK(contains(error, "0x00000f00"));
  CHECK(contains(error, "HSA_CU_MASK"));
}

// amd_aql_queue.cpp, SetCUMasking(): from gfx10 on, both units of a work-group processor or none.
TEST_CASE("masks hold whole work-group processors from gfx10 on", "[device][stream]") {
  for (const char* name : {"gfx1030", "gfx1100", "gfx1201"}) {
    ReplacedDevice device{{.name = name}};
    Streams streams{device.gpu};
    if (!rocr_tells_masks(device.gpu)) return check_refused(streams, {0x00000011});
    Stream even{streams, {.cu_mask = {0x00000011}}}, odd{streams, {.cu_mask = {0x00000028}}},
        pairs{streams, {.cu_mask = {0x000000cc}}};
    CHECK(mask_of(even) == 0x33);
    CHECK(mask_of(odd) == 0x3c);
    CHECK(mask_of(pairs) == 0xcc);
    CHECK(contains(streams.describe(),
                   "compute units: 0x00000033; asked for: 0x00000011, "
                   "work-group processors have two each\n"));
  }
  {
    ReplacedDevice device{{.name = "gfx1030"}};
    Streams streams{device.gpu};
    const Stream part{streams, {.cu_mask = {0x00000180}}};
    CHECK(mask_of(part) == 0xc0);
    CHECK(contains(streams.describe(),
                   "compute units: 0x000000c0; asked for: 0x00000180, "
                   "work-group processors have two each, HSA_CU_MASK disables "
                   "some\n"));
  }
  ReplacedDevice gfx9{{}};
  Streams streams{gfx9.gpu};
  const Stream even{streams, {.cu_mask = {0x00000011}}};
  CHECK(mask_of(even) == 0x11);
}
