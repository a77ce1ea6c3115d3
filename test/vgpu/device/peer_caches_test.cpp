// Caches of two GPUs over memory of one of them: who sees whose stores, after which fences.
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "device/caches/incoherent.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

namespace {

enum class Link { coherent, plain };

// A page of memory of `owner`, which `peer` reaches over a link.
struct Machine {
  explicit Machine(std::string_view target, Link link = Link::coherent,
                   MemoryKind owner_kind = MemoryKind::device_local,
                   MemoryKind peer_kind = MemoryKind::peer_local)
      : device(*find_device_description(target)),
        owner{Caches(device, {.seed = 3}), mapping(owner_kind, nullptr)},
        peer{Caches(device, {.seed = 4}),
             mapping(peer_kind, link == Link::coherent ? &owner.caches.probes() : nullptr)} {}

  struct Gpu {
    Caches caches;
    Mapping mapping;

    uint32_t load(uint64_t offset, AccessScope scope = AccessScope::wave, uint32_t unit = 0) {
      uint32_t value;
      caches.load(unit, mapping, mapping.begin + offset,
                  std::as_writable_bytes(std::span(&value, 1)), scope);
      return value;
    }
    void store(uint64_t offset, uint32_t value, AccessScope scope = AccessScope::wave) {
      caches.store(0, mapping, mapping.begin + offset, std::as_bytes(std::span(&value, 1)), scope);
    }
  };

  Mapping mapping(MemoryKind kind, Probes* probes) {
    return {.begin = 0x100000,
            .end = 0x100000 + memory.size(),
            .host = memory.data(),
            .kind = kind,
            .probes = probes};
  }
  uint32_t in_memory(uint64_t offset) const {
    uint32_t value;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }

  alignas(4096) std::array<std::byte, 4096> memory{};
  const DeviceDescription& device;
  Gpu owner, peer;
};

constexpr const char* kTargets[] = {"gfx906", "gfx908", "gfx90a", "gfx942"};

}  // namespace

TEST_CASE("a peer sees the owner's store after a system release and a system acquire", "[peers]") {
  for (const char* target : kTargets) {
    CAPTURE(target);
    Machine machine(target);
    CHECK(machine.peer.load(16) == 0);
    machine.owner.store(16, 5);
    machine.owner.caches.release(FenceScope::system);
    CHECK(machine.in_memory(16) == 5);
    CHECK(machine.peer.load(16) == 0);  // from its vector L1
    machine.peer.caches.acquire(FenceScope::system);
    CHECK(machine.peer.load(16) == 5);
  }
}

TEST_CASE("without a system release the owner's store stays in its L2", "[peers]") {
  for (const char* target : {"gfx906", "gfx908", "gfx90a"})
    for (const FenceScope scope : {FenceScope::none, FenceScope::agent}) {
      CAPTURE(target, scope_name(scope));
      Machine machine(target);
      machine.owner.store(16, 5);
      machine.owner.caches.release(scope);
      machine.peer.caches.acquire(FenceScope::system);
      CHECK(machine.peer.load(16) == 0);
    }
}

TEST_CASE("without a system acquire a peer keeps its old copy in L2", "[peers]") {
  for (const char* target : {"gfx906", "gfx908", "gfx90a"}) {
    CAPTURE(target);
    Machine machine(target);
    CHECK(machine.peer.load(16) == 0);
    machine.owner.store(16, 5);
    machine.owner.caches.release(FenceScope::system);
    machine.peer.caches.acquire(FenceScope::agent);
    CHECK(machine.peer.load(16) == 0);
    CHECK(machine.peer.load(16, AccessScope::agent) == 0);  // a load with GLC reads L2
  }
}

TEST_CASE("a peer's store reaches the owner after a system release of the peer", "[peers]") {
  for (const char* target : kTargets)
    for (const Link link : {Link::coherent, Link::plain}) {
      CAPTURE(target, link == Link::coherent);
      Machine machine(target, link);
      CHECK(machine.owner.load(16) == 0);
      machine.peer.store(16, 5);
      CHECK(machine.in_memory(16) == 0);
      machine.owner.caches.acquire(FenceScope::system);
      CHECK(machine.owner.load(16) == 0);
      machine.peer.caches.release(FenceScope::system);
      CHECK(machine.in_memory(16) == 5);
      machine.owner.caches.acquire(FenceScope::system);
      CHECK(machine.owner.load(16) == 5);
    }
}

TEST_CASE("a coherent write of a peer removes the owner's copy from L2, not from L1", "[peers]") {
  for (const char* target : {"gfx908", "gfx90a"})
    for (const Link link : {Link::coherent, Link::plain}) {
      CAPTURE(target, link == Link::coherent);
      Machine machine(target, link);
      CHECK(machine.owner.load(16) == 0);
      CHECK(machine.owner.load(512) == 0);
      machine.peer.store(16, 5);
      machine.peer.caches.release(FenceScope::system);
      CHECK(machine.owner.load(16) == 0);  // from its vector L1
      machine.owner.caches.acquire(FenceScope::agent);
      CHECK(machine.owner.load(16) == (link == Link::coherent ? 5 : 0));
      // Copies of other lines stay.
      const uint32_t value = 9;
      std::memcpy(machine.memory.data() + 512, &value, sizeof value);
      CHECK(machine.owner.load(512) == 0);
    }
}

TEST_CASE("an L2 with a store of its own keeps it when a peer writes elsewhere in the line",
          "[peers]") {
  Machine machine("gfx90a");
  machine.owner.store(16, 5);
  machine.peer.store(20, 6);
  machine.peer.caches.release(FenceScope::system);
  CHECK(machine.owner.load(16, AccessScope::agent) == 5);
  CHECK(machine.owner.load(20, AccessScope::agent) == 6);
  CHECK(machine.in_memory(16) == 0);
  machine.owner.caches.release(FenceScope::system);
  CHECK(machine.in_memory(16) == 5);
  CHECK(machine.in_memory(20) == 6);
}

TEST_CASE("more probes than can be kept remove every clean copy", "[peers]") {
  Machine machine("gfx90a");
  machine.owner.store(0, 4);
  CHECK(machine.owner.load(512) == 0);
  const uint32_t value = 9;
  std::memcpy(machine.memory.data() + 512, &value, sizeof value);
  for (int i = 0; i < 10000; ++i)
    machine.owner.caches.probes().announce({machine.memory.data() + 1024, 64});
  CHECK(machine.owner.load(512, AccessScope::agent) == 9);
  CHECK(machine.owner.load(0) == 4);
  CHECK(machine.in_memory(0) == 0);
}

TEST_CASE("fine-grained memory of a peer is in no L2 before gfx942", "[peers]") {
  for (const char* target : {"gfx906", "gfx908", "gfx90a"}) {
    CAPTURE(target);
    Machine machine(target, Link::coherent, MemoryKind::device_local_fine,
                    MemoryKind::peer_local_fine);
    CHECK(machine.owner.load(16) == 0);
    machine.peer.store(16, 5);
    CHECK(machine.in_memory(16) == 5);
    machine.owner.caches.acquire(FenceScope::agent);
    CHECK(machine.owner.load(16) == 5);
  }
}

TEST_CASE("on gfx942 L2s meet in a peer's memory with fences of agent scope", "[peers]") {
  Machine machine("gfx942", Link::coherent, MemoryKind::device_local_fine,
                  MemoryKind::peer_local_fine);
  const uint32_t other_xcd = machine.device.units_per_xcd();
  CHECK(machine.peer.load(16, AccessScope::wave, other_xcd) == 0);
  machine.peer.store(16, 5);
  CHECK(machine.in_memory(16) == 0);
  machine.peer.caches.release(FenceScope::agent);
  CHECK(machine.in_memory(16) == 5);
  CHECK(machine.peer.load(16, AccessScope::wave, other_xcd) == 0);
  machine.peer.caches.acquire(FenceScope::agent);
  CHECK(machine.peer.load(16, AccessScope::wave, other_xcd) == 5);
  // Stores and loads of agent scope pass the L2s.
  machine.peer.store(16, 6, AccessScope::agent);
  CHECK(machine.in_memory(16) == 6);
  CHECK(machine.peer.load(16, AccessScope::wave, other_xcd) == 5);
  CHECK(machine.peer.load(16, AccessScope::agent, other_xcd) == 6);
}
