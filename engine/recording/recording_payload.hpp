// What a recording is made of, as JSON: the part of a saved recording behind its first line (recording_file.hpp, which has the contracts). Private to
// engine/dispatch.
//
//   {"kernels": [{"name": "wide", "target": "gfx90a", "code_bytes": 4711, "code_hash": "00ff00ff00ff00ff"}],
//    "memory": [{"name": "forces", "size_bytes": 4096}],
//    "nodes": [
//      {"kernel": 0, "grid": [4096], "workgroup": [256],
//       "arguments": [{"value": "2a000000"}, {"memory": 0, "offset": 64}, {"local": 1024}, null],
//       "accesses": [{"memory": 0, "offset": 64, "size_bytes": 256, "writes": true}],         these and the next four: where something is said
//       "acquire": "agent", "release": "system", "observer": "agent", "without_barrier": true},
//      {"kernel": 0, "grid": [4096], "workgroup": [256], "lds": 1024, "arguments": []},         from version 2 on: Grid::lds_bytes, where it is not 0
//      {"barrier": "and", "waits": true, "acquire": "none", "release": "agent"},              a finished packet
//      {"barrier": "closing"}]}                                                               made by a replay, to complete the one before
//
// Sizes and offsets are bytes. Values are their bytes in hexadecimal, in order of memory. `kernel` and `memory` count from 0 in the lists above.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/recording/bindings.hpp"
#include "engine/recording/recorded_node.hpp"
#include "engine/recording/recording_file.hpp"

namespace uptempo::detail {

template <class Value>
struct NameInFile {
  const char* name;
  Value value;
};
inline constexpr NameInFile<aql::FenceScope> scope_names[] = {
    {"none", aql::FenceScope::none}, {"agent", aql::FenceScope::agent}, {"system", aql::FenceScope::system}};
inline constexpr NameInFile<Observer> observer_names[] = {
    {"none", Observer::none}, {"agent", Observer::agent}, {"system", Observer::system}};

inline constexpr uint64_t newest_version = 2;

struct Payload {
  // The oldest that has all members that the recording needs: older libraries load what they know.
  uint64_t version;
  std::string text;
};

// Throws Error.
Payload write_payload(const Recording& recording, const Bindings& memory);
// The nodes, checked but for the kinds of packet that a recording refuses. `version` is from 1 to
// newest_version, and `origin` names the file in errors. Throws Error.
std::vector<RecordedNode> read_payload(std::string_view payload, uint64_t version, const std::string& origin,
                                       const std::vector<KernelSource>& kernels, const Bindings& memory);

}  // namespace uptempo::detail
