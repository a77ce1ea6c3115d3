// A program under test, on a machine with two GPUs. It passes data between kernels of both, and
// between kernels and copies of the other GPU, with sufficient and insufficient fences. Prints one
// line for each way: its name and "right" or "wrong". If fences are checked, the numbers of
// unordered, stale and unreleased findings follow.
//
// Names begin with '!' if fences are missing, and with '~' if only a target whose L2 does not learn
// of a peer's writes shows it.
#include <array>

#include "message_gpu.hpp"
#include "verdict.hpp"

namespace {

using namespace uptempo::vgpu::test;

class Messages {
 public:
  // `from` writes to memory of `owner`, and `to` reads it.
  bool pass(uint32_t from, uint32_t to, uint32_t owner, Memory memory, hsa_fence_scope_t release,
            hsa_fence_scope_t acquire) {
    const Words message = shared(owner, memory), seen = shared(to, Memory::host_fine);
    gpu[to].have_read(message);
    gpu[from].write(message, 1000, {kNone, release});
    gpu[to].device.barrier({kNone, kNone}, gpu[from].device.signal());
    gpu[to].copy(seen, message, {acquire, kSystem});
    wait();
    return holds(seen, 1000);
  }

  // An engine reads what a kernel of the memory's owner wrote.
  bool kernel_to_copy(hsa_fence_scope_t release) {
    const Words message = shared(0, Memory::local), seen = shared(1, Memory::local);
    gpu[0].write(message, 1000, {kSystem, release});
    copy_between(1, seen, 0, message);
    return holds(seen, 1000);
  }

  // A kernel of the memory's owner reads what an engine wrote.
  bool copy_to_kernel(hsa_fence_scope_t acquire) {
    const Words source = shared(1, Memory::local), message = shared(0, Memory::local);
    const Words seen = shared(0, Memory::host_fine);
    gpu[0].have_read(message);
    gpu[1].write(source, 1000, {kSystem, kSystem});
    copy_between(0, message, 1, source);
    gpu[0].copy(seen, message, {acquire, kSystem});
    wait();
    return holds(seen, 1000);
  }

  // The L2 of the first writer may write its values back over those of the second.
  bool overwrite(hsa_fence_scope_t release) {
    const Words message = shared(0, Memory::local);
    gpu[1].write(message, 500, {kSystem, release});
    gpu[0].device.barrier({kNone, kNone}, gpu[1].device.signal());
    gpu[0].write(message, 1000, {kSystem, kSystem});
    wait();
    gpu[1].device.barrier({kNone, kSystem});
    wait();
    return holds(message, 1000);
  }

  void settle() {
    for (MessageGpu& one : gpu) one.device.barrier({kNone, kNone});
    wait();
  }

 private:
  Words shared(uint32_t owner, Memory memory) {
    const Words words = gpu[owner].device.allocate(memory, kCount);
    const hsa_agent_t all[] = {gpu[0].device.cpu, gpu[0].device.gpu, gpu[1].device.gpu};
    check(hsa_amd_agents_allow_access(3, all, nullptr, words.data()),
          "hsa_amd_agents_allow_access");
    return words;
  }
  void copy_between(uint32_t to, Words destination, uint32_t from, Words source) {
    wait();
    hsa_signal_t done{};
    check(hsa_signal_create(1, 0, nullptr, &done), "hsa_signal_create");
    check(hsa_amd_memory_async_copy(destination.data(), gpu[to].device.gpu, source.data(),
                                    gpu[from].device.gpu, source.size_bytes(), 0, nullptr, done),
          "hsa_amd_memory_async_copy");
    hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
    check(hsa_signal_destroy(done), "hsa_signal_destroy");
  }
  void wait() {
    for (MessageGpu& one : gpu) one.device.wait();
  }

  std::array<MessageGpu, 2> gpu{MessageGpu(0), MessageGpu(1)};
};

}  // namespace

int main() {
  Messages messages;
  const auto say = [&](const char* name, bool right) {
    report(name, right, [&] { messages.settle(); });
  };
  const auto local = Memory::local, coarse = Memory::host_coarse, fine = Memory::host_fine;
  // Sufficient fences.
  say("owner-to-peer/system-system", messages.pass(0, 1, 0, local, kSystem, kSystem));
  say("peer-to-owner/system-system", messages.pass(0, 1, 1, local, kSystem, kSystem));
  say("second-owner-to-peer/system-system", messages.pass(1, 0, 1, local, kSystem, kSystem));
  say("through-host-coarse/system-system", messages.pass(0, 1, 0, coarse, kSystem, kSystem));
  say("through-host-fine/system-system", messages.pass(0, 1, 0, fine, kSystem, kSystem));
  say("kernel-to-copy/system", messages.kernel_to_copy(kSystem));
  say("copy-to-kernel/system", messages.copy_to_kernel(kSystem));
  say("overwrite/system", messages.overwrite(kSystem));
  // Insufficient fences.
  say("!owner-to-peer/agent-system", messages.pass(0, 1, 0, local, kAgent, kSystem));
  say("!owner-to-peer/none-system", messages.pass(0, 1, 0, local, kNone, kSystem));
  say("!owner-to-peer/system-agent", messages.pass(0, 1, 0, local, kSystem, kAgent));
  say("!owner-to-peer/system-none", messages.pass(0, 1, 0, local, kSystem, kNone));
  say("!peer-to-owner/agent-system", messages.pass(0, 1, 1, local, kAgent, kSystem));
  say("!peer-to-owner/none-system", messages.pass(0, 1, 1, local, kNone, kSystem));
  say("~peer-to-owner/system-agent", messages.pass(0, 1, 1, local, kSystem, kAgent));
  say("!peer-to-owner/system-none", messages.pass(0, 1, 1, local, kSystem, kNone));
  say("!second-owner-to-peer/agent-system", messages.pass(1, 0, 1, local, kAgent, kSystem));
  say("!second-owner-to-peer/system-agent", messages.pass(1, 0, 1, local, kSystem, kAgent));
  say("!through-host-coarse/agent-system", messages.pass(0, 1, 0, coarse, kAgent, kSystem));
  say("!through-host-coarse/system-agent", messages.pass(0, 1, 0, coarse, kSystem, kAgent));
  say("!kernel-to-copy/agent", messages.kernel_to_copy(kAgent));
  say("!copy-to-kernel/none", messages.copy_to_kernel(kNone));
  say("!overwrite/agent", messages.overwrite(kAgent));
  return 0;
}
