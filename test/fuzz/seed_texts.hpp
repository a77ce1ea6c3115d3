// Seeds that are texts or a few bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace uptempo::fuzz {

using namespace std::string_view_literals;

inline constexpr std::string_view kPrograms[] = {
    R"({"name": "sum", "description": "halves", "buffers": [
{"name": "x", "bytes": 65536, "initial": {"u32": [1, 2, 3]}},
{"name": "sum", "bytes": 32768, "initial": {"f32": 1.5}}, {"name": "out", "bytes": 32768, "kind": "fine"}],
"steps": [
{"name": "lower", "kernel": "chain_increment", "grid": 8192, "workgroup": 256, "queue": 1,
 "arguments": [{"buffer": "x", "offset": 4}, {"u32": 1}, {"bytes": [1, 2]}, {"local": 1024}],
 "reads": [{"buffer": "x", "bytes": 32768}], "writes": [{"buffer": "x", "bytes": 32768}]},
{"name": "add", "kernel": "combine", "grid": [64, 2, 1], "workgroup": [8, 2],
 "arguments": [{"buffer": "sum"}, {"f64": -1e3}, {"i64": -7}], "reads": ["x", "sum"],
 "writes": ["sum"], "after": ["lower"]},
{"name": "down", "copy": {"from": "sum", "to": {"buffer": "out", "offset": 0, "bytes": 32768}}, "after": ["add"]}]})"sv,
    R"({"code_object": "kernels.co", "steps": []})"sv,
    R"({"buffers": [{"name": "b", "bytes": 8, "kind": "coarse", "initial": {"bytes": [255]}}],
"steps": [{"kernel": "k", "grid": [1], "reads": [], "writes": ["b"]}]})"sv,
};

inline constexpr std::string_view kTraces[] = {
    R"({"type":"doorbell","queue":1,"value":1,"ns":3}
{"queue":1,"index":0,"type":"kernel_dispatch","barrier":true,"acquire":"system","release":"agent","completion_signal":false,"kernel":"bitonic_sort.kd","grid":[16384,1,1],"workgroup":[256,1,1],"kernarg":140737,"start_ns":4,"end_ns":9}
{"queue":1,"index":1,"type":"barrier_and","barrier":true,"acquire":"none","release":"system","completion_signal":true,"start_ns":10,"end_ns":12}
{"type":"sdma","engine":"copy_linear","sdma_engine":0,"queue":2,"offset":64,"bytes":131072,"from":139637976727552,"to":139637976858624,"start_ns":4,"end_ns":5}
)"sv,
};

inline constexpr std::string_view kEarlierReport =
    R"({"format":"uptempo-dispatch-bench-1","kernels":"real","device":"gfx90a","virtual_gpu":true,"results":[{"name":"uptempo","batch":64,"phase":"submit","ns_per_dispatch":3.5,"low":3.0,"high":4.0}]})"sv;

inline constexpr std::string_view kNames[] = {
    "gfx90a:sramecc+:xnack-"sv,
    "amdgcn-amd-amdhsa--gfx942"sv,
    "_Z5scaleIdEvPT_S0_"sv,
    "scale<double>(double*, double)"sv,
    "gfx90a\ngfx90a,gfx908\nfences,hsa\n1.14\n2\n1\n\n\n\n7\n2\n1\n\n1\n"sv,
    "gfx942\n3\natomics\n1.8\n4\n\n5\n\n\n"sv,
};

inline constexpr std::string_view kHostInstructions[] = {
    "\x48\x89\x07"sv,                        // mov [rdi], rax
    "\x4c\x87\x44\x24\x10"sv,                // xchg [rsp + 16], r8
    "\x48\xc7\x84\x8b\1\2\3\4\5\6\7\x10"sv,  // mov qword [rbx + 4 rcx + d32], i32
    "\x44\x8b\x0d\1\2\3\4"sv,                // mov r9d, [rip + d32]
    "\xc7\x45\x08\1\2\3\4"sv,                // mov dword [rbp + 8], i32
};

// One packet of each kind that the SDMA engine supports, after four bytes of offset.
inline std::string sdma_packets() {
  const uint32_t words[] = {
      0,  // offset
      0x00020000,
      0,
      0,  // NOP of three dwords
      1,
      255,
      0,
      0x1000,
      0,
      0x2000,
      0,  // COPY, linear
      0x40000401,
      0x1000,
      0,
      0,
      1 << 13,
      1,
      0x2000,
      0,
      0,
      1 << 13,
      1,
      7 | 3 << 16,
      0,  // rectangle
      2,
      0x1000,
      0,
      1,
      7,
      8,  // WRITE of two dwords
      5,
      0x1000,
      0,
      1,  // FENCE
      6,
      1,  // TRAP
      0xb0000008,
      0x1000,
      0,
      1,
      ~0u,
      0,  // POLL_REGMEM of memory
      47u << 25 | 10,
      0x1000,
      0,
      1,
      0,
      0,
      0,
      0,  // ATOMIC
      0x8000000b,
      0x1000,
      0,
      0xabcd,
      15,  // CONST_FILL
      0x0000020d,
      0x1000,
      0,  // TIMESTAMP
      0xc0055800,
      1u << 23,
      0,
      0,
      0,
      0,
      0,  // PM4: ACQUIRE_MEM
      0xffff1000,
      0x80000000,  // PM4: NOP, padding
  };
  return {reinterpret_cast<const char*>(words), sizeof words};
}

}  // namespace uptempo::fuzz
