// Launches in the simplest way: allocates memory for arguments and for host arrays in each launch,
// and frees it afterwards.
//
// Waiting: blocking calls copy arrays, and the host waits for each kernel. Not waiting: copy
// engines copy arrays, ordered before and after the kernel by signals, and finish() waits once for
// all launches since the last call.
//
// Thread safety: one owner.
// Lifetime: host arrays must live until the call returns, or until finish() if launches do not
// wait.
#pragma once

#include <uptempo/uptempo.hpp>

#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace uptempo::launch_loop {

// The results of in(), out() and in_out().
template <class T>
concept HostArray = requires(const T& array) {
  array.memory;
  T::kGoesIn;
  T::kComesOut;
};

class FreshScratch {
 public:
  FreshScratch(const Agent& gpu, bool waits)
      : gpu_(gpu),
        waits_(waits),
        queue_(gpu, {.publications = 256}),
        batch_(queue_),
        host_(find_pool(gpu, MemoryKind::pinned).owner) {}
  ~FreshScratch();  // waits for pending launches
  FreshScratch(const FreshScratch&) = delete;
  FreshScratch& operator=(const FreshScratch&) = delete;

  template <class... Args, class... Given>
  void launch(const Kernel<Args...>& kernel, const Grid& grid, const Given&... given) {
    // Braces evaluate the arguments, and thereby the copies, in order.
    const std::tuple<Args...> args{put_in<Args>(given)...};
    KernargBuffer& block = blocks_.emplace_back(gpu_, kernel.info().arguments.block_bytes());
    std::apply(
        [&](const Args&... values) {
          batch_.dispatch_at(block.span(), kernel, grid, values...)
              .fences(aql::FenceScope::system, aql::FenceScope::system);
        },
        args);
    // A completion signal only if the host or a copy waits for this kernel.
    if (waits_ || (comes_out<Given>() || ...)) batch_.complete_with(signals_.emplace_back());
    last_ = batch_.submit();
    if (waits_) last_.wait();
    [&]<size_t... I>(std::index_sequence<I...>) { (put_out(given, std::get<I>(args)), ...); }
    (std::index_sequence_for<Args...>());
    if (waits_) give_back();
  }

  void finish();

 private:
  template <class Given>
  static constexpr bool comes_out() {
    if constexpr (HostArray<Given>) return Given::kComesOut;
    return false;
  }
  template <class Arg, class Given>
  Arg put_in(const Given& given) {
    if constexpr (HostArray<Given>) {
      const auto host = std::as_bytes(given.memory);
      std::byte* const room = scratch_.emplace_back(gpu_, host.size()).data();
      if constexpr (Given::kGoesIn) copy_in(room, host);
      return reinterpret_cast<Arg>(room);
    } else {
      return given;
    }
  }
  template <class Given, class Arg>
  void put_out(const Given& given, const Arg& room) {
    if constexpr (comes_out<Given>()) copy_out(std::as_writable_bytes(given.memory), room);
  }
  void copy_in(void* room, std::span<const std::byte> host);
  void copy_out(std::span<std::byte> host, const void* room);
  void give_back();

  const Agent gpu_;
  const bool waits_;
  Queue queue_;
  BatchSubmitter batch_;
  const hsa_agent_t host_;
  Completion last_;
  std::vector<KernargBuffer> blocks_;
  std::vector<DeviceBuffer<std::byte>> scratch_;
  std::vector<PinnedBuffer<std::byte>> pinned_;
  std::deque<Signal> signals_;
  struct Arrival {
    hsa_signal_t copied;
    const std::byte* from;
    std::span<std::byte> to;
  };
  std::vector<Arrival> arrivals_;  // arrays to be copied to the host
};

}  // namespace uptempo::launch_loop
