// Findings as text and as JSON. A finding says what the checker knows; the details say what the
// driver finds out about the program for a report.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/fences/finding.hpp"
#include "device/fences/report/frame_text.hpp"

namespace uptempo::vgpu::fences {

// The program's own name for where it published a packet: HIP's stream, or HSA's queue.
struct QueueName {
  HipStream stream = HipStream::unknown;
  GpuAddress hsa_queue = 0;                   // hsa_queue_t*; 0: not known, or HIP's own
  std::optional<uint64_t> hsa_queue_id = {};  // its id
};

struct TaskDetails {
  std::vector<std::string> lines{};       // source lines of the kernel's accesses: "sum.hip:12"
  std::vector<HostFrame> published_by{};  // the host's call that published it, innermost first
  std::vector<HostFrame> queue_created_by = {};
  QueueName queue_name = {};
  // The host's access: the instruction, then the calls of inlined functions that it is part of.
  std::vector<HostFrame> site = {};
};

struct MemoryDetails {
  std::string kind;  // "device memory"
  GpuAddress begin = 0;
  uint64_t bytes = 0;
  std::vector<HostFrame> allocated_by;
};

struct FindingDetails {
  TaskDetails writer{}, reader{};
  std::optional<MemoryDetails> memory{};
  std::string remedy{};
};

// The source form of a mangled kernel name, without its suffix: "fill(int*)" for
// "_Z4fillPi.kd". Other names stay as they are.
std::string readable_kernel(std::string_view name);

// One JSON object without a newline:
// {"class":"stale","conflict":"read-after-write",
//  "writer":{"queue":1,"stream":"0x55d0c0","index":0,"kernel":"fill.kd","barrier":false,
//            "acquire":"system","release":"agent"},
//  "reader":{"queue":1,"index":1,"kernel":"_Z3sumPi.kd","source_name":"sum(int*)","barrier":true,
//            "acquire":"none","release":"system","lines":["sum.cl:12"],
//            "published_by":[{"function":"step()","source":"a.cpp:7","module":"a.out",
//                             "offset":4660}],
//            "queue_created_by":[...]},
//  "address":140737,"bytes":4096,
//  "memory":{"kind":"device memory","address":140000,"bytes":65536,"offset":737,
//            "allocated_by":[...]},
//  "reason":"...","rule":"...","remedy":"...","hsa":"violated","target":"possible",
//  "device":"gfx90a"}
// With several GPUs, "gpu":1 follows each queue. A copy is
// {"queue":2,"offset":64,"engine":"copy_linear"}, the host {"engine":"host"}, with "site" as in
// "published_by" where it is known. "target": possible or harmless. What is not known is absent.
// "stream" may also be "null" or "per-thread". A dispatch of an HSA program has
// "hsa_queue":"0x7f0080","hsa_queue_id":3 in its place.
std::string to_json(const Finding& finding, std::string_view target,
                    const FindingDetails& details = {});

// The same for a human reader, without the verdicts: "stale: sum(int*) (queue 1, packet 1: ...)
// reads 4096 bytes from address 0x225c1 on, which fill.kd ...". The details follow on lines of
// their own, indented.
std::string to_sentence(const Finding& finding, const FindingDetails& details = {});

// {"repeated":{"class":"stale","conflict":"read-after-write",
//              "writer":{"queue":1,"index":0,"kernel":"fill.kd"},"reader":{...},"times":100}}
std::string to_json(const Repeated& repeated);
// "unordered: 100 times in all: fill(int*) (queue 1, packet 1) and sum(int*) (queue 1, packet 2),
// and others like them"
std::string to_sentence(const Repeated& repeated);

}  // namespace uptempo::vgpu::fences
