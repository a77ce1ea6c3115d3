// A gfx9 core without driver or command processor: memory, code and one worker. Kernels run in the
// test's own thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/caches/incoherent.hpp"
#include "gfx9/wave_sync.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9::test {

// Memory that the device sees at its own address, different from the host's.
struct Buffer {
  GpuAddress address = 0;
  std::span<std::byte> bytes;

  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// Packs kernel arguments at their natural alignment.
class Arguments {
 public:
  template <class T>
  Arguments& add(const T& value) {
    const size_t at = (bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  Arguments& add(const Buffer& buffer) { return add(buffer.address); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct Launch {
  std::array<uint32_t, 3> grid{64, 1, 1};
  std::array<uint16_t, 3> workgroup{64, 1, 1};
  uint32_t dynamic_lds = 0;
};

// UPTEMPO_TEST_INCOHERENT=SEED gives the machines of this run stale caches, unless a test requests
// another policy. A run of workgroups then acquires and releases at system scope, as a packet does.
MemoryPolicy policy_of_run();
uint64_t seed_of_run();

class Machine {
 public:
  explicit Machine(Target target = Target::gfx90a, MemoryPolicy policy = policy_of_run());
  ~Machine();

  // The page after its last one is not mapped. The initial content is 0xcc.
  Buffer allocate(size_t size_bytes, bool writable = true,
                  MemoryKind kind = MemoryKind::coarse_grained);
  void release(const Buffer& buffer);

  // Loads an ELF code object, or this target's code object from a clang offload bundle.
  void load(std::span<const std::byte> object);
  GpuAddress kernel(std::string_view name) const;  // its descriptor; throws if there is none

  // Returns a kernel made of these words: descriptor and code. By default rsrc2 puts workgroup id x
  // into the first SGPR after the user SGPRs (kernarg pointer in s[0:1]).
  GpuAddress assemble_kernel(std::span<const uint32_t> code, uint32_t rsrc2 = 2u << 1 | 1u << 7);

  // Returns the initial state of a dispatch of `kernel_object`. Throws if the kernel is rejected.
  std::shared_ptr<const DispatchState> prepare(GpuAddress kernel_object, const Launch& launch,
                                               std::span<const std::byte> arguments);

  // Runs all workgroups, several of them resident together, in slices of `slice` instructions.
  // Returns the fault, if any.
  std::optional<Executor::Fault> run(const std::shared_ptr<const DispatchState>& dispatch,
                                     uint64_t slice = 1000);
  std::optional<Executor::Fault> run(std::string_view name, const Launch& launch,
                                     const Arguments& arguments) {
    return run(prepare(kernel(name), launch, arguments.bytes()));
  }

  // With MemoryPolicy::cached: the fences of a packet, and the compute unit of a workgroup.
  void acquire(FenceScope scope);
  void release(FenceScope scope);
  void place(Workgroup& workgroup);

  AddressSpace memory;
  const Target target;
  const std::unique_ptr<Caches> caches;  // with MemoryPolicy::cached
  CodeCache code;
  Executor executor;
  MemoryObserver* observer = nullptr;  // observes dispatches that are prepared afterwards
  // Whether dispatches that are prepared afterwards preload kernel arguments.
  bool firmware_preloads = true;

 private:
  std::optional<Executor::Fault> run_to_end(const std::shared_ptr<const DispatchState>& dispatch,
                                            uint64_t slice);

  struct Block;
  struct Symbol {
    std::string name;
    GpuAddress address;
  };

  GpuAddress next_ = 0x100000000000;
  std::deque<std::unique_ptr<Block>> blocks_;
  std::vector<Symbol> symbols_;
  std::vector<Workgroup> workgroups_;
  const std::shared_ptr<WaveSync> wave_sync_;
};

}  // namespace uptempo::vgpu::gfx9::test
