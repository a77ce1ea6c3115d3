#include "test/vgpu/gfx9/machine.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace uptempo::vgpu::gfx9::test {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

const char* target_name(Target target) {
  static constexpr const char* kNames[] = {"gfx900", "gfx906", "gfx908", "gfx90a", "gfx942"};
  return kNames[static_cast<unsigned>(target)];
}

template <class T>
T read(std::span<const std::byte> bytes, size_t offset) {
  if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("the code object ends early");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::unique_ptr<Caches> make_caches(Target target) {
  const DeviceDescription& device = *find_device_description(target_name(target));
  return std::make_unique<Caches>(device, CacheHabits::of(device, seed_of_run()));
}

// clang offload bundle: magic, count, then {offset, size, id length, id} for each entry.
std::span<const std::byte> unbundle(std::span<const std::byte> object, Target target) {
  constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
  if (object.size() < kMagic.size() ||
      std::memcmp(object.data(), kMagic.data(), kMagic.size()) != 0)
    return object;
  size_t at = kMagic.size();
  const auto count = read<uint64_t>(object, at);
  at += 8;
  for (uint64_t i = 0; i < count; ++i) {
    const auto offset = read<uint64_t>(object, at), size = read<uint64_t>(object, at + 8),
               length = read<uint64_t>(object, at + 16);
    const std::string_view id(reinterpret_cast<const char*>(object.data()) + at + 24, length);
    if (id.find(target_name(target)) != std::string_view::npos) return object.subspan(offset, size);
    at += 24 + length;
  }
  throw std::runtime_error(std::string("the bundle holds no code object for ") +
                           target_name(target));
}

// Bytes of the hidden arguments of code object version 5, which begin at the first multiple of 8
// after the explicit arguments. Version 4 has 56.
constexpr size_t kHiddenBytes = 256;

// Writes the hidden arguments of code object version 5 that depend on the launch (LLVM AMDGPU User
// Guide, "Code Object V5 Kernel Argument Metadata"; AMDGPUHSAMetadataStreamer.cpp). The others are
// zero: gfx9 has aperture registers, and no kernel here calls the host.
void fill_hidden(std::span<std::byte> hidden, const Launch& launch) {
  const auto put = [&](size_t offset, const auto& value) {
    std::memcpy(hidden.data() + offset, &value, sizeof value);
  };
  for (size_t d = 0; d < 3; ++d) {
    put(4 * d, launch.grid[d] / launch.workgroup[d]);  // whole workgroups
    put(12 + 2 * d, launch.workgroup[d]);
    put(18 + 2 * d, static_cast<uint16_t>(launch.grid[d] % launch.workgroup[d]));
  }
  put(64, uint16_t{3});  // dimensions
  put(120, launch.dynamic_lds);
}

}  // namespace

MemoryPolicy policy_of_run() {
  return std::getenv("UPTEMPO_TEST_INCOHERENT") != nullptr ? MemoryPolicy::cached
                                                           : MemoryPolicy::direct;
}
uint64_t seed_of_run() {
  const char* seed = std::getenv("UPTEMPO_TEST_INCOHERENT");
  return seed == nullptr ? 0 : std::stoull(seed);
}

struct Machine::Block {
  explicit Block(size_t size)
      : size_bytes(size),
        host(static_cast<std::byte*>(std::aligned_alloc(kPage, size)), &std::free) {
    std::memset(host.get(), 0xcc, size);
  }
  size_t size_bytes;
  std::unique_ptr<std::byte, decltype(&std::free)> host;
  GpuAddress address = 0;
};

Machine::Machine(Target wanted, MemoryPolicy policy)
    : target(wanted),
      caches(policy == MemoryPolicy::cached ? make_caches(wanted) : nullptr),
      code(memory, wanted, policy),
      executor(memory, code, wanted),
      workgroups_(4),
      wave_sync_(std::make_shared<WaveSync>()) {
  executor.caches = caches.get();
}
Machine::~Machine() = default;

void Machine::acquire(FenceScope scope) {
  if (caches != nullptr) caches->acquire(scope);
}
void Machine::release(FenceScope scope) {
  if (caches != nullptr) caches->release(scope);
}
void Machine::place(Workgroup& workgroup) {
  if (caches != nullptr) workgroup.compute_unit = caches->any_compute_unit();
}

Buffer Machine::allocate(size_t size_bytes, bool writable, MemoryKind kind) {
  auto& block = blocks_.emplace_back(
      std::make_unique<Block>(round_up(std::max<size_t>(size_bytes, 1), kPage)));
  block->address = next_;
  next_ += block->size_bytes + 16 * kPage;
  memory.map({.begin = block->address,
              .end = block->address + block->size_bytes,
              .host = block->host.get(),
              .writable = writable,
              .kind = kind});
  return {block->address, {block->host.get(), size_bytes}};
}

void Machine::release(const Buffer& buffer) {
  if (caches != nullptr)
    caches->forget({.begin = buffer.address,
                    .end = buffer.address + buffer.bytes.size(),
                    .host = buffer.bytes.data()});
  memory.unmap(buffer.address);
  std::erase_if(blocks_, [&](const auto& block) { return block->address == buffer.address; });
}

void Machine::load(std::span<const std::byte> object) {
  const auto elf = unbundle(object, target);
  const auto header = read<Elf64_Ehdr>(elf, 0);
  size_t size = 0;
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(elf, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_LOAD) continue;
    size = std::max<size_t>(size, segment.p_vaddr + segment.p_memsz);
    segments.push_back(segment);
  }
  const Buffer image = allocate(size);
  std::memset(image.bytes.data(), 0, image.bytes.size());
  for (const Elf64_Phdr& segment : segments)
    std::memcpy(image.bytes.data() + segment.p_vaddr, elf.data() + segment.p_offset,
                segment.p_filesz);

  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_DYNSYM) {
      const auto names =
          read<Elf64_Shdr>(elf, header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
      for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
        const auto symbol = read<Elf64_Sym>(elf, section.sh_offset + at);
        symbols_.push_back(
            {reinterpret_cast<const char*>(elf.data()) + names.sh_offset + symbol.st_name,
             image.address + symbol.st_value});
      }
    } else if (section.sh_type == SHT_RELA) {
      for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Rela)) {
        const auto relocation = read<Elf64_Rela>(elf, section.sh_offset + at);
        constexpr unsigned kRelative64 = 13;  // R_AMDGPU_RELATIVE64
        if (ELF64_R_TYPE(relocation.r_info) != kRelative64)
          throw std::runtime_error("a relocation other than R_AMDGPU_RELATIVE64");
        const GpuAddress value = image.address + static_cast<uint64_t>(relocation.r_addend);
        std::memcpy(image.bytes.data() + relocation.r_offset, &value, sizeof value);
      }
    }
  }
}

GpuAddress Machine::kernel(std::string_view name) const {
  const auto found = std::find_if(symbols_.begin(), symbols_.end(), [&](const Symbol& each) {
    return each.name == std::string(name) + ".kd";
  });
  if (found == symbols_.end()) throw std::runtime_error("no kernel " + std::string(name));
  return found->address;
}

GpuAddress Machine::assemble_kernel(std::span<const uint32_t> words, uint32_t rsrc2) {
  const Buffer image = allocate(256 + words.size_bytes());
  std::memset(image.bytes.data(), 0, 256);
  const int64_t entry = 256;
  const uint32_t rsrc3 = 127 / 4;  // gfx90a: accumulation registers start at v128
  const uint32_t rsrc1 = 31        // 256 (gfx90a) or 128 registers
                         | 0xf0u << 12 | 1u << 21 | 1u << 23;
  const uint16_t properties = 1u << 3;  // kernarg segment pointer
  std::memcpy(image.bytes.data() + 16, &entry, 8);
  std::memcpy(image.bytes.data() + 44, &rsrc3, 4);
  std::memcpy(image.bytes.data() + 48, &rsrc1, 4);
  std::memcpy(image.bytes.data() + 52, &rsrc2, 4);
  std::memcpy(image.bytes.data() + 56, &properties, 2);
  std::memcpy(image.bytes.data() + 256, words.data(), words.size_bytes());
  return image.address;
}

std::shared_ptr<const DispatchState> Machine::prepare(GpuAddress kernel_object,
                                                      const Launch& launch,
                                                      std::span<const std::byte> arguments) {
  auto state = std::make_shared<DispatchState>();
  state->observer = observer;
  executor.enter();
  auto loaded = Kernel::load(executor.memory, kernel_object, target);
  executor.leave();
  if (const auto* rejected = std::get_if<Kernel::Rejected>(&loaded))
    throw std::runtime_error(rejected->reason);
  state->kernel = std::get<Kernel>(loaded);

  const Buffer kernarg =
      allocate(std::max<size_t>(arguments.size(), state->kernel.kernarg_bytes) + 256);
  std::memset(kernarg.bytes.data(), 0, kernarg.bytes.size());
  std::copy(arguments.begin(), arguments.end(), kernarg.bytes.begin());
  const size_t hidden_at = round_up(arguments.size(), 8);
  if (state->kernel.kernarg_bytes == hidden_at + kHiddenBytes)
    fill_hidden(kernarg.bytes.subspan(hidden_at), launch);
  hsa_kernel_dispatch_packet_t& packet = state->packet;
  packet = {};
  packet.header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
  packet.setup = 3;
  packet.grid_size_x = launch.grid[0];
  packet.grid_size_y = launch.grid[1];
  packet.grid_size_z = launch.grid[2];
  packet.workgroup_size_x = launch.workgroup[0];
  packet.workgroup_size_y = launch.workgroup[1];
  packet.workgroup_size_z = launch.workgroup[2];
  packet.private_segment_size = state->kernel.private_segment_bytes;
  packet.group_segment_size = state->kernel.group_segment_bytes + launch.dynamic_lds;
  packet.kernel_object = kernel_object;
  packet.kernarg_address = reinterpret_cast<void*>(kernarg.address);
  executor.enter();
  if (firmware_preloads && !state->preload_kernargs(executor.memory))
    throw std::runtime_error("the arguments to preload are not mapped");
  executor.leave();
  const Buffer copy = allocate(sizeof packet);
  std::memcpy(copy.bytes.data(), &packet, sizeof packet);
  state->packet_address = copy.address;
  state->wave_sync = wave_sync_;

  if (packet.private_segment_size != 0 || state->kernel.dynamic_stack) {
    // As in ROCr: bytes per wave are a multiple of 1 KiB, and the descriptor is that of
    // amd_aql_queue.cpp (InitScratchSRD).
    const size_t per_work_item =
        packet.private_segment_size + (state->kernel.dynamic_stack ? 4096 : 0);
    state->scratch_bytes_per_wave = static_cast<uint32_t>(round_up(per_work_item * kLanes, 1024));
    state->scratch_waves = static_cast<uint32_t>(16 * workgroups_.size());
    state->scratch_bytes = uint64_t{state->scratch_bytes_per_wave} * state->scratch_waves;
    const Buffer scratch = allocate(state->scratch_bytes);
    state->scratch_base = scratch.address;
    state->scratch_descriptor = {static_cast<uint32_t>(scratch.address),
                                 static_cast<uint32_t>(scratch.address >> 32 & 0xffff) | 1u << 31,
                                 static_cast<uint32_t>(state->scratch_bytes),
                                 4u << 15 | 1u << 19 | 3u << 21 | 1u << 23};
  }
  const auto symbol = std::find_if(symbols_.begin(), symbols_.end(), [&](const Symbol& each) {
    return each.address == kernel_object;
  });
  state->name = symbol != symbols_.end() ? symbol->name : "assembled";
  return state;
}

std::optional<Executor::Fault> Machine::run(const std::shared_ptr<const DispatchState>& dispatch,
                                            uint64_t slice) {
  acquire(FenceScope::system);
  auto fault = run_to_end(dispatch, slice);
  release(FenceScope::system);
  return fault;
}

std::optional<Executor::Fault> Machine::run_to_end(
    const std::shared_ptr<const DispatchState>& dispatch, uint64_t slice) {
  const auto counts = dispatch->workgroups();
  const uint64_t total = uint64_t{counts[0]} * counts[1] * counts[2];
  uint64_t started = 0, ended = 0;
  std::vector<bool> busy(workgroups_.size(), false);
  executor.fault.reset();
  while (ended < total) {
    for (size_t i = 0; i < workgroups_.size(); ++i) {
      if (!busy[i]) {
        if (started == total) continue;
        const auto linear = started++;
        workgroups_[i].start(*dispatch,
                             {static_cast<uint32_t>(linear % counts[0]),
                              static_cast<uint32_t>(linear / counts[0] % counts[1]),
                              static_cast<uint32_t>(linear / counts[0] / counts[1])},
                             static_cast<uint32_t>(16 * i));
        place(workgroups_[i]);
        busy[i] = true;
      }
      executor.enter();
      const auto result = workgroups_[i].run(executor, slice);
      executor.leave();
      if (result == Workgroup::Result::faulted) return executor.fault;
      if (result == Workgroup::Result::ended) {
        busy[i] = false;
        ++ended;
      }
    }
  }
  return std::nullopt;
}

}  // namespace uptempo::vgpu::gfx9::test
