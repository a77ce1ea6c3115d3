// A GPU through plain HSA calls, with every packet header chosen by the test: memory of each kind,
// kernels, packets, copies.
//
// Errors: a failed HSA call ends the program with a message.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uptempo::vgpu::test {

struct Fences {
  hsa_fence_scope_t acquire = HSA_FENCE_SCOPE_SYSTEM;
  hsa_fence_scope_t release = HSA_FENCE_SCOPE_SYSTEM;
};

enum class Memory : uint8_t { host_fine, host_coarse, local };

class TestDevice {
 public:
  // `kernels`: a clang offload bundle (uptempo_add_kernels). `number`: of the GPU, from 0.
  explicit TestDevice(std::span<const std::byte> kernels, uint32_t number = 0);
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  // Allocates memory that host and GPU can read and write. It is freed with the device, so no
  // address is used twice.
  template <class T = uint32_t>
  std::span<T> allocate(Memory memory, size_t count) {
    return {static_cast<T*>(allocate_bytes(memory, count * sizeof(T))), count};
  }

  // Registers memory of the program as coarse-grained, which hsa_amd_memory_lock() does not do from
  // ROCr 6.4 on. Returns the GPU's address. The caller ends it with hsa_amd_memory_unlock().
  void* lock_coarse(void* host, size_t size_bytes);

  struct Kernel {
    uint64_t object;
    uint32_t kernarg_bytes;
  };
  Kernel kernel(const std::string& name) const;

  // A separate block for arguments of 8 (pointers) or 4 bytes.
  class Arguments {
   public:
    explicit Arguments(std::byte* block) : block_(block) {}
    template <class T>
    Arguments& add(const T& value) {
      at_ = (at_ + sizeof value - 1) / sizeof value * sizeof value;
      __builtin_memcpy(block_ + at_, &value, sizeof value);
      at_ += sizeof value;
      return *this;
    }
    Arguments& rewrite() {
      at_ = 0;
      return *this;
    }
    void* address() const { return block_; }

   private:
    std::byte* block_;
    size_t at_ = 0;
  };
  Arguments arguments();

  // Frees memory of allocate() now.
  void free(void* address);

  // The packet has the barrier bit. The host waits for its end with wait().
  void dispatch(const Kernel& kernel, uint32_t work_items, const Arguments& arguments,
                Fences fences);
  // The packet waits until `dependency`, if given, is 0.
  void barrier(Fences fences, hsa_signal_t dependency = {});
  // Blocks until all packets have completed.
  void wait();
  // Copies with an SDMA engine after all packets have completed, and blocks until the copy ends.
  void copy(void* destination, const void* source, size_t size_bytes);

  // 0 when all packets have completed.
  hsa_signal_t signal() const noexcept { return done_; }
  hsa_queue_t* queue() const noexcept { return queue_; }

  hsa_agent_t gpu{}, cpu{};

 private:
  void* allocate_bytes(Memory memory, size_t size_bytes);
  void load_code(std::span<const std::byte> bundle);
  uint64_t claim();
  void publish(uint64_t index, hsa_packet_type_t type, uint16_t setup, Fences fences);

  hsa_amd_memory_pool_t host_fine_{}, host_coarse_{}, local_{};
  hsa_executable_t executable_{};
  hsa_queue_t* queue_ = nullptr;
  hsa_signal_t done_{};
  std::span<std::byte> kernargs_;
  std::vector<void*> allocated_;
};

void check(hsa_status_t status, const char* what);

}  // namespace uptempo::vgpu::test
