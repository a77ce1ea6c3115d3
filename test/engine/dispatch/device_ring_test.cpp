// Rings in device memory: those of ROCr with HSA_ALLOCATE_QUEUE_DEV_MEM=1 (from 6.4 on; older
// releases ignore the variable), and a borrowed one that hsakmt creates where ROCr shares it.
// Also runs under --bar lazy, which counts the host's loads from the ring.
#include <dlfcn.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_ext_amd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>
#ifdef UPTEMPO_ROCR_SHARES_HSAKMT
#include <hsakmt.h>
#endif

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include <uptempo/vgpu/query.h>
#include <uptempo/runtime/amd_extension.hpp>
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

constexpr uint32_t kCount = 256;

uint64_t host_reads() {
  uptempo_vgpu_bar_counts counts{};
  const auto query = reinterpret_cast<uptempo_vgpu_bar_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_bar"));
  if (query != nullptr) query(&counts);
  return counts.host_reads_of_device_memory;
}

struct AskForDeviceRings {
  // before hsa_init reads it
  AskForDeviceRings() { setenv("HSA_ALLOCATE_QUEUE_DEV_MEM", "1", 1); }
};

struct RingDevice : AskForDeviceRings, test::OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};
  const bool rocr_makes_them = running_amd_extension() >= AmdExtensionVersion{1, 7};

  DeviceBuffer<uint32_t> values(uint32_t start) {
    DeviceBuffer<uint32_t> buffer{gpu, kCount};
    copier.fill(buffer, start);
    return buffer;
  }
  bool all_are(const DeviceBuffer<uint32_t>& buffer, uint32_t expected) {
    return test::download(copier, buffer) == std::vector<uint32_t>(kCount, expected);
  }
  // Batches shorter and longer than the ring, raw packets, a recording.
  void use(Queue& queue) {
    const DeviceBuffer<uint32_t> buffer = values(5);
    const uint64_t reads = host_reads();
    uint32_t expected = 5;
    BatchSubmitter batch{queue};
    for (const uint32_t length : {1u, 2u, 40u, 64u, 200u, 1u}) {
      for (uint32_t i = 0; i < length; ++i) {
        batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), i);
        expected = expected * 3 + i;
      }
      batch.raw(aql::to_packet(aql::BarrierAnd{}));
      batch.submit().wait();
    }
    Recording recording{queue};
    for (uint32_t i = 0; i < 10; ++i)
      recording.dispatch(chain, Grid{kCount}.by(64), buffer.data(), i);
    for (uint32_t replay = 0; replay < 8; ++replay) {
      recording.replay(queue);
      for (uint32_t i = 0; i < 10; ++i) expected = expected * 3 + i;
    }
    queue.wait();
    CHECK(host_reads() == reads);
    CHECK(all_are(buffer, expected));
  }
};

}  // namespace

TEST_CASE_METHOD(RingDevice, "ROCr's rings are recognised, and their packets arrive", "[ring]") {
  Queue queue{gpu, {.packets = 64}};
  CHECK(queue.has_device_ring() == rocr_makes_them);
  use(queue);
}

TEST_CASE_METHOD(RingDevice, "threads share a ring of ROCr's choice", "[ring]") {
  SharedQueue shared{gpu, {.packets = 64}};
  std::vector<DeviceBuffer<uint32_t>> buffers;
  for (uint32_t t = 0; t < 3; ++t) buffers.push_back(values(t));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Queue mine = shared.producer();
      BatchSubmitter batch{mine};
      for (uint32_t i = 0; i < 40; ++i) {
        batch.dispatch(chain, Grid{kCount}.by(64), buffers[t].data(), i);
        batch.dispatch(chain, Grid{kCount}.by(64), buffers[t].data(), t);
        batch.submit();
      }
      mine.wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 0; t < 3; ++t) {
    uint32_t expected = t;
    for (uint32_t i = 0; i < 40; ++i) expected = (expected * 3 + i) * 3 + t;
    CHECK(all_are(buffers[t], expected));
  }
}

TEST_CASE_METHOD(RingDevice, "streams launch in a ring of ROCr's choice", "[ring]") {
  Streams streams{gpu, {.queue = {.kernargs = KernargPlacement::device}}};
  Stream stream{streams};
  const DeviceBuffer<uint32_t> buffer = values(5);
  const uint64_t reads = host_reads();
  uint32_t expected = 5;
  for (uint32_t i = 0; i < 300; ++i) {
    stream.launch(chain, Grid{kCount}.by(64), buffer.data(), i);
    expected = expected * 3 + i;
  }
  stream.synchronize();
  CHECK(host_reads() == reads);
  CHECK(all_are(buffer, expected));
}

#ifdef UPTEMPO_ROCR_SHARES_HSAKMT
namespace {

// An AQL queue whose ring is in device memory, made with hsakmt beside ROCr.
class BorrowedQueue {
 public:
  static constexpr uint32_t kPackets = 64;

  explicit BorrowedQueue(const Agent& gpu)
      : ring_(gpu, MemoryKind::device, kPackets * 64), indices_(gpu, sizeof(amd_queue_t)) {
    allow_host_access(gpu, ring_.data());
    auto* const slots = static_cast<volatile uint32_t*>(ring_.data());
    for (uint32_t i = 0; i < kPackets; ++i) slots[i * 16] = aql::first_word(aql::kInvalidHeader);
    auto* const queue = new (indices_.data()) amd_queue_t{};
    queue->hsa_queue.type = HSA_QUEUE_TYPE_MULTI;
    queue->hsa_queue.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
    queue->hsa_queue.base_address = ring_.data();
    queue->hsa_queue.size = kPackets;
    queue->read_dispatch_id_field_base_byte_offset = offsetof(amd_queue_t, read_dispatch_id);
    HsaQueueResource resource{};
    const auto plain = [](volatile uint64_t& index) {
      return reinterpret_cast<HSAuint64*>(const_cast<uint64_t*>(&index));
    };
    resource.Queue_read_ptr_aql = plain(queue->read_dispatch_id);
    resource.Queue_write_ptr_aql = plain(queue->write_dispatch_id);
    REQUIRE(hsaKmtCreateQueue(gpu.properties().node, HSA_QUEUE_COMPUTE_AQL, 100,
                              HSA_QUEUE_PRIORITY_NORMAL, ring_.data(), kPackets * 64, nullptr,
                              &resource) == HSAKMT_STATUS_SUCCESS);
    id_ = resource.QueueId;
    doorbell_.kind = AMD_SIGNAL_KIND_DOORBELL;
    HSAuint64* const doorbell = resource.Queue_DoorBell_aql;
    doorbell_.hardware_doorbell_ptr = reinterpret_cast<volatile uint64_t*>(doorbell);
    queue->hsa_queue.doorbell_signal = {reinterpret_cast<uint64_t>(&doorbell_)};
  }
  ~BorrowedQueue() { CHECK(hsaKmtDestroyQueue(id_) == HSAKMT_STATUS_SUCCESS); }
  BorrowedQueue(const BorrowedQueue&) = delete;
  BorrowedQueue& operator=(const BorrowedQueue&) = delete;

  hsa_queue_t* handle() { return reinterpret_cast<hsa_queue_t*>(indices_.data()); }

 private:
  Allocation ring_;
  KernargBuffer indices_;
  alignas(64) amd_signal_t doorbell_{};
  HSA_QUEUEID id_ = 0;
};

}  // namespace

TEST_CASE_METHOD(RingDevice, "a borrowed ring in device memory is recognised and never read",
                 "[ring]") {
  BorrowedQueue borrowed{gpu};
  Queue queue = Queue::borrow(gpu, borrowed.handle());
  CHECK(queue.has_device_ring());
  use(queue);
}
#endif
