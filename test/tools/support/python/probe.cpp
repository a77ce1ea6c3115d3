// For Python programs, through ctypes: the calls that tools see of them, and the decoder of lines.
#include <cstdint>
#include <cstring>
#include <string>

#include "tools/support/python_calls.hpp"
#include "tools/support/python_lines.hpp"

using namespace uptempo::support;

extern "C" {

void find() { find_python(); }

// A line for each call, "FUNCTION\tFILE\tLINE\n", then the program's own innermost one again.
// Returns the length, or -1 if there is no room.
int64_t calls(char* to, uint64_t size) {
  std::string text;
  const auto add = [&](PythonCallId id) {
    const PythonCall call = python_call(id);
    text += std::string(call.function) + '\t' + std::string(call.file) + '\t' +
            std::to_string(call.line) + '\n';
  };
  const PythonStack stack = python_calls();
  for (const PythonCallId id : stack.calls()) add(id);
  if (stack.count != 0) add(stack.own);
  if (text.size() > size) return -1;
  std::memcpy(to, text.data(), text.size());
  return static_cast<int64_t>(text.size());
}

// For measurements, and for a thread that looks until the process ends.
void repeat(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) (void)python_calls();
}

// The lines of the instructions from `first` to `first` + `count`.
void lines(const uint8_t* table, uint64_t size, int64_t first_line, int64_t first, uint64_t count,
           int64_t* to) {
  for (uint64_t i = 0; i < count; ++i)
    to[i] = python_line({table, size}, first_line, first + static_cast<int64_t>(i));
}
}
