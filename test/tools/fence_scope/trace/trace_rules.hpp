// The rules of the Trace Event Format ("Trace Event Format", the document that catapult and Perfetto refer to), as far as --trace uses it, held against a document. What is broken is told
// in sentences; an empty list: nothing.
//
//   all        JSON Object Format; `ph`, `pid`, `tid` and `name`; `ts` in microseconds in all but metadata. Events may stand in any order
//   b, e       pairs of one category and id ("cat", "id"), the begin not after the end, of one process
//   X          slices of one thread nest; `dur` is not negative
//   s, f       pairs of one category, name and id; each lies in a slice of its thread, which it binds to (`f` because of "bp": "e", without which it would bind to the next slice); the start
//              not after the finish
//   i          "s" is t, p or g
//   C          `args` has numbers alone, at least one; a counter belongs to its process
//   M          process_name and thread_name with a name in `args`; each process and each thread with slices has exactly one. Perfetto knows threads by number alone: a thread
//              is of one process
//
// Thread safety: pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace uptempo::test {

std::vector<std::string> broken_trace_rules(const nlohmann::ordered_json& trace);

}  // namespace uptempo::test
