#include <sys/mman.h>

#include "device/clock.hpp"
#include "device/fault_chain.hpp"
#include "device/host/host_page_state.hpp"
#include "device/host/host_pages.hpp"
#include "device/waits/redirected_step.hpp"

namespace uptempo::vgpu {

using host_pages::kOpen;
using host_pages::kPage;

namespace {

constexpr size_t kLine = 64;  // a signal (amd_signal_t) fills one

// The bit of the line in its page.
constexpr uint64_t line_of(uint64_t address) noexcept {
  return uint64_t{1} << address % kPage / kLine;
}

}  // namespace

std::vector<std::string> HostPages::unobserved_waits() const {
  std::vector<std::string> lines;
  const auto add = [&](const std::atomic<uint64_t>& counter, const char* what) {
    if (const uint64_t count = counter.load(std::memory_order_relaxed); count != 0)
      lines.push_back("waits: " + std::to_string(count) + what);
  };
  add(waits.doorbells,
      " times the host continued after a doorbell while the GPU ran, so earlier accesses than "
      "these kernels' were not observed");
  add(waits.completions,
      " completions count as known to the host, because their signals are not "
      "observed");
  add(waits.pages,
      " times all completions in a page count as known to the host, because an "
      "unknown instruction or a system call used the page");
  return lines;
}

// Calls use(buffer, index) under the lock of the signal's page if that page can be observed.
template <class Use>
bool HostPages::with_signal_page(GpuAddress address, Use use) noexcept {
  const Section section(*this);
  Buffer* const buffer = section.table.at_gpu(address);
  if (misses_looks() || buffer == nullptr || buffer->program == nullptr ||
      buffer->open_for_good.load(std::memory_order_acquire))
    return false;
  const size_t index = (address - buffer->begin) / kPage;
  Page& page = buffer->page[index];
  const PageLock lock(page);
  if (page.state == Page::State::unwatched || page.holders != 0) return false;
  return use(*buffer, index);
}

bool HostPages::watch_signal(GpuAddress address) noexcept {
  const bool watched = with_signal_page(address, [&](Buffer& buffer, size_t index) {
    buffer.page[index].changed |= line_of(address);
    return shut_signals(buffer, index);
  });
  if (!watched) waits.completions.fetch_add(1, std::memory_order_relaxed);
  return watched;
}

void HostPages::await_signal(GpuAddress address, bool awaited) noexcept {
  with_signal_page(address, [&](Buffer& buffer, size_t index) {
    Page& page = buffer.page[index];
    // The next fault opens a page that need not be shut any more.
    if (!awaited) page.awaited &= ~line_of(address);
    if (!awaited || (page.awaited & line_of(address)) != 0) return true;
    page.awaited |= line_of(address);
    ++page.awaits;
    return shut_signals(buffer, index);
  });
}

bool HostPages::shut_signals(Buffer& buffer, size_t index) noexcept {
  if (!steps_.exchange(true, std::memory_order_relaxed))
    install_fault_chain(FaultRank::host_pages, &settle, FaultSignals::with_traps);
  Page& page = buffer.page[index];
  page.state = Page::State::signals;
  if (page.shut) return true;
  buffer.note_closed(index);
  page.shut = set_protection(buffer, index, PROT_NONE);
  return page.shut;
}

// Executes the instruction on the device's mapping, so that no other thread can look at a signal
// unnoticed. Returns false if the page is open.
bool HostPages::step_over_signal(Buffer& buffer, size_t index, uintptr_t address, bool write,
                                 ucontext_t& context) noexcept {
  Page& page = buffer.page[index];
  if (!page.shut) return false;
  const auto access =
      decode_redirectable(reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]));
  if (!access || address % kPage + access->bytes > kPage) return open_signals(buffer, index);
  const uint64_t line = line_of(address);
  const auto reaches = [&](size_t begin, size_t end) {
    return address % kLine < end && address % kLine + access->bytes > begin;
  };
  const SteppedAccess stepped{
      .pages = this,
      .signal = buffer.begin + index * kPage + address % kPage / kLine * kLine,
      // amd_signal_t: the value, and the times of a packet, which it has when it has completed.
      .looks = access->loads && (reaches(8, 16) || reaches(32, 48)),
      .stores = write,
      .releases = write && (page.awaited & line) != 0,
      .awaits = page.awaits};
  if (stepped.looks) look_at(page, stepped.signal);
  if ((page.changed | page.awaited) == 0) return open_signals(buffer, index);
  return begin_redirected_step(*access, static_cast<uint64_t>(buffer.device - buffer.program),
                               stepped, context) ||
         open_signals(buffer, index);
}

// The device may have completed the signal, or begun to wait for it, before the instruction was
// executed.
bool HostPages::ended_step(const SteppedAccess& stepped) noexcept {
  bool holds = stepped.releases;
  with_signal_page(stepped.signal, [&](Buffer& buffer, size_t index) {
    Page& page = buffer.page[index];
    if (stepped.looks) look_at(page, stepped.signal);
    // The queue that has begun to wait may have seen the store and proceeded.
    holds = holds || (stepped.stores && page.awaits != stepped.awaits);
    return true;
  });
  return holds;
}

void HostPages::look_at(Page& page, GpuAddress signal) noexcept {
  if ((page.changed & line_of(signal)) == 0) return;
  report_look(signal);
  page.changed &= ~line_of(signal);
}

// The program may look at all of the page's signals from now on, so it counts as having done so.
bool HostPages::open_signals(Buffer& buffer, size_t index) noexcept {
  Page& page = buffer.page[index];
  if (!page.shut) return false;
  if (page.changed != 0) waits.pages.fetch_add(1, std::memory_order_relaxed);
  for (size_t line = 0; line < kPage / kLine; ++line)
    if ((page.changed >> line & 1) != 0) report_look(buffer.begin + index * kPage + line * kLine);
  page.changed = page.awaited = 0;
  page.shut = false;
  return set_protection(buffer, index, kOpen);
}

void HostPages::report_look(GpuAddress signal) noexcept {
  if (!events_.push(
          {.kind = HostEvent::Kind::looked, .address = signal, .host_ns = host_clock_ns()}))
    misses_looks_.store(true, std::memory_order_release);
}

void HostPages::hold_host() noexcept {
  const HostPages* const pages = of_process();
  if (pages == nullptr) return;
  if (HostHolder* const holder = pages->holder_.load(std::memory_order_acquire))
    holder->hold_until_rest();
}

}  // namespace uptempo::vgpu
