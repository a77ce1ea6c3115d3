#include "cp/fence_watch.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>

#include "cp/packet/sdma_ranges.hpp"
#include "cp/signal.hpp"
#include "device/clock.hpp"

namespace uptempo::vgpu {
namespace {

constexpr uint64_t kAllLanes = ~uint64_t{0};

static_assert(offsetof(amd_signal_t, value) == fences::kSignalValueOffset &&
              AMD_SIGNAL_ALIGN_BYTES == fences::kLineBytes);

fences::Path path_of(const ObservedAccess& access) noexcept {
  if (access.scope >= AccessScope::agent) return fences::Path::synchronising;
  return access.scalar ? fences::Path::scalar : fences::Path::vector;
}

using Range = fences::Checker::Range;

// Calls visit(source, destination) for each row that a packet copies.
template <typename Visit>
void for_rows(const sdma::Decoded& packet, Visit visit) {
  sdma::for_ranges(packet, [&](std::optional<sdma::Range> source, sdma::Range destination) {
    visit(source ? std::optional(Range{source->address, source->bytes}) : std::nullopt,
          Range{destination.address, destination.bytes});
  });
}

template <typename Visit>
void for_pages(Range range, Visit visit) {
  for (GpuAddress page = fences::page_of(range.address); page < range.address + range.bytes;
       page += fences::kPageBytes)
    visit(page);
}

// Whether all lanes are active and contiguous, as in most accesses of most kernels.
bool is_one_run(const ObservedAccess& access) noexcept {
  if (access.lanes != kAllLanes) return false;
  uint64_t difference = 0;
  for (uint64_t lane = 0; lane < 64; ++lane)
    difference |= access.address[lane] ^ (access.address[0] + lane * access.size_bytes);
  return difference == 0;
}

uint64_t waves_of(const gfx9::DispatchState& state) {
  const auto groups = state.workgroups();
  return uint64_t{groups[0]} * groups[1] * groups[2] * state.waves_per_workgroup();
}

}  // namespace

WatchedDispatch::WatchedDispatch(fences::Checker& checker, fences::ActorId queue,
                                 const fences::Checker::Packet& packet,
                                 const gfx9::DispatchState& state, fences::L2Deal l2s,
                                 HostPages* host_pages, bool keeps_instructions,
                                 fences::Origin origin)
    : host_pages_(host_pages),
      of_runtime_(origin.runtimes),
      writes_back_(state.kernel.target == gfx9::Target::gfx90a ||
                   state.kernel.target == gfx9::Target::gfx942),
      running_(checker.launch(queue, packet, state.name, host_pages == nullptr ? nullptr : this,
                              waves_of(state), l2s, origin)),
      instructions_(keeps_instructions ? std::make_unique<fences::InstructionRanges>() : nullptr),
      scratch_begin_(state.scratch_base),
      scratch_end_(state.scratch_base + state.scratch_bytes),
      groups_(state.workgroups()) {}

WatchedDispatch::~WatchedDispatch() {
  for (const GpuAddress page : closed_) host_pages_->device_wrote(page, nullptr);
}

void WatchedDispatch::touched(GpuAddress page, bool writes) noexcept {
  if (!host_pages_->close(page, writes)) return;
  const std::lock_guard lock(closed_mutex_);
  closed_.push_back(page);
}

void WatchedDispatch::written(GpuAddress page) noexcept { host_pages_->hide(page); }

void WatchedDispatch::end(fences::Checker& checker, const fences::Checker::Packet& packet,
                          const fences::Checker::KindOf& kind_of) {
  std::vector<GpuAddress> closed = std::move(closed_);
  closed_.clear();
  std::sort(closed.begin(), closed.end());
  // relaxed: the workers have ended
  const bool released = released_.load(std::memory_order_relaxed);
  const auto is_coherent = [&](GpuAddress page) {
    const auto kind = kind_of(page);
    return kind && is_coherent_host(*kind);
  };
  if (released) {
    // With a fence and without an atomic access, plain stores are what the host can poll.
    bool has_flags = false;
    running_.accesses->for_each([&](GpuAddress page, const fences::PageAccesses& accesses) {
      has_flags = has_flags || (accesses.synchronising != PageMask{} && is_coherent(page));
    });
    if (!has_flags) running_.accesses->synchronise_writes(is_coherent);
  }
  bool tells_host = of_runtime_ || (writes_back_ && released);
  bool may_meet_any_thread = false;
  if (host_pages_ != nullptr)
    running_.accesses->for_each([&](GpuAddress page, const fences::PageAccesses& accesses) {
      if (!std::binary_search(closed.begin(), closed.end(), page)) {
        may_meet_any_thread =
            may_meet_any_thread || (accesses.synchronising != PageMask{} && is_coherent(page));
        // The host may have polled what was written.
        for (size_t line = 0; line < accesses.written.size(); ++line)
          tells_host = tells_host || (accesses.written[line] & accesses.synchronising[line]) != 0;
        return;
      }
      host_pages_->device_wrote(page, &accesses.written);
      // Closes the page: the host's reads of what the dispatch has written must be observed, also
      // where the host stored to the page meanwhile.
      if (accesses.written != PageMask{} && host_pages_->close(page, true))
        host_pages_->device_wrote(page, nullptr);
    });
  if (instructions_ != nullptr) running_.instructions = instructions_->list();
  checker.end(running_, packet, kind_of, tells_host, may_meet_any_thread);
}

void WatchedDispatch::add(const ObservedAccess& access, GpuAddress address, uint64_t bytes,
                          fences::Path path, uint32_t workgroup) noexcept {
  if (address >= scratch_begin_ && address < scratch_end_) {
    const uint64_t own = std::min(bytes, scratch_end_ - address);
    address += own;
    bytes -= own;
  }
  fences::AccessSet& accesses = *running_.accesses;
  if (access.access != Access::write) accesses.add_read(address, bytes, path, workgroup);
  if (access.access != Access::read) accesses.add_write(address, bytes, path, workgroup);
}

void WatchedDispatch::preload(GpuAddress address, uint64_t bytes) noexcept {
  running_.accesses->add_read(address, bytes, fences::Path::scalar, 0);
}

void WatchedDispatch::access(const ObservedAccess& access) noexcept {
  const fences::Path path = path_of(access);
  // Workgroups whose numbers differ by 2^32 count as one: no race between them is found.
  const uint32_t workgroup =
      access.workgroup[0] + groups_[0] * (access.workgroup[1] + groups_[1] * access.workgroup[2]);
  const auto place = [&](GpuAddress begin, GpuAddress end) {
    if (instructions_ != nullptr) instructions_->add(access.instruction, begin, end, access.access);
  };
  const GpuAddress at = access.address[0];
  if (access.scalar) {
    place(at, at + access.size_bytes);
    return add(access, at, access.size_bytes, path, workgroup);
  }
  if (is_one_run(access)) {
    place(at, at + uint64_t{64} * access.size_bytes);
    return add(access, at, uint64_t{64} * access.size_bytes, path, workgroup);
  }
  GpuAddress lowest = ~GpuAddress{0}, highest = 0;
  // Lanes mostly ascend, so bytes of one line are adjacent.
  GpuAddress line = 0;
  uint64_t mask = 0;
  const auto flush = [&] {
    if (mask == 0) return;
    fences::AccessSet& accesses = *running_.accesses;
    if (access.access != Access::write) accesses.add_read_mask(line, mask, path, workgroup);
    if (access.access != Access::read) accesses.add_write_mask(line, mask, path, workgroup);
  };
  const uint64_t element = (uint64_t{1} << access.size_bytes) - 1;  // at most 16 bytes
  for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
    const GpuAddress address = access.address[std::countr_zero(lanes)];
    if (address >= scratch_begin_ && address < scratch_end_) continue;
    lowest = std::min(lowest, address);
    highest = std::max(highest, address);
    const GpuAddress offset = address % fences::kLineBytes;
    if (address - offset != line) {
      flush();
      line = address - offset;
      mask = 0;
    }
    mask |= element << offset;
    if (offset + access.size_bytes > fences::kLineBytes) {
      flush();
      line += fences::kLineBytes;
      mask = element >> (fences::kLineBytes - offset);
    }
  }
  flush();
  if (lowest <= highest) place(lowest, highest + access.size_bytes);
}

FenceWatch::FenceWatch(Device& device, AddressSpace::Reader& memory,
                       fences::Checker::QueueKind kind, uint32_t ordinal)
    : checker_(device.checker),
      host_(device, memory),
      host_pages_(host_.pages()),
      waits_(host_.waits()),
      keeps_places_(device.host_stacks != nullptr &&
                    (checker_ != nullptr || device.memory_check != nullptr ||
                     kind == fences::Checker::QueueKind::compute)),
      memory_(memory),
      kind_of_([&memory](GpuAddress page) -> std::optional<MemoryKind> {
        const Mapping* const mapping = memory.find(page);
        if (mapping == nullptr) return std::nullopt;
        return mapping->kind;
      }),
      actor_(checker_ == nullptr ? fences::kHost : checker_->add_queue(kind, ordinal, device.gpu)) {
}

FenceWatch::~FenceWatch() {
  end_copy(nullptr);
  if (!waits_) return;
  end_waiting();
  host_.report();
  checker_->destroy_queue(actor_);
}

void FenceWatch::doorbell(uint64_t value, uint64_t host_ns) {
  if (checker_ == nullptr) return;
  host_.report();
  // The host may have looked at a signal after `host_ns` and rung then. A completion that is being
  // reported need not be excluded by time, since no look at it is possible yet.
  checker_->doorbell(actor_, value, waits_ ? host_clock_ns() : host_ns);
}

void FenceWatch::published(uint64_t value, const Publisher& publisher) {
  if (keeps_places_) published_.push_back({value, publisher});
}

// That of the first doorbell that covers it.
Publisher FenceWatch::publisher_of(uint64_t position) {
  // With several producers, doorbells may come out of order, so it may be another producer's.
  while (!published_.empty() && published_.front().value < position) published_.pop_front();
  return published_.empty() ? Publisher{} : published_.front().publisher;
}

std::unique_ptr<WatchedDispatch> FenceWatch::launch(AqlHeader header, uint64_t index,
                                                    gfx9::DispatchState& state, fences::L2Deal l2s,
                                                    bool runtimes, const Publisher& published) {
  if (checker_ == nullptr) return nullptr;
  host_.report();
  auto watched = std::make_unique<WatchedDispatch>(
      *checker_, actor_, packet(header, index, {0}), state, l2s, host_pages_, keeps_places_,
      fences::Origin{.published = published,
                     .runtimes = runtimes,
                     .kernargs = reinterpret_cast<GpuAddress>(state.packet.kernarg_address),
                     .kernarg_bytes = state.kernel.kernarg_bytes});
  if (state.preloaded_kernargs)
    watched->preload(state.preloaded_address(), state.preloaded_bytes());
  state.add_observer(*watched);
  return watched;
}

void FenceWatch::end(WatchedDispatch& dispatch, AqlHeader header, uint64_t index,
                     hsa_signal_t completion) {
  before_completion();
  const fences::Checker::Packet ended = packet(header, index, completion);
  dispatch.end(*checker_, ended, kind_of_);
  watch_looks(ended.signal);
}

void FenceWatch::satisfied(hsa_signal_t signal, int64_t value) {
  if (checker_ != nullptr) satisfied_.push_back({signal.handle, value});
}

void FenceWatch::unsatisfied(GpuAddress address) {
  if (!waits_) return;
  const GpuAddress signal = address & ~GpuAddress{AMD_SIGNAL_ALIGN_BYTES - 1};
  if (std::find(awaited_.begin(), awaited_.end(), signal) == awaited_.end())
    awaited_.push_back(signal);
  // Each time, because a queue that waited for it, too, may have proceeded.
  host_pages_->await_signal(signal, true);
}

void FenceWatch::end_waiting() {
  for (const GpuAddress signal : awaited_) host_pages_->await_signal(signal, false);
  awaited_.clear();
}

void FenceWatch::complete(AqlHeader header, uint64_t index, hsa_signal_t completion) {
  publisher_of(index);  // a queue may have no dispatches
  if (checker_ == nullptr) return;
  before_completion();
  end_waiting();
  const fences::Checker::Packet completed = packet(header, index, completion);
  checker_->complete(actor_, completed, satisfied_, caches_);
  satisfied_.clear();
  caches_ = {};
  watch_looks(completed.signal);
}

void FenceWatch::wait(uint64_t offset, GpuAddress polled) {
  if (checker_ == nullptr) return;
  end_waiting();
  host_.report();
  if (const auto signal = signal_at(polled)) checker_->wait(actor_, offset, *signal);
}

void FenceWatch::expect_copy(const sdma::Decoded& packet) {
  if (host_pages_ == nullptr) return;
  for_rows(packet, [this](const std::optional<Range>&, Range destination) {
    for_pages(destination, [this](GpuAddress page) {
      if (host_pages_->close(page, true)) host_pages_->device_wrote(page, nullptr);
    });
  });
}

void FenceWatch::begin_copy(const sdma::Decoded& packet) {
  if (host_pages_ == nullptr) return;
  for_rows(packet, [this](std::optional<Range> source, Range destination) {
    if (source) close(*source, false);
    close(destination, true);
  });
}

void FenceWatch::close(Range range, bool written) {
  for_pages(range, [&](GpuAddress page) {
    if (host_pages_->close(page, written)) closed_.push_back(page);
  });
}

void FenceWatch::copy(uint64_t offset, const sdma::Decoded& packet) {
  if (checker_ == nullptr) return;
  end_copy(&packet);
  host_.report();
  const fences::Origin origin{.published = publisher_of(offset + 1)};
  for_rows(packet, [&](std::optional<Range> source, Range destination) {
    checker_->copy(actor_, offset, packet.name, source, destination, kind_of_, origin);
  });
}

// Ends every use of a page. A null `packet` means that no write is known.
void FenceWatch::end_copy(const sdma::Decoded* packet) {
  if (closed_.empty()) return;
  std::map<GpuAddress, PageMask> written;
  if (packet != nullptr)
    for_rows(*packet, [&](const std::optional<Range>&, Range destination) {
      for (uint64_t byte = 0; byte < destination.bytes;) {
        const GpuAddress address = destination.address + byte;
        const uint64_t bit = address % 64, count = std::min(destination.bytes - byte, 64 - bit);
        const uint64_t mask = count == 64 ? ~uint64_t{0} : ((uint64_t{1} << count) - 1) << bit;
        written[fences::page_of(address)][address % fences::kPageBytes / 64] |= mask;
        byte += count;
      }
    });
  for (const GpuAddress page : closed_) {
    const auto found = written.find(page);
    host_pages_->device_wrote(page, found == written.end() ? nullptr : &found->second);
  }
  closed_.clear();
}

void FenceWatch::before_completion() {
  host_.report();
  before_completion_ns_ = host_clock_ns();
}

void FenceWatch::watch_looks(const std::optional<Signal>& signal) {
  if (waits_ && signal && !host_pages_->watch_signal(signal->handle))
    checker_->host_looked(signal->handle, host_clock_ns());
}

void FenceWatch::signal(uint64_t offset, GpuAddress decremented) {
  if (checker_ == nullptr) return;
  before_completion();
  const auto signal = signal_at(decremented);
  if (signal) checker_->signal(actor_, offset, *signal);
  watch_looks(signal);
}

fences::Checker::Packet FenceWatch::packet(AqlHeader header, uint64_t index,
                                           hsa_signal_t completion) {
  return {.index = index,
          .barrier = header.barrier(),
          .acquire = static_cast<FenceScope>(header.acquire()),
          .release = static_cast<FenceScope>(header.release()),
          .signal = completion.handle == 0 ? std::nullopt : signal_at(completion.handle)};
}

// Returns the signal that contains `address`, because engines receive the address of the value.
std::optional<FenceWatch::Signal> FenceWatch::signal_at(GpuAddress address) {
  const GpuAddress handle = address & ~GpuAddress{AMD_SIGNAL_ALIGN_BYTES - 1};
  const amd_signal_t* const signal = find_signal(memory_, handle);
  if (signal == nullptr) return std::nullopt;
  return Signal{handle, signal_value(*signal)};
}

}  // namespace uptempo::vgpu
