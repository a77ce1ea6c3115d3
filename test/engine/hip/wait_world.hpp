// HIP programs that share memory with Uptempo: HIP streams, chains of kernels whose result shows
// their order, and a Runtime with a kernel for them.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>
#include "test/support/catch.hpp"

namespace uptempo::test {

inline constexpr uint32_t kLength = 128;

// A link of a chain, like chain_increment of kernels/basics.cl with another factor. `pauses` makes
// a missing wait visible.
static __global__ void hip_link(uint32_t* words, uint32_t addend, uint32_t pauses) {
  for (uint32_t i = 0; i < pauses; ++i) __builtin_amdgcn_s_sleep(64);
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = words[i] * 5u + addend;
}

// Any thread: no assertion while the call succeeds, because Catch2's belong to one thread.
inline void ok(hipError_t status) {
  if (status == hipSuccess) return;
  throw std::runtime_error(hipGetErrorString(status));
}

class HipStream {
 public:
  explicit HipStream(unsigned flags = hipStreamNonBlocking) {
    ok(hipStreamCreateWithFlags(&stream_, flags));
  }
  ~HipStream() { (void)hipStreamDestroy(stream_); }
  HipStream(const HipStream&) = delete;
  HipStream& operator=(const HipStream&) = delete;
  operator hipStream_t() const { return stream_; }

 private:
  hipStream_t stream_ = nullptr;
};

// Words of device memory, and the value that each should hold.
class Chain {
 public:
  Chain() {
    ok(hipMalloc(&data_, kLength * sizeof(uint32_t)));
    ok(hipMemset(data_, 0, kLength * sizeof(uint32_t)));
    ok(hipDeviceSynchronize());
  }
  ~Chain() { (void)hipFree(data_); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  uint32_t* data() const { return data_; }

  void hip(hipStream_t stream, uint32_t addend, uint32_t pauses = 0) {
    hip_link<<<2, kLength / 2, 0, stream>>>(data_, addend, pauses);
    expected_ = expected_ * 5 + addend;
  }
  void uptempo(uint32_t addend) { expected_ = expected_ * 3 + addend; }
  void check() const {
    std::vector<uint32_t> found(kLength);
    ok(hipMemcpy(found.data(), data_, kLength * sizeof(uint32_t), hipMemcpyDeviceToHost));
    CHECK(found == std::vector<uint32_t>(kLength, expected_));
  }

 private:
  uint32_t* data_ = nullptr;
  uint32_t expected_ = 0;
};

struct World {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> link = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Grid grid = Grid{kLength}.by(64);

  void launch(Queue& queue, Chain& chain, uint32_t addend) {
    BatchSubmitter batch{queue};
    batch.dispatch(link, grid, chain.data(), addend);
    batch.submit();
    chain.uptempo(addend);
  }
};

// Work of a queue that is unfinished until the test lets it go on.
class Gate {
 public:
  void put_in(Queue& queue) const {
    BatchSubmitter batch{queue};
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {signal_.handle()}}));
    batch.submit();
  }
  void open() const { hsa_signal_store_screlease(signal_.handle(), 0); }

 private:
  const Signal signal_;
};

// A packet that stops the queue.
inline void submit_invalid(Queue& queue) {
  aql::Packet64 packet = aql::to_packet(aql::BarrierAnd{});
  packet.word[0] = aql::first_word(aql::make_header(aql::PacketType::agent_dispatch, {}), 0);
  BatchSubmitter batch{queue};
  batch.raw(packet);
  batch.submit();
}

}  // namespace uptempo::test
