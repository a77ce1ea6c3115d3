// Recordings in files: save_recording() writes a Recording, load_recording() makes an equal one, in
// the same process or another.
//
//   Bindings memory;
//   memory.add("positions", positions).add("forces", forces);
//   save_recording(step, "step.recording", memory);
//   ...
//   // std::unique_ptr<Recording>
//   const auto step = load_recording(queue, "step.recording", {program}, memory);
//   // A typed handle, for patches:
//   const auto force = step->node<const float*, float*, float>(0);
//   step->replay(queue).wait();
//
// Saved: nodes in order, with kernel, grid including dynamic LDS, explicit arguments and all
// declarations; finished packets that are barriers without signals. Not saved: RecordingOptions;
// hidden arguments and the plan, which are computed for the loading agent; handles and counts.
//
// Addresses: a file contains none. Address arguments and declared accesses are saved as offsets
// into the named ranges of `memory`, null as null. load_recording() looks the names up again; each
// range must be at least as large as when it was saved. An address outside all ranges is an Error
// that names node, kernel and argument. Value arguments are saved byte by byte. An address within a
// value, such as a struct, looks like a number. It is refused only if it is 8-byte aligned in the
// kernarg block and points into a named range. A node's LDS arrays, except the last, are loaded
// with sizes rounded up to 16 bytes, the offset of the next one. The argument that a declared range
// moves with (recording.hpp) is not saved: set() finds it again from the saved addresses. After a
// load in the middle of a swap, a range counts for both equal arguments.
//
// Kernels: found by name in `kernels`, which are programs or single kernels. They must come from
// the same code object as the recorded ones (CodeIdentity). A kernel that was loaded by other
// means can be saved if its KernelInfo::code is set.
//
// Errors: violations of the rules above, and foreign, newer, truncated, damaged or malformed files,
// throw an Error that names the defect and its position. For any bytes, load_recording() throws or
// returns a whole recording, and allocates no memory for a size that the file claims but does not
// contain. Saving to a path replaces the file as a whole
// (aql/whole_file.hpp, InPlace::refused): after a crash, the old or the new file exists. It keeps
// the mode, and where the process may, the owner.
//
// Security: a loaded file is trusted like the program that recorded it, because kernels run with
// the arguments it contains.
//
// Format: a line of text "uptempo-recording <version> <bytes> <hash>", then <bytes> bytes of JSON.
// <hash> is their XXH64 in hexadecimal. Unknown JSON members are refused, so a version
// defines one set of members. Version 2 adds Grid::lds_bytes, version 3 dependencies, version 4
// PrivateBytes of kernels; a recording is saved as the lowest version that has what it needs. A
// stream may contain several recordings in sequence.
//
// Cost: linear in the nodes, with allocations; for set-up only.
//
// Thread safety: that of Recording; saving does not change it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <uptempo/program/program.hpp>
#include <uptempo/recording/recording.hpp>

namespace uptempo {

namespace detail {
struct MemoryRange {
  std::string name;
  uintptr_t begin = 0;
  size_t size_bytes = 0;
};
}  // namespace detail

// Names for memory ranges. Stores only names, addresses and sizes; the memory itself is not
// referenced. Thread-compatible.
class Bindings {
 public:
  // Throws Error if the name is empty or taken, if there is no memory, and if a byte already has a
  // name.
  Bindings& add(std::string name, const void* data, size_t size_bytes);
  // `buffer`: a DeviceBuffer, a PinnedBuffer, or any other type with data() and size_bytes().
  template <class Buffer>
  Bindings& add(std::string name, const Buffer& buffer) {
    return add(std::move(name), buffer.data(), buffer.size_bytes());
  }

  // Null if there is none. The address one past a range does not belong to it: another range may
  // begin there.
  const detail::MemoryRange* find(std::string_view name) const noexcept;
  const detail::MemoryRange* find(uintptr_t address) const noexcept;

  // Returns "'positions' of 4096 bytes, ...", for error messages.
  std::string list() const;

 private:
  std::map<uintptr_t, detail::MemoryRange> ranges_;      // key: first byte
  std::map<std::string, uintptr_t, std::less<>> names_;  // value: first byte
};

using KernelSource = std::variant<Program, std::shared_ptr<const KernelInfo>>;

// Throws Error. A path is then unchanged; a stream may have received a part.
void save_recording(const Recording& recording, const std::filesystem::path& file,
                    const Bindings& memory);
void save_recording(const Recording& recording, std::ostream& out, const Bindings& memory);

// Throws Error. Reads a stream up to the recording's last byte; a file must end there.
std::unique_ptr<Recording> load_recording(Queue& queue, const std::filesystem::path& file,
                                          const std::vector<KernelSource>& kernels,
                                          const Bindings& memory,
                                          const RecordingOptions& options = {});
std::unique_ptr<Recording> load_recording(Queue& queue, std::istream& in,
                                          const std::vector<KernelSource>& kernels,
                                          const Bindings& memory,
                                          const RecordingOptions& options = {});

}  // namespace uptempo
