// The typed 64-byte packets of an AQL queue, and the 16-bit header that makes each one live.
//
// A fill() function never makes a packet live. It writes bytes 4..63 of a slot, with reserved
// fields as zero, and returns the first 32 bits (header and setup). It does not touch bytes 0..3.
// The publisher stores the returned word last, with release order (writer.hpp). Only after that
// store may a packet processor read the rest.
//
// Thread safety: pure functions over the caller's memory.
// Errors: none. lint() in text.hpp and the engine's checks find values that a packet processor
// rejects.
// Cost: no allocation.
// Sources: HSA Platform System Architecture 1.2, section 2.9 (packet formats); hsa.h (field
// positions); hsa_ext_amd.h (AMD's vendor packet). Static assertions below pin every size and
// offset and compare every header constant with the enumerators of hsa.h.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace uptempo::aql {

inline constexpr size_t kPacketSizeBytes = 64;

// One packet or one ring slot, as raw bytes. Aligned like the ring, so a packet never straddles a
// cache line.
struct alignas(kPacketSizeBytes) Packet64 {
  std::array<uint32_t, 16> word;

  constexpr uint16_t header() const noexcept { return static_cast<uint16_t>(word[0]); }
  constexpr uint16_t setup() const noexcept { return static_cast<uint16_t>(word[0] >> 16); }
  // For kernel dispatch packets.
  const void* kernarg_address() const noexcept {
    const void* address;
    std::memcpy(&address, &word[10], sizeof address);
    return address;
  }
  void set_kernarg_address(const void* address) noexcept {
    std::memcpy(&word[10], &address, sizeof address);
  }
  uint32_t group_segment_size() const noexcept { return word[7]; }
  void set_group_segment_size(uint32_t bytes) noexcept { word[7] = bytes; }
  // The field has the same offset in every packet type except INVALID.
  void set_completion_signal(hsa_signal_t signal) noexcept {
    std::memcpy(&word[14], &signal, sizeof signal);
  }
  friend constexpr bool operator==(const Packet64&, const Packet64&) = default;
};
static_assert(sizeof(Packet64) == kPacketSizeBytes && alignof(Packet64) == kPacketSizeBytes);

// Values of the header's type field (bits 0..7).
enum class PacketType : uint8_t {
  vendor_specific = HSA_PACKET_TYPE_VENDOR_SPECIFIC,
  invalid = HSA_PACKET_TYPE_INVALID,
  kernel_dispatch = HSA_PACKET_TYPE_KERNEL_DISPATCH,
  barrier_and = HSA_PACKET_TYPE_BARRIER_AND,
  agent_dispatch = HSA_PACKET_TYPE_AGENT_DISPATCH,
  barrier_or = HSA_PACKET_TYPE_BARRIER_OR,
};

// Scope of a packet's acquire or release fence. A fence acts on the whole agent: it covers every
// queue of the agent.
enum class FenceScope : uint8_t {
  none = HSA_FENCE_SCOPE_NONE,
  agent = HSA_FENCE_SCOPE_AGENT,
  system = HSA_FENCE_SCOPE_SYSTEM,
};

// The barrier bit: the packet waits until all earlier packets of its queue are complete.
enum class Barrier : uint8_t { off = 0, on = 1 };

// The header's fields besides the type.
struct HeaderFlags {
  Barrier barrier = Barrier::on;
  FenceScope acquire = FenceScope::system;
  FenceScope release = FenceScope::system;
  friend constexpr bool operator==(const HeaderFlags&, const HeaderFlags&) = default;
};

constexpr uint16_t make_header(PacketType type, HeaderFlags flags) noexcept {
  return static_cast<uint16_t>(
      static_cast<uint32_t>(type) << HSA_PACKET_HEADER_TYPE |
      static_cast<uint32_t>(flags.barrier) << HSA_PACKET_HEADER_BARRIER |
      static_cast<uint32_t>(flags.acquire) << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
      static_cast<uint32_t>(flags.release) << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

constexpr PacketType packet_type(uint16_t header) noexcept {
  return static_cast<PacketType>(header >> HSA_PACKET_HEADER_TYPE & 0xff);
}

// A scope of 3 (undefined) is returned as FenceScope{3}.
constexpr HeaderFlags header_flags(uint16_t header) noexcept {
  return {
      .barrier = static_cast<Barrier>(header >> HSA_PACKET_HEADER_BARRIER & 1),
      .acquire = static_cast<FenceScope>(header >> HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & 3),
      .release = static_cast<FenceScope>(header >> HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE & 3)};
}

// Barrier bits and system-scope fences in one or more headers.
struct HeaderCosts {
  uint64_t barriers = 0, system_acquires = 0, system_releases = 0;

  constexpr HeaderCosts& operator+=(const HeaderCosts& other) noexcept {
    barriers += other.barriers;
    system_acquires += other.system_acquires;
    system_releases += other.system_releases;
    return *this;
  }
  friend constexpr HeaderCosts operator+(HeaderCosts a, const HeaderCosts& b) noexcept {
    return a += b;
  }
  constexpr HeaderCosts operator*(uint64_t times) const noexcept {
    return {barriers * times, system_acquires * times, system_releases * times};
  }
};
constexpr HeaderCosts costs_of(uint16_t header) noexcept {
  const HeaderFlags flags = header_flags(header);
  return {.barriers = flags.barrier == Barrier::on,
          .system_acquires = flags.acquire == FenceScope::system,
          .system_releases = flags.release == FenceScope::system};
}

// Replaces the flags and keeps the type.
constexpr uint16_t with_flags(uint16_t header, HeaderFlags flags) noexcept {
  return make_header(packet_type(header), flags);
}

// The first 32 bits of a packet: the header, then 16 bits of setup (vendor packets: the format).
constexpr uint32_t first_word(uint16_t header, uint16_t upper = 0) noexcept {
  return static_cast<uint32_t>(header) | static_cast<uint32_t>(upper) << 16;
}

// Header of a slot that is unpublished or that the packet processor has already taken.
inline constexpr uint16_t kInvalidHeader =
    make_header(PacketType::invalid, {Barrier::off, FenceScope::none, FenceScope::none});

// Sizes of a grid or of a workgroup, in work-items. Unused dimensions are 1.
struct Size3 {
  uint32_t x = 1, y = 1, z = 1;
  friend constexpr bool operator==(const Size3&, const Size3&) = default;
};

// The highest dimension whose size differs from 1; at least 1.
constexpr uint16_t dimensions_of(Size3 grid) noexcept {
  return static_cast<uint16_t>(grid.z != 1 ? 3 : grid.y != 1 ? 2 : 1);
}

struct KernelDispatch {
  HeaderFlags flags{};
  Size3 grid{};
  Size3 workgroup{};                  // each at most 65535
  uint16_t dimensions = 0;            // 0: dimensions_of(grid)
  uint32_t private_segment_size = 0;  // bytes per work-item
  uint32_t group_segment_size = 0;    // bytes per workgroup, static and dynamic
  uint64_t kernel_object = 0;
  void* kernarg_address = nullptr;  // must stay valid and unchanged until the packet has completed
  hsa_signal_t completion_signal{0};
};

struct BarrierAnd {
  HeaderFlags flags{};
  std::array<hsa_signal_t, 5> dependencies{};  // a null handle counts as satisfied
  hsa_signal_t completion_signal{0};
};

struct BarrierOr {
  HeaderFlags flags{};
  std::array<hsa_signal_t, 5> dependencies{};  // a null handle counts as not satisfied
  hsa_signal_t completion_signal{0};
};

// AMD vendor packet (MI200 and later): waits until (signal & mask) <condition> value.
struct BarrierValue {
  HeaderFlags flags{};
  hsa_signal_t signal{0};
  hsa_signal_value_t value = 0;
  hsa_signal_value_t mask = -1;
  hsa_signal_condition_t condition = HSA_SIGNAL_CONDITION_EQ;
  hsa_signal_t completion_signal{0};
};

namespace detail {
// Writes the field at `offset` with one store.
template <class T>
inline void put(void* slot, size_t offset, T value) noexcept {
  std::memcpy(static_cast<std::byte*>(slot) + offset, &value, sizeof value);
}

// Loads eight bytes at once. The compiler joins such a load with no other one.
inline uint64_t load_eight_bytes(const uint32_t* words) noexcept {
  using EightBytes [[gnu::may_alias]] = uint64_t;
  return __atomic_load_n(reinterpret_cast<const EightBytes*>(words), __ATOMIC_RELAXED);
}

// Copies bytes 4..63 at once. For rare packets.
template <class HsaPacket>
inline void store_body(void* slot, const HsaPacket& packet) noexcept {
  static_assert(sizeof(HsaPacket) == kPacketSizeBytes);
  std::memcpy(static_cast<std::byte*>(slot) + 4, reinterpret_cast<const std::byte*>(&packet) + 4,
              kPacketSizeBytes - 4);
}
}  // namespace detail

// Each fill() writes bytes 4..63 of the 64-byte aligned `slot` and returns the first 32 bits for
// publication.
[[nodiscard]] inline uint32_t fill(void* slot, const KernelDispatch& d) noexcept {
  // Writes field by field into the slot. A packet that is built elsewhere and copied fails store
  // forwarding, which costs 30 ns per packet instead of 1.
  using P = hsa_kernel_dispatch_packet_t;
  detail::put(slot, offsetof(P, workgroup_size_x), static_cast<uint16_t>(d.workgroup.x));
  detail::put(slot, offsetof(P, workgroup_size_y), static_cast<uint16_t>(d.workgroup.y));
  detail::put(slot, offsetof(P, workgroup_size_z), static_cast<uint16_t>(d.workgroup.z));
  detail::put(slot, offsetof(P, reserved0), uint16_t{0});
  detail::put(slot, offsetof(P, grid_size_x), d.grid.x);
  detail::put(slot, offsetof(P, grid_size_y), d.grid.y);
  detail::put(slot, offsetof(P, grid_size_z), d.grid.z);
  detail::put(slot, offsetof(P, private_segment_size), d.private_segment_size);
  detail::put(slot, offsetof(P, group_segment_size), d.group_segment_size);
  detail::put(slot, offsetof(P, kernel_object), d.kernel_object);
  detail::put(slot, offsetof(P, kernarg_address), d.kernarg_address);
  detail::put(slot, offsetof(P, reserved2), uint64_t{0});
  detail::put(slot, offsetof(P, completion_signal), d.completion_signal);
  const uint16_t dimensions = d.dimensions != 0 ? d.dimensions : dimensions_of(d.grid);
  return first_word(
      make_header(PacketType::kernel_dispatch, d.flags),
      static_cast<uint16_t>(dimensions << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS));
}

[[nodiscard]] inline uint32_t fill(void* slot, const BarrierAnd& b) noexcept {
  hsa_barrier_and_packet_t p{};
  std::memcpy(p.dep_signal, b.dependencies.data(), sizeof p.dep_signal);
  p.completion_signal = b.completion_signal;
  detail::store_body(slot, p);
  return first_word(make_header(PacketType::barrier_and, b.flags));
}

[[nodiscard]] inline uint32_t fill(void* slot, const BarrierOr& b) noexcept {
  hsa_barrier_or_packet_t p{};
  std::memcpy(p.dep_signal, b.dependencies.data(), sizeof p.dep_signal);
  p.completion_signal = b.completion_signal;
  detail::store_body(slot, p);
  return first_word(make_header(PacketType::barrier_or, b.flags));
}

[[nodiscard]] inline uint32_t fill(void* slot, const BarrierValue& b) noexcept {
  hsa_amd_barrier_value_packet_t p{};
  p.signal = b.signal;
  p.value = b.value;
  p.mask = b.mask;
  p.cond = static_cast<hsa_signal_condition32_t>(b.condition);
  p.completion_signal = b.completion_signal;
  detail::store_body(slot, p);
  return first_word(make_header(PacketType::vendor_specific, b.flags),
                    HSA_AMD_PACKET_TYPE_BARRIER_VALUE);
}

// Copies a raw packet's bytes 4..63 and returns its first 32 bits.
[[nodiscard]] inline uint32_t fill(void* slot, const Packet64& raw) noexcept {
  // Eight bytes at a time: a packet that was just written is in the store buffer, and a load that
  // spans two stores waits until both have reached the cache. The stores before them, to lines that
  // the packet processor has read, take that long, too.
  detail::put(slot, 4, raw.word[1]);
  const auto copy = [&](size_t i) {
    detail::put(slot, 4 * i, detail::load_eight_bytes(&raw.word[i]));
  };
  copy(2), copy(4), copy(6), copy(8), copy(10), copy(12), copy(14);
  return raw.word[0];
}

// store_behind_gate() stores whole packets, headers included, where no packet processor reads yet:
// beyond the write index, and after a slot whose header is INVALID (the gate). A release store of
// that header, followed by the write index, publishes them all (writer.hpp).

// Stores a dispatch packet that differs from `like` only in its kernarg address and group segment
// size. No two of its stores overlap (see fill() above).
inline void store_behind_gate(Packet64& slot, const Packet64& like, const void* kernarg_address,
                              uint32_t group_segment_size) noexcept {
  std::memcpy(&slot.word[0], &like.word[0], 24);
  detail::put(&slot, 24, like.word[6] | uint64_t{group_segment_size} << 32);
  std::memcpy(&slot.word[8], &like.word[8], 8);
  detail::put(&slot, 40, kernarg_address);
  std::memcpy(&slot.word[12], &like.word[12], 16);
}

// Copies the packets.
inline void store_behind_gate(std::span<Packet64> slots, const Packet64* packets) noexcept {
  std::memcpy(slots.data(), packets, slots.size_bytes());
}

// Returns a whole packet, header included, in ordinary memory: for stored command lists, tests and
// text. Never use it on a live ring.
template <class Typed>
Packet64 to_packet(const Typed& typed) noexcept {
  Packet64 packet{};
  packet.word[0] = fill(&packet, typed);
  return packet;
}

// Returns a packet in ordinary memory as its hsa.h type.
template <class HsaPacket>
HsaPacket packet_as(const Packet64& packet) noexcept {
  static_assert(sizeof(HsaPacket) == kPacketSizeBytes);
  HsaPacket out;
  std::memcpy(&out, &packet, sizeof out);
  return out;
}

// ABI facts: HSA Platform System Architecture 1.2, tables 2-4 to 2-8, and hsa_ext_amd.h.
static_assert(sizeof(hsa_kernel_dispatch_packet_t) == kPacketSizeBytes);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, setup) == 2);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, workgroup_size_x) == 4);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, grid_size_x) == 12);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, private_segment_size) == 24);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, group_segment_size) == 28);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, kernel_object) == 32);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, kernarg_address) == 40 && sizeof(void*) == 8);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, reserved2) == 48);
static_assert(offsetof(hsa_kernel_dispatch_packet_t, completion_signal) == 56);
static_assert(sizeof(hsa_barrier_and_packet_t) == kPacketSizeBytes &&
              sizeof(hsa_barrier_or_packet_t) == kPacketSizeBytes);
static_assert(offsetof(hsa_barrier_and_packet_t, dep_signal) == 8 &&
              offsetof(hsa_barrier_or_packet_t, dep_signal) == 8);
static_assert(offsetof(hsa_barrier_and_packet_t, completion_signal) == 56);
static_assert(offsetof(hsa_barrier_or_packet_t, completion_signal) == 56);
static_assert(sizeof(hsa_agent_dispatch_packet_t) == kPacketSizeBytes);
static_assert(offsetof(hsa_agent_dispatch_packet_t, completion_signal) == 56);
static_assert(sizeof(hsa_amd_barrier_value_packet_t) == kPacketSizeBytes);
static_assert(offsetof(hsa_amd_barrier_value_packet_t, signal) == 8);
static_assert(offsetof(hsa_amd_barrier_value_packet_t, value) == 16);
static_assert(offsetof(hsa_amd_barrier_value_packet_t, mask) == 24);
static_assert(offsetof(hsa_amd_barrier_value_packet_t, cond) == 32);
static_assert(offsetof(hsa_amd_barrier_value_packet_t, completion_signal) == 56);
static_assert(HSA_PACKET_HEADER_WIDTH_TYPE == 8 && HSA_PACKET_HEADER_WIDTH_BARRIER == 1);
static_assert(HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE == 2 &&
              HSA_PACKET_HEADER_WIDTH_SCRELEASE_FENCE_SCOPE == 2);
static_assert(kInvalidHeader == 1);

}  // namespace uptempo::aql
