// A library of the program under test. Its destructor reports itself if the environment asks for
// it.
#include <cstdio>
#include <cstdlib>

[[gnu::visibility("default")]] void use_library() {}

namespace {

[[gnu::destructor]] void end() {
  if (std::getenv("UPTEMPO_REPORT_END") != nullptr) std::fputs("library ended\n", stderr);
}

}  // namespace
