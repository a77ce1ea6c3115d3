#include "device/fences/checker.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "device/clock.hpp"
#include "device/description.hpp"

namespace uptempo::vgpu::fences {

struct Checker::Impl {
  Impl(JudgeOptions options, Sink the_sink, Journal* the_journal, PlaceOf the_place_of,
       Filter the_filter)
      : l1_line_bytes(l1_lines_of(options)),
        specification(options.specification),
        judge(with_specification(std::move(options)),
              [this](const Finding& finding) { found(finding); }),
        sink(std::move(the_sink)),
        journal(the_journal),
        place_of(std::move(the_place_of)),
        filter(std::move(the_filter)) {}

  static std::vector<uint32_t> l1_lines_of(const JudgeOptions& options) {
    std::vector<uint32_t> lines{find_device_description(options.target)->l1_line_bytes};
    for (const std::string& target : options.other_targets)
      lines.push_back(find_device_description(target)->l1_line_bytes);
    return lines;
  }

  // The judge reports everything, since findings by the specification are counted in any case.
  static JudgeOptions with_specification(JudgeOptions options) {
    options.specification = true;
    return options;
  }

  template <typename What>
  void process(What what, std::vector<TouchedPage> pages = {}) {
    const Event event{host_clock_ns(), std::move(what), std::move(pages)};
    if (journal != nullptr) journal->add(event);
    judge.process(event);
  }

  void found(const Finding& finding) {
    // Before the filter, which counts what it leaves out of the report.
    if (!finding.possible_on_target && !specification) {
      ++counts.specification_only;
      return;
    }
    if (filter && !filter(finding)) {
      ++counts.suppressed;
      return;
    }
    if (is_repeated(finding)) {
      ++counts.repeated;
      return;
    }
    switch (finding.what) {
      case Finding::Class::unordered:
        ++counts.unordered;
        break;
      case Finding::Class::stale:
        ++counts.stale;
        break;
      case Finding::Class::unreleased:
        ++counts.unreleased;
        break;
    }
    sink(finding);
  }

  // Counts the finding among those like it.
  bool is_repeated(const Finding& finding) {
    if (!place_of) return false;
    const Key key{finding.what,         finding.conflict,     finding.reason.data(),
                  finding.writer->name, finding.reader->name, place_of(finding.address)};
    const auto [known, is_first] = groups.try_emplace(key);
    if (!is_first) {
      ++known->second.times;
      return true;
    }
    const auto brief = [](const Task& task) {
      return Task{.id = task.id,
                  .kind = task.kind,
                  .agent = task.agent,
                  .queue = task.queue,
                  .position = task.position,
                  .name = task.name,
                  .view = {}};
    };
    known->second = {.what = finding.what,
                     .conflict = finding.conflict,
                     .writer = brief(*finding.writer),
                     .reader = brief(*finding.reader)};
    return false;
  }

  // A packet that copies several rows is one copy.
  void count_copy(ActorId queue, uint64_t offset) {
    const auto [last, first] = last_copies.try_emplace(queue, offset);
    if (!first && last->second == offset) return;
    last->second = offset;
    ++counts.copies;
  }

  void count_bytes(const std::vector<TouchedPage>& pages) {
    for (const TouchedPage& page : pages)
      for (uint32_t line = 0; line < kLinesPerPage; ++line)
        counts.bytes += static_cast<uint64_t>(
            std::popcount(page.accesses->read[line] | page.accesses->written[line]));
  }

  // The running dispatches that have written the values of these signals.
  std::vector<TaskId> storers(std::span<const SignalValue> signals) const {
    std::vector<TaskId> found;
    for (const auto& [id, set] : running) {
      const std::shared_ptr<AccessSet> accesses = set.lock();
      if (accesses && std::ranges::any_of(signals, [&](const SignalValue& signal) {
            return accesses->has_written(signal.handle + kSignalValueOffset, sizeof(int64_t));
          }))
        found.push_back({id.first, id.second});
    }
    return found;
  }

  mutable std::mutex mutex;
  // Dispatches, by actor and index. Those of a queue that was destroyed never end.
  std::map<std::pair<ActorId, uint64_t>, std::weak_ptr<AccessSet>> running;
  const std::vector<uint32_t> l1_line_bytes;  // of the vector L1, by agent
  std::recursive_mutex sections;
  const bool specification;
  Judge judge;
  const Sink sink;
  Journal* journal;  // null: the run is not recorded, or no longer
  const PlaceOf place_of;
  const Filter filter;
  std::vector<uint32_t> agents;  // of the queues, in order
  using Key = std::tuple<Finding::Class, Finding::Conflict, const char*, std::string, std::string,
                         uint64_t>;
  std::map<Key, Repeated> groups;  // empty without `place_of`
  Counts counts;
  std::map<ActorId, uint64_t> last_copies;  // their offsets, by queue
};

namespace {

// Adds the page if it is mapped.
void add(std::vector<TouchedPage>& pages, GpuAddress page, const PageAccesses& accesses,
         const Checker::KindOf& kind_of) {
  if (const auto kind = kind_of(page)) pages.push_back({page, *kind, &accesses});
}

// The bytes that a copy reads or writes, page by page.
class CopiedPages {
 public:
  void add(const Checker::Range& range, PageMask PageAccesses::*bytes,
           const Checker::KindOf& kind_of) {
    for (uint64_t done = 0; done < range.bytes;) {
      const GpuAddress address = range.address + done;
      const auto first = static_cast<uint32_t>(address % kLineBytes);
      const auto count =
          static_cast<uint32_t>(std::min<uint64_t>(range.bytes - done, kLineBytes - first));
      if (pages_.empty() || pages_.back().page != page_of(address)) {
        accesses_.push_back(std::make_unique<PageAccesses>());
        pages_.push_back({page_of(address), {}, accesses_.back().get()});
      }
      ((*accesses_.back()).*bytes)[address % kPageBytes / kLineBytes] |= line_bits(first, count);
      done += count;
    }
    std::erase_if(pages_, [&](TouchedPage& page) {
      const auto kind = kind_of(page.page);
      if (kind) page.kind = *kind;
      return !kind;
    });
  }
  const std::vector<TouchedPage>& pages() const { return pages_; }

 private:
  std::vector<std::unique_ptr<PageAccesses>> accesses_;
  std::vector<TouchedPage> pages_;
};

}  // namespace

Checker::Checker(JudgeOptions options, Sink sink, Journal* journal, PlaceOf place_of, Filter filter)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(sink), journal,
                                   std::move(place_of), std::move(filter))) {}
Checker::~Checker() = default;

ActorId Checker::add_queue(QueueKind kind, uint32_t ordinal, uint32_t agent) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::AddQueue{kind, ordinal, agent});
  impl_->agents.push_back(agent);
  return static_cast<ActorId>(impl_->agents.size());
}

Checker::Section Checker::section() {
  return impl_->l1_line_bytes.size() > 1 ? Section(impl_->sections) : Section();
}

void Checker::doorbell(ActorId queue, uint64_t value, uint64_t host_ns) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::Doorbell{queue, value, host_ns});
}

Running Checker::launch(ActorId queue, const Packet& packet, std::string kernel,
                        AccessSet::Listener* listener, uint64_t waves, L2Deal l2s, Origin origin) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::Launch{queue, packet, std::move(kernel), waves, origin});
  auto accesses =
      std::make_shared<AccessSet>(listener, l2s, impl_->l1_line_bytes[impl_->agents[queue - 1]]);
  impl_->running[{queue, packet.index}] = accesses;
  return {{queue, packet.index}, std::move(accesses), {}};
}

void Checker::end(Running& running, const Packet& packet, const KindOf& kind_of, bool tells_host,
                  bool may_meet_any_thread) {
  const std::lock_guard lock(impl_->mutex);
  const std::shared_ptr<AccessSet> accesses = std::move(running.accesses);
  impl_->running.erase({running.id.actor, running.id.index});
  std::vector<TouchedPage> pages;
  accesses->for_each(
      [&](GpuAddress page, const PageAccesses& touched) { add(pages, page, touched, kind_of); });
  ++impl_->counts.dispatches;
  impl_->count_bytes(pages);
  impl_->process(events::End{running.id.actor, packet, tells_host, may_meet_any_thread,
                             std::move(running.instructions)},
                 std::move(pages));
  if (accesses->incomplete()) ++impl_->counts.unrecorded;
}

void Checker::complete(ActorId queue, const Packet& packet, std::span<const SignalValue> satisfied,
                       const CacheActions& caches) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::Complete{
      queue, packet, {satisfied.begin(), satisfied.end()}, impl_->storers(satisfied), caches});
}

void Checker::wait(ActorId queue, uint64_t offset, const SignalValue& satisfied) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::Wait{queue, offset, satisfied, impl_->storers({&satisfied, 1})});
}

void Checker::copy(ActorId queue, uint64_t offset, std::string_view engine,
                   std::optional<Range> source, Range destination, const KindOf& kind_of,
                   Origin origin) {
  const std::lock_guard lock(impl_->mutex);
  CopiedPages read, written;
  if (source) read.add(*source, &PageAccesses::read, kind_of);
  written.add(destination, &PageAccesses::written, kind_of);
  std::vector<TouchedPage> pages = read.pages();
  pages.insert(pages.end(), written.pages().begin(), written.pages().end());
  impl_->count_copy(queue, offset);
  impl_->count_bytes(pages);
  impl_->process(events::Copy{queue, offset, std::string(engine), origin}, std::move(pages));
}

void Checker::signal(ActorId queue, uint64_t offset, const SignalValue& signal) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::Signal{queue, offset, signal});
}

void Checker::host_read(GpuAddress address, uint64_t host_ns, const KindOf& kind_of, uint64_t site,
                        uint64_t thread) {
  const std::lock_guard lock(impl_->mutex);
  PageAccesses accesses;
  accesses.read[address % kPageBytes / kLineBytes] = line_bits(address % kLineBytes, 1);
  std::vector<TouchedPage> pages;
  add(pages, page_of(address), accesses, kind_of);
  if (!pages.empty()) impl_->process(events::HostRead{host_ns, site, thread}, std::move(pages));
}

void Checker::host_opened(GpuAddress page, uint64_t host_ns, uint64_t thread) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::HostOpened{host_ns, 0, thread}, {{page, {}, nullptr}});
}

void Checker::host_stored(GpuAddress address, uint64_t host_ns, const KindOf& kind_of,
                          uint64_t site, uint64_t thread) {
  const std::lock_guard lock(impl_->mutex);
  PageAccesses accesses;
  accesses.written[address % kPageBytes / kLineBytes] = line_bits(address % kLineBytes, 1);
  const GpuAddress page = page_of(address);
  const auto kind = kind_of(page);
  impl_->process(events::HostOpened{host_ns, site, thread},
                 {{page, kind.value_or(MemoryKind::fine_grained), kind ? &accesses : nullptr}});
}

void Checker::host_looked(uint64_t signal, uint64_t host_ns) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::HostLooked{signal, host_ns});
}

void Checker::host_wrote(GpuAddress page, const PageMask& bytes, uint64_t closed_ns,
                         const KindOf& kind_of) {
  const std::lock_guard lock(impl_->mutex);
  PageAccesses accesses;
  accesses.written = bytes;
  std::vector<TouchedPage> pages;
  add(pages, page, accesses, kind_of);
  if (!pages.empty()) impl_->process(events::HostWrote{closed_ns}, std::move(pages));
}

void Checker::destroy_queue(ActorId queue) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::DestroyQueue{queue});
}

void Checker::unknown(GpuAddress page, const PageMask& bytes) {
  const std::lock_guard lock(impl_->mutex);
  PageAccesses accesses;
  accesses.written = bytes;
  impl_->process(events::Unknown{}, {{page, {}, &accesses}});
}

void Checker::forget(GpuAddress begin, GpuAddress end) {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::Forget{begin, end});
}

void Checker::finish() {
  const std::lock_guard lock(impl_->mutex);
  impl_->process(events::Finish{});
  impl_->journal = nullptr;
}

Checker::Counts Checker::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

std::vector<Repeated> Checker::repeated() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<Repeated> several;
  for (const auto& [key, group] : impl_->groups)
    if (group.times > 1) several.push_back(group);
  return several;
}

Judge::Presumed Checker::presumed() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->judge.presumed();
}

}  // namespace uptempo::vgpu::fences
