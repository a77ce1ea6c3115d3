// Pressure: how full the finite resources of a queue are, for programs that slow down before they
// have to wait.
//
//   if (queue.pressure().high()) stop_accepting();  // until it is no longer high
//
// A level becomes high at three quarters of its capacity and stays high until it has fallen to
// half. This prevents a program that stops and starts by it from switching rapidly. Every change of
// use is recorded, also between two calls of pressure(). The exception is the ring, which the
// device empties: its level is read by pressure() and when a submission finds too little room.
//
// Resources are returned by submissions and by Queue::reclaim(); without these a level does not
// fall.
//
// Thread safety: pressure() from any thread. It makes no allocation and takes no lock, and makes no
// call unless the queue is accessed by HSA calls (Pressure::access).
// Each number is recent, but the numbers are not a consistent snapshot.
#pragma once

#include <cstdint>

#include <uptempo/aql/amd_abi.hpp>

namespace uptempo {

struct Level {
  uint32_t capacity = 0;  // 0: the queue has none
  uint32_t in_use = 0;
  uint32_t peak = 0;  // most in use at a time
  bool high = false;

  uint32_t free() const noexcept { return capacity - in_use; }
};

struct Pressure {
  Level ring;            // packets
  Level publications;    // unfinished, or not yet reclaimed
  Level signals;         // for completion; event-less signals if there are no interrupt signals
  Level timing_signals;  // event-less
  Level kernarg_slabs;
  // hsa_calls: a tool interposes, or the caller asked for it (QueueOptions::access). Each
  // publication then costs HSA calls. Queue::describe() gives the reason.
  aql::RingAccess access = aql::RingAccess::direct;

  // True if any level is high.
  bool high() const noexcept {
    return ring.high || publications.high || signals.high || timing_signals.high ||
           kernarg_slabs.high;
  }
};

}  // namespace uptempo
