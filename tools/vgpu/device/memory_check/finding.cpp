#include "device/memory_check/finding.hpp"

#include <algorithm>

#include "device/fences/report/details_text.hpp"
#include "device/json_text.hpp"

namespace uptempo::vgpu::memory_check {
namespace {

using fences::called;
using fences::counted;
using fences::hex;
using fences::kIndent;
using fences::readable_kernel;

bool is_in_lds(const Finding& finding) {
  return finding.what == Class::lds_out_of_bounds || finding.what == Class::lds_uninitialised_read;
}

bool has_access(const Finding& finding) {
  return finding.what != Class::freed_in_use && finding.what != Class::double_free &&
         finding.what != Class::leak;
}

std::string_view accesses(Access access) {
  return access == Access::read ? "reads" : access == Access::atomic ? "changes" : "writes";
}

std::string name_of(const Packet& packet) {
  return packet.is_copy ? packet.name : readable_kernel(packet.name);
}

// "fill(int*) (stream 0x55d0c0, queue 1, packet 2)"
std::string described(const Packet& packet, const Details& details) {
  return name_of(packet) + " (" +
         (details.several_gpus ? "GPU " + std::to_string(packet.gpu) + ", " : "") +
         fences::described(details.queue_name) + "queue " + std::to_string(packet.queue) +
         (packet.is_copy ? ", offset " : ", packet ") + std::to_string(packet.position) + ')';
}

// Where the bytes are, seen from the buffer.
std::string position(const Finding& finding, const Buffer& buffer) {
  const GpuAddress end = buffer.begin + buffer.bytes;
  if (finding.address < buffer.begin)
    return counted(buffer.begin - finding.address, "byte") + " before";
  if (finding.address >= end) {
    const uint64_t beyond = finding.address - end;
    return beyond == 0 ? "directly after the end of"
                       : counted(beyond, "byte") + " after the end of";
  }
  return counted(finding.address - buffer.begin, "byte") + " into";
}

std::string_view reason(const Finding& finding) {
  switch (finding.what) {
    case Class::out_of_bounds:
      return finding.buffer ? "outside the allocation" : "no allocation is there";
    case Class::use_after_free:
      return "the program has freed this memory";
    case Class::freed_in_use:
      return "the program freed memory that a running kernel uses";
    case Class::double_free:
      return "the program has freed this memory before";
    case Class::uninitialised_read:
      return "nothing has stored to these bytes since they were allocated";
    case Class::lds_out_of_bounds:
      return "beyond the group segment of the packet: hardware reads 0 and drops stores beyond the "
             "memory that it reserves";
    case Class::lds_uninitialised_read:
      return "no wave of the workgroup has stored to these bytes";
    case Class::buffer_range:
      return "out of the range of its buffer descriptor: the lane reads 0 or stores nothing";
    case Class::leak:
      return "the program has not freed this memory";
  }
  return {};
}

bool is_guess(Use use) { return use == Use::by_value || use == Use::unknown; }

// "the word at byte 8 of the kernargs"
std::string how_used(const Finding& finding) {
  const std::string offset = "byte " + std::to_string(finding.argument_offset);
  switch (finding.use) {
    case Use::accessed:
      return "the kernel has accessed the memory";
    case Use::pointer:
      return "the argument at " + offset + " of the kernargs points to the memory";
    case Use::by_value:
      return "a guess: the word at " + offset +
             " of the kernargs is an address in the memory, in an argument by value";
    case Use::unknown:
      return "a guess: the word at " + offset +
             " of the kernargs is an address in the memory; the kernel's code object has no "
             "metadata, so the word may be no argument";
  }
  return {};
}

using fences::Library;

// The three in the order of Library.
std::string_view in_terms_of(Library library, std::string_view hsa, std::string_view hip,
                             std::string_view uptempo) {
  return library == Library::hip ? hip : library == Library::uptempo ? uptempo : hsa;
}

// The function that frees what this function of HSA or HIP allocates.
std::string_view free_function(std::string_view allocated_by, Library library) {
  if (allocated_by == "hsa_memory_allocate") return "hsa_memory_free";
  constexpr std::array<std::string_view, 4> kHost{"hipHostMalloc", "hipHostAlloc", "hipMallocHost",
                                                  "hipMemAllocHost"};
  if (std::ranges::find(kHost, allocated_by) != kHost.end()) return "hipHostFree";
  if (allocated_by == "hipMallocArray" || allocated_by == "hipMalloc3DArray") return "hipFreeArray";
  return library == Library::hip ? "hipFree" : "hsa_amd_memory_pool_free";
}

std::string remedy_of_leak(const Details& details) {
  if (details.library == Library::uptempo)
    return "destroy the buffer that owns it before the program ends";
  const std::string allocated_by =
      details.allocated_by.empty() ? "" : fences::short_function(details.allocated_by[0].function);
  return "free it with " + std::string(free_function(allocated_by, details.library)) +
         " before the program ends";
}

std::string remedy(const Finding& finding, const Details& details) {
  const Library library = details.library;
  switch (finding.what) {
    case Class::out_of_bounds:
      if (finding.packet && finding.packet->is_copy)
        return "copy no more bytes than the allocation has";
      return "compare the index with the number of elements before the access, or allocate the "
             "memory that the grid accesses";
    case Class::use_after_free:
      return "free the memory after the last kernel that uses it has completed, and keep no "
             "pointer "
             "to it";
    case Class::freed_in_use:
      return "wait for the kernel before the memory is freed, with " +
             std::string(in_terms_of(
                 library, "hsa_signal_wait_scacquire on the completion signal of its packet",
                 "hipStreamSynchronize or hipDeviceSynchronize",
                 "wait() of its submission's Completion, or synchronize() of its Stream"));
    case Class::double_free:
      return "free each allocation once";
    case Class::uninitialised_read:
      return "store to the memory first, with a kernel, a copy or " +
             std::string(in_terms_of(library, "hsa_amd_memory_fill", "hipMemset", "Stream::fill"));
    case Class::lds_out_of_bounds:
      return std::string(in_terms_of(
          library, "set a larger group_segment_size in the packet, or correct the index",
          "launch the kernel with more bytes of dynamic shared memory, or correct the index",
          "pass more bytes to Grid::lds, or correct the index"));
    case Class::lds_uninitialised_read:
      return "let the workgroup store to the memory, and place a barrier before the read";
    case Class::buffer_range:
      return "if the lane should have accessed memory, correct the offset or the descriptor's "
             "number "
             "of records; compilers also mask lanes by offsets that are out of range";
    case Class::leak:
      return remedy_of_leak(details);
  }
  return {};
}

std::string place(const Finding& finding, const Details& details) {
  std::string text =
      "workgroup (" + fences::listed(finding.workgroup) + "), wave " + std::to_string(finding.wave);
  if (!finding.scalar) {
    text += ", lane " + std::to_string(finding.lane);
    if (finding.lanes > 1) text += " and " + counted(finding.lanes - 1, "other");
  }
  if (!details.line.empty()) text += ", at " + details.line;
  return text;
}

std::string described_buffer(const Finding& finding, const Details& details) {
  if (!finding.buffer) return {};
  const Buffer& buffer = *finding.buffer;
  std::string text{kIndent};
  const std::string memory =
      counted(buffer.bytes, "byte") + " of " + details.kind + " at " + hex(buffer.begin);
  if (finding.what == Class::leak)
    text += "the first is " + memory;
  else if (has_access(finding))
    text += "the address is " + position(finding, buffer) + ' ' + memory;
  else
    text += "the memory is " + memory;
  if (!details.allocated_by.empty()) text += ", allocated by" + called(details.allocated_by);
  if (!details.freed_by.empty())
    text += std::string(kIndent) + "freed by" + called(details.freed_by);
  if (!details.freed_again_by.empty())
    text += std::string(kIndent) + "freed again by" + called(details.freed_again_by);
  return text;
}

}  // namespace

std::string to_sentence(const Finding& finding, const Details& details) {
  std::string text = std::string(class_name(finding.what)) + ": ";
  if (finding.what == Class::leak) {
    text += counted(finding.leaked_bytes, "byte") + " in " + counted(finding.leaks, "allocation") +
            ": " + std::string(reason(finding));
  } else if (!has_access(finding)) {
    text += std::string(reason(finding)) + ": " + hex(finding.address);
    if (finding.packet)
      text += ", used by " + described(*finding.packet, details) + std::string(kIndent) +
              how_used(finding);
  } else {
    text += finding.packet ? described(*finding.packet, details) : "a kernel";
    text += ' ' + std::string(accesses(finding.access)) + ' ' + counted(finding.bytes, "byte");
    text += is_in_lds(finding) ? " at offset " + hex(finding.address) + " of LDS"
                               : " at address " + hex(finding.address);
    if (is_in_lds(finding))
      text += ", where the packet asks for " + counted(finding.group_segment_bytes, "byte");
    text += ": " + std::string(reason(finding));
    if (finding.packet && !finding.packet->is_copy)
      text += std::string(kIndent) + "in " + place(finding, details);
  }
  if (finding.packet && !details.published_by.empty())
    text += std::string(kIndent) + name_of(*finding.packet) + " was published by" +
            called(details.published_by);
  text += described_buffer(finding, details);
  return text + std::string(kIndent) + "remedy: " + remedy(finding, details);
}

std::string to_json(const Finding& finding, std::string_view target, const Details& details) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string text = R"({"class":")" + std::string(class_name(finding.what)) + '"';
  const auto add_calls = [&](const char* name, const std::vector<fences::HostFrame>& calls) {
    if (!calls.empty()) text += std::string(",\"") + name + "\":" + fences::to_json(calls);
  };
  if (has_access(finding))
    text += R"(,"access":")" + std::string(fences::access_name(finding.access)) + '"';
  if (finding.packet) {
    const Packet& packet = *finding.packet;
    const std::string readable = name_of(packet);
    text +=
        std::string(packet.is_copy ? R"(,"engine":)" : R"(,"kernel":)") + json_quoted(packet.name);
    if (readable != packet.name) text += R"(,"source_name":)" + json_quoted(readable);
    if (details.several_gpus) text += R"(,"gpu":)" + number(packet.gpu);
    text += R"(,"queue":)" + number(packet.queue) + fences::json_field(details.queue_name) +
            (packet.is_copy ? R"(,"offset":)" : R"(,"index":)") + number(packet.position);
    if (!packet.is_copy && has_access(finding)) {
      text += R"(,"workgroup":[)" + fences::listed(finding.workgroup) + R"(],"wave":)" +
              number(finding.wave);
      if (!finding.scalar)
        text += R"(,"lane":)" + number(finding.lane) + R"(,"lanes":)" + number(finding.lanes);
      text += R"(,"instruction":)" + number(finding.instruction);
    }
    if (!details.line.empty()) text += R"(,"line":)" + json_quoted(details.line);
    add_calls("published_by", details.published_by);
  }
  if (finding.what == Class::leak)
    text += R"(,"allocations":)" + number(finding.leaks) + R"(,"bytes":)" +
            number(finding.leaked_bytes);
  else
    text += R"(,"address":)" + number(finding.address);
  if (has_access(finding)) text += R"(,"bytes":)" + number(finding.bytes);
  if (is_in_lds(finding))
    text += R"(,"group_segment_bytes":)" + number(finding.group_segment_bytes);
  if (finding.buffer) {
    const Buffer& buffer = *finding.buffer;
    text += R"(,"memory":{"kind":)" + json_quoted(details.kind) + R"(,"address":)" +
            number(buffer.begin) + R"(,"bytes":)" + number(buffer.bytes);
    if (has_access(finding)) {
      const GpuAddress end = buffer.begin + buffer.bytes;
      if (finding.address < buffer.begin)
        text += R"(,"before":)" + number(buffer.begin - finding.address);
      else if (finding.address >= end)
        text += R"(,"after":)" + number(finding.address - end);
      else
        text += R"(,"offset":)" + number(finding.address - buffer.begin);
    }
    add_calls("allocated_by", details.allocated_by);
    add_calls("freed_by", details.freed_by);
    text += '}';
  }
  add_calls("freed_again_by", details.freed_again_by);
  if (finding.what == Class::freed_in_use) {
    text += std::string(R"(,"use":")") +
            (finding.use == Use::accessed ? "accessed"
             : is_guess(finding.use)      ? "guessed-argument"
                                          : "argument") +
            '"';
    if (finding.use != Use::accessed)
      text += R"(,"argument_offset":)" + number(finding.argument_offset);
  }
  return text + R"(,"reason":)" + json_quoted(reason(finding)) + R"(,"remedy":)" +
         json_quoted(remedy(finding, details)) + R"(,"device":)" + json_quoted(target) + '}';
}

}  // namespace uptempo::vgpu::memory_check
