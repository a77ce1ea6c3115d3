// A program under test. It passes data between kernels, copies and the host with sufficient and
// insufficient fences. Prints one line for each way: its name and "right" or "wrong". If fences are
// checked, the numbers of unordered, stale and unreleased findings follow.
#include <cstdlib>
#include <numeric>

#include "message_gpu.hpp"
#include "verdict.hpp"

namespace {

using namespace uptempo::vgpu::test;

class Messages : MessageGpu {
 public:
  bool kernel_to_kernel(Memory memory, hsa_fence_scope_t acquire) {
    const Words message = device.allocate(memory, kCount),
                seen = device.allocate(Memory::host_fine, kCount);
    have_read(message);
    write(message, 1000, {kNone, kAgent});  // its acquire would refresh the others' caches too
    copy(seen, message, {acquire, kSystem});
    device.wait();
    return holds(seen, 1000);
  }

  bool kernel_to_host(Memory memory, hsa_fence_scope_t release) {
    const Words message = device.allocate(memory, kCount);
    write(message, 1000, {kSystem, release});
    device.wait();
    return holds(message, 1000);
  }

  bool kernel_to_host_by_barrier(Memory memory, hsa_fence_scope_t release) {
    const Words message = device.allocate(memory, kCount);
    write(message, 1000, {kSystem, kNone});
    device.barrier({kNone, release});
    device.wait();
    return holds(message, 1000);
  }

  bool host_to_kernel(Memory memory, hsa_fence_scope_t acquire) {
    const Words message = device.allocate(memory, kCount),
                seen = device.allocate(Memory::host_fine, kCount);
    have_read(message);
    std::iota(message.begin(), message.end(), 1000u);
    copy(seen, message, {acquire, kSystem});
    device.wait();
    return holds(seen, 1000);
  }

  bool host_to_kernel_by_barrier(Memory memory, hsa_fence_scope_t acquire) {
    const Words message = device.allocate(memory, kCount),
                seen = device.allocate(Memory::host_fine, kCount);
    have_read(message);
    std::iota(message.begin(), message.end(), 1000u);
    device.barrier({acquire, kNone});
    copy(seen, message, {kNone, kSystem});
    device.wait();
    return holds(seen, 1000);
  }

  bool reused_kernargs(hsa_fence_scope_t acquire) {
    const Words seen = device.allocate(Memory::host_fine, kCount);
    TestDevice::Arguments block = device.arguments();
    for (const uint32_t first : {500u, 1000u}) {
      device.dispatch(iota, kCount, block.rewrite().add(seen.data()).add(first).add(uint32_t{1}),
                      {acquire, kSystem});
      device.wait();
    }
    return holds(seen, 1000);
  }

  bool kernel_to_copy(hsa_fence_scope_t release) {
    const Words message = device.allocate(Memory::local, kCount),
                seen = device.allocate(Memory::host_fine, kCount);
    write(message, 1000, {kSystem, release});
    device.copy(seen.data(), message.data(), message.size_bytes());
    return holds(seen, 1000);
  }

  bool copy_to_kernel(hsa_fence_scope_t acquire) {
    const Words message = device.allocate(Memory::local, kCount),
                source = device.allocate(Memory::host_fine, kCount);
    const Words seen = device.allocate(Memory::host_fine, kCount);
    have_read(message);
    std::iota(source.begin(), source.end(), 1000u);
    device.copy(message.data(), source.data(), source.size_bytes());
    copy(seen, message, {acquire, kSystem});
    device.wait();
    return holds(seen, 1000);
  }

  // A copy to bytes that L2 holds dirty is lost when L2 writes them back.
  bool copy_over_kernel(hsa_fence_scope_t release) {
    const Words message = device.allocate(Memory::local, kCount),
                source = device.allocate(Memory::host_fine, kCount);
    write(message, 500, {kSystem, release});
    std::iota(source.begin(), source.end(), 1000u);
    device.copy(message.data(), source.data(), source.size_bytes());
    device.barrier({kNone, kSystem});
    device.wait();
    return holds(message, 1000);
  }

  // Makes the checker judge the host's last loads and stores: it does so at the device's next
  // action.
  void settle() {
    device.barrier({kNone, kNone});
    device.wait();
  }

  // The host takes memory back from the GPU and sees the kernels' stores, whatever was released.
  bool unlocked() {
    auto* words = static_cast<uint32_t*>(std::aligned_alloc(4096, kCount * sizeof(uint32_t)));
    const Words message(words, kCount);
    std::fill(message.begin(), message.end(), 0u);
    void* const address = device.lock_coarse(words, message.size_bytes());
    write(Words(static_cast<uint32_t*>(address), kCount), 1000, {kSystem, kNone});
    device.wait();
    check(hsa_amd_memory_unlock(words), "hsa_amd_memory_unlock");
    const bool right = holds(message, 1000);
    std::free(words);
    return right;
  }
};

}  // namespace

int main() {
  Messages messages;
  const auto say = [&](const char* name, bool right) {
    report(name, right, [&] { messages.settle(); });
  };
  // Sufficient fences.
  say("kernel-to-kernel/local/agent", messages.kernel_to_kernel(Memory::local, kAgent));
  say("kernel-to-kernel/local/system", messages.kernel_to_kernel(Memory::local, kSystem));
  say("kernel-to-kernel/coarse/agent", messages.kernel_to_kernel(Memory::host_coarse, kAgent));
  say("kernel-to-kernel/fine/agent", messages.kernel_to_kernel(Memory::host_fine, kAgent));
  say("kernel-to-host/coarse/system", messages.kernel_to_host(Memory::host_coarse, kSystem));
  say("kernel-to-host/local/system", messages.kernel_to_host(Memory::local, kSystem));
  say("kernel-to-host/fine/none", messages.kernel_to_host(Memory::host_fine, kNone));
  say("kernel-to-host-by-barrier/coarse/system",
      messages.kernel_to_host_by_barrier(Memory::host_coarse, kSystem));
  say("host-to-kernel/coarse/system", messages.host_to_kernel(Memory::host_coarse, kSystem));
  say("host-to-kernel/local/system", messages.host_to_kernel(Memory::local, kSystem));
  say("host-to-kernel/fine/agent", messages.host_to_kernel(Memory::host_fine, kAgent));
  say("host-to-kernel-by-barrier/coarse/system",
      messages.host_to_kernel_by_barrier(Memory::host_coarse, kSystem));
  say("reused-kernargs/agent", messages.reused_kernargs(kAgent));
  say("kernel-to-copy/system", messages.kernel_to_copy(kSystem));
  say("copy-to-kernel/system", messages.copy_to_kernel(kSystem));
  say("copy-over-kernel/system", messages.copy_over_kernel(kSystem));
  say("unlocked/none", messages.unlocked());
  // Insufficient fences.
  say("!kernel-to-kernel/local/none", messages.kernel_to_kernel(Memory::local, kNone));
  say("!kernel-to-kernel/coarse/none", messages.kernel_to_kernel(Memory::host_coarse, kNone));
  say("!kernel-to-kernel/fine/none", messages.kernel_to_kernel(Memory::host_fine, kNone));
  say("!kernel-to-host/coarse/agent", messages.kernel_to_host(Memory::host_coarse, kAgent));
  say("!kernel-to-host/local/agent", messages.kernel_to_host(Memory::local, kAgent));
  say("!kernel-to-host/local/none", messages.kernel_to_host(Memory::local, kNone));
  say("!kernel-to-host-by-barrier/coarse/agent",
      messages.kernel_to_host_by_barrier(Memory::host_coarse, kAgent));
  say("!host-to-kernel/coarse/agent", messages.host_to_kernel(Memory::host_coarse, kAgent));
  say("!host-to-kernel/local/agent", messages.host_to_kernel(Memory::local, kAgent));
  say("!host-to-kernel/fine/none", messages.host_to_kernel(Memory::host_fine, kNone));
  say("!host-to-kernel-by-barrier/coarse/agent",
      messages.host_to_kernel_by_barrier(Memory::host_coarse, kAgent));
  say("!reused-kernargs/none", messages.reused_kernargs(kNone));
  say("!kernel-to-copy/agent", messages.kernel_to_copy(kAgent));
  say("!copy-to-kernel/agent", messages.copy_to_kernel(kAgent));
  say("!copy-over-kernel/agent", messages.copy_over_kernel(kAgent));
  return 0;
}
