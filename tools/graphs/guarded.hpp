// Runs code of this library inside a function that a C program called.
#pragma once

#include <exception>
#include <string>

#include "tools/graphs/copy_ledger.hpp"

namespace uptempo::graphs {

// Runs `body` and lets no exception out. After one (memory is exhausted), graphs with copies stay
// with HIP, because a copy may be missing in the ledger.
template <class Body>
void guarded(Body body) noexcept {
  try {
    body();
  } catch (const std::exception& error) {
    try {
      CopyLedger::instance().lose_track(std::string("a copy was not recorded: ") + error.what());
    } catch (...) {
      std::terminate();  // memory is exhausted; a result could be wrong from now on
    }
  }
}

}  // namespace uptempo::graphs
