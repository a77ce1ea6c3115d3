#include "test/engine/faults/rocr_events.hpp"

#include <hsa/hsa.h>

#include <vector>

#include <uptempo/aql/amd_abi.hpp>
#include "test/support/holdings.hpp"

namespace uptempo::faults {

uint64_t count_spare_events() {
  const uint64_t before = test::holdings().events;
  if (before == 0) return 0;  // perhaps without an agent, and ROCr makes no signal then
  std::vector<hsa_signal_t> signals;
  uint64_t spare = 0;
  for (;; ++spare) {
    hsa_signal_t signal{};
    if (hsa_signal_create(1, 0, nullptr, &signal) != HSA_STATUS_SUCCESS) break;
    signals.push_back(signal);
    if (!aql::has_interrupt(signal) || test::holdings().events != before) break;
  }
  for (const hsa_signal_t signal : signals) hsa_signal_destroy(signal);
  return spare;
}

}  // namespace uptempo::faults
