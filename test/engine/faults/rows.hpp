// The rows of the fault matrix, as data.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::faults {

// In a rule for CREATE_EVENT: the number of the first event after the set-up of the work.
inline constexpr std::string_view kAfterSetUp = "AFTER_SET_UP";

struct Row {
  std::string name;
  std::string inject;
  bool must_fail = true;        // an Error is required; otherwise right results do as well
  bool work_fails = true;       // and it is the work that fails, not what follows
  bool other_continues = true;  // another queue of the agent works
  bool again_works = true;      // a second Runtime works; otherwise its Error is named
  bool late_peer_works = true;  // objects of another agent that are made after the fault
  bool reported = true;         // false: HSA does not report it, so only deadlines end waits
  bool claimed = false;  // the engine claims it, so ROCr's end of a program without it is no excuse
  bool is_short = false;  // part of the short matrix
  std::vector<std::string> launcher{};
  std::string scenario = "work";
};

// Packets, interrupts, GPUs, processes.
std::vector<Row> device_rows();

// Requests that a program performs, and error numbers with which the driver may refuse them.
struct Sweep {
  std::string place;  // "ioctl=CREATE_QUEUE"
  std::vector<std::string> errors;
  bool timed = false;  // how often it happens depends on time: few events are tried
};
std::vector<Sweep> request_sweeps();

}  // namespace uptempo::faults
