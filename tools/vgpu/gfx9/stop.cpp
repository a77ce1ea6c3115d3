#include "gfx9/stop.hpp"

#include <cstdio>
#include <cstring>
#include <string>

#include "device/demangled.hpp"
#include "gfx9/code_cache.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

// "kernel sort + 0x58, workgroup (3,0,0), wave 1"
std::string place(const Op& op, const Wave& wave) {
  const DispatchState& dispatch = wave.workgroup->dispatch();
  const auto id = wave.workgroup->id();
  const auto offset = static_cast<long long>(address_of(op) - dispatch.kernel.entry);
  char text[128];
  std::snprintf(text, sizeof text, " %c 0x%llx, workgroup (%u,%u,%u), wave %u",
                offset < 0 ? '-' : '+',
                static_cast<unsigned long long>(offset < 0 ? -offset : offset), id[0], id[1], id[2],
                wave.index_in_workgroup);
  return "kernel " + shown_kernel(dispatch.name) + text;
}

std::string bytes(const Op& op, Wave& wave) {
  std::string text;
  for (uint32_t dword = 0; dword < op.dwords(); ++dword) {
    const std::byte* host =
        wave.executor->memory.translate(address_of(op) + 4 * dword, 4, Access::execute);
    if (host == nullptr) break;
    uint32_t word = 0;
    std::memcpy(&word, host, 4);
    char hex[16];
    std::snprintf(hex, sizeof hex, "%s0x%08x", dword == 0 ? "" : " ", word);
    text += hex;
  }
  return text;
}

const Op* stop_faulted(const Op& op, Wave& wave, Executor::Fault fault) {
  wave.executor->fault = std::move(fault);
  return stop_at(op, wave, WaveStop::faulted);
}

}  // namespace

GpuAddress address_of(const Op& op) noexcept {
  return CodePage::of(op).base + GpuAddress{4} * op.index;
}

const Op* stop_after(const Op& op, Wave& wave, WaveStop why) noexcept {
  wave.pc = address_of(op) + op.in.size_bytes;
  wave.stop = why;
  return nullptr;
}

const Op* stop_at(const Op& op, Wave& wave, WaveStop why) noexcept {
  wave.pc = address_of(op);
  wave.stop = why;
  return nullptr;
}

const Op* stop_memory_fault(const Op& op, Wave& wave, GpuAddress address, Access access) noexcept {
  static constexpr const char* kVerb[] = {"reads", "writes", "atomically updates", "executes"};
  MemoryFault fault;
  fault.address = address;
  fault.access = access;
  fault.present = wave.executor->memory.find(address) != nullptr;
  fault.where = place(op, wave);
  if (access != Access::execute)
    fault.where += std::string(": ") + std::string(mnemonic(op.in.opcode));
  char text[160];
  std::snprintf(
      text, sizeof text, " %s 0x%llx, which is %s", kVerb[static_cast<unsigned>(access)],
      static_cast<unsigned long long>(address),
      fault.present ? "mapped without the permission (or misaligned for an atomic)" : "not mapped");
  std::string message = fault.where + text;
  return stop_faulted(op, wave,
                      {QueueError::none, std::move(fault), std::move(message), address_of(op)});
}

const Op* stop_error(const Op& op, Wave& wave, QueueError error, std::string_view reason) noexcept {
  std::string message =
      op.in.opcode == Opcode::invalid ? "the word" : std::string(mnemonic(op.in.opcode));
  message += " (" + bytes(op, wave) + ") " + std::string(reason) + ": " + place(op, wave);
  return stop_faulted(op, wave, {error, std::nullopt, std::move(message), address_of(op)});
}

const Op* jump(const Op& op, Wave& wave, GpuAddress target) noexcept {
  if (target % 4 != 0)
    return stop_error(op, wave, QueueError::illegal_instruction, "jumps to a misaligned address");
  return wave.executor->code_at(target);
}

}  // namespace uptempo::vgpu::gfx9
