// The language of `uptempo-vgpu --inject`: faults that the driver and the device show on purpose.
//
//   rules  := rule { ';' rule }
//   rule   := place effect { filter | when }      words are separated by spaces, in any order
//
//   ioctl=NAME|any  errno=E         a KFD request fails before it has any effect. NAME is KFD's
//                                   without AMDKFD_IOC_, for example ALLOC_MEMORY_OF_GPU
//   mmap            errno=E         the program's mmap() of a device file fails
//   open            errno=E         open() of /dev/kfd or a render node fails
//   packet          error=NAME      the queue stops with that exception. NAME is KFD's without
//                                   KFD_EC_MASK(EC_QUEUE_...), for example WAVE_ILLEGAL_INSTRUCTION
//                   fault=KIND      the packet faults: not_present, read_only, or poison (ECC)
//                   torn            the processor reads 60 zero bytes after the header
//                   late=MS         the processor sees the packet MS milliseconds later
//                   untimed         the packet's signal keeps its times, also with profiling, as of
//                                   a queue whose profiling was enabled after it was mapped
//                   stale           its acquire fence invalidates no cache; with --incoherent only
//                   reset           the driver resets the GPU, as after a hang
//                   gone            the GPU disappears: its queues stop, requests give ENODEV
//   interrupt       lost|doubled    the event of a completed packet or copy
//   hdp             lost            a store to HDP_MEM_FLUSH_CNTL, or the host's read-back from a
//                                   line that it has stored to, makes no store to device memory
//                                   visible; with --bar lazy only
//   copy            lost            an SDMA packet that copies or fills moves no bytes. The packets
//                                   after it, which signal its completion, are executed
//
//   queue=N  gpu=N                  filters of packet, interrupt and copy. Queues have the numbers
//                                   of traces. Without queue=, packets of the runtime's own queue
//                                   (the first of a GPU) do not count.
//   index=N  type=dispatch|barrier|vendor         filters of packet: its index in the queue
//
//   nth=N                           from the Nth matching event on (default 1)
//   every=N                         each Nth matching event
//   chance=P  seed=N                each with probability P, 0 to 1; seed 1 unless given
//   count=N|all                     so many times: 1 with nth=, all with every= and chance=
//
// Rules are immutable values. Parsing throws std::invalid_argument, which names the word, its
// column from 1, and the nearest word that would be right.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/fault.hpp"

namespace uptempo::vgpu {

// An exception of a queue: KFD's code, and the bit of queue_inactive_signal by which firmware
// reports it to a runtime that does not use exceptions.
struct QueueException {
  std::string_view name;
  unsigned code;
  QueueError bit;
};

struct InjectRule {
  enum class Place : uint8_t { ioctl, mmap, open, packet, interrupt, hdp, copy };
  enum class Effect : uint8_t {
    error_number,
    exception,
    memory_fault,
    torn,
    late,
    untimed,
    stale,
    reset,
    gone,
    lost,
    doubled
  };
  enum class Fault : uint8_t { not_present, read_only, poison };
  enum class Packets : uint8_t { all, dispatch, barrier, vendor };
  static constexpr uint32_t kAnyIoctl = std::numeric_limits<uint32_t>::max();
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  std::string text;  // as given
  Place place = Place::ioctl;
  Effect effect = Effect::error_number;

  uint32_t ioctl = kAnyIoctl;  // KFD's number
  int error_number = 0;
  const QueueException* exception = nullptr;
  Fault fault = Fault::not_present;
  uint32_t late_ms = 0;

  std::optional<uint32_t> queue, gpu;
  std::optional<uint64_t> index;
  Packets packets = Packets::all;

  uint64_t nth = 1;
  uint64_t every = 0;            // 0: `nth` decides
  std::optional<double> chance;  // instead of nth and every
  uint64_t seed = 1;
  uint64_t count = 1;
};

// Returns the rules in order; not empty.
std::vector<InjectRule> parse_inject_rules(std::string_view text);

// Returns KFD's name of a request without AMDKFD_IOC_, or "unknown".
std::string_view kfd_ioctl_name(uint32_t number) noexcept;

}  // namespace uptempo::vgpu
