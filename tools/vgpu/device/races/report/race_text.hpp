// Races as text and as JSON.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/fences/report/finding_text.hpp"
#include "device/races/finding.hpp"

namespace uptempo::vgpu::races {

// The language of the kernel's source.
enum class Language : uint8_t { opencl, hip };

// By the file of a source line: "sum.hip:12". Empty: a header, which both may include, or no line.
std::optional<Language> language_of(std::string_view line) noexcept;

// What the driver finds out about the program for a report.
struct Details {
  std::string writer_line, other_line;  // "sum.hip:12"; empty: not known
  std::vector<fences::HostFrame> published_by;
  fences::QueueName queue_name = {};
  std::optional<fences::MemoryDetails> memory;  // of global memory
  Language language = Language::opencl;
  bool several_gpus = false;
};

// What to change in the kernel.
std::string remedy(const Finding& finding, Language language);

// {"class":"race","memory_space":"lds","kernel":"_Z3sumPi.kd","source_name":"sum(int*)","queue":1,
//  "stream":"0x55d0c0","index":0,"writer":{"access":"write","workgroup":[0,0,0],"wave":1,
//  "instruction":140737,"line":"sum.hip:12"},"other":{...},"address":64,"bytes":4,"times":2,
//  "published_by":[...],"memory":{...},"reason":"...","rule":"...","remedy":"...",
//  "device":"gfx90a"}
// "access": read, write, atomic; with a scope in "scope" if it is atomic.
std::string to_json(const Checked& dispatch, const Finding& finding, std::string_view target,
                    const Details& details = {});

// "race: sum(int*) (queue 1, packet 0): wave 1 of workgroup (0,0,0) writes 4 bytes at offset 64 of
// LDS, which wave 0 of the same workgroup reads: ..."
std::string to_sentence(const Checked& dispatch, const Finding& finding,
                        const Details& details = {});

}  // namespace uptempo::vgpu::races
