// A dispatch that a program publishes to an HSA queue by HSA's functions alone, as one without this
// library does.
//
// Thread safety: none.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo::test {

// chain_increment of kernels/basics.cl over `values`.
class OwnDispatch {
 public:
  OwnDispatch(const Agent& gpu, const Kernel<uint32_t*, uint32_t>& kernel, const Grid& grid,
              uint32_t* values, uint32_t addend)
      : kernargs_(gpu, kernel.info().arguments.size_bytes()) {
    const ArgumentLayout& layout = kernel.info().arguments;
    layout.fill_hidden(kernargs_.span().data(), grid, {});
    std::memcpy(kernargs_.span().data() + layout.offset(0), &values, sizeof values);
    std::memcpy(kernargs_.span().data() + layout.offset(1), &addend, sizeof addend);
    packet_.setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
    packet_.workgroup_size_x = static_cast<uint16_t>(grid.workgroup.x);
    packet_.workgroup_size_y = packet_.workgroup_size_z = 1;
    packet_.grid_size_x = grid.items.x;
    packet_.grid_size_y = packet_.grid_size_z = 1;
    packet_.private_segment_size = kernel.info().private_segment_size;
    packet_.group_segment_size = kernel.info().group_segment_size;
    packet_.kernel_object = kernel.info().object;
    packet_.kernarg_address = kernargs_.span().data();
    packet_.completion_signal = done_.handle();
  }

  // With its barrier bit, and system scope.
  void publish(hsa_queue_t* queue) const {
    const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    auto* const slot =
        static_cast<hsa_kernel_dispatch_packet_t*>(queue->base_address) + index % queue->size;
    std::memcpy(reinterpret_cast<char*>(slot) + 4, reinterpret_cast<const char*>(&packet_) + 4,
                sizeof packet_ - 4);
    constexpr uint32_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                                1 << HSA_PACKET_HEADER_BARRIER |
                                HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    __atomic_store_n(reinterpret_cast<uint32_t*>(slot), header | uint32_t{packet_.setup} << 16,
                     __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }
  // The signal that its completion sets to 0.
  const Signal& done() const noexcept { return done_; }

 private:
  const KernargBuffer kernargs_;
  const Signal done_{SignalKind::interrupt, 1};
  hsa_kernel_dispatch_packet_t packet_{};
};

// An HSA queue that the test creates and destroys.
class OwnQueue {
 public:
  OwnQueue(const Agent& gpu, uint32_t packets, hsa_queue_type32_t type = HSA_QUEUE_TYPE_MULTI) {
    check(hsa_queue_create(gpu.handle(), packets, type, on_error, &error_, UINT32_MAX, UINT32_MAX,
                           &queue_),
          "hsa_queue_create", "a queue of the test's");
  }
  ~OwnQueue() { hsa_queue_destroy(queue_); }
  OwnQueue(const OwnQueue&) = delete;
  OwnQueue& operator=(const OwnQueue&) = delete;

  hsa_queue_t* handle() const noexcept { return queue_; }
  const std::atomic<hsa_status_t>* error() const noexcept { return &error_; }

 private:
  static void on_error(hsa_status_t status, hsa_queue_t*, void* error) {
    static_cast<std::atomic<hsa_status_t>*>(error)->store(status);
  }
  std::atomic<hsa_status_t> error_{HSA_STATUS_SUCCESS};
  hsa_queue_t* queue_ = nullptr;
};

}  // namespace uptempo::test
