// The programs that fault_matrix runs beneath an injected fault, each in a process of its own. They
// write facts to stdout, one `name=value` a line, as soon as each is known: a process that dies or
// hangs has then said how far it came.
//
//   at=PLACE          begun: "set-up", "work", "other queue", "stream", "copy", "tear-down"
//   events=N          that the driver holds after the set-up
//   error=...         the first Error of a round: status, call and text
//   foreign=...       an exception that is no Error
//   wrong=...         a result is wrong, and nothing said so
//   stuck=...         a completion neither failed nor finished within Plan::patience
//   unfinished=done|failed      what became of the work on the faulted queue
//   other=done|failed           work on another queue of the agent
//   peer=done|failed            work on another agent
//   late peer=done|failed       the same with objects that are made after the fault
//   late error=...    why they cannot be
//   child=done|failed           the process that the scenario starts
//   refusal=...       an Error in the child of a fork
//   kept=...          kernarg blocks and signals of the failed work; no other packet had them until
//                     its queue was destroyed
//   reused=...        other packets had them, or blocks were written to
//   continues=done|failed       after a shortage: later work on the queue
//   round=N           rounds completed; a round is one Runtime
//   library=R S T     Runtimes, interrupt signals and timelines of the engine in use after it
//   spare=N           events that ROCr keeps without use after it (rocr_events.hpp); not counted
//                     before the last round, unless it is 0
//   held=Q E B V H    queues, events, buffers, VRAM and host bytes that the driver holds after it
//   rule=M I          of each rule: events that matched, and those to which it applied
//   ended=yes
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <uptempo/uptempo.hpp>

namespace uptempo::faults {

struct Plan {
  std::string scenario = "work";      // "work", "peer", "fork", "neighbour", "leak", or a shortage
  std::chrono::seconds patience{60};  // of each wait; ends no wait that can succeed
  std::string launcher;               // of a neighbour
};

constexpr unsigned kLastRound = 2;

// Two rounds of the same work through the engine.
int run_subject(const Plan& plan);
// The same HSA calls without the engine: the set-up of an agent, a queue, memory, a dispatch, a
// copy, and everything destroyed again, twice. Shows what ROCr alone makes of a fault.
int run_control(const Plan& plan);

// One round of a shortage (shortage.cpp), without `round`.
void run_shortage(const Plan& plan);
bool is_shortage(std::string_view scenario);

// Reuses the memory of destroyed objects, as any program does: blocks of all sizes, without a zero.
void reuse_heap();

// Status, call and text.
std::string text_of(const Error& error);
// Prints one fact and flushes.
void say(const std::string& name, const std::string& value);
// Prints `round`, `library`, `spare` and `held`.
void say_device(unsigned round);

}  // namespace uptempo::faults
