#include "device/host/host_pages.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "device/clock.hpp"
#include "device/fault_chain.hpp"
#include "device/host/host_page_state.hpp"
#include "device/host/page_changes.hpp"
#include "device/waits/redirected_step.hpp"
#include "tools/support/python_calls.hpp"

namespace uptempo::vgpu {

using host_pages::kOpen;
using host_pages::kPage;
using host_pages::reserve;

namespace {

volatile bool* page_emptied_by_fork() {
  void* const page = reserve(kPage);
  if (madvise(page, kPage, MADV_WIPEONFORK) != 0)
    throw std::system_error(errno, std::generic_category(),
                            "madvise(MADV_WIPEONFORK), which needs Linux 4.14");
  auto* const made_here = static_cast<volatile bool*>(page);
  *made_here = true;
  return made_here;
}

// Returns whether the page now permits the access. The kernel tries it: a read compares the aligned
// word, a write adds 0 to it atomically.
bool is_accessible(uintptr_t address, bool write) noexcept {
  auto* const word = reinterpret_cast<uint32_t*>(address & ~uintptr_t{3});
  if (write) {
    uint32_t unused_word = 0;
    return syscall(SYS_futex, &unused_word, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, nullptr, word,
                   FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 1)) >= 0;
  }
  const timespec at_once{0, 0};
  return syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &at_once, nullptr, 0) == 0 ||
         errno != EFAULT;
}

// Blocks all signals: no handler may run on this thread while it holds the lock of a page that the
// handler could touch.
class WithoutSignals {
 public:
  WithoutSignals() noexcept {
    const uint64_t all = ~uint64_t{0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof all);
  }
  ~WithoutSignals() { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  uint64_t before_ = 0;
};

class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int saved_;
};

}  // namespace

std::atomic<HostPages*> HostPages::newest{nullptr};

// --- sections ---

// seq_cst throughout: either wait_for_sections() sees the section, or the section sees the new
// table.
HostPages::Section::Section(HostPages& pages) noexcept
    : inside_([&]() -> std::atomic<uint32_t>& {
        for (;;) {
          const uint32_t epoch = pages.epoch_.load(std::memory_order_seq_cst);
          std::atomic<uint32_t>& inside = pages.inside_[epoch % 2];
          inside.fetch_add(1, std::memory_order_seq_cst);
          if (pages.epoch_.load(std::memory_order_seq_cst) == epoch) return inside;
          inside.fetch_sub(1, std::memory_order_release);
        }
      }()),
      table(*pages.table_.load(std::memory_order_seq_cst)) {}

HostPages::Section::~Section() {
  // release: the section's accesses happen before wait_for_sections() returns.
  inside_.fetch_sub(1, std::memory_order_release);
}

void HostPages::wait_for_sections() noexcept {
  const uint32_t before = epoch_.fetch_add(1, std::memory_order_seq_cst);
  while (inside_[before % 2].load(std::memory_order_acquire) != 0) sched_yield();
}

void HostPages::publish(std::unique_ptr<const Table> next) {
  const std::unique_ptr<const Table> previous(
      table_.exchange(next.release(), std::memory_order_seq_cst));
  wait_for_sections();
}

// --- construction, add, remove ---

HostPages::HostPages(size_t events, uint64_t flood_window_ns)
    : events_(events),
      flood_window_ns_(flood_window_ns),
      made_here_(page_emptied_by_fork()),
      table_(new Table) {
  older_ = newest.load(std::memory_order_acquire);
  newest.store(this, std::memory_order_release);
  install_fault_chain(FaultRank::host_pages, &settle);
}

HostPages::~HostPages() {
  for (const auto& buffer : buffers_) buffer->open_all();
  HostPages* newer = newest.load(std::memory_order_acquire);
  if (newer == this) {
    newest.store(older_, std::memory_order_release);
  } else {
    while (newer->older_ != this) newer = newer->older_;
    newer->older_ = older_;
  }
  delete table_.load(std::memory_order_relaxed);
  munmap(const_cast<bool*>(made_here_), kPage);
}

void HostPages::add(GpuAddress begin, std::byte* program, std::byte* device, size_t bytes) {
  auto buffer =
      std::make_unique<Buffer>(begin, program, device, (bytes + kPage - 1) / kPage * kPage);
  const std::lock_guard lock(writers_);
  auto next = std::make_unique<Table>(*table_.load(std::memory_order_relaxed));
  const auto insert = [&](std::vector<Buffer*>& buffers, auto before) {
    buffers.insert(std::upper_bound(buffers.begin(), buffers.end(), buffer.get(), before),
                   buffer.get());
  };
  insert(next->by_gpu, [](const Buffer* a, const Buffer* b) { return a->begin < b->begin; });
  if (program != nullptr)
    insert(next->by_program,
           [](const Buffer* a, const Buffer* b) { return a->program < b->program; });
  buffers_.push_back(std::move(buffer));
  publish(std::move(next));
}

void HostPages::remove(GpuAddress begin) {
  const std::lock_guard lock(writers_);
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [begin](const auto& buffer) { return buffer->begin == begin; });
  if (found == buffers_.end()) return;
  auto next = std::make_unique<Table>(*table_.load(std::memory_order_relaxed));
  std::erase(next->by_gpu, found->get());
  std::erase(next->by_program, found->get());
  // The handler finds the buffer until every page is open. A thread that faulted earlier and is
  // handled later finds that it may access the page.
  (*found)->open_for_good.store(true, std::memory_order_seq_cst);
  wait_for_sections();
  (*found)->open_all();
  publish(std::move(next));
  buffers_.erase(found);
}

// --- called by host threads ---

bool HostPages::is_inherited(const HostPages& pages) noexcept { return !*pages.made_here_; }

bool HostPages::settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept {
  // Whatever si_code is: a thread in a step executes one instruction.
  if (signal_number == SIGTRAP) {
    const std::optional<SteppedAccess> stepped = end_redirected_step(context);
    if (stepped && stepped->pages->ended_step(*stepped)) hold_host();
    return stepped.has_value();
  }
  if (signal_number != SIGSEGV || info.si_code != SEGV_ACCERR) return false;
  const auto error = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_ERR]);
  const bool write = (error & 2) != 0;  // bit of the page fault's error code
  const bool fetch = (error & 16) != 0;
  const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
  if (fetch) return false;
  for (HostPages* pages = newest.load(std::memory_order_acquire); pages != nullptr;
       pages = pages->older_)
    if (is_inherited(*pages) ? pages->open_inherited(address, 1)
                             : pages->fault(address, write, context))
      return true;
  return false;
}

// Takes no locks, because the child inherits locks and sections whose holders do not exist in it.
// Opens each page once; a second fault is the program's own.
bool HostPages::open_inherited(uintptr_t address, size_t bytes) noexcept {
  bool opened = false;
  table_.load(std::memory_order_relaxed)
      ->visit(address, bytes, [&](Buffer& buffer, size_t index, uintptr_t) {
        Page& page = buffer.page[index];
        if (page.state == Page::State::open || page.state == Page::State::unwatched) return;
        page.state = Page::State::unwatched;
        opened = buffer.protect(index, 1, kOpen) || opened;
      });
  return opened;
}

bool HostPages::fault(uintptr_t address, bool write, ucontext_t& context) noexcept {
  for (;;) {
    const Section section(*this);
    Buffer* const buffer = section.table.from_program(address);
    if (buffer == nullptr || !buffer->holds(address)) {
      // The buffer may have been removed since the fault. Its pages are then open, unless they have
      // been added again.
      if (is_accessible(address, write)) return true;
      if (table_.load(std::memory_order_seq_cst) == &section.table) return false;
      continue;
    }
    const size_t index = (address - buffer->program_begin()) / kPage;
    if (buffer->open_for_good.load(std::memory_order_acquire))
      return buffer->protect(index, 1, kOpen);
    // Before the lock, which device threads wait for.
    const uint64_t site = support::code_site(
        static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]), support::python_calls().own);
    const PageLock lock(buffer->page[index]);
    // If there is nothing to record, another thread has opened the page or the program has
    // protected it. The lock keeps that state during the check.
    if (buffer->page[index].state == Page::State::signals)
      return step_over_signal(*buffer, index, address, write, context) ||
             is_accessible(address, write);
    return record_access(*buffer, index, address, write, site) || is_accessible(address, write);
  }
}

// Returns false if the page already permits the access, or cannot be made to.
bool HostPages::record_access(Buffer& buffer, size_t index, uintptr_t address, bool write,
                              uint64_t site) noexcept {
  Page& page = buffer.page[index];
  if (page.state == Page::State::signals) return open_signals(buffer, index);
  if (page.state == Page::State::open || page.state == Page::State::unwatched ||
      (page.state == Page::State::readable && !write))
    return false;
  const uint64_t now = host_clock_ns();
  if (now - page.window_ns > flood_window_ns_) {
    page.window_ns = now;
    page.faults = 0;
  }
  if (++page.faults > kFloodFaults) return give_up(buffer, index, unwatched_);
  if (!events_.push({.kind = write ? HostEvent::Kind::opened : HostEvent::Kind::read,
                     .address = buffer.begin + (address - buffer.program_begin()),
                     .host_ns = now,
                     .site = site,
                     .thread = static_cast<uint64_t>(syscall(SYS_gettid))}))
    return give_up(buffer, index, lost_);
  if (!write) {
    page.state = Page::State::readable;
    return set_protection(buffer, index, PROT_READ);
  }
  copy_page(buffer.twins + index * kPage, buffer.device + index * kPage);
  page.has_twin = true;
  page.opened_ns = now;
  page.state = Page::State::open;
  return set_protection(buffer, index, kOpen);
}

bool HostPages::give_up(Buffer& buffer, size_t index, std::atomic<uint64_t>& counter) noexcept {
  counter.fetch_add(1, std::memory_order_relaxed);
  if (buffer.page[index].state == Page::State::signals) open_signals(buffer, index);
  buffer.page[index].state = Page::State::unwatched;
  return set_protection(buffer, index, kOpen);
}

// Returns false if the kernel refuses, because the process has reached its limit of mappings. Then
// opens the whole buffer, which frees some of them.
bool HostPages::set_protection(Buffer& buffer, size_t index, int protection) noexcept {
  if (buffer.protect(index, 1, protection)) return true;
  misses_looks_.store(true, std::memory_order_release);
  if (!buffer.open_for_good.exchange(true, std::memory_order_seq_cst))
    unwatched_.fetch_add(buffer.pages, std::memory_order_relaxed);
  buffer.protect(0, buffer.pages, kOpen);
  return false;
}

bool HostPages::hold(uintptr_t address, size_t bytes, bool write) noexcept {
  const KeepErrno keep;
  if (is_inherited(*this)) {
    open_inherited(address, bytes);
    return false;
  }
  const Section section(*this);
  const Buffer* const buffer = section.table.from_program(address);
  if (bytes == 0 || buffer == nullptr || !buffer->overlaps(address, bytes)) return false;
  const WithoutSignals no_signals;
  section.table.visit(address, bytes, [&](Buffer& held, size_t index, uintptr_t at) {
    if (held.open_for_good.load(std::memory_order_acquire)) {
      held.protect(index, 1, kOpen);
      return;
    }
    const PageLock lock(held.page[index]);
    ++held.page[index].holders;
    record_access(held, index, at, write, 0);
  });
  return true;
}

void HostPages::release(uintptr_t address, size_t bytes) noexcept {
  const KeepErrno keep;
  if (is_inherited(*this)) return;
  const WithoutSignals no_signals;
  const Section section(*this);
  section.table.visit(address, bytes, [](Buffer& buffer, size_t index, uintptr_t) {
    Page& page = buffer.page[index];
    const PageLock lock(page);
    if (page.holders != 0) --page.holders;
  });
}

void HostPages::unwatch(const std::byte* program, size_t bytes) noexcept {
  const WithoutSignals no_signals;
  const Section section(*this);
  section.table.visit(reinterpret_cast<uintptr_t>(program), bytes,
                      [&](Buffer& buffer, size_t index, uintptr_t) {
                        if (buffer.open_for_good.load(std::memory_order_acquire)) return;
                        const PageLock lock(buffer.page[index]);
                        if (buffer.page[index].state != Page::State::unwatched)
                          give_up(buffer, index, unwatched_);
                      });
}

// --- called by device threads ---

bool HostPages::close(GpuAddress address, bool hide_from_reads) noexcept {
  const Section section(*this);
  Buffer* const buffer = section.table.at_gpu(address);
  if (buffer == nullptr) return false;
  if (buffer->program == nullptr) return true;
  const size_t index = (address - buffer->begin) / kPage;
  if (buffer->open_for_good.load(std::memory_order_acquire)) return false;
  Page& page = buffer->page[index];
  const PageLock lock(page);
  if (page.state == Page::State::unwatched || page.state == Page::State::signals) return false;
  const bool was_open = page.state == Page::State::open;
  const Page::State wanted = hide_from_reads || page.state == Page::State::closed
                                 ? Page::State::closed
                                 : Page::State::readable;
  if (page.state != wanted && page.holders == 0) {
    buffer->note_closed(index);
    // Protect before comparing: the comparison then finds every earlier store, and no store can
    // follow it.
    if (!set_protection(*buffer, index, wanted == Page::State::closed ? PROT_NONE : PROT_READ))
      return false;
    page.state = wanted;
    // another thread gave up the buffer
    if (buffer->open_for_good.load(std::memory_order_acquire)) return false;
  }
  if (was_open && !report_changes(*buffer, index)) {
    give_up(*buffer, index, lost_);
    return false;
  }
  ++page.users;
  return true;
}

void HostPages::hide(GpuAddress address) noexcept {
  const Section section(*this);
  Buffer* const buffer = section.table.at_gpu(address);
  if (buffer == nullptr || buffer->program == nullptr) return;
  const size_t index = (address - buffer->begin) / kPage;
  Page& page = buffer->page[index];
  const PageLock lock(page);
  if (page.state != Page::State::readable || page.holders != 0) return;
  if (buffer->open_for_good.load(std::memory_order_acquire)) return;
  if (set_protection(*buffer, index, PROT_NONE)) page.state = Page::State::closed;
}

// Returns false if there is no room for the events.
bool HostPages::report_changes(Buffer& buffer, size_t index) noexcept {
  Page& page = buffer.page[index];
  std::byte* const twin = buffer.twins + index * kPage;
  const std::byte* now = buffer.device + index * kPage;
  HostEvent event{.kind = HostEvent::Kind::unknown,
                  .address = buffer.begin + index * kPage,
                  .bytes = kPage,
                  .host_ns = page.opened_ns,
                  .opened_ns = page.opened_ns,
                  .closed_ns = host_clock_ns()};
  alignas(64) std::array<std::byte, kPage> snapshot;
  const bool stays_open = page.state == Page::State::open;
  if (stays_open) {
    // A system call keeps the page open. The contents compared now are the next comparison's twin.
    copy_page(snapshot.data(), now);
    now = snapshot.data();
  }
  PageMask changes;
  if (page.has_twin && find_changes(now, twin, changes)) {
    PageMask doubtful;
    uint64_t any_doubtful = 0;
    uint64_t any_certain = 0;
    for (size_t word = 0; word < changes.size(); ++word) {
      const uint64_t by_device = page.users != 0     ? ~uint64_t{0}
                                 : page.device_wrote ? buffer.stored[index][word]
                                                     : 0;
      doubtful[word] = changes[word] & by_device;
      changes[word] &= ~by_device;
      any_doubtful |= doubtful[word];
      any_certain |= changes[word];
    }
    if (any_doubtful != 0 && !events_.push(event, &doubtful)) return false;
    event.kind = HostEvent::Kind::wrote;
    if (any_certain != 0 && !events_.push(event, &changes)) return false;
  }
  if (page.device_wrote) buffer.stored[index] = {};
  page.device_wrote = false;
  page.has_twin = stays_open;
  if (stays_open) {
    copy_page(twin, snapshot.data());
    page.opened_ns = event.closed_ns;
  }
  return true;
}

void HostPages::device_wrote(GpuAddress address, const PageMask* bytes) noexcept {
  const Section section(*this);
  Buffer* const buffer = section.table.at_gpu(address);
  if (buffer == nullptr || buffer->program == nullptr) return;
  const size_t index = (address - buffer->begin) / kPage;
  Page& page = buffer->page[index];
  const PageLock lock(page);
  if (page.users != 0) --page.users;
  if (bytes == nullptr || page.state != Page::State::open) return;
  for (size_t word = 0; word < bytes->size(); ++word) buffer->stored[index][word] |= (*bytes)[word];
  page.device_wrote = true;
}

}  // namespace uptempo::vgpu
