#include "test/fuzz/fuzz.hpp"

#include <cstdio>
#include <cstdlib>

#include <uptempo/runtime/error.hpp>

namespace uptempo::fuzz {

void finding(std::string_view what) {
  std::fprintf(stderr, "finding: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

bool accepts(void (*call)(void*), void* reader) {
  try {
    call(reader);
    return true;
  } catch (const Error& error) {
    require(error.status() != HSA_STATUS_SUCCESS && !error.call().empty() &&
                !error.asked().empty() && !error.found().empty() && !error.remedy().empty(),
            error.what());
    return false;
  }
}

}  // namespace uptempo::fuzz
