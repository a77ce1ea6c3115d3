// A tool without ROCr's table of functions: this program defines an HSA function itself, as a
// library of LD_PRELOAD would. No environment variable names it.
#include <dlfcn.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <atomic>
#include <filesystem>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using uptempo::test::OnDevice;
using uptempo::test::soon;

std::atomic<uint64_t> watched{0};  // a doorbell
std::atomic<uint64_t> rung{0};

}  // namespace

extern "C" __attribute__((visibility("default"))) void hsa_signal_store_screlease(
    hsa_signal_t signal, hsa_signal_value_t value) {
  if (signal.handle == watched) ++rung;
  static const auto next = reinterpret_cast<void (*)(hsa_signal_t, hsa_signal_value_t)>(
      dlsym(RTLD_NEXT, "hsa_signal_store_screlease"));
  next(signal, value);
}

TEST_CASE_METHOD(OnDevice, "a function that is defined ahead of ROCr's is found and called",
                 "[profiled]") {
  const detail::Interposition found = detail::find_interposition();
  CHECK_FALSE(found.none);
  const std::string start = "a tool interposes: hsa_signal_store_screlease leads to ";
  REQUIRE(found.finding.starts_with(start));
  CHECK(std::filesystem::equivalent(found.finding.substr(start.size()), "/proc/self/exe"));

  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  Queue queue{gpu};
  CHECK(queue.pressure().access == aql::RingAccess::hsa_calls);
  watched = queue.handle()->doorbell_signal.handle;
  BatchSubmitter batch{queue};
  for (int i = 0; i < 3; ++i) {
    batch.dispatch(empty, Grid{64});
    CHECK(batch.submit().wait(soon()));
  }
  CHECK(rung == 3);
}
