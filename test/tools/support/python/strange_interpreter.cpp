// Exports CPython's symbols with a version, offsets or memory that python_calls() must refuse. The
// argument names the case. Exit code: 0 if there are no calls, and nothing failed.
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "tools/support/python_calls.hpp"

using namespace uptempo::support;

namespace {

constexpr unsigned long k311 = 0x030b02f0, k313 = 0x030d00f0, k315 = 0x030f00f0;
void* thread = nullptr;

}  // namespace

// The names of CPython that the dynamic linker finds.
extern "C" {
unsigned long Py_Version = k311;
std::array<uint64_t, 128> _PyRuntime{};
std::array<uint64_t, 4> PyCode_Type{}, PyBytes_Type{}, PyUnicode_Type{};
void* PyGILState_GetThisThreadState() { return thread; }
int Py_IsFinalizing() { return 0; }
}

namespace {

void make_offsets(unsigned long version) {
  Py_Version = version;
  std::memcpy(_PyRuntime.data(), "xdebugpy", 8);
  _PyRuntime[1] = version;
}

// An address that no memory is at.
void* unmapped() { return mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

}  // namespace

int main(int, char** arguments) {
  const std::string what = arguments[1];
  static std::array<uint64_t, 1024> memory{};
  thread = memory.data();
  bool is_known = false;
  if (what == "newer") {
    make_offsets(k315);
  } else if (what == "without_lock") {
    make_offsets(k313);
    _PyRuntime[2] = 1;
  } else if (what == "no_cookie") {
    make_offsets(k313);
    _PyRuntime[0] = 0;
  } else if (what == "other_version") {
    make_offsets(k313);
    _PyRuntime[1] = k313 + 0x10000;
  } else if (what == "wild_offsets") {
    make_offsets(k313);
    for (size_t i = 3; i < _PyRuntime.size(); ++i) _PyRuntime[i] = uint64_t{1} << 40;
  } else {
    is_known = true;  // until the first stack
    if (what == "unmapped") thread = unmapped();
    if (what == "garbage") {
      std::mt19937_64 random(1);
      for (uint64_t& word : memory) word = random();
    }
    // A chain of frames whose code is no code.
    if (what == "no_code") {
      memory.fill(reinterpret_cast<uint64_t>(memory.data()));
      memory[8] = 0;  // the frames' owner
    }
    if (what == "no_thread") thread = nullptr;
    if (what == "no_frame") memory[7] = reinterpret_cast<uint64_t>(memory.data());  // cframe
  }
  find_python();
  if (knows_python() != is_known) return 1;
  for (int i = 0; i < 3; ++i)
    if (python_calls().count != 0) return 2;
  // A thread without frames says nothing of the layout.
  const bool is_without_frames = what == "no_thread" || what == "no_frame";
  return knows_python() == is_without_frames ? 0 : 3;
}
