// Checks a document against the rules of the Trace Event Format ("Trace Event Format", the document
// that catapult and Perfetto refer to), as far as --trace uses it. Returns one sentence per broken
// rule; empty if there is none.
//
//   all    JSON Object Format; `ph`, `pid`, `tid` and `name`; `ts` in microseconds in all events
//          except metadata. Events may be in any order.
//   b, e   pairs of one category and id ("cat", "id") in one process; the begin is not after the
//          end
//   X      slices of one thread nest; `dur` is not negative
//   s, f   pairs of one category, name and id; each lies in a slice of its thread and binds to it
//          (`f` by "bp": "e", without which it would bind to the next slice); the start is not
//          after the finish
//   i      "s" is t, p or g
//   C      `args` has at least one entry, and numbers only; a counter belongs to its process
//   M      process_name and thread_name with a name in `args`; each process and each thread with
//          slices has exactly one. Perfetto identifies threads by number only, so a thread number
//          belongs to one process.
//
// Thread safety: pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace uptempo::test {

std::vector<std::string> broken_trace_rules(const nlohmann::ordered_json& trace);

}  // namespace uptempo::test
