// Readers of the virtual GPU's memory: kernel names, kernel objects, PM4 commands and SDMA packets.
// The first bytes are a kernel object's offset; the rest is a mapping of whole pages.
#include <cstring>
#include <memory>
#include <variant>
#include <vector>

#include "cp/kernel/kernel_name.hpp"
#include "cp/packet/pm4.hpp"
#include "cp/packet/sdma_packet.hpp"
#include "gfx9/workgroup.hpp"
#include "test/fuzz/fuzz.hpp"

namespace uptempo::fuzz {
namespace {

void read_sdma(std::span<const uint32_t> words) {
  for (size_t at = 0; at < words.size();) {
    const vgpu::sdma::Decoded decoded = vgpu::sdma::decode(words.subspan(at));
    require(decoded.dwords >= 1 && *decoded.name != '\0', "a packet has words and a name");
    if (const auto* poll = std::get_if<vgpu::sdma::PollMemory>(&decoded.packet))
      (void)vgpu::sdma::poll_holds(*poll, words[0]);
    if (const auto* refused = std::get_if<vgpu::sdma::Unsupported>(&decoded.packet))
      require(!refused->reason.empty(), "a refusal has a reason");
    at += decoded.dwords;
  }
}

}  // namespace

void device_memory(Bytes input) {
  using namespace vgpu;
  constexpr GpuAddress kBase = 0x7f0000000000;
  if (input.size() < 4) return;
  uint32_t offset;
  std::memcpy(&offset, input.data(), sizeof offset);
  // Exactly as many bytes as are mapped, so that AddressSanitizer sees each read outside.
  std::vector<uint32_t> memory(input.size() / 4);
  std::memcpy(memory.data(), input.data() + 4, input.size() - 4);
  const size_t size_bytes = memory.size() * 4;
  AddressSpace space;
  space.map({.begin = kBase,
             .end = kBase + size_bytes,
             .host = reinterpret_cast<std::byte*>(memory.data())});
  AddressSpace::Reader reader(space);
  reader.enter();
  const GpuAddress object = kBase + offset % size_bytes;
  require(!kernel_name(reader, object).empty(), "a kernel object has a name");
  for (unsigned target = 0; target < gfx9::kTargetCount; ++target) {
    const auto kernel = gfx9::Kernel::load(reader, object / 64 * 64, gfx9::Target(target));
    if (const auto* refused = std::get_if<gfx9::Kernel::Rejected>(&kernel))
      require(!refused->reason.empty(), "a refusal has a reason");
  }
  Pm4IbPacket packet{};
  packet.jump[0] = 0xc0023f00;  // INDIRECT_BUFFER
  packet.jump[1] = static_cast<uint32_t>(object);
  packet.jump[2] = static_cast<uint32_t>(object >> 32);
  packet.jump[3] = static_cast<uint32_t>((kBase + size_bytes - object) / 4);
  (void)execute_pm4(reader, packet);
  reader.leave();
  read_sdma(memory);
}

}  // namespace uptempo::fuzz
