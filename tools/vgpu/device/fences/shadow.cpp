#include "device/fences/shadow.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace uptempo::vgpu::fences {
namespace {

constexpr uint64_t kAllBits = ~uint64_t{0};

// Visits the bytes of a 64-byte line that `of` selects, in runs within which each mask is constant.
// Calls visit(first, last + 1).
template <size_t Count, typename Visit>
void for_runs(uint64_t of, const std::array<uint64_t, Count>& masks, Visit visit) {
  while (of != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(of));
    uint64_t same = of;
    for (const uint64_t mask : masks) same &= (mask >> first & 1) != 0 ? mask : ~mask;
    const auto length = static_cast<unsigned>(std::countr_one(same >> first));
    visit(first, first + length);
    of &= first + length == 64 ? 0 : kAllBits << (first + length);
  }
}

uint8_t bit_of(uint32_t agent) noexcept { return static_cast<uint8_t>(1u << agent); }

// Like for_runs(), for a whole page; runs may cross lines.
template <typename Visit>
void for_bytes(const PageMask& bytes, Visit visit) {
  for (uint32_t end = 0, begin = find_byte(bytes, 0, true); begin < kPageBytes;
       begin = find_byte(bytes, end, true)) {
    end = find_byte(bytes, begin, false);
    visit(static_cast<uint16_t>(begin), static_cast<uint16_t>(end));
  }
}

}  // namespace

// Returns whether another task made the last write and may still have been writing when `reader`
// began.
bool Shadow::is_overlapping(const History* history, const Task& reader) {
  return history != nullptr && history->writer != nullptr && history->writer->id != reader.id &&
         !reader.view.ordered.contains(history->writer->id);
}

// Computes the history after a task's access from the history before it. Most bytes of a task share
// a few histories, so each is judged once.
class Shadow::Transitions {
 public:
  Transitions(const TaskPtr& task, MemoryType type, const Report& report, uint64_t& presumed_bytes)
      : task_(task), type_(type), report_(report), presumed_bytes_(presumed_bytes) {}

  HistoryPtr operator()(const HistoryPtr& before, const Kind& kind, GpuAddress address,
                        uint32_t bytes) {
    for (const Done& done : done_) {
      if (done.before != before || done.kind != kind) continue;
      record(done, address, bytes);
      return done.after;
    }
    Done done{before, kind, nullptr, {}, false};
    if (before != nullptr) judge(*before, kind, done);
    done.after = next(before, kind);
    record(done, address, bytes);
    if (done_.size() == kRemembered) done_.clear();
    done_.push_back(done);
    return done.after;
  }

 private:
  static constexpr size_t kRemembered = 64;
  struct Conflict {
    Violation violation;
    Finding::Conflict conflict;
    TaskPtr writer, reader;
  };
  struct Done {
    HistoryPtr before;
    Kind kind;
    HistoryPtr after;
    std::vector<Conflict> conflicts;
    bool presumed;  // a conflict was not reported: the tasks may have synchronised
  };

  bool is_self(const TaskPtr& other) const { return other->id == task_->id; }

  void judge(const History& before, const Kind& kind, Done& done) const {
    const TaskPtr& writer = before.writer;
    if (writer != nullptr && !is_self(writer)) {
      const auto add = [&](const std::optional<Violation>& found, Finding::Conflict conflict) {
        if (!found) return;
        if (before.written_synchronising || kind.synchronising) {
          if (found->what == Finding::Class::unordered && may_meet(*writer)) {
            done.presumed = true;
            return;
          }
          // The accesses are ordered, so fences count. No L1 holds what atomics read and write, but
          // L2 may hide it from the host and the copy engines.
          if (found->what != Finding::Class::unordered && !found->possible_on_target &&
              (kind.synchronising || task_->kind != Task::Kind::dispatch))
            return;
        }
        done.conflicts.push_back({*found, conflict, writer, task_});
      };
      // With several L2s, atomics operate in memory.
      Residency at_write = before.at_write;
      if (before.written_synchronising && l2s_differ(at_write.type))
        at_write.type = MemoryType::coherent;
      std::optional<Violation> found;
      if (kind.read) {
        found = judge_read(*writer, at_write, *task_,
                           kind.synchronising ? Paths{.l2s = kind.paths.l2s} : kind.paths, type_);
        add(found, Finding::Conflict::read_after_write);
      }
      if (kind.written && !found)
        add(judge_overwrite(*writer, at_write, *task_, kind.paths),
            Finding::Conflict::write_after_write);
    }
    if (!kind.written) return;
    for (const Reader& reader : before.readers) {
      if (is_self(reader.task)) continue;
      const auto found = judge_write_after_read(*reader.task, *task_);
      if (!found) continue;
      if ((reader.synchronising || kind.synchronising) && may_meet(*reader.task)) {
        done.presumed = true;
      } else {
        done.conflicts.push_back({*found, Finding::Conflict::write_after_read, task_, reader.task});
      }
    }
  }

  // Dispatches and the host can synchronise by atomics; a copy engine cannot.
  bool may_meet(const Task& other) const {
    return other.kind != Task::Kind::copy && task_->kind != Task::Kind::copy;
  }

  HistoryPtr next(const HistoryPtr& before, const Kind& kind) const {
    if (!kind.read && !kind.written) {
      if (!is_overlapping(before.get(), *task_)) return before;
      auto after = std::make_shared<History>(*before);
      const uint8_t own = bit_of(task_->agent);
      if (kind.paths.vector) after->at_write.vector_l1 |= own;
      if (kind.paths.scalar) after->at_write.scalar_l1 |= own;
      after->at_write.l2 |= own;
      return after;
    }
    // A write replaces the history, so separate runs get the same new history.
    if (kind.written)
      for (const Done& done : done_)
        if (done.kind == kind) return done.after;
    auto after = std::make_shared<History>();
    if (kind.written) {
      after->writer = task_;
      after->written_synchronising = kind.synchronising;
      after->at_write = kind.residency;
      return after;
    }
    if (before != nullptr) {
      *after = *before;
      // Drop earlier readers that this task comes after: a task ordered after this read is also
      // ordered after theirs. Order from inside the kernel does not count, because later tasks do
      // not inherit it.
      std::erase_if(after->readers, [&](const Reader& reader) {
        return task_->ordered_by_packets().contains(reader.task->id) || is_self(reader.task);
      });
    }
    after->readers.push_back({task_, kind.synchronising});
    return after;
  }

  void record(const Done& done, GpuAddress address, uint32_t bytes) const {
    if (done.presumed) presumed_bytes_ += bytes;
    for (const Conflict& conflict : done.conflicts)
      report_(conflict.violation, conflict.conflict, conflict.writer, conflict.reader, address,
              bytes);
  }

  const TaskPtr& task_;
  const MemoryType type_;
  const Report& report_;
  uint64_t& presumed_bytes_;
  std::vector<Done> done_;
};

// Returns the segments that overlap the bytes [begin, end).
auto Shadow::Page::segments_of(uint32_t begin, uint32_t end) -> std::pair<Segments, Segments> {
  const auto begins_behind = [](uint32_t byte, const Segment& segment) {
    return byte < segment.begin;
  };
  const auto behind = std::upper_bound(segments.begin(), segments.end(), begin, begins_behind);
  return {std::prev(behind), std::upper_bound(behind, segments.end(), end - 1, begins_behind)};
}

Shadow::LineAges& Shadow::Page::ages_of(uint32_t agent) {
  if (agent == 0) return first_agent;
  if (agent > other_agents.size()) other_agents.resize(agent);
  return other_agents[agent - 1];
}

Residency Shadow::Page::holders(uint32_t line, const AgentAges& ages) const noexcept {
  static_assert(kLineBytes == 64);
  // A line of L2 is two of these lines.
  const uint32_t neighbour = line ^ (kL2LineBytes / kLineBytes - 1);
  Residency found;
  const auto add = [&](const LineAges& used, uint32_t agent) {
    const CacheAges& age = ages[agent];
    if (used.vector_l1[line] == age.l1) found.vector_l1 |= bit_of(agent);
    if (used.scalar_l1[line] == age.l1) found.scalar_l1 |= bit_of(agent);
    if (used.l2[line] == age.l2 || used.l2[neighbour] == age.l2) found.l2 |= bit_of(agent);
  };
  add(first_agent, 0);
  for (uint32_t i = 0; i < other_agents.size(); ++i) add(other_agents[i], i + 1);
  return found;
}

Shadow::Page& Shadow::page(GpuAddress address) {
  auto& entry = pages_[page_of(address)];
  if (entry == nullptr) entry = std::make_unique<Page>();
  return *entry;
}

void Shadow::meet(const Task& task, GpuAddress address, const PageAccesses& accesses,
                  const Met& met) const {
  const auto found = pages_.find(address);
  if (found == pages_.end()) return;
  const Page& page = *found->second;
  if (!page.synchronising && accesses.synchronising == PageMask{}) return;
  const auto unordered = [&](const TaskPtr& other) {
    return other->id != task.id && other->kind != Task::Kind::copy &&
           !task.view.ordered.contains(other->id);
  };
  for (size_t at = 0; at < page.segments.size(); ++at) {
    const HistoryPtr& history = page.segments[at].history;
    if (history == nullptr) continue;
    const uint32_t begin = page.segments[at].begin;
    const uint32_t end = at + 1 < page.segments.size() ? page.segments[at + 1].begin : kPageBytes;
    bool read = false, written = false, synchronising = false, written_synchronising = false;
    for (uint32_t byte = begin; byte < end;) {
      const uint32_t count = std::min(end - byte, 64 - byte % 64);
      const uint64_t mask = line_bits(byte % 64, count);
      read = read || (accesses.read[byte / 64] & mask) != 0;
      written = written || (accesses.written[byte / 64] & mask) != 0;
      const uint64_t past_l1 = accesses.synchronising[byte / 64] & mask;
      synchronising = synchronising || past_l1 != 0;
      written_synchronising = written_synchronising || (accesses.written[byte / 64] & past_l1) != 0;
      byte += count;
    }
    if (!read && !written) continue;
    if (history->writer != nullptr && (synchronising || history->written_synchronising) &&
        unordered(history->writer))
      met(history->writer);
    if (!written) continue;
    for (const Reader& reader : history->readers)
      if ((written_synchronising || reader.synchronising) && unordered(reader.task))
        met(reader.task);
  }
}

void Shadow::apply(const TaskPtr& task, GpuAddress address, const PageAccesses& accesses,
                   Reach reach, const AgentAges& ages, const Report& report) {
  Page& to = page(address);
  LineAges& own = to.ages_of(task->agent);
  const CacheAges& now = ages[task->agent];
  const uint8_t bit = bit_of(task->agent);
  std::vector<Piece>&pieces = pieces_, &lines = lines_;
  pieces.clear();
  lines.clear();
  uint64_t touched = accesses.vector_lines;  // a bit per line: accessed, or held beside another
  for (uint32_t line = 0; line < kLinesPerPage; ++line)
    touched |= uint64_t{(accesses.read[line] | accesses.written[line]) != 0} << line;
  for (; touched != 0; touched &= touched - 1) {
    const auto line = static_cast<uint32_t>(std::countr_zero(touched));
    const uint64_t read = accesses.read[line], written = accesses.written[line],
                   synchronising = accesses.synchronising[line];
    to.synchronising = to.synchronising || synchronising != 0;
    const bool vector = (accesses.vector_lines >> line & 1) != 0;
    const bool scalar = (accesses.scalar_lines >> line & 1) != 0;
    // Another vector L1 holds old bytes if it held the line before, or if another workgroup of this
    // dispatch read the line.
    Residency residency = to.holders(line, ages);
    if (vector && (accesses.shared_lines >> line & 1) != 0) residency.vector_l1 |= bit;
    if (scalar) residency.scalar_l1 |= bit;
    residency.l2 &= static_cast<uint8_t>(~bit);
    residency.l2s = accesses.written_l2s[line];
    residency.type = reach.type;
    residency.probes = reach.probes;
    for_runs(read | written, std::array{read, written, synchronising},
             [&](unsigned first, unsigned end) {
               const auto has = [first](uint64_t mask) { return (mask >> first & 1) != 0; };
               const auto l2s =
                   static_cast<uint8_t>((has(read) ? accesses.read_l2s[line] : 0) |
                                        (has(written) ? accesses.written_l2s[line] : 0));
               const Kind kind{
                   has(read), has(written), has(synchronising), {vector, scalar, l2s}, residency};
               const auto begin = static_cast<uint16_t>(line * kLineBytes + first);
               const auto stop = static_cast<uint16_t>(line * kLineBytes + end);
               if (!pieces.empty() && pieces.back().end == begin && pieces.back().kind == kind) {
                 pieces.back().end = stop;
               } else {
                 pieces.push_back({begin, stop, kind});
               }
             });
    if (vector || scalar)
      lines.push_back({static_cast<uint16_t>(line * kLineBytes),
                       static_cast<uint16_t>((line + 1) * kLineBytes),
                       {false, false, false, {vector, scalar}, {}}});
    if (vector) own.vector_l1[line] = now.l1;
    if (scalar) own.scalar_l1[line] = now.l1;
    own.l2[line] = now.l2;
  }
  apply(task, address, to, pieces, reach.type, report);
  if (lines.empty()) return;
  // The task may have read a line before another task wrote any byte of it.
  const auto [first, last] = to.segments_of(lines.front().begin, lines.back().end);
  if (std::any_of(first, last, [&](const Segment& segment) {
        return is_overlapping(segment.history.get(), *task);
      }))
    apply(task, address, to, lines, reach.type, report);
}

void Shadow::apply(const TaskPtr& task, GpuAddress address, Page& page,
                   const std::vector<Piece>& pieces, MemoryType type, const Report& report) {
  if (pieces.empty()) return;
  Transitions transition(task, type, report, presumed_bytes_);
  // Rebuild only the segments from the first to the last piece: a page of kernarg blocks has
  // dozens.
  std::vector<Segment>& segments = page.segments;
  auto [first, last] = page.segments_of(pieces.front().begin, pieces.back().end);
  std::vector<Segment>& after = after_;
  after.clear();
  const auto append = [&](uint32_t begin, const HistoryPtr& history) {
    if (after.empty() || after.back().history != history)
      after.push_back({static_cast<uint16_t>(begin), history});
  };
  size_t piece = 0;
  for (auto at = first; at != last; ++at) {
    const HistoryPtr& history = at->history;
    uint32_t byte = at->begin;
    const uint32_t end = std::next(at) != segments.end() ? std::next(at)->begin : kPageBytes;
    while (byte < end) {
      while (piece < pieces.size() && pieces[piece].end <= byte) ++piece;
      if (piece == pieces.size() || pieces[piece].begin >= end) {
        append(byte, history);
        break;
      }
      if (pieces[piece].begin > byte) {
        append(byte, history);
        byte = pieces[piece].begin;
      }
      const uint32_t stop = std::min<uint32_t>(end, pieces[piece].end);
      append(byte, transition(history, pieces[piece].kind, address + byte, stop - byte));
      byte = stop;
    }
  }
  // Merge neighbours with the same history.
  auto from = after.begin();
  if (first != segments.begin() && std::prev(first)->history == from->history) ++from;
  if (last != segments.end() && after.back().history == last->history) ++last;
  const auto kept = from + std::min(after.end() - from, last - first);
  const auto gap = segments.erase(std::move(from, kept, first), last);
  segments.insert(gap, std::move_iterator(kept), std::move_iterator(after.end()));
}

void Shadow::read(const TaskPtr& task, GpuAddress address, const PageMask& bytes,
                  const Report& report) {
  std::vector<Piece>& pieces = pieces_;
  pieces.clear();
  for_bytes(bytes, [&](uint16_t begin, uint16_t end) {
    pieces.push_back({begin, end, {true, false, false, {}, {}}});
  });
  apply(task, address, page(address), pieces, {}, report);
}

void Shadow::write(const TaskPtr& task, GpuAddress address, const PageMask& bytes, Reach reach,
                   const AgentAges& ages, const Report& report) {
  Page& to = page(address);
  std::vector<Piece>& pieces = pieces_;
  pieces.clear();
  for (uint32_t line = 0; line < kLinesPerPage; ++line) {
    if (bytes[line] == 0) continue;
    Kind kind{false, true, false, {}, to.holders(line, ages)};
    kind.residency.probes = reach.probes;
    for_runs(bytes[line], std::array{bytes[line]}, [&](unsigned first, unsigned end) {
      const auto begin = static_cast<uint16_t>(line * kLineBytes + first);
      const auto stop = static_cast<uint16_t>(line * kLineBytes + end);
      if (!pieces.empty() && pieces.back().end == begin && pieces.back().kind == kind) {
        pieces.back().end = stop;
      } else {
        pieces.push_back({begin, stop, kind});
      }
    });
  }
  apply(task, page_of(address), to, pieces, {}, report);
}

void Shadow::for_each_write(GpuAddress begin, GpuAddress end,
                            const std::function<void(const TaskPtr&, bool, MemoryType, GpuAddress,
                                                     uint32_t)>& visit) const {
  for (auto page = pages_.lower_bound(page_of(begin)); page != pages_.end() && page->first < end;
       ++page) {
    const auto& segments = page->second->segments;
    for (size_t at = 0; at < segments.size(); ++at) {
      const History* const history = segments[at].history.get();
      if (history == nullptr || history->writer == nullptr) continue;
      const uint32_t stop = at + 1 < segments.size() ? segments[at + 1].begin : kPageBytes;
      const GpuAddress first = std::max(begin, page->first + segments[at].begin);
      const GpuAddress last = std::min(end, page->first + stop);
      if (first < last)
        visit(history->writer, history->written_synchronising, history->at_write.type, first,
              static_cast<uint32_t>(last - first));
    }
  }
}

void Shadow::forget_bytes(GpuAddress address, const PageMask& bytes) {
  const auto found = pages_.find(address);
  if (found == pages_.end()) return;
  const std::vector<Segment> before = std::move(found->second->segments);
  std::vector<Segment>& after = found->second->segments;
  after.clear();
  const auto append = [&after](uint32_t at, const HistoryPtr& history) {
    if (after.empty() || after.back().history != history)
      after.push_back({static_cast<uint16_t>(at), history});
  };
  for (size_t at = 0; at < before.size(); ++at) {
    const uint32_t end = at + 1 < before.size() ? before[at + 1].begin : kPageBytes;
    for (uint32_t byte = before[at].begin; byte < end;) {
      const bool forgotten = (bytes[byte / 64] >> byte % 64 & 1) != 0;
      append(byte, forgotten ? nullptr : before[at].history);
      byte = find_byte(bytes, byte, !forgotten);
    }
  }
}

void Shadow::forget(GpuAddress begin, GpuAddress end) {
  pages_.erase(pages_.lower_bound(page_of(begin)), pages_.lower_bound(end));
}

}  // namespace uptempo::vgpu::fences
