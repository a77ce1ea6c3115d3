// Holds, for every byte of GPU-visible memory, the last write and the reads since then.
//
// Stored only for touched pages, as runs of bytes with the same history. Unobserved contents
// (memory before its first access) have no history and conflict with nothing.
//
// Thread safety: none; the checker's lock guards it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device/fences/page_accesses.hpp"
#include "device/fences/rules.hpp"
#include "device/host/host_events.hpp"

namespace uptempo::vgpu::fences {

// How often an agent's caches have been invalidated. A line read since the last invalidation may
// still be present.
struct CacheAges {
  uint32_t l1 = 1;
  uint32_t l2 = 1;
};
using AgentAges = std::vector<CacheAges>;  // by agent

// How a task reaches a page.
struct Reach {
  MemoryType type = MemoryType::uncached;  // as the task's agent has mapped it; dispatches only
  bool probes = false;                     // of its writes, see Residency
};

class Shadow {
 public:
  // Called for each conflict: `bytes` bytes from `address` on, all of the same pair of tasks.
  using Report = std::function<void(const Violation&, Finding::Conflict, const TaskPtr& writer,
                                    const TaskPtr& reader, GpuAddress address, uint32_t bytes)>;
  // Called for tasks that `task` met at synchronising accesses without being ordered after them.
  using Met = std::function<void(const TaskPtr&)>;

  // The accesses of a dispatch. Call `meet` for all of its pages first, then `apply`.
  void meet(const Task& task, GpuAddress page, const PageAccesses& accesses, const Met& met) const;
  void apply(const TaskPtr& task, GpuAddress page, const PageAccesses& accesses, Reach reach,
             const AgentAges& ages, const Report& report);

  // The accesses of a copy engine or the host.
  void read(const TaskPtr& task, GpuAddress page, const PageMask& bytes, const Report& report);
  void write(const TaskPtr& task, GpuAddress page, const PageMask& bytes, Reach reach,
             const AgentAges& ages, const Report& report);

  // Visits the remaining writes of each task in [begin, end).
  void for_each_write(
      GpuAddress begin, GpuAddress end,
      const std::function<void(const TaskPtr& writer, bool synchronising, MemoryType type,
                               GpuAddress address, uint32_t bytes)>& visit) const;
  void forget(GpuAddress begin, GpuAddress end);
  // An unobserved writer may have written these bytes.
  void forget_bytes(GpuAddress page, const PageMask& bytes);

  // Bytes on which nothing was reported, because two unordered tasks were assumed to have
  // synchronised at an access. A byte counts once per occurrence.
  uint64_t presumed_bytes() const noexcept { return presumed_bytes_; }

 private:
  struct Reader {
    TaskPtr task;
    bool synchronising = false;
  };
  // The history of a byte. Immutable, shared by all runs that have it.
  struct History {
    TaskPtr writer;  // null: not observed
    bool written_synchronising = false;
    Residency at_write;
    std::vector<Reader> readers;  // since the write; no reader is ordered after another
  };
  using HistoryPtr = std::shared_ptr<const History>;
  struct Segment {
    uint16_t begin;
    HistoryPtr history;  // null: none
  };
  // Age of each line's last use by the caches of an agent; 0: never.
  struct LineAges {
    std::array<uint32_t, kLinesPerPage> vector_l1{}, scalar_l1{}, l2{};
  };
  struct Page {
    // the first begins at 0; each ends where the next begins
    std::vector<Segment> segments{{0, nullptr}};
    LineAges first_agent;
    std::vector<LineAges> other_agents;  // of agents 1, 2, ...; none beyond its end has used it
    bool synchronising = false;          // some history has a synchronising access

    using Segments = std::vector<Segment>::iterator;
    std::pair<Segments, Segments> segments_of(uint32_t begin, uint32_t end);
    LineAges& ages_of(uint32_t agent);
    // The caches that may hold the line.
    Residency holders(uint32_t line, const AgentAges& ages) const noexcept;
  };
  static bool is_overlapping(const History* history, const Task& reader);
  // The properties of one access on which a transition depends. Neither read nor written: the line
  // was in a cache.
  struct Kind {
    bool read, written, synchronising;
    Paths paths;
    Residency residency;
    bool operator==(const Kind&) const = default;
  };
  struct Piece {
    uint16_t begin, end;
    Kind kind;
  };
  class Transitions;

  void apply(const TaskPtr& task, GpuAddress address, Page& page, const std::vector<Piece>& pieces,
             MemoryType type, const Report& report);
  Page& page(GpuAddress address);

  std::map<GpuAddress, std::unique_ptr<Page>> pages_;
  std::vector<Piece> pieces_, lines_;  // scratch of one call, kept to reuse the memory
  std::vector<Segment> after_;
  uint64_t presumed_bytes_ = 0;
};

}  // namespace uptempo::vgpu::fences
