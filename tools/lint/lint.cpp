// The entry points of HSA_TOOLS_LIB. ROCr calls OnLoad in hsa_init() and OnUnload at the end of the
// last hsa_shut_down(); a process that ends without it gets its report from the destructor.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <uptempo/aql/whole_file.hpp>
#include "tools/lint/call_site.hpp"
#include "tools/lint/wrappers.hpp"

namespace {

using namespace uptempo::lint;

uint32_t sessions = 0;
int standard_error = -1;  // a copy
// Between OnLoad and OnUnload the lint's functions are in ROCr's tables, perhaps below another
// tool's. ROCr 6.1 keeps tables and tools after hsa_shut_down() and calls OnLoad again.
bool loaded = false;
// Sessions are never destroyed: other threads may still be in their functions.
Session* last = nullptr;

// The report's file, "" for stderr. Absolute, because the program may change its directory.
std::string report_file(const std::string& given) {
  if (given.empty()) return {};
  const std::string name = expand_file_name(given, getpid());
  const std::string reason = uptempo::aql::why_not_writable(name);
  if (!reason.empty()) throw std::runtime_error("file=" + name + " cannot be written: " + reason);
  return std::filesystem::absolute(name).string();
}

Settings settings_of_environment() {
  const char* const text = std::getenv("UPTEMPO_LINT");
  try {
    return parse_settings(text == nullptr ? "" : text);
  } catch (const std::exception& error) {
    throw std::invalid_argument(std::string("UPTEMPO_LINT: ") + error.what());
  }
}

}  // namespace

extern "C" {

bool OnLoad(HsaApiTable* table, uint64_t, uint64_t, const char* const*) {
  if (loaded) return true;
  try {
    Settings settings = settings_of_environment();
    settings.file = report_file(settings.file);
    const AmdEntries amd = check_tables(*table);
    // The program may close stderr before its end.
    if (standard_error < 0) standard_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    CoreApiTable core{};
    std::memcpy(&core, table->core_, std::min<size_t>(sizeof core, table->core_->version.minor_id));
    prepare_call_sites();
    last = new Session(settings, standard_error, ++sessions, core, amd);
    install(*last, *table->core_, amd);
    loaded = true;
    return true;
  } catch (const std::exception& error) {
    const std::string text =
        std::string("uptempo-lint: ") + error.what() + "; the program runs without the lint\n";
    (void)uptempo::aql::write_all(STDERR_FILENO, text);
    return false;
  }
}

// ROCr then resets its tables.
void OnUnload() {
  loaded = false;
  if (last == nullptr) return;
  try {
    last->write_report();
  } catch (const std::exception& error) {  // the program ends as it would without the lint
    constexpr std::string_view kBegin = "uptempo-lint: no report: ", kEnd = "\n";
    const auto say = [](std::string_view text) {
      (void)!write(STDERR_FILENO, text.data(), text.size());
    };
    say(kBegin);
    say(error.what());
    say(kEnd);
  }
}

__attribute__((destructor)) static void report_at_the_end() { OnUnload(); }
}
