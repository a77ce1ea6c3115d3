// The findings of --check memory, as text and as JSON.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/fences/report/finding_text.hpp"
#include "device/fences/report/remedy.hpp"
#include "device/host/publisher.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu::memory_check {

enum class Class : uint8_t {
  out_of_bounds,
  use_after_free,
  freed_in_use,
  double_free,
  uninitialised_read,
  lds_out_of_bounds,
  lds_uninitialised_read,
  buffer_range,
  leak
};
inline constexpr std::array<std::string_view, 9> kClassNames{"out-of-bounds",
                                                             "use-after-free",
                                                             "freed-in-use",
                                                             "double-free",
                                                             "uninitialised-read",
                                                             "lds-out-of-bounds",
                                                             "lds-uninitialised-read",
                                                             "buffer-range",
                                                             "leak"};
constexpr std::string_view class_name(Class what) noexcept {
  return kClassNames[static_cast<size_t>(what)];
}

// A packet of a queue: a dispatch or a copy.
struct Packet {
  bool is_copy = false;
  uint32_t gpu = 0;
  uint32_t queue = 0;     // as in traces
  uint64_t position = 0;  // packet index; of a copy the byte offset in the ring
  std::string name;       // the kernel, or the engine's operation
  Publisher published = {};
  bool of_rocr = false;  // a kernel of ROCr
};

struct Buffer {
  GpuAddress begin = 0;
  uint64_t bytes = 0;
  uint64_t number = 0;  // of the allocation, in order; not in texts
  uint32_t flags = 0;   // KFD_IOC_ALLOC_MEM_FLAGS_*
  HostStackId allocated = 0;
  HostStackId freed = 0;
};

// How a running kernel uses memory that is freed. The last two are guesses: a word of its kernargs
// is an address in the memory.
enum class Use : uint8_t {
  accessed,  // it has accessed the memory last
  pointer,   // the source declares the argument as a pointer
  by_value,  // the word is in an argument by value, such as a structure
  unknown    // the kernel's code object has no metadata
};

struct Finding {
  Class what = Class::out_of_bounds;
  std::optional<Packet> packet = {};
  // Of a dispatch, unless the memory was freed.
  Access access = Access::read;
  bool scalar = false;
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;
  uint32_t lane = 0;   // the first one
  uint32_t lanes = 1;  // of this instruction and wave
  GpuAddress instruction = 0;
  GpuAddress address = 0;             // of the first lane; in LDS, the offset
  uint64_t bytes = 0;                 // of the lane's access; of a copy, those concerned
  std::optional<Buffer> buffer = {};  // the nearest one
  uint64_t group_segment_bytes = 0;   // of the packet, for findings in LDS
  HostStackId freed_again = 0;
  // For memory that was freed in use.
  Use use = Use::accessed;
  uint32_t argument_offset = 0;          // bytes from the start of the kernargs, unless accessed
  uint64_t leaks = 0, leaked_bytes = 0;  // from one place
};

// What the driver finds out about the program.
struct Details {
  std::string line;  // of the kernel: "sum.hip:12"
  std::vector<fences::HostFrame> published_by, allocated_by, freed_by, freed_again_by;
  fences::QueueName queue_name = {};  // of the packet
  std::string kind;                   // of the buffer: "device memory (VRAM)"
  // By which the packet was published; of a leak, the memory allocated.
  fences::Library library = fences::Library::hsa;
  bool several_gpus = false;
};

// {"class":"out-of-bounds","access":"write","kernel":"_Z3addPi.kd","source_name":"add(int*)",
//  "queue":1,"stream":"0x55d0c0","index":0,"workgroup":[0,0,0],"wave":0,"lane":3,"lanes":1,
//  "instruction":140737,"line":"add.hip:12","published_by":[...],"address":140737,"bytes":4,
//  "memory":{"kind":"device memory (VRAM)","address":140000,"bytes":1000,"after":4,
//            "allocated_by":[...],"freed_by":[...]},
//  "remedy":"...","device":"gfx90a"}
// Memory that was freed in use has "use":"accessed", or "argument" or "guessed-argument" with
// "argument_offset":8. What is not known is absent.
std::string to_json(const Finding& finding, std::string_view target, const Details& details);
std::string to_sentence(const Finding& finding, const Details& details);

}  // namespace uptempo::vgpu::memory_check
