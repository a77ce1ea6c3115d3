// The Python calls that the calling thread is in, for reports: function, file and line, in place of
// the interpreter's own frames. CPython 3.11 to 3.14 with a global interpreter lock; with any other
// interpreter, there are no calls.
//
// A thread's frames cannot change while the thread is in a call of C. They are read in memory, by
// the interpreter's layout: no function of Python that needs its lock or changes a reference count
// is called. Names and lines are copied, because a code object may be freed before a report.
//
// Includes nothing of the tree, because tools/vgpu, a project of its own, uses it, too.
//
// Thread safety: any thread. python_calls() and python_call() are async-signal-safe.
// Cost: without Python, one load. With it, some 0.2 us a Python frame (test/tools/support/python).
// Memory for kPythonCalls calls, which the system provides when they are first used.
//
// A thread that runs on while the interpreter ends (a daemon) may read a frame that is being freed:
// the interpreter is asked before each frame, but does not wait.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace uptempo::support {

// Looks for an interpreter in the program and its libraries, until one is found. Takes the dynamic
// loader's lock and no other, so not for signal handlers, nor beneath a lock that a library's
// constructor may wait for. One that a plugin keeps to itself (RTLD_LOCAL) is not
// found.
void find_python() noexcept;

// One place in a Python program. 0: none.
using PythonCallId = uint16_t;

// Different places. Later ones are not known.
inline constexpr size_t kPythonCalls = 16384;

// Innermost first: at most kOwn calls of the program's own. Of a run of calls inside installed
// packages and the standard library, there is the outermost: the one that the program called. A
// program without code of its own has the innermost calls.
struct PythonStack {
  static constexpr size_t kOwn = 6;
  std::array<PythonCallId, 2 * kOwn> ids{};
  size_t count = 0;
  PythonCallId own = 0;  // the innermost call of the program's own; if it has none, ids[0]

  std::span<const PythonCallId> calls() const noexcept { return {ids.data(), count}; }
};
PythonStack python_calls() noexcept;

struct PythonCall {
  std::string_view function;  // "Solver.step", "<module>"
  std::string_view file;      // "solver.py"; of an installed package "torch/nn/modules/linear.py"
  uint32_t line = 0;          // 0: not known
};
// Valid until the process ends. Empty for 0, and while another thread is storing the call.
PythonCall python_call(PythonCallId id) noexcept;

// A place in one word, of at most 48 bits of address: an instruction, and the Python call that it
// belongs to.
constexpr uint64_t code_site(uint64_t address, PythonCallId call) noexcept {
  return (address & ~uint64_t{0} >> 16) | uint64_t{call} << 48;
}
constexpr uint64_t address_of_site(uint64_t site) noexcept { return site & ~uint64_t{0} >> 16; }
constexpr PythonCallId call_of_site(uint64_t site) noexcept {
  return static_cast<PythonCallId>(site >> 48);
}

// Whether this file is the interpreter, a part of it, or calls C in a Python program's name, by its
// name: python3.13, libpython3.13.so.1.0, _ctypes, libffi, cffi. A program that contains an
// interpreter has functions of its own, too.
bool is_python_file(std::string_view name) noexcept;
// Whether an interpreter is known, so that there may be calls.
bool knows_python() noexcept;

}  // namespace uptempo::support
