// Recordings in files: save_recording() writes what a Recording is made of, load_recording() makes one like it, in this process or another.
//
//   Bindings memory;
//   memory.add("positions", positions).add("forces", forces);
//   save_recording(step, "step.recording", memory);
//   ...
//   const auto step = load_recording(queue, "step.recording", {program}, memory);    // std::unique_ptr<Recording>
//   const auto force = step->node<const float*, float*, float>(0);                   // a typed handle, for patches
//   step->replay(queue).wait();
//
// What is kept: nodes in their order, with kernel, grid with its dynamic LDS, explicit arguments,
// declared accesses, observers, scopes and without_barrier(); finished packets that are barriers
// without signals. What is not: RecordingOptions (fence policy, timing, chunks, spare memory say
// how a process wants to replay, and are given to load_recording()), hidden arguments and the plan
// (made anew for the agent), handles and counts.
//
// Addresses. A file holds none. An address argument and a declared access are saved as an offset into one of the named ranges of `memory`, null as null; at
// loading the names are looked up again, and a range must be as large as it was when saved, or larger. What lies in no range is an Error that names node, kernel and
// argument. Arguments that are values are saved byte for byte. An address inside one, in a struct, cannot be told from a number: it is refused only if it is
// 8-byte aligned in the kernarg block and lies in a named range. Of a node's LDS arrays all but the last come back rounded up to 16 bytes, which is where
// they lay.
//
// Kernels are found by name in `kernels`, programs or single ones, and must be of the very code object that was recorded (code_identity.hpp). A kernel
// that was loaded by other means can be saved if its KernelInfo::code says what it is.
//
// Errors. Everything above, and a file that is foreign, of a newer version, cut off, damaged or nonsense, is an Error that says which of these it is and where. Whatever
// the bytes are, there is no other end than that or a recording, and no memory is taken for a number that the file claims and does not prove.
// Loading happens as a whole or not at all. A path is written beside the old file, flushed, and put in its place in one step: the old file or the new one
// survives a crash. What is loaded is trusted as the program that recorded it is: a kernel is given the arguments that the file names.
//
// Format: a line of text "uptempo-recording <version> <bytes> <hash>", then so many bytes of JSON,
// whose hash is that of code_identity.hpp, in hexadecimal. Of the JSON, members that are unknown
// are refused: a version means one set of members. Version 2 adds Grid::lds_bytes; a recording
// without any is saved as version
// 1. Several recordings may follow each other in a stream.
//
// Thread safety and lifetimes: those of Recording, which is not changed by saving. Both allocate and take time in proportion to the nodes; set-up, not hot path.
#pragma once

#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <ostream>
#include <span>
#include <variant>
#include <vector>

#include "engine/recording/bindings.hpp"
#include "engine/recording/recording.hpp"
#include "engine/program/program.hpp"

namespace uptempo {

using KernelSource = std::variant<Program, std::shared_ptr<const KernelInfo>>;

// Throws Error, then with nothing written to a path; a stream may have got a part.
void save_recording(const Recording& recording, const std::filesystem::path& file, const Bindings& memory);
void save_recording(const Recording& recording, std::ostream& out, const Bindings& memory);

// Throws Error. A stream is read up to the recording's last byte; a file must end there.
std::unique_ptr<Recording> load_recording(Queue& queue, const std::filesystem::path& file,
                                          const std::vector<KernelSource>& kernels, const Bindings& memory,
                                          const RecordingOptions& options = {});
std::unique_ptr<Recording> load_recording(Queue& queue, std::istream& in,
                                          const std::vector<KernelSource>& kernels, const Bindings& memory,
                                          const RecordingOptions& options = {});
// Over a queue without ROCr; kernarg memory is `kernargs`. See recording.hpp.
std::unique_ptr<Recording> load_recording(detail::BatchQueue& state, std::span<std::byte> kernargs,
                                          std::istream& in, const std::vector<KernelSource>& kernels,
                                          const Bindings& memory, const RecordingOptions& options = {});

}  // namespace uptempo
