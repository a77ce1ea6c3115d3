// Shared parts of the fuzz targets. A target is a function that gives arbitrary bytes to a reader
// and checks the result. README.md says how targets are built and run.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace uptempo::fuzz {

using Bytes = std::span<const uint8_t>;

inline std::string_view text_of(Bytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// Prints the sentence and ends the process, which libFuzzer and fuzz_findings_test report.
[[noreturn]] void finding(std::string_view what);
inline void require(bool holds, std::string_view rule) {
  if (!holds) finding(rule);
}

// Calls a reader of `uptempo`. Returns false if it throws Error. An Error without status, call,
// request, finding or remedy is a finding, and so is any other exception, which the caller lets
// pass.
bool accepts(void (*call)(void*), void* reader);
template <class F>
bool accepts(F&& reader) {
  return accepts([](void* f) { (*static_cast<std::remove_reference_t<F>*>(f))(); }, &reader);
}

// The same for a reader that throws `Refusal`, which must say something.
template <class Refusal, class F>
bool accepts_or(F&& reader) {
  try {
    reader();
    return true;
  } catch (const Refusal& refusal) {
    require(*refusal.what() != '\0', "a refusal has a text");
    return false;
  }
}

// The targets, one source each.
void code_object(Bytes input);
void metadata(Bytes input);
void recording(Bytes input);
void program_file(Bytes input);
void report(Bytes input);
void trace(Bytes input);
void packet(Bytes input);
void instruction(Bytes input);
void host_instruction(Bytes input);
void device_memory(Bytes input);
void names(Bytes input);

struct Target {
  const char* name;
  void (*run)(Bytes input);
};
inline constexpr Target kTargets[] = {
    {"code_object", code_object},
    {"metadata", metadata},
    {"recording", recording},
    {"program_file", program_file},
    {"report", report},
    {"trace", trace},
    {"packet", packet},
    {"instruction", instruction},
    {"host_instruction", host_instruction},
    {"device_memory", device_memory},
    {"names", names},
};

}  // namespace uptempo::fuzz
