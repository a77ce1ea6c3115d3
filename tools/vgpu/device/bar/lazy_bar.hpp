// The host's path to device memory that holds stores back (`--bar lazy SEED`).
//
// Hardware buffers the host's stores to device memory on their way (write-combining buffers, the
// bus, the HDP). A program makes them visible with a store to HDP_MEM_FLUSH_CNTL or by reading
// back. One that does neither usually works, because the buffers drain soon. Here they drain late:
//
// * The device does not see a store to device memory until a flush, unless the seed lets its line
//   drain earlier. Lines drain early in any order; the stores to one line stay in order.
// * A store to HDP_MEM_FLUSH_CNTL makes all earlier stores visible.
// * A host load from a line makes the stores to it and all stores before them visible, also where
//   the line has drained early: a read does not pass earlier writes. A load from a line without a
//   store since the last flush makes nothing visible.
// * A packet that acquires at system scope makes all stores visible, and so does an SDMA packet
//   that flushes the HDP, except stores to allocations that have held arguments of a packet. HIP
//   5.2.3 copies small amounts through the BAR without a flush, and relies on this; for arguments
//   CLR flushes or reads back (rocvirtual.cpp).
// * The oldest stores drain when more than kPending lines are pending or have drained early behind
//   a pending one: buffers are finite.
// * Stores to rings of queues are visible at once, whole. ROCr publishes to rings in device memory
//   with SFENCE and a doorbell, without a flush. Loads from rings are counted.
// * The host sees its own stores, and everything that the device has stored.
// * A flush or a read-back that `hdp lost` of --inject hits makes nothing visible.
//
// Mechanism: the program's mapping of device memory is exchanged for pages of its own, which stay
// closed. An access faults; the handler opens the page, has the thread execute this one instruction
// (trap flag), compares the page with a copy and closes it again. So every load and store is seen,
// at the cost of two signals each (about 10 us). Rings keep the device's pages, which are opened
// and closed in the same way. For the HDP registers the handler executes 32-bit MOV itself
// (mov_instruction.hpp), so that no thread's flush is missed.
//
// Not seen: SFENCE; accesses of a second thread to a page while the first executes its instruction
// (their stores are found by the comparison, their loads are not counted and flush nothing); the
// length of a store beyond the bytes that it changes. A system call that is given such memory opens
// it for the length of the call.
//
// Restrictions: the program does not single-step itself (SIGTRAP) and does not change the
// protection of device memory.
// Thread safety: any thread. The handler takes a spin lock that is held for copies of pages.
#pragma once

#include <ucontext.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/host/host_events.hpp"

namespace uptempo::vgpu {

class Injector;

class LazyBar {
 public:
  static constexpr size_t kPending = 4096;  // lines

  // Installs the fault handler (fault_chain.hpp). One instance per process.
  // `injector`: loses flushes and read-backs; null: none is lost. It outlives this object.
  explicit LazyBar(uint64_t seed, Injector* injector = nullptr);
  LazyBar(const LazyBar&) = delete;
  LazyBar& operator=(const LazyBar&) = delete;
  ~LazyBar();

  static LazyBar* of_process() noexcept { return instance.load(std::memory_order_acquire); }

  // The program reaches [device, device + bytes) at `program`: shared mappings of the same pages,
  // page-aligned. Exchanges the program's mapping. No effect if it is exchanged already. Returns
  // false if the system refuses mappings; nothing has changed then.
  bool add(std::byte* program, std::byte* device, size_t bytes);
  // All stores become visible, and the buffer that begins at `program` is forgotten. Call it before
  // the memory is reused. No effect for an unknown address.
  void remove(const std::byte* program);
  // Stores to the buffer that contains `program` are visible at once from now on: a queue's ring or
  // one of its indices is in it.
  void pass_through(const std::byte* program);

  // The allocation at the device's address holds arguments of a packet.
  void note_arguments(const std::byte* device) noexcept;
  // A packet acquires at system scope, or an SDMA packet flushes.
  void acquire() noexcept;

  // The page with the HDP registers. Null: none.
  void watch_registers(std::byte* page);

  // For system calls (host_pages.hpp, HostAccess). Returns false if the range has no watched pages.
  bool hold(uintptr_t address, size_t bytes) noexcept;
  void release(uintptr_t address, size_t bytes) noexcept;

  // Instructions and system calls that loaded from device memory, and stores to
  // HDP_MEM_FLUSH_CNTL.
  uint64_t host_reads() const noexcept { return host_reads_.load(std::memory_order_relaxed); }
  uint64_t hdp_flushes() const noexcept { return hdp_flushes_.load(std::memory_order_relaxed); }

  // The client of fault_chain.hpp.
  static bool settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept;

 private:
  struct Buffer;
  struct Line;
  class Lock;

  bool fault(uintptr_t address, bool write, ucontext_t& context) noexcept;
  bool finish_steps(ucontext_t& context) noexcept;
  bool access_registers(uintptr_t offset, ucontext_t& context) noexcept;
  // These require the lock.
  Buffer* find(uintptr_t address) noexcept;
  Buffer* find_device(const std::byte* at) noexcept;
  bool open(Buffer& buffer, size_t page) noexcept;
  void close(Buffer& buffer, size_t page, uintptr_t stored_at) noexcept;
  void read_back(const std::byte* device_line) noexcept;
  static void show(Line& line) noexcept;  // to the device
  void store(std::byte* device_line, const std::byte* data, uint64_t mask) noexcept;
  void flush() noexcept;
  bool is_lost() noexcept;  // a flush or read-back
  void drain_first(size_t count) noexcept;
  void drain_line(const std::byte* device_line) noexcept;
  uint64_t random() noexcept;

  static std::atomic<LazyBar*> instance;

  std::atomic_flag lock_;
  alignas(64) std::array<std::byte, 4096> snapshot_;  // of the page that closes; under the lock
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::byte* registers_ = nullptr;
  uint32_t register_users_ = 0;
  // Pending stores in the order of the program.
  const std::unique_ptr<Line[]> lines_;
  size_t pending_ = 0;
  uint64_t random_;
  Injector* const injector_;
  const uint64_t early_;  // one of so many stores lets a line drain early; 0: never
  std::atomic<uint64_t> host_reads_{0}, hdp_flushes_{0};
};

}  // namespace uptempo::vgpu
