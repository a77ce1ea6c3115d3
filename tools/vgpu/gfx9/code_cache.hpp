// Pages of decoded code. See CodeCache in workgroup.hpp for the contract.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9 {

// The Ops of 4 KiB of code. Two entries after the last dword lead to the next page. The first
// serves an instruction that ends with this page, the second an instruction of two dwords that
// crosses its end.
struct CodePage {
  static constexpr uint32_t kDwords = Executor::kCodePageBytes / 4;

  CodePage(GpuAddress base, const Mapping* mapping, Target target, MemoryPolicy policy) noexcept;

  GpuAddress base;
  const Mapping mapping;  // as it was when the page was made; empty if there was none
  const Target target;
  const MemoryPolicy policy;
  std::mutex decoding;
  Op ops[kDwords + 2];

  static CodePage& of(const Op& op) noexcept;
};

// Returns `op`, decoded. If `op` is one of the two entries after its page, returns the entry that
// it leads to. Returns nullptr when there is no code: the wave has stopped.
const Op* decoded(const Op& op, Wave& wave);

struct CodeCache::Impl {
  Impl(AddressSpace& memory_space, Target code_target, MemoryPolicy code_policy)
      : memory(memory_space), target(code_target), policy(code_policy) {}

  void add(Executor& executor);
  void remove(Executor& executor);
  void enter(Executor& executor) noexcept;
  const Op* page(Executor& executor, GpuAddress base);

  AddressSpace& memory;
  const Target target;
  const MemoryPolicy policy;

  // Each invalidation increments it. A page made in generation g is not handed out once generation
  // exceeds g.
  std::atomic<uint64_t> generation{1};
  // Generation of the address space for which all pages are known to be at their old place.
  std::atomic<uint64_t> validated{0};

 private:
  struct Retired {
    uint64_t since;  // first generation in which no worker can obtain it
    std::unique_ptr<CodePage> page;
  };
  void validate(Executor& executor, uint64_t memory_generation);

  std::mutex mutex_;
  std::unordered_map<GpuAddress, std::unique_ptr<CodePage>> pages_;
  uint64_t pages_generation_ = 1;
  std::vector<Retired> retired_;
  std::vector<Executor*> executors_;
};

}  // namespace uptempo::vgpu::gfx9
