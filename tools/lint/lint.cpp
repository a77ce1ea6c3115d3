// The entry points of HSA_TOOLS_LIB. ROCr calls OnLoad in hsa_init() and OnUnload at the end of the
// last hsa_shut_down(); a process that ends without it gets its report from the destructor.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "tools/lint/call_site.hpp"
#include "tools/lint/wrappers.hpp"

namespace {

using namespace uptempo::lint;

uint32_t sessions = 0;
int output = -1;
// Between OnLoad and OnUnload the lint's functions are in ROCr's tables, perhaps below another
// tool's. ROCr 6.1 keeps tables and tools after hsa_shut_down() and calls OnLoad again.
bool loaded = false;
// Sessions are never destroyed: other threads may still be in their functions.
Session* last = nullptr;

int open_output(const std::string& file) {
  // The program may close stderr before its end.
  if (file.empty()) return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  const std::string name = expand_file_name(file, getpid());
  const int opened = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (opened < 0)
    throw std::runtime_error("file=" + name + " cannot be written: " + std::strerror(errno));
  return opened;
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
    const Settings settings = settings_of_environment();
    const AmdEntries amd = check_tables(*table);
    if (output < 0) output = open_output(settings.file);
    CoreApiTable core{};
    std::memcpy(&core, table->core_, std::min<size_t>(sizeof core, table->core_->version.minor_id));
    prepare_call_sites();
    last = new Session(settings, output, ++sessions, core, amd);
    install(*last, *table->core_, amd);
    loaded = true;
    return true;
  } catch (const std::exception& error) {
    const std::string text =
        std::string("uptempo-lint: ") + error.what() + "; the program runs without the lint\n";
    (void)!write(STDERR_FILENO, text.data(), text.size());
    return false;
  }
}

// ROCr then resets its tables.
void OnUnload() {
  loaded = false;
  if (last != nullptr) last->write_report();
}

__attribute__((destructor)) static void report_at_the_end() { OnUnload(); }
}
