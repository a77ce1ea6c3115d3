// The JSON part of a saved recording, after its first line. recording_file.hpp has the contracts.
// Private to engine/recording and its tests.
//
//   {"kernels": [{"name": "wide", "target": "gfx90a", "code_bytes": 4711,
//                 "code_hash": "00ff00ff00ff00ff"}],
//    "memory": [{"name": "forces", "size_bytes": 4096}],
//    "nodes": [
//      {"kernel": 0, "grid": [4096], "workgroup": [256],
//       "arguments": [{"value": "2a000000"}, {"memory": 0, "offset": 64}, {"local": 1024}, null],
//       "accesses": [{"memory": 0, "offset": 64, "size_bytes": 256, "writes": true}],       (a)
//       "acquire": "agent", "release": "system",                                            (a)
//       "observer": "agent", "without_barrier": true},                                      (a)
//      {"kernel": 0, "grid": [4096], "workgroup": [256], "arguments": [], "after": [0]},    (e)
//      {"kernel": 0, "grid": [4096], "workgroup": [256], "lds": 1024, "arguments": []},     (b)
//      {"barrier": "and", "waits": true, "acquire": "none", "release": "agent"},            (c)
//      {"barrier": "closing"}]}                                                             (d)
//
// (a) Present if declared. (b) "lds": Grid::lds_bytes unless it is 0, since version 2. (c) A
// finished packet. (d) Appended by a replay to complete the packet before it. (e) "after": numbers
// of the nodes that it depends on, if declared, since version 3. A kernel may have
// "private_bytes": 4096, its PrivateBytes if given, since version 4.
//
// Sizes and offsets are in bytes. Values are hexadecimal, in memory order. `kernel` and `memory`
// are indices, from 0, into the lists above.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/recording/recording_file.hpp>
#include <uptempo/recording/recording_state.hpp>

namespace uptempo::detail {

template <class Value>
struct NameInFile {
  const char* name;
  Value value;
};
inline constexpr NameInFile<aql::FenceScope> kScopeNames[] = {{"none", aql::FenceScope::none},
                                                              {"agent", aql::FenceScope::agent},
                                                              {"system", aql::FenceScope::system}};
inline constexpr NameInFile<Observer> kObserverNames[] = {
    {"none", Observer::none}, {"agent", Observer::agent}, {"system", Observer::system}};

inline constexpr uint64_t kNewestVersion = 4;

struct Payload {
  // The lowest version with all members that the recording needs, so that older libraries can load
  // it.
  uint64_t version;
  std::string text;
};

// The file or stream that is loaded, for errors.
struct Origin {
  std::string name;
  [[noreturn]] void refuse(hsa_status_t status, std::string found, std::string remedy) const;
  // For contents that save_recording() does not write.
  [[noreturn]] void nonsense(std::string found) const {
    refuse(HSA_STATUS_ERROR_INVALID_FILE, std::move(found),
           "pass a file as save_recording() wrote it");
  }
};

// Throws Error.
Payload write_payload(const RecordingState& recording, const Bindings& memory);
// Adds the nodes to an empty recording. Requires `version` from 1 to kNewestVersion. Throws Error;
// the recording then has some of the nodes.
void read_payload(std::string_view payload, uint64_t version, const Origin& origin,
                  const std::vector<KernelSource>& kernels, const Bindings& memory,
                  RecordingState& to);

using MakeRecording = std::function<std::unique_ptr<Recording>()>;
// load_recording() from a stream into the empty recording that `make` returns. Tests pass
// recordings without ROCr. Throws Error.
std::unique_ptr<Recording> load_recording(std::istream& in,
                                          const std::vector<KernelSource>& kernels,
                                          const Bindings& memory, const MakeRecording& make);

}  // namespace uptempo::detail
