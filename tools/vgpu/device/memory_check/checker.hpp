// The checker of --check memory: judges accesses of kernels and copies to memory, and knows which
// memory the program has allocated and freed. README.md has the rules.
//
// Thread safety: any thread. find(), and what allocation.hpp does with its result, takes no lock.
// The report is called without the checker's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device/memory_check/allocation.hpp"
#include "device/memory_check/finding.hpp"

namespace uptempo::vgpu::memory_check {

class Checker {
 public:
  using Report = std::function<void(const Finding&)>;

  // Freed memory that is kept from further use, at most.
  static constexpr uint64_t kQuarantineBytes = uint64_t{64} << 20;
  // Freed allocations that are remembered after that.
  static constexpr size_t kRemembered = 16384;

  // `repeated`: reports each finding, not only the first of an instruction and a class.
  // `buffer_ranges`: also reports what the range check of a buffer drops.
  Checker(Report report, bool repeated, bool buffer_ranges = false);

  bool lists_buffer_ranges() const noexcept { return buffer_ranges_; }

  // --- The driver's buffers

  void add_buffer(GpuAddress begin, uint64_t bytes, BufferKind kind) noexcept;
  void remove_buffer(GpuAddress begin) noexcept;
  // Another process may store to the allocations in the buffer: they count as initialised.
  void share_buffer(GpuAddress begin) noexcept;

  // --- The program's allocations

  struct Request {
    GpuAddress begin = 0;
    uint64_t bytes = 0;
    uint64_t reserved_bytes = 0;  // with the redzone
    HostStackId stack = 0;
    bool quarantined = true;  // when it is freed
  };
  // Returns whether it is device memory that the host can store to (host_stores.hpp).
  bool allocated(const Request& request) noexcept;

  struct Released {
    GpuAddress begin = 0;
    uint64_t bytes = 0;
    bool watched = false;  // its pages may be protected
  };
  struct Freed {
    enum class What : uint8_t { unknown, twice, held, passed };
    What what = What::unknown;
    // To be returned to ROCr now; with `passed` the allocation itself, last.
    std::vector<Released> release;
  };
  // The program frees the allocation that begins there. Reports dispatches that use it.
  Freed freed(GpuAddress begin, HostStackId stack);
  // The memory that the program is about to free with HIP, as far as it is known.
  struct HipFree {
    uint64_t number = 0;          // of the allocation; 0: none has the address
    std::optional<Buffer> freed;  // the program has freed it before
  };
  enum class HipResult : uint8_t { freed, unknown_pointer, other };
  HipFree before_hip_free(GpuAddress address) const;
  // HIP has discarded a device's state: what the program has allocated is no leak.
  void hip_reset(HostStackId stack);
  // HIP has returned. What it keeps although it was freed is no leak, and must not be used again.
  // Memory of HIP's own, such as its pools', is left alone: `is_by_program` tells whether calls
  // allocated for the program. Freed memory that HIP does not know was freed twice. Meanwhile the
  // address may have another allocation. HIP also accepts addresses inside an allocation.
  void hip_freed(GpuAddress address, const HipFree& before, HipResult result, HostStackId stack,
                 const std::function<bool(HostStackId)>& is_by_program);
  // The allocation that holds the address will be freed without quarantine.
  void expose(GpuAddress address) noexcept;
  // Everything that is in quarantine leaves it.
  std::vector<Released> release_all();
  // The allocation that begins there and has not been returned to ROCr, as it was asked for.
  std::optional<Request> find_request(GpuAddress begin) const;
  // Whether the address is in memory that the program has freed and the quarantine holds.
  bool is_held(GpuAddress address) const noexcept;
  Allocation* find(GpuAddress address) const noexcept { return map_.find(address); }

  // --- Dispatches and copies

  // A word of the kernargs that may be an address.
  struct Argument {
    uint64_t value = 0;
    uint32_t offset = 0;  // bytes from the start of the kernargs
    Use use = Use::unknown;
  };
  // Returns the dispatch's number, which its accesses leave in last_user.
  uint64_t begin(const Packet& packet, const std::vector<Argument>& arguments);
  void end(uint64_t number);

  // Completes the finding with the nearest allocation and reports it, unless the memory is a
  // buffer of the driver's own. Judges again what check() did not find fine.
  void found(Finding finding, Verdict verdict);
  // A finding that needs no buffer: in LDS, or of a buffer's range check.
  void found(Finding finding);

  struct Range {
    GpuAddress address = 0;
    uint64_t bytes = 0;
  };
  // An engine has copied. Without a source, the destination has been filled.
  void copied(const Packet& packet, std::optional<Range> source, Range destination);

  // --- The end

  // Reports what is not freed, once for each place. `place_of`: the place that a stack stands for;
  // nothing: the program did not make the allocation.
  void report_leaks(const std::function<std::optional<std::string>(HostStackId)>& place_of);

  // Findings that were not reported, because the same place had one before: the same instruction;
  // for memory that was freed wrongly, the same calls; for a copy, the same address and allocation.
  uint64_t repeated() const;
  uint64_t unrecorded() const noexcept { return unrecorded_.load(std::memory_order_relaxed); }

 private:
  struct Running {
    uint64_t number = 0;
    Packet packet;
    uint64_t last_allocation = 0;  // before it began
    // The allocations' numbers, since records are used again.
    std::vector<std::pair<uint64_t, Argument>> held;
    // How it uses the allocation; nothing: it does not.
    std::optional<Argument> use_of(const Allocation& allocation) const noexcept;
  };
  using Place = std::array<uint64_t, 4>;
  // These need the lock.
  Allocation* buffer_at(GpuAddress address) const;
  Allocation* allocation_at(GpuAddress begin) const;
  Allocation* allocation_with(GpuAddress address) const noexcept;
  void forget(Allocation& allocation);
  std::vector<Finding> uses_of(const Allocation& freed);
  void let_go(Allocation& allocation);
  std::vector<Released> shrink_quarantine(uint64_t limit_bytes);
  std::optional<Buffer> nearest(GpuAddress address, uint64_t bytes) const;
  static Place place_of(const Finding& finding) noexcept;
  bool counts_as_new(const Finding& finding);

  void hip_keeps(GpuAddress address, uint64_t number, HostStackId stack,
                 const std::function<bool(HostStackId)>& is_by_program);
  void check_copy(const Packet& packet, Range range, bool writes);

  const Report report_;
  const bool repeated_, buffer_ranges_;
  AllocationMap map_;
  std::atomic<uint64_t> unrecorded_{0};  // allocations that were not recorded for lack of memory

  mutable std::mutex mutex_;
  std::map<GpuAddress, Allocation*> buffers_;  // of the driver
  std::map<GpuAddress, Allocation*> program_;  // live, held, and gone where nothing replaced them
  std::deque<Allocation*> quarantine_;
  uint64_t quarantine_bytes_ = 0;
  std::deque<std::pair<Allocation*, uint64_t>> remembered_;  // gone, with their numbers
  uint64_t last_allocation_ = 0;
  std::vector<Running> running_;
  std::set<std::tuple<Class, Place, std::string>> reported_;
  uint64_t repeated_count_ = 0;
};

}  // namespace uptempo::vgpu::memory_check
