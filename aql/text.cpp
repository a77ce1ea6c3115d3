#include <uptempo/aql/text.hpp>

#include <cinttypes>
#include <cstdio>

namespace uptempo::aql {
namespace {

// AMD's vendor packet formats. hsa_ext_amd.h defines barrier-value; ROCr's amd_aql_queue.cpp
// defines PM4 IB.
constexpr uint8_t kVendorFormatPm4Ib = 1;
constexpr uint8_t kVendorFormatBarrierValue = HSA_AMD_PACKET_TYPE_BARRIER_VALUE;

// HSA 1.2 reserves bits 13 to 15 of the packet header,
constexpr unsigned kHeaderBitsUsed = 13;
// and all of setup except the dimensions, which start at bit 0.
constexpr unsigned kSetupBitsUsed = HSA_KERNEL_DISPATCH_PACKET_SETUP_WIDTH_DIMENSIONS;
static_assert(HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS == 0);

// LLVM AMDGPU usage guide: kernel descriptor. amd_kernel_code_t requires 256, a multiple.
constexpr uint64_t kKernelDescriptorAlignment = 64;
constexpr uint64_t kKernargAlignment = 16;  // HSA 1.2, 2.9.6: at least 16 bytes
constexpr uint64_t kSignalAlignment = 64;   // amd_hsa_signal.h: AMD_SIGNAL_ALIGN_BYTES

uint64_t address(const void* pointer) noexcept { return reinterpret_cast<uint64_t>(pointer); }

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

std::string triple(uint64_t x, uint64_t y, uint64_t z) {
  return '[' + std::to_string(x) + ',' + std::to_string(y) + ',' + std::to_string(z) + ']';
}

std::array<hsa_signal_t, 5> dependencies_of(const Packet64& packet) noexcept {
  const auto p = packet_as<hsa_barrier_and_packet_t>(packet);
  std::array<hsa_signal_t, 5> out;
  std::memcpy(out.data(), p.dep_signal, sizeof p.dep_signal);
  return out;
}

std::string_view condition_name(uint32_t condition) noexcept {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return "eq";
    case HSA_SIGNAL_CONDITION_NE:
      return "ne";
    case HSA_SIGNAL_CONDITION_LT:
      return "lt";
    case HSA_SIGNAL_CONDITION_GTE:
      return "gte";
    default:
      return "undefined";
  }
}

// Appends " name=value" if the handle or address is not null.
void append_handle(std::string& line, std::string_view name, uint64_t handle) {
  if (handle != 0) line.append(" ").append(name).append("=").append(hex(handle));
}

void append_dependencies(std::string& line, const std::array<hsa_signal_t, 5>& dependencies) {
  line += " dep_signal=[";
  for (size_t i = 0; i < dependencies.size(); ++i) {
    if (i != 0) line += ',';
    line += hex(dependencies[i].handle);
  }
  line += ']';
}

struct FieldPrinter {
  std::string& line;

  void operator()(const KernelDispatch& d) const {
    line += " grid=" + triple(d.grid.x, d.grid.y, d.grid.z) +
            " workgroup=" + triple(d.workgroup.x, d.workgroup.y, d.workgroup.z);
    line += " dimensions=" + std::to_string(d.dimensions);
    if (d.private_segment_size != 0)
      line += " private_segment_size=" + std::to_string(d.private_segment_size);
    if (d.group_segment_size != 0)
      line += " group_segment_size=" + std::to_string(d.group_segment_size);
    line += " kernel_object=" + hex(d.kernel_object);
    append_handle(line, "kernarg_address", address(d.kernarg_address));
    append_handle(line, "completion_signal", d.completion_signal.handle);
  }
  void operator()(const BarrierAnd& b) const {
    append_dependencies(line, b.dependencies);
    append_handle(line, "completion_signal", b.completion_signal.handle);
  }
  void operator()(const BarrierOr& b) const {
    append_dependencies(line, b.dependencies);
    append_handle(line, "completion_signal", b.completion_signal.handle);
  }
  void operator()(const BarrierValue& b) const {
    line += " signal=" + hex(b.signal.handle) + " mask=" + hex(static_cast<uint64_t>(b.mask)) +
            " condition=";
    line += condition_name(static_cast<uint32_t>(b.condition));
    line += " value=" + std::to_string(b.value);
    append_handle(line, "completion_signal", b.completion_signal.handle);
  }
  void operator()(const AgentDispatch& a) const {
    line += " function=" + std::to_string(a.function);
    append_handle(line, "return_address", a.return_address);
    line += " arguments=[" + hex(a.arguments[0]) + ',' + hex(a.arguments[1]) + ',' +
            hex(a.arguments[2]) + ',' + hex(a.arguments[3]) + ']';
    append_handle(line, "completion_signal", a.completion_signal.handle);
  }
  void operator()(const Pm4Ib& p) const {
    line += " jump=[" + hex(p.jump[0]) + ',' + hex(p.jump[1]) + ',' + hex(p.jump[2]) + ',' +
            hex(p.jump[3]) + ']';
    append_handle(line, "completion_signal", p.completion_signal.handle);
  }
  void operator()(const UnknownVendor& v) const { line += " format=" + std::to_string(v.format); }
  void operator()(const Invalid&) const {}
  void operator()(const Undefined& u) const { line += " type=" + std::to_string(u.type); }
};

// Collects findings. Each rule has its own function.
class Linter {
 public:
  explicit Linter(const Packet64& packet) : packet_(packet) {}

  std::vector<Finding> run() {
    const AnyPacket any = decode(packet_);
    if (std::holds_alternative<Invalid>(any)) return {};
    header();
    std::visit([this](const auto& typed) { check(typed); }, any);
    return std::move(findings_);
  }

 private:
  void add(std::string field, std::string text) {
    findings_.push_back({std::move(field), std::move(text)});
  }

  void header() {
    const HeaderFlags flags = header_flags(packet_.header());
    if (packet_.header() >> kHeaderBitsUsed != 0)
      add("header",
          "reserved bits 13 to 15 are " + hex(packet_.header() >> kHeaderBitsUsed) + ", must be 0");
    if (scope_name(flags.acquire) == "undefined")
      add("header", "the acquire scope is 3, which is not defined");
    if (scope_name(flags.release) == "undefined")
      add("header", "the release scope is 3, which is not defined");
  }

  void reserved(std::string field, uint64_t value) {
    if (value != 0) add(std::move(field), "is reserved and holds " + hex(value) + ", must be 0");
  }

  void aligned(std::string field, uint64_t value, uint64_t alignment) {
    if (value % alignment != 0)
      add(std::move(field),
          hex(value) + " is not aligned to " + std::to_string(alignment) + " bytes");
  }

  void dimension(char axis, bool used, uint32_t workgroup, uint32_t grid) {
    const std::string workgroup_field = std::string("workgroup_size_") + axis;
    const std::string grid_field = std::string("grid_size_") + axis;
    if (workgroup == 0) add(workgroup_field, "is 0, must be at least 1");
    if (grid == 0) add(grid_field, "is 0, must be at least 1");
    if (used) {
      if (grid != 0 && grid < workgroup) {
        add(grid_field, std::to_string(grid) + " work-items are fewer than a workgroup's " +
                            std::to_string(workgroup));
      }
      return;
    }
    if (workgroup > 1)
      add(workgroup_field, "is " + std::to_string(workgroup) +
                               " in a dimension that setup does not have, must be 1");
    if (grid > 1)
      add(grid_field,
          "is " + std::to_string(grid) + " in a dimension that setup does not have, must be 1");
  }

  void check(const KernelDispatch& d) {
    const auto p = packet_as<hsa_kernel_dispatch_packet_t>(packet_);
    if (d.dimensions == 0) add("setup", "0 dimensions, must be 1, 2 or 3");
    reserved("setup", p.setup >> kSetupBitsUsed);
    dimension('x', true, d.workgroup.x, d.grid.x);
    dimension('y', d.dimensions >= 2, d.workgroup.y, d.grid.y);
    dimension('z', d.dimensions >= 3, d.workgroup.z, d.grid.z);
    reserved("reserved0", p.reserved0);
    reserved("reserved2", p.reserved2);
    if (d.kernel_object == 0) add("kernel_object", "is null");
    aligned("kernel_object", d.kernel_object, kKernelDescriptorAlignment);
    aligned("kernarg_address", address(d.kernarg_address), kKernargAlignment);
    aligned("completion_signal", d.completion_signal.handle, kSignalAlignment);
  }

  void barrier(const std::array<hsa_signal_t, 5>& dependencies, hsa_signal_t completion) {
    const auto p = packet_as<hsa_barrier_and_packet_t>(packet_);
    reserved("reserved0", p.reserved0);
    reserved("reserved1", p.reserved1);
    reserved("reserved2", p.reserved2);
    for (size_t i = 0; i < dependencies.size(); ++i) {
      const std::string field = "dep_signal[" + std::to_string(i) + ']';
      aligned(field, dependencies[i].handle, kSignalAlignment);
      if (completion.handle != 0 && dependencies[i].handle == completion.handle) {
        add(field, "is the packet's own completion signal, so it never completes");
      }
    }
    aligned("completion_signal", completion.handle, kSignalAlignment);
  }

  void check(const BarrierAnd& b) { barrier(b.dependencies, b.completion_signal); }

  void check(const BarrierOr& b) {
    barrier(b.dependencies, b.completion_signal);
    bool any = false;
    for (const hsa_signal_t s : b.dependencies) any = any || s.handle != 0;
    if (!any) add("dep_signal", "all are null, and a null dependency never satisfies a barrier-OR");
  }

  void check(const BarrierValue& b) {
    const auto p = packet_as<hsa_amd_barrier_value_packet_t>(packet_);
    reserved("header.reserved", p.header.reserved);
    reserved("reserved0", p.reserved0);
    reserved("reserved1", p.reserved1);
    reserved("reserved2", p.reserved2);
    reserved("reserved3", p.reserved3);
    if (condition_name(p.cond) == "undefined")
      add("cond", std::to_string(p.cond) + " is not an hsa_signal_condition_t");
    aligned("signal", b.signal.handle, kSignalAlignment);
    if (b.signal.handle != 0 && b.signal.handle == b.completion_signal.handle) {
      add("signal", "is the packet's own completion signal, so it never completes");
    }
    aligned("completion_signal", b.completion_signal.handle, kSignalAlignment);
  }

  void check(const AgentDispatch& a) {
    const auto p = packet_as<hsa_agent_dispatch_packet_t>(packet_);
    reserved("reserved0", p.reserved0);
    reserved("reserved2", p.reserved2);
    aligned("completion_signal", a.completion_signal.handle, kSignalAlignment);
  }

  void check(const Pm4Ib& p) {
    aligned("completion_signal", p.completion_signal.handle, kSignalAlignment);
  }

  void check(const UnknownVendor& v) {
    add("AmdFormat",
        std::to_string(v.format) + " is not a known vendor format (1 PM4 IB, 2 barrier-value)");
  }
  void check(const Invalid&) {}
  void check(const Undefined& u) {
    add("header", "packet type " + std::to_string(u.type) + " is not defined (0 to 5 are)");
  }

  const Packet64& packet_;
  std::vector<Finding> findings_;
};

}  // namespace

AnyPacket decode(const Packet64& packet) noexcept {
  const HeaderFlags flags = header_flags(packet.header());
  switch (packet_type(packet.header())) {
    case PacketType::kernel_dispatch: {
      const auto p = packet_as<hsa_kernel_dispatch_packet_t>(packet);
      constexpr unsigned mask = (1u << HSA_KERNEL_DISPATCH_PACKET_SETUP_WIDTH_DIMENSIONS) - 1;
      return KernelDispatch{
          .flags = flags,
          .grid = {p.grid_size_x, p.grid_size_y, p.grid_size_z},
          .workgroup = {p.workgroup_size_x, p.workgroup_size_y, p.workgroup_size_z},
          .dimensions =
              static_cast<uint16_t>(p.setup >> HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS & mask),
          .private_segment_size = p.private_segment_size,
          .group_segment_size = p.group_segment_size,
          .kernel_object = p.kernel_object,
          .kernarg_address = p.kernarg_address,
          .completion_signal = p.completion_signal};
    }
    case PacketType::barrier_and:
      return BarrierAnd{flags, dependencies_of(packet),
                        packet_as<hsa_barrier_and_packet_t>(packet).completion_signal};
    case PacketType::barrier_or:
      return BarrierOr{flags, dependencies_of(packet),
                       packet_as<hsa_barrier_or_packet_t>(packet).completion_signal};
    case PacketType::agent_dispatch: {
      const auto p = packet_as<hsa_agent_dispatch_packet_t>(packet);
      return AgentDispatch{.flags = flags,
                           .function = p.type,
                           .return_address = address(p.return_address),
                           .arguments = {p.arg[0], p.arg[1], p.arg[2], p.arg[3]},
                           .completion_signal = p.completion_signal};
    }
    case PacketType::vendor_specific: {
      const auto p = packet_as<hsa_amd_barrier_value_packet_t>(packet);
      if (p.header.AmdFormat == kVendorFormatBarrierValue) {
        return BarrierValue{.flags = flags,
                            .signal = p.signal,
                            .value = p.value,
                            .mask = p.mask,
                            .condition = static_cast<hsa_signal_condition_t>(p.cond & 3),
                            .completion_signal = p.completion_signal};
      }
      if (p.header.AmdFormat == kVendorFormatPm4Ib) {
        return Pm4Ib{flags,
                     {packet.word[1], packet.word[2], packet.word[3], packet.word[4]},
                     p.completion_signal};
      }
      return UnknownVendor{flags, p.header.AmdFormat};
    }
    case PacketType::invalid:
      return Invalid{};
  }
  return Undefined{static_cast<uint8_t>(packet_type(packet.header()))};
}

std::string_view kind_name(const Packet64& packet) noexcept {
  // Same order as the alternatives of AnyPacket.
  static constexpr std::string_view kNames[] = {"kernel_dispatch", "barrier_and",    "barrier_or",
                                                "barrier_value",   "agent_dispatch", "pm4_ib",
                                                "vendor",          "invalid",        "undefined"};
  static_assert(std::size(kNames) == std::variant_size_v<AnyPacket>);
  return kNames[decode(packet).index()];
}

std::string_view scope_name(FenceScope scope) noexcept {
  switch (scope) {
    case FenceScope::none:
      return "none";
    case FenceScope::agent:
      return "agent";
    case FenceScope::system:
      return "system";
  }
  return "undefined";
}

std::string format(const Packet64& packet) {
  const AnyPacket any = decode(packet);
  std::string line(kind_name(packet));
  if (!std::holds_alternative<Invalid>(any) && !std::holds_alternative<Undefined>(any)) {
    const HeaderFlags flags = header_flags(packet.header());
    if (flags.barrier == Barrier::on) line += " barrier";
    line.append(" acquire=")
        .append(scope_name(flags.acquire))
        .append(" release=")
        .append(scope_name(flags.release));
  }
  std::visit(FieldPrinter{line}, any);
  return line;
}

std::string format_words(const Packet64& packet) {
  std::string text;
  for (size_t i = 0; i < packet.word.size(); ++i) {
    char word[12];
    std::snprintf(word, sizeof word, "%08" PRIx32, packet.word[i]);
    text += word;
    if (i + 1 < packet.word.size()) text += i % 8 == 7 ? '\n' : ' ';
  }
  return text;
}

std::vector<Finding> lint(const Packet64& packet) { return Linter(packet).run(); }

std::string describe(const PublishResult& result) {
  const std::string packets = std::to_string(result.requested) + " packets";
  switch (result.status) {
    case PublishStatus::ok:
      return {};
    case PublishStatus::resource_full:
      return "the ring was full until the deadline: " + std::to_string(result.occupancy) + " of " +
             std::to_string(result.ring_size) + " slots in use, and none of " + packets +
             " published; wait longer, publish fewer packets at once, or create the queue with a "
             "larger ring";
    case PublishStatus::too_long:
      return packets + " do not fit into a ring of " + std::to_string(result.ring_size) +
             " slots; publish fewer packets at once, or create the queue with a larger ring";
    case PublishStatus::queue_failed:
      return "the queue has failed with HSA status " +
             hex(static_cast<uint64_t>(result.queue_error)) + ", and none of " + packets +
             " published; destroy it and create another";
  }
  return {};
}

}  // namespace uptempo::aql
