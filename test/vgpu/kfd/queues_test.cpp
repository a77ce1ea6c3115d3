#include <linux/kfd_ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"
#include "test/support/posix.hpp"

namespace uptempo::vgpu {
namespace {

constexpr HSAuint64 kRingBytes = 4096;

// A ring and the two indices of an AQL queue, in memory that the device can access.
struct Ring {
  void* memory = nullptr;
  Ring() {
    HsaMemFlags flags = host_memory();
    flags.ui32.ExecuteAccess = 1;
    REQUIRE(hsaKmtAllocMemory(kCpuNode, 2 * kPage, flags, &memory) == HSAKMT_STATUS_SUCCESS);
    HSAuint64 alternate = 0;
    REQUIRE(hsaKmtMapMemoryToGPU(memory, 2 * kPage, &alternate) == HSAKMT_STATUS_SUCCESS);
    for (HSAuint64 packet = 0; packet < kRingBytes / 64; ++packet)  // type INVALID
      *reinterpret_cast<HSAuint32*>(static_cast<char*>(memory) + packet * 64) = 1;
  }
  ~Ring() {
    CHECK(hsaKmtUnmapMemoryToGPU(memory) == HSAKMT_STATUS_SUCCESS);
    CHECK(hsaKmtFreeMemory(memory, 2 * kPage) == HSAKMT_STATUS_SUCCESS);
  }
  HSAuint64 index(int which) const {
    return reinterpret_cast<HSAuint64>(memory) + kPage + 0x200 +
           0x48 * static_cast<HSAuint64>(which);
  }
};

HSAKMT_STATUS create(const Ring& ring, HSA_QUEUE_TYPE type, HsaQueueResource& resource,
                     HSAuint32 percentage = 100, HSAuint64 bytes = kRingBytes) {
  resource = {};
  resource.QueueRptrValue = ring.index(1);
  resource.QueueWptrValue = ring.index(0);
  return hsaKmtCreateQueue(kGpuNode, type, percentage, HSA_QUEUE_PRIORITY_NORMAL, ring.memory,
                           bytes, nullptr, &resource);
}

TEST_CASE("an AQL queue is created with a doorbell that reads -1, and destroyed", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  HsaQueueResource resource{};
  REQUIRE(create(ring, HSA_QUEUE_COMPUTE_AQL, resource) == HSAKMT_STATUS_SUCCESS);
  REQUIRE(value(resource.Queue_DoorBell) != nullptr);
  CHECK(*value(resource.Queue_DoorBell_aql) == ~HSAuint64{0});
  CHECK(hsaKmtDestroyQueue(value(resource.QueueId)) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("an SDMA queue's doorbell starts at 0", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  HsaQueueResource resource{};
  REQUIRE(create(ring, HSA_QUEUE_SDMA, resource) == HSAKMT_STATUS_SUCCESS);
  CHECK(*value(resource.Queue_DoorBell_aql) == 0);
  CHECK(hsaKmtDestroyQueue(value(resource.QueueId)) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("each of many queues has its own doorbell", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  std::vector<HSA_QUEUEID> queues;
  std::set<void*> doorbells;
  for (int i = 0; i < 40; ++i) {
    HsaQueueResource resource{};
    REQUIRE(create(ring, HSA_QUEUE_COMPUTE_AQL, resource) == HSAKMT_STATUS_SUCCESS);
    queues.push_back(value(resource.QueueId));
    doorbells.insert(value(resource.Queue_DoorBell));
  }
  CHECK(doorbells.size() == 40);
  for (const HSA_QUEUEID queue : queues) CHECK(hsaKmtDestroyQueue(queue) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("properties that KFD refuses are refused", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  HsaQueueResource resource{};
  CHECK(create(ring, HSA_QUEUE_COMPUTE_AQL, resource, 101) == HSAKMT_STATUS_ERROR);
  CHECK(create(ring, HSA_QUEUE_COMPUTE_AQL, resource, 100, 3000) == HSAKMT_STATUS_ERROR);
  CHECK(create(ring, HSA_QUEUE_COMPUTE, resource) == HSAKMT_STATUS_ERROR);
  CHECK(hsaKmtCreateQueue(7, HSA_QUEUE_COMPUTE_AQL, 100, HSA_QUEUE_PRIORITY_NORMAL, ring.memory,
                          kRingBytes, nullptr, &resource) == HSAKMT_STATUS_INVALID_NODE_UNIT);
}

TEST_CASE("the number of SDMA queues is that of the engines' queues", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  std::vector<HSA_QUEUEID> queues;
  HsaQueueResource resource{};
  while (queues.size() < 64 && create(ring, HSA_QUEUE_SDMA, resource) == HSAKMT_STATUS_SUCCESS)
    queues.push_back(value(resource.QueueId));
  CHECK(queues.size() == (expected_device().target == "gfx900" ? 4 : 16));
  for (const HSA_QUEUEID queue : queues) CHECK(hsaKmtDestroyQueue(queue) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("a queue is suspended, resumed, prioritised and masked", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  HsaQueueResource resource{};
  REQUIRE(create(ring, HSA_QUEUE_COMPUTE_AQL, resource) == HSAKMT_STATUS_SUCCESS);
  for (const HSAuint32 percentage : {0u, 100u})
    CHECK(hsaKmtUpdateQueue(value(resource.QueueId), percentage, HSA_QUEUE_PRIORITY_MAXIMUM,
                            ring.memory, kRingBytes, nullptr) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtUpdateQueue(value(resource.QueueId), 200, HSA_QUEUE_PRIORITY_NORMAL, ring.memory,
                          kRingBytes, nullptr) == HSAKMT_STATUS_ERROR);
  HSAuint32 mask[4] = {0xffff, 0, 0, 0};
  CHECK(hsaKmtSetQueueCUMask(value(resource.QueueId), 128, mask) == HSAKMT_STATUS_SUCCESS);
  HSAuint32 first = 99;
  CHECK(hsaKmtAllocQueueGWS(value(resource.QueueId), 1, &first) == HSAKMT_STATUS_SUCCESS);
  CHECK(first == 0);
  CHECK(hsaKmtDestroyQueue(value(resource.QueueId)) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("a queue's ring cannot be moved", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  const Ring other;
  HsaQueueResource resource{};
  REQUIRE(create(ring, HSA_QUEUE_COMPUTE_AQL, resource) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtUpdateQueue(value(resource.QueueId), 100, HSA_QUEUE_PRIORITY_NORMAL, other.memory,
                          kRingBytes, nullptr) != HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtUpdateQueue(value(resource.QueueId), 100, HSA_QUEUE_PRIORITY_NORMAL, ring.memory,
                          kRingBytes, nullptr) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtDestroyQueue(value(resource.QueueId)) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("an unknown queue returns KFD's errors", "[queues]") {
  const Thunk thunk;
  kfd_ioctl_destroy_queue_args destroy{};
  destroy.queue_id = 999;
  CHECK(kfd_request(AMDKFD_IOC_DESTROY_QUEUE, &destroy) == -EINVAL);
  kfd_ioctl_update_queue_args update{};
  update.queue_id = 999;
  CHECK(kfd_request(AMDKFD_IOC_UPDATE_QUEUE, &update) == -EFAULT);
  kfd_ioctl_alloc_queue_gws_args gws{};
  gws.queue_id = 999;
  CHECK(kfd_request(AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws) == -EINVAL);
  uint32_t mask = 1;
  kfd_ioctl_set_cu_mask_args cu_mask{};
  cu_mask.queue_id = 999;
  cu_mask.cu_mask_ptr = reinterpret_cast<uintptr_t>(&mask);
  cu_mask.num_cu_mask = 32;
  CHECK(kfd_request(AMDKFD_IOC_SET_CU_MASK, &cu_mask) == -EFAULT);
  cu_mask.num_cu_mask = 31;
  CHECK(kfd_request(AMDKFD_IOC_SET_CU_MASK, &cu_mask) == -EINVAL);
}

// In a child of a fork, whose parent has a queue.
int queue_reports_at_sigquit() {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(60);  // ends a child without a report
  HsaSystemProperties system{};
  if (hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS) return 1;
  (void)hsaKmtReleaseSystemProperties();  // as in fork_test.cpp
  if (hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS) return 2;
  int ends[2];
  if (pipe(ends) != 0) return 3;
  dup2(ends[1], STDERR_FILENO);
  const Ring ring;
  HsaQueueResource queue{};
  if (create(ring, HSA_QUEUE_COMPUTE_AQL, queue) != HSAKMT_STATUS_SUCCESS) return 4;
  if (raise(SIGQUIT) != 0) return 5;
  std::string text;
  char part[4096];
  while (text.find("end of the report") == std::string::npos) {
    const ssize_t size = read(ends[0], part, sizeof part);
    if (size <= 0) return 6;
    text.append(part, static_cast<size_t>(size));
  }
  _exit(text.find("report because of SIGQUIT") == std::string::npos ? 7 : 0);
}

TEST_CASE("a child's own device reports at SIGQUIT, although its parent's did", "[queues]") {
  const Thunk thunk;
  const Ring ring;
  HsaQueueResource queue{};
  REQUIRE(create(ring, HSA_QUEUE_COMPUTE_AQL, queue) == HSAKMT_STATUS_SUCCESS);
  CHECK(uptempo::test::in_child(queue_reports_at_sigquit) == 0);
  CHECK(hsaKmtDestroyQueue(value(queue.QueueId)) == HSAKMT_STATUS_SUCCESS);
}

}  // namespace
}  // namespace uptempo::vgpu
