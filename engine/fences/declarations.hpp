// Declaring: the caller's declarations for one packet of a batch, a recording or a plan. Input of
// every fence plan.
//
// Thread safety: that of the batch, recording or plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include <uptempo/aql/packet.hpp>

namespace uptempo {

// Reader of a packet's results before the caller awaits the batch's completion.
enum class Observer : uint8_t {
  none,    // only later packets of the batch
  agent,   // another queue of the same agent
  system,  // the host or another device
};

namespace detail {

// Bytes that a dispatch reads or writes, or an earlier packet that it depends on.
struct AccessRange {
  uintptr_t begin = 0;  // of a dependency: the packet's number
  uintptr_t end = 0;    // one past the last byte; of a dependency: equal to `begin`
  bool writes = false;
  bool is_dependency = false;
  // In a recording: the address argument that the range moves with, plus one; 0: not known.
  uint32_t argument = 0;
  bool operator==(const AccessRange&) const = default;
  // A range that would exceed the end of the address space means all memory from `to` on.
  static constexpr uintptr_t end_of(uintptr_t to, size_t bytes) noexcept {
    return bytes > UINTPTR_MAX - to ? UINTPTR_MAX : to + bytes;
  }
  void move_to(uintptr_t to) noexcept {
    end = end == UINTPTR_MAX ? UINTPTR_MAX : end_of(to, end - begin);
    begin = to;
  }
};

// The caller's declarations for one packet.
struct Declarations {
  // A finished packet of the caller's: its header sets barrier bit and scopes.
  bool is_finished = false;
  // Its accesses are accesses[first_access, first_access + access_count).
  bool declared = false;
  // Declared by the packets that it depends on: it may access any memory.
  bool depends = false;
  bool without_barrier = false;
  bool explicit_fences = false;  // the caller set acquire and release
  aql::FenceScope acquire = aql::FenceScope::agent;
  aql::FenceScope release = aql::FenceScope::agent;
  Observer observer = Observer::none;
  uint32_t first_access = 0;
  uint32_t access_count = 0;

  // Adds one access. If `bytes` is 0, only marks the packet as declared. Appends to `accesses`;
  // if this packet's earlier ones are not at the end, they move there.
  void declare(std::vector<AccessRange>& accesses, const void* data, size_t bytes, bool writes) {
    if (declared && first_access + access_count != accesses.size()) [[unlikely]]
      move_to_end(accesses);
    const uint32_t first = declared ? first_access : static_cast<uint32_t>(accesses.size());
    if (bytes != 0) {
      const auto begin = reinterpret_cast<uintptr_t>(data);
      accesses.push_back({begin, AccessRange::end_of(begin, bytes), writes});
      ++access_count;
    }
    first_access = first;
    declared = true;
  }
  // Adds a range to a packet that has some. Strong guarantee.
  void add(std::vector<AccessRange>& accesses, const AccessRange& range) {
    reserve(accesses, 1);
    if (first_access + access_count != accesses.size()) move_to_end(accesses);
    accesses.push_back(range);
    ++access_count;
  }
  // Makes room, so that the next `more` accesses and dependencies of this packet allocate nothing.
  void reserve(std::vector<AccessRange>& accesses, size_t more) const;
  // Adds dependencies of packet `own` on earlier ones. Throws Error for one that is not earlier;
  // nothing is added then.
  void depend(std::vector<AccessRange>& accesses, uint32_t own, std::span<const size_t> earlier);
  // The memory that it accesses is declared, by ranges or as none.
  bool declares_memory(std::span<const AccessRange> accesses) const noexcept;
  void give_fences(aql::FenceScope its_acquire, aql::FenceScope its_release) noexcept {
    explicit_fences = true;
    acquire = its_acquire;
    release = its_release;
  }
  // By its bytes: a batch compares all of them with those of its last plan.
  bool operator==(const Declarations& other) const noexcept {
    static_assert(std::has_unique_object_representations_v<Declarations>);
    return std::memcmp(this, &other, sizeof *this) == 0;
  }

 private:
  void move_to_end(std::vector<AccessRange>& accesses);
};

}  // namespace detail

// Declarations that the caller may add to an unpublished packet. Base class of CommandRef (a packet
// of a batch), Node (of a recording) and FencePlan::Dispatch (of a plan).
//
// Lifetime: a CommandRef can be declared until its batch gets another packet, is submitted or
// cleared; a Node until replace() or the end of its recording. A later call throws Error, except
// for a recording that no longer exists. So does one while the batch or recording is partly
// published.
//
// `Self` is the derived class. `Ref` names a packet: `packet` is its number, declarations() and
// accesses() return what is declared.
template <class Self, class Ref>
class Declaring {
 public:
  // Declares bytes that the dispatch reads or writes. If one range is declared, all must be: the
  // plan may then omit the barrier bit.
  template <class T>
  Self& reads(const T* data, size_t count) {
    return declare(data, bytes_of(count, sizeof(T)), false);
  }
  template <class T>
  Self& writes(T* data, size_t count) {
    return declare(data, bytes_of(count, sizeof(T)), true);
  }
  // Declares a dispatch that accesses no memory except its arguments.
  Self& touches_nothing() { return declare(nullptr, 0, false); }
  // Declares that the dispatch depends on these earlier dispatches, and on no others: it begins
  // when they are complete and sees what they wrote. For a program that knows the order of its work
  // but not the memory, such as a graph. Pass what dispatch() has returned for them, of the same
  // batch, recording or plan; a CommandRef names its packet until the batch is submitted or
  // cleared. No argument declares that it depends on no packet.
  // The dispatch may access any memory. So it also follows the last packet without declarations,
  // and later ones of that kind follow it. It is not ordered against packets that only declare
  // memory. Throws Error for a packet that is not earlier or of another batch, recording or plan.
  template <class... Others>
  Self& after(const Others&... earlier) requires(
      std::is_base_of_v<Declaring<Others, Ref>, Others>&&...) {
    (require_same(packet_, ref_of(earlier)), ...);
    return after_packets({ref_of(earlier).packet...});
  }
  // The same for packets named by their numbers, finished packets included: the size() of the
  // batch, recording or plan before the packet was added.
  Self& after_packets(std::span<const size_t> packets) {
    packet_.declarations().depend(packet_.accesses(), packet_.packet, packets);
    return self();
  }
  Self& after_packets(std::initializer_list<size_t> packets) {
    return after_packets(std::span(packets.begin(), packets.size()));
  }
  // Makes room for `more` further ranges and dependencies: declaring them allocates nothing. For a
  // caller that declares several, all or none.
  Self& reserve(size_t more) {
    packet_.declarations().reserve(packet_.accesses(), more);
    return self();
  }
  // Declares an observer that reads the results before the caller awaits completion.
  Self& observed_by(Observer observer) {
    packet_.declarations().observer = observer;
    return self();
  }

  // Sets the fences, or removes the barrier bit, as the caller chooses. fence_plan.hpp has the
  // exceptions for the first and last packet.
  Self& fences(aql::FenceScope acquire, aql::FenceScope release) {
    packet_.declarations().give_fences(acquire, release);
    return self();
  }
  Self& without_barrier() {
    packet_.declarations().without_barrier = true;
    return self();
  }

 protected:
  explicit Declaring(const Ref& packet) noexcept : packet_(packet) {}
  Ref packet_;

 private:
  template <class, class>
  friend class Declaring;
  template <class Other>
  static const Ref& ref_of(const Declaring<Other, Ref>& other) noexcept {
    return other.packet_;
  }
  Self& self() noexcept { return static_cast<Self&>(*this); }
  static constexpr size_t bytes_of(size_t count, size_t each) noexcept {
    return count > SIZE_MAX / each ? SIZE_MAX : count * each;
  }
  Self& declare(const void* data, size_t bytes, bool writes) {
    packet_.declarations().declare(packet_.accesses(), data, bytes, writes);
    return self();
  }
};

}  // namespace uptempo
