// The HSA entry points that `aql` and `engine/dispatch` call on queues and signals, implemented
// over the doubles of queue_double.hpp. Linked as objects, they replace those of libhsa-runtime64
// in a test binary that runs without hsa_init. They count their calls, so a test can prove that a
// path makes none. hsa_amd_pointer_info and hsa_agent_get_info (only for the kind of an agent) are
// not counted: they are set-up.
//
// Thread safety: the counters are atomic. Set the functions only while no other thread is in a
// call.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <functional>

namespace uptempo::test {

struct HsaCalls {
  // hsa_signal_store_screlease, hsa_signal_silent_store_relaxed
  std::atomic<uint64_t> signal_store{0};
  std::atomic<uint64_t> signal_load{0};      // hsa_signal_load_*
  std::atomic<uint64_t> load_read_index{0};  // hsa_queue_load_read_index_*
  std::atomic<uint64_t> write_index{0};      // hsa_queue_*_write_index_*
  std::atomic<uint64_t> queue_destroy{0};    // hsa_queue_destroy
  // hsa_amd_pointer_info: true if a GPU owns the address. Unset: HSA knows no address.
  std::function<bool(const void*)> is_device_memory{};
  // Runs inside hsa_signal_store_screlease before the value is stored.
  std::function<void(hsa_signal_t, hsa_signal_value_t)> on_store{};
  // Runs inside hsa_signal_load_* before the value is loaded.
  std::function<void(hsa_signal_t)> on_load{};
  // Runs inside hsa_queue_load_read_index_* before the index is loaded.
  std::function<void()> on_load_read_index{};

  uint64_t total() const noexcept {
    return signal_store + signal_load + load_read_index + write_index + queue_destroy;
  }
  void reset();
};

HsaCalls& hsa_calls() noexcept;

}  // namespace uptempo::test
