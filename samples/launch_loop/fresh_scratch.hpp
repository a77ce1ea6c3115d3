// Launches as one writes them first: memory for the arguments and for arrays of the host is made for each launch, and given back after it.
//
// Waiting: arrays are copied by calls that return when the bytes are there, and the host waits for each kernel. Not waiting: arrays are copied by copy engines, before and behind the
// kernel by signals, and finish() waits once, for all launches since the last one.
//
// Thread safety: one owner. Lifetime: arrays of the host until the call returns, or finish() where nothing waits.
#pragma once

#include <engine/uptempo.hpp>

#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace uptempo::launch_loop {

// What in(), out() and in_out() make.
template <class T>
concept HostArray = requires(const T& array) {
  array.memory;
  T::goes_in;
  T::comes_out;
};

class FreshScratch {
 public:
  FreshScratch(const Agent& gpu, bool waits)
      : gpu_(gpu), waits_(waits), queue_(gpu, {.publications = 256}), batch_(queue_), copier_(gpu) {}
  ~FreshScratch();  // waits
  FreshScratch(const FreshScratch&) = delete;
  FreshScratch& operator=(const FreshScratch&) = delete;

  template <class... Args, class... Given>
  void launch(const Kernel<Args...>& kernel, const Grid& grid, const Given&... given) {
    // In braces the arguments, and with them the copies, are in order.
    const std::tuple<Args...> args{put_in<Args>(given)...};
    KernargBuffer& block = blocks_.emplace_back(gpu_, kernel.info().arguments.size_bytes());
    std::apply(
        [&](const Args&... values) {
          batch_.dispatch_at(block.span(), kernel, grid, values...)
              .fences(aql::FenceScope::system, aql::FenceScope::system);
        },
        args);
    // Asked for where somebody waits for this kernel.
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
    if constexpr (HostArray<Given>) return Given::comes_out;
    return false;
  }
  template <class Arg, class Given>
  Arg put_in(const Given& given) {
    if constexpr (HostArray<Given>) {
      const auto host = std::as_bytes(given.memory);
      std::byte* const room = scratch_.emplace_back(gpu_, host.size()).data();
      if constexpr (Given::goes_in) copy_in(room, host);
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
  Copier copier_;
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
  std::vector<Arrival> arrivals_;  // of arrays that come out
};

}  // namespace uptempo::launch_loop
