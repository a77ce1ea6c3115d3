#include "device/memory_check/checker.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace uptempo::vgpu::memory_check {
namespace {

// Farther away, an allocation has nothing to do with the access.
constexpr uint64_t kNearBytes = uint64_t{16} << 20;

uint64_t whole_pages(uint64_t bytes) noexcept {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

using State = Allocation::State;

State state_of(const Allocation& allocation) noexcept {
  return allocation.state.load(std::memory_order_relaxed);
}
GpuAddress begin_of(const Allocation& allocation) noexcept {
  return allocation.begin.load(std::memory_order_relaxed);
}
uint64_t bytes_of(const Allocation& allocation) noexcept {
  return allocation.bytes.load(std::memory_order_relaxed);
}

Buffer described(const Allocation& allocation) {
  return {.begin = begin_of(allocation),
          .bytes = bytes_of(allocation),
          .number = allocation.number,
          .flags = allocation.kind_of_memory.flags,
          .allocated = allocation.allocated.load(std::memory_order_relaxed),
          .freed = allocation.freed.load(std::memory_order_relaxed)};
}

Checker::Released released_of(const Allocation& allocation) {
  return {.begin = begin_of(allocation),
          .bytes = bytes_of(allocation),
          .watched = allocation.watched.load(std::memory_order_relaxed)};
}

// The program or HIP has it.
bool is_with_owner(const Allocation& allocation) noexcept {
  return state_of(allocation) == State::live || state_of(allocation) == State::kept;
}

void close(Allocation& allocation, State state) noexcept {
  allocation.state.store(state, std::memory_order_relaxed);
  // release: who sees no accessible bytes sees the state.
  allocation.accessible.store(0, std::memory_order_release);
}

}  // namespace

Checker::Checker(Report report, bool repeated, bool buffer_ranges)
    : report_(std::move(report)), repeated_(repeated), buffer_ranges_(buffer_ranges) {}

Allocation* Checker::buffer_at(GpuAddress address) const {
  const auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin()) return nullptr;
  Allocation* const buffer = std::prev(after)->second;
  return address - begin_of(*buffer) < buffer->reserved_bytes ? buffer : nullptr;
}

Allocation* Checker::allocation_at(GpuAddress begin) const {
  const auto found = program_.find(begin);
  return found == program_.end() ? nullptr : found->second;
}

void Checker::add_buffer(GpuAddress begin, uint64_t bytes, BufferKind kind) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    Allocation& buffer = map_.make(0);
    buffer.begin.store(begin, std::memory_order_relaxed);
    buffer.bytes.store(bytes, std::memory_order_relaxed);
    buffer.state.store(State::live, std::memory_order_relaxed);
    buffer.accessible.store(whole_pages(bytes), std::memory_order_relaxed);
    buffer.kind = Allocation::Kind::driver;
    buffer.reserved_bytes = whole_pages(bytes);
    buffer.kind_of_memory = kind;
    buffer.watched.store(false, std::memory_order_relaxed);
    buffer.last_user.store(0, std::memory_order_relaxed);
    buffers_[begin] = &buffer;
    map_.assign(begin, buffer.reserved_bytes, &buffer);
    // The program's memory may also be registered with the driver.
    for (auto it = program_.lower_bound(begin); it != program_.end() && it->first < buffer.end();
         ++it)
      if (is_with_owner(*it->second))
        map_.assign(it->first, it->second->reserved_bytes, it->second);
  } catch (const std::bad_alloc&) {
    unrecorded_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Checker::remove_buffer(GpuAddress begin) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(begin);
  if (found == buffers_.end()) return;
  Allocation& buffer = *found->second;
  buffers_.erase(found);
  map_.exchange(begin, buffer.reserved_bytes, &buffer, nullptr);
  map_.recycle(buffer);
}

void Checker::share_buffer(GpuAddress begin) noexcept {
  const std::lock_guard lock(mutex_);
  const Allocation* const buffer = buffer_at(begin);
  if (buffer == nullptr) return;
  for (auto it = program_.lower_bound(begin_of(*buffer));
       it != program_.end() && it->first < begin_of(*buffer) + buffer->reserved_bytes; ++it)
    map_.drop_bits(*it->second);
}

// Nothing finds the allocation any more.
void Checker::forget(Allocation& allocation) {
  const GpuAddress begin = begin_of(allocation);
  for (uint64_t page = 0; page < allocation.reserved_bytes; page += kPageBytes)
    map_.exchange(begin + page, kPageBytes, &allocation, buffer_at(begin + page));
  program_.erase(begin);
  if (std::erase(quarantine_, &allocation) != 0) quarantine_bytes_ -= allocation.reserved_bytes;
  allocation.number = 0;
  map_.recycle(allocation);
}

bool Checker::allocated(const Request& request) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    const GpuAddress end = request.begin + request.reserved_bytes;
    // Freed memory is used again. Live memory too, if ROCr was shut down in between.
    auto it = program_.upper_bound(request.begin);
    if (it != program_.begin() &&
        std::prev(it)->first + std::prev(it)->second->reserved_bytes > request.begin)
      --it;
    while (it != program_.end() && it->first < end) {
      Allocation& old = *it->second;
      ++it;
      forget(old);
    }
    Allocation* const buffer = buffer_at(request.begin);
    const BufferKind kind = buffer == nullptr ? BufferKind{} : buffer->kind_of_memory;
    Allocation& allocation = map_.make(kind.is_undefined ? request.bytes : 0);
    allocation.begin.store(request.begin, std::memory_order_relaxed);
    allocation.bytes.store(request.bytes, std::memory_order_relaxed);
    allocation.state.store(State::live, std::memory_order_relaxed);
    allocation.accessible.store(request.bytes, std::memory_order_relaxed);
    allocation.kind = Allocation::Kind::program;
    allocation.reserved_bytes = whole_pages(request.reserved_bytes);
    allocation.number = ++last_allocation_;
    allocation.allocated.store(request.stack, std::memory_order_relaxed);
    allocation.freed.store(0, std::memory_order_relaxed);
    allocation.kind_of_memory = kind;
    allocation.watched.store(kind.is_undefined && kind.host_stores, std::memory_order_relaxed);
    allocation.open.store(false, std::memory_order_relaxed);
    allocation.last_user.store(0, std::memory_order_relaxed);
    allocation.quarantined = request.quarantined;
    allocation.given_up = false;
    program_[request.begin] = &allocation;
    map_.assign(request.begin, allocation.reserved_bytes, &allocation);
    if (buffer != nullptr) close(*buffer, State::divided);
    return allocation.watched.load(std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    unrecorded_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
}

// The memory may be used again, or be unmapped.
void Checker::let_go(Allocation& allocation) {
  allocation.state.store(State::gone, std::memory_order_relaxed);
  remembered_.emplace_back(&allocation, allocation.number);
  while (remembered_.size() > kRemembered) {
    const auto [oldest, number] = remembered_.front();
    remembered_.pop_front();
    if (oldest->number == number) forget(*oldest);
  }
}

std::vector<Checker::Released> Checker::shrink_quarantine(uint64_t limit_bytes) {
  std::vector<Released> released;
  while (quarantine_bytes_ > limit_bytes && !quarantine_.empty()) {
    Allocation& oldest = *quarantine_.front();
    quarantine_.pop_front();
    quarantine_bytes_ -= oldest.reserved_bytes;
    released.push_back(released_of(oldest));
    let_go(oldest);
  }
  return released;
}

// The running dispatches that use the allocation, which is freed.
std::vector<Finding> Checker::uses_of(const Allocation& freed) {
  std::vector<Finding> findings;
  for (const Running& running : running_) {
    const std::optional<Argument> use = running.use_of(freed);
    if (!use) continue;
    Finding finding{.what = Class::freed_in_use,
                    .packet = running.packet,
                    .address = begin_of(freed),
                    .buffer = described(freed),
                    .use = use->use,
                    .argument_offset = use->offset};
    if (counts_as_new(finding)) findings.push_back(std::move(finding));
  }
  return findings;
}

Checker::Freed Checker::freed(GpuAddress begin, HostStackId stack) {
  Freed result;
  std::vector<Finding> findings;
  {
    const std::lock_guard lock(mutex_);
    Allocation* const allocation = allocation_at(begin);
    if (allocation == nullptr) return result;
    if (!is_with_owner(*allocation)) {
      result.what =
          state_of(*allocation) == State::held ? Freed::What::twice : Freed::What::unknown;
      Finding finding{
          .what = Class::double_free, .address = begin, .buffer = described(*allocation)};
      finding.freed_again = stack;
      if (counts_as_new(finding)) findings.push_back(std::move(finding));
    } else {
      // The program has freed before what HIP has kept.
      const bool is_live = state_of(*allocation) == State::live;
      if (is_live) allocation->freed.store(stack, std::memory_order_relaxed);
      close(*allocation, State::held);
      if (is_live) findings = uses_of(*allocation);
      map_.drop_bits(*allocation);
      if (allocation->quarantined && allocation->reserved_bytes <= kQuarantineBytes) {
        result.what = Freed::What::held;
        quarantine_.push_back(allocation);
        quarantine_bytes_ += allocation->reserved_bytes;
        result.release = shrink_quarantine(kQuarantineBytes);
      } else {
        result.what = Freed::What::passed;
        result.release.push_back(released_of(*allocation));
        let_go(*allocation);
      }
    }
  }
  for (const Finding& finding : findings) report_(finding);
  return result;
}

Allocation* Checker::allocation_with(GpuAddress address) const noexcept {
  Allocation* const allocation = map_.find(address);
  return allocation != nullptr && allocation->kind == Allocation::Kind::program &&
                 address < allocation->end()
             ? allocation
             : nullptr;
}

Checker::HipFree Checker::before_hip_free(GpuAddress address) const {
  const std::lock_guard lock(mutex_);
  const Allocation* const allocation = allocation_with(address);
  if (allocation == nullptr) return {};
  HipFree free{.number = allocation->number, .freed = {}};
  if (state_of(*allocation) != State::live || allocation->given_up)
    free.freed = described(*allocation);
  return free;
}

void Checker::hip_freed(GpuAddress address, const HipFree& before, HipResult result,
                        HostStackId stack, const std::function<bool(HostStackId)>& is_by_program) {
  if (result == HipResult::freed) hip_keeps(address, before.number, stack, is_by_program);
  if (result != HipResult::unknown_pointer) return;
  Finding finding{.what = Class::double_free, .address = address, .buffer = before.freed};
  {
    const std::lock_guard lock(mutex_);
    const Allocation* const allocation = allocation_with(address);
    // Another thread has freed it meanwhile.
    if (!finding.buffer && allocation != nullptr && allocation->number == before.number &&
        (state_of(*allocation) != State::live || allocation->given_up))
      finding.buffer = described(*allocation);
    if (!finding.buffer) return;
    finding.freed_again = stack;
    if (!counts_as_new(finding)) return;
  }
  report_(finding);
}

// HIP has freed the memory, and may not have returned it to ROCr.
void Checker::hip_keeps(GpuAddress address, uint64_t number, HostStackId stack,
                        const std::function<bool(HostStackId)>& is_by_program) {
  const auto find = [&]() -> Allocation* {
    Allocation* const allocation = allocation_with(address);
    const bool is_kept = allocation != nullptr && allocation->number == number &&
                         state_of(*allocation) == State::live;
    return is_kept ? allocation : nullptr;
  };
  HostStackId allocated = 0;
  {
    const std::lock_guard lock(mutex_);
    const Allocation* const allocation = find();
    if (allocation == nullptr) return;
    allocated = allocation->allocated.load(std::memory_order_relaxed);
  }
  // Without the lock, for which findings wait: it reads symbol tables.
  if (!is_by_program(allocated)) return;
  std::vector<Finding> findings;
  {
    const std::lock_guard lock(mutex_);
    Allocation* const allocation = find();
    if (allocation == nullptr) return;
    allocation->given_up = true;
    allocation->freed.store(stack, std::memory_order_relaxed);
    // Without its calls, it may be a pool's.
    if (allocated == 0 || address != begin_of(*allocation)) return;
    close(*allocation, State::kept);
    findings = uses_of(*allocation);
  }
  for (const Finding& finding : findings) report_(finding);
}

void Checker::hip_reset(HostStackId stack) {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, allocation] : program_) {
    if (state_of(*allocation) != State::live || allocation->given_up) continue;
    allocation->given_up = true;
    allocation->freed.store(stack, std::memory_order_relaxed);
  }
}

void Checker::expose(GpuAddress address) noexcept {
  const std::lock_guard lock(mutex_);
  Allocation* const allocation = map_.find(address);
  if (allocation != nullptr && allocation->kind == Allocation::Kind::program &&
      is_with_owner(*allocation))
    allocation->quarantined = false;
}

std::vector<Checker::Released> Checker::release_all() {
  const std::lock_guard lock(mutex_);
  return shrink_quarantine(0);
}

std::optional<Checker::Request> Checker::find_request(GpuAddress begin) const {
  const std::lock_guard lock(mutex_);
  const Allocation* const allocation = allocation_at(begin);
  if (allocation == nullptr || !is_with_owner(*allocation)) return std::nullopt;
  return Request{
      .begin = begin, .bytes = bytes_of(*allocation), .reserved_bytes = allocation->reserved_bytes};
}

bool Checker::is_held(GpuAddress address) const noexcept {
  const std::lock_guard lock(mutex_);
  const Allocation* const allocation = map_.find(address);
  return allocation != nullptr && allocation->kind == Allocation::Kind::program &&
         state_of(*allocation) == State::held;
}

std::optional<Checker::Argument> Checker::Running::use_of(
    const Allocation& allocation) const noexcept {
  // Its address came from a call of the host by the kernel, or from another such protocol, by which
  // the kernel may have given it back, too.
  if (allocation.number > last_allocation) return std::nullopt;
  if (allocation.last_user.load(std::memory_order_relaxed) == number)
    return Argument{.use = Use::accessed};
  std::optional<Argument> best;  // the surest one
  for (const auto& [holds, argument] : held)
    if (holds == allocation.number && (!best || argument.use < best->use)) best = argument;
  return best;
}

uint64_t Checker::begin(const Packet& packet, const std::vector<Argument>& arguments) {
  // Unique in the process, because threads keep it (cp/memory_watch.cpp).
  static std::atomic<uint64_t> last{0};
  const std::lock_guard lock(mutex_);
  Running& running = running_.emplace_back();
  running.number = 1 + last.fetch_add(1, std::memory_order_relaxed);
  running.packet = packet;
  running.last_allocation = last_allocation_;
  for (const Argument& argument : arguments)
    if (const Allocation* const held = map_.find(argument.value);
        held != nullptr && held->kind == Allocation::Kind::program &&
        state_of(*held) == State::live && argument.value < held->end())
      running.held.emplace_back(held->number, argument);
  return running.number;
}

void Checker::end(uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [number](const Running& running) { return running.number == number; });
}

// The live allocation that ends before the address or begins after it at the smallest distance.
std::optional<Buffer> Checker::nearest(GpuAddress address, uint64_t bytes) const {
  const auto is_live = [](const auto& one) { return state_of(*one.second) == State::live; };
  const Allocation* best = nullptr;
  uint64_t distance = kNearBytes;
  const auto first_after = program_.upper_bound(address);
  const auto after = std::find_if(first_after, program_.end(), is_live);
  const auto before =
      std::find_if(std::make_reverse_iterator(first_after), program_.rend(), is_live);
  if (before != program_.rend()) {
    const GpuAddress end = before->second->end();
    const uint64_t beyond = address < end ? 0 : address - end;
    if (beyond < distance) {
      best = before->second;
      distance = beyond;
    }
  }
  if (after != program_.end()) {
    const GpuAddress end = address + bytes;
    const uint64_t missing = after->first < end ? 0 : after->first - end;
    if (missing < distance) best = after->second;
  }
  if (best == nullptr) return std::nullopt;
  return described(*best);
}

// A finding and its repetitions have it in common. Addresses alone are not enough, because they are
// used again.
Checker::Place Checker::place_of(const Finding& finding) noexcept {
  if (finding.instruction != 0) return {finding.instruction};
  const Buffer buffer = finding.buffer.value_or(Buffer{});
  const bool is_free = finding.what == Class::double_free || finding.what == Class::freed_in_use;
  if (!is_free) return {finding.address, buffer.number};
  const HostStackId by = finding.what == Class::double_free ? finding.freed_again : buffer.freed;
  if (by == 0) return {0, 0, 0, buffer.number};
  return {finding.freed_again, buffer.freed, buffer.allocated};
}

// Counts the finding. Returns whether it must be reported.
bool Checker::counts_as_new(const Finding& finding) {
  const bool is_first = reported_
                            .emplace(finding.what, place_of(finding),
                                     finding.packet ? finding.packet->name : std::string())
                            .second;
  if (!is_first && !repeated_) {
    ++repeated_count_;
    return false;
  }
  return true;
}

void Checker::found(Finding finding, Verdict verdict) {
  {
    const std::lock_guard lock(mutex_);
    const Allocation* const allocation = map_.find(finding.address);
    switch (verdict) {
      case Verdict::fine:
        return;
      case Verdict::outside:
        if (allocation != nullptr && allocation->kind == Allocation::Kind::driver &&
            state_of(*allocation) == State::live)
          return;
        finding.what = Class::out_of_bounds;
        finding.buffer = nearest(finding.address, finding.bytes);
        break;
      case Verdict::freed:
        if (allocation == nullptr) return;
        // The redzone of freed memory.
        if (finding.address >= allocation->end()) {
          finding.what = Class::out_of_bounds;
          finding.buffer = nearest(finding.address, finding.bytes);
          break;
        }
        finding.what = Class::use_after_free;
        finding.buffer = described(*allocation);
        break;
      case Verdict::uninitialised:
        if (allocation == nullptr) return;
        finding.what = Class::uninitialised_read;
        finding.buffer = described(*allocation);
        break;
    }
    if (!counts_as_new(finding)) return;
  }
  report_(finding);
}

void Checker::found(Finding finding) {
  {
    const std::lock_guard lock(mutex_);
    if (!counts_as_new(finding)) return;
  }
  report_(finding);
}

void Checker::check_copy(const Packet& packet, Range range, bool writes) {
  const Allocation* const allocation = map_.find(range.address);
  if (allocation == nullptr) return;  // the queue stops with a memory fault
  const Verdict verdict = check(*allocation, range.address, range.bytes, false);
  if (verdict == Verdict::fine) return;
  Finding finding{.packet = packet,
                  .access = writes ? Access::write : Access::read,
                  .address = range.address,
                  .bytes = range.bytes};
  // The first byte beyond, if the copy begins inside.
  if (verdict == Verdict::outside && range.address < allocation->end()) {
    finding.address = allocation->end();
    finding.bytes = range.address + range.bytes - finding.address;
  }
  found(std::move(finding), verdict);
}

void Checker::copied(const Packet& packet, std::optional<Range> source, Range destination) {
  if (destination.bytes == 0) return;
  if (source) check_copy(packet, *source, false);
  check_copy(packet, destination, true);
  const Allocation* const to = map_.find(destination.address);
  if (to == nullptr || check(*to, destination.address, destination.bytes, false) != Verdict::fine)
    return;
  std::atomic<uint64_t>* const words = to->initialised.load(std::memory_order_relaxed);
  if (words == nullptr) return;
  const std::atomic<uint64_t>* from_words = nullptr;
  uint64_t from_offset = 0;
  if (source) {
    const Allocation* const from = map_.find(source->address);
    if (from != nullptr && check(*from, source->address, source->bytes, false) == Verdict::fine) {
      from_words = from->initialised.load(std::memory_order_relaxed);
      from_offset = source->address - begin_of(*from);
    }
  }
  copy_initialised(words, destination.address - begin_of(*to), from_words, from_offset,
                   destination.bytes);
}

void Checker::report_leaks(const std::function<std::optional<std::string>(HostStackId)>& place_of) {
  std::map<std::string, Finding> by_place;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, allocation] : program_) {
      const HostStackId stack = allocation->allocated.load(std::memory_order_relaxed);
      if (state_of(*allocation) != State::live || allocation->given_up) continue;
      const std::optional<std::string> place = place_of(stack);
      if (!place) continue;
      Finding& leak = by_place[*place];
      if (leak.leaks++ == 0) {
        leak.what = Class::leak;
        leak.address = begin;
        leak.buffer = described(*allocation);
      }
      leak.leaked_bytes += bytes_of(*allocation);
    }
  }
  for (const auto& [place, leak] : by_place) report_(leak);
}

uint64_t Checker::repeated() const {
  const std::lock_guard lock(mutex_);
  return repeated_count_;
}

}  // namespace uptempo::vgpu::memory_check
