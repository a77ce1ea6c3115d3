// uptempo-vgpu [options] -- program args...: runs a program on the virtual GPU.
//
// The program replaces this process, so it keeps its pid, signals and exit status. The launcher's
// own exit status follows the shell's convention: 2 for a usage error, 126 if the program cannot be
// run, 127 if it was not found.
#include <fcntl.h>
#include <sys/personality.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <uptempo/aql/write_all.hpp>
#include "device/description.hpp"
#include "device/fences/report/suppressions.hpp"
#include "device/options.hpp"
#include "kfd/machine/machine.hpp"
#include "launcher/failure.hpp"
#include "launcher/help.hpp"
#include "launcher/outputs.hpp"
#include "launcher/preload.hpp"
#include "tools/support/launch/completion.hpp"
#include "tools/support/launch/rocm_libraries.hpp"
#include "tools/support/option_text.hpp"
#include "tools/support/preload_target.hpp"

namespace fs = std::filesystem;
using namespace uptempo::vgpu;

namespace {

// Throws Failure if standard output cannot be written.
void print(const std::string& text) {
  const int error = uptempo::aql::write_all(STDOUT_FILENO, text);
  if (error != 0)
    throw Failure{1, "cannot write standard output: " + uptempo::aql::write_error(error)};
}

[[noreturn]] void usage(const std::string& sentence) {
  throw Failure{kUsage, sentence + " (see uptempo-vgpu --help)"};
}

// An unknown option, or one that was given a value and takes none.
[[noreturn]] void refuse(const std::string& option) {
  std::vector<std::string> names;
  for (const uptempo::support::OptionText& each : launcher::options()) names.push_back(each.name);
  if (std::find(names.begin(), names.end(), option) != names.end())
    usage(option + " takes no value");
  throw Failure{kUsage, uptempo::support::unknown_text("option", option, names)};
}

// The absolute path of a file, because the program may change its directory.
std::string file_path(const std::string& option, const std::string& value) {
  if (value.empty()) usage(option + ": the value is empty");
  return fs::absolute(value).string();
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

std::string number(const std::string& option, const std::string& value) {
  uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc{} || end != value.data() + value.size())
    usage(option + " needs a decimal number, not '" + value + "'");
  return value;
}

// Switches address randomisation off for runs that must repeat. A trace contains addresses
// (kernargs), and addresses decide which cache lines compete for room.
void without_random_addresses() {
  if (const int now = personality(0xffffffff); now != -1)
    personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE);
}

// Whether a value of --gpus is a list of targets, not a number.
bool names_targets(const char* gpus) {
  return gpus != nullptr && std::string_view(gpus).starts_with("gfx");
}

// After all options: a list of --gpus and --device exclude each other. The list of a launcher
// around this one yields to this one's --device.
void check_targets(bool target_given, bool list_given) {
  if (!target_given) return;
  if (list_given) usage("--gpus with a list names the targets already: leave out --device");
  if (names_targets(std::getenv("UPTEMPO_VGPU_GPUS"))) unsetenv("UPTEMPO_VGPU_GPUS");
}

struct CommandLine {
  size_t program = 0;                 // its index in the arguments
  std::optional<uint32_t> reset_gpu;  // instead of a program
  launcher::Outputs outputs;
};

// Sets the environment and returns the rest.
CommandLine parse(const std::vector<std::string>& arguments) {
  CommandLine line;
  line.program = arguments.size();
  bool target_given = false, list_given = false;
  std::string inject;  // all options so far
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string option = arguments[i];
    if (option == "--" || !option.starts_with('-')) {
      check_targets(target_given, list_given);
      line.program = option == "--" ? i + 1 : i;
      return line;
    }
    std::string value;
    const size_t equals = option.find('=');
    bool has_value = equals != std::string::npos;
    if (has_value) {
      value = option.substr(equals + 1);
      option.erase(equals);
    }
    const auto take = [&]() -> const std::string& {
      if (!has_value) {
        if (i + 1 == arguments.size()) usage(option + " needs a value");
        value = arguments[++i];
        has_value = true;
      }
      return value;
    };
    if (option == "--device") {
      if (find_device_description(take()) == nullptr)
        usage("--device: '" + value + "' is not one of " + launcher::targets());
      set("UPTEMPO_VGPU_DEVICE", value);
      target_given = true;
    } else if (option == "--gpus") {
      try {
        Options::parse_gpus(take(), device_descriptions().front());
      } catch (const std::invalid_argument& error) {
        usage(std::string("--gpus is ") + error.what());
      }
      set("UPTEMPO_VGPU_GPUS", value);
      list_given = names_targets(value.c_str());
    } else if (option == "--partitions") {
      if (!Options::parse_partitions(take()))
        usage("--partitions: '" + value + "' is neither same-id nor own-id");
      set("UPTEMPO_VGPU_PARTITIONS", value);
    } else if (option == "--join") {
      if (!Options::is_machine_name(take()))
        usage("--join: '" + value + "' is not a name of 1 to 64 letters, digits, '.', '_' and '-'");
      set("UPTEMPO_VGPU_JOIN", value);
    } else if (option == "--reset-gpu") {
      uint32_t index = 0;
      const std::string& text = take();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
      if (error != std::errc{} || end != text.data() + text.size())
        usage("--reset-gpu needs a GPU's index, not '" + text + "'");
      line.reset_gpu = index;
    } else if (option == "--kfd") {
      if (!Options::parse_kfd(take()))
        usage("--kfd: '" + value + "' is not a version from 1.8 to 1.18");
      set("UPTEMPO_VGPU_KFD", value);
    } else if (option == "--trace") {
      line.outputs[option] = file_path(option, take());
      set("UPTEMPO_VGPU_TRACE", line.outputs[option]);
    } else if (option == "--check") {
      try {
        Checks::parse(take());
      } catch (const std::invalid_argument& error) {
        usage(std::string("--check ") + error.what());
      }
      set("UPTEMPO_VGPU_CHECK", value);
    } else if (option == "--report") {
      line.outputs[option] = file_path(option, take());
      set("UPTEMPO_VGPU_REPORT", line.outputs[option]);
    } else if (option == "--suppressions") {
      try {
        const std::string path = file_path(option, take());
        static_cast<void>(fences::Suppressions::read(path));
        set("UPTEMPO_VGPU_SUPPRESSIONS", path);
      } catch (const std::invalid_argument& error) {
        usage(std::string("--suppressions: ") + error.what());
      }
    } else if (option == "--error-exitcode") {
      if (!Options::parse_exitcode(take()))
        usage("--error-exitcode: '" + value + "' is not an exit status from 1 to 255");
      set("UPTEMPO_VGPU_ERROR_EXITCODE", value);
    } else if (option == "--seed") {
      set("UPTEMPO_VGPU_SEED", number(option, take()));
    } else if (option == "--incoherent") {
      set("UPTEMPO_VGPU_INCOHERENT", number(option, take()));
      without_random_addresses();
    } else if (option == "--delay") {
      set("UPTEMPO_VGPU_DELAY", number(option, take()));
    } else if (option == "--inject") {
      const std::string before = inject.empty() ? "" : inject + ';';
      try {
        parse_inject_rules(take());
      } catch (const std::invalid_argument& error) {
        usage(std::string("--inject, ") + error.what());
      }
      inject = before + value;
      set("UPTEMPO_VGPU_INJECT", inject);
    } else if (option == "--bar") {
      // The other kind may come from a launcher around this one.
      unsetenv("UPTEMPO_VGPU_LAZY_BAR");
      unsetenv("UPTEMPO_VGPU_SMALL_BAR");
      if (take() == "small") {
        set("UPTEMPO_VGPU_SMALL_BAR", "1");
        continue;
      }
      if (value != "lazy") usage("--bar: '" + value + "' is neither lazy nor small");
      if (++i == arguments.size()) usage("--bar lazy needs a seed");
      set("UPTEMPO_VGPU_LAZY_BAR", number("--bar lazy", arguments[i]));
    } else if (option == "--workers") {
      set("UPTEMPO_VGPU_WORKERS", number(option, take()));
    } else if (option == "--watchdog") {
      if (!Options::parse_watchdog(take()))
        usage("--watchdog: '" + value + "' is not a number of seconds from 1 to 1000000");
      set("UPTEMPO_VGPU_WATCHDOG", value);
    } else if (option == "--sockets") {
      set("UPTEMPO_VGPU_SOCKETS", take());
      if (value.empty()) usage("--sockets needs a number from 1 to 8");
    } else if (option == "--gpu-socket") {
      set("UPTEMPO_VGPU_GPU_SOCKET", take());
      if (value.empty()) usage("--gpu-socket needs a number");
    } else if (option == "--completion") {
      const std::string script =
          uptempo::support::completion_script(take(), "uptempo-vgpu", launcher::options());
      if (script.empty()) usage("--completion: '" + value + "' is neither bash nor zsh");
      print(script);
      std::exit(0);
    } else if (has_value) {
      refuse(option);
    } else if (option == "--null-kernels") {
      set("UPTEMPO_VGPU_NULL_KERNELS", "1");
    } else if (option == "--early-read-index") {
      set("UPTEMPO_VGPU_EARLY_READ_INDEX", "1");
    } else if (option == "--grouped-read-index") {
      set("UPTEMPO_VGPU_GROUPED_READ_INDEX", "1");
    } else if (option == "--eager-packets") {
      set("UPTEMPO_VGPU_EAGER_PACKETS", "1");
    } else if (option == "--deterministic") {
      set("UPTEMPO_VGPU_DETERMINISTIC", "1");
      without_random_addresses();
    } else if (option == "--verbose") {
      set("UPTEMPO_VGPU_VERBOSE", "1");
    } else if (option == "--help" || option == "-h") {
      print(launcher::help());
      std::exit(0);
    } else if (option == "--version") {
      print(uptempo::support::version_text("uptempo-vgpu", UPTEMPO_VGPU_VERSION));
      std::exit(0);
    } else {
      refuse(option);
    }
  }
  return line;
}

bool is_executable_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::error_code ignored;
    if (!fs::exists(name, ignored))
      throw Failure{kNotFound, "the program '" + name + "' does not exist"};
    if (!is_executable_file(name))
      throw Failure{kCannotRun, "'" + name + "' is not an executable file"};
    return name;
  }
  const char* variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  while (!path.empty()) {
    const size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    path = colon == std::string_view::npos ? std::string_view{} : path.substr(colon + 1);
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (is_executable_file(candidate)) return candidate.string();
  }
  throw Failure{kNotFound, "no program '" + name + "' in PATH"};
}

// The list may come from the environment, which the launcher has not checked.
Checks checks_asked_for() {
  const char* const list = std::getenv("UPTEMPO_VGPU_CHECK");
  try {
    return list == nullptr ? Checks{} : Checks::parse(list);
  } catch (const std::invalid_argument&) {
    return {};  // the library reports the error
  }
}

// After all options, because the GPU's socket must be one of the sockets, in either order.
void check_sockets() {
  const auto value = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return std::string_view(text == nullptr ? "" : text);
  };
  try {
    Sockets::parse(value("UPTEMPO_VGPU_SOCKETS"), value("UPTEMPO_VGPU_GPU_SOCKET"));
  } catch (const std::invalid_argument& error) {
    usage(std::string("--sockets, --gpu-socket: ") + error.what());
  }
}

// Modes that know one GPU or one process only.
void check_single_modes() {
  try {
    static_cast<void>(Options::from_environment());
  } catch (const OptionConflict& conflict) {
    usage(conflict.options);
  } catch (const std::invalid_argument&) {
    // One of the environment; the library reports it.
  }
}

// Refuses a program that the dynamic linker could not start. A program that loads ROCr later may
// bring its own, so a system without one is named at the program's end, and only if it opened no
// GPU (interpose/finish_checks.cpp).
void check_rocm(const std::string& path, const uptempo::support::PreloadTarget& program) {
  const std::string missing = uptempo::support::missing_rocm(path, program.needed);
  if (!missing.empty()) throw Failure{kCannotRun, "'" + path + "' " + missing};
  if (uptempo::support::has_rocr())
    unsetenv("UPTEMPO_VGPU_NO_ROCR");
  else
    set("UPTEMPO_VGPU_NO_ROCR", std::to_string(getpid()));
}

int reset_gpu(uint32_t index, bool has_program) {
  const char* const name = std::getenv("UPTEMPO_VGPU_JOIN");
  if (name == nullptr || !Options::is_machine_name(name))
    usage("--reset-gpu needs --join and a machine's name");
  if (has_program) usage("--reset-gpu runs no program");
  kfd::Machine::reset(name, index);
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  const auto [first, gpu_to_reset, outputs] = parse(arguments);
  if (gpu_to_reset) return reset_gpu(*gpu_to_reset, first != arguments.size());
  if (first == arguments.size()) usage("no program was given");
  const auto asked = [](const char* variable) { return std::getenv(variable) != nullptr; };
  if (asked("UPTEMPO_VGPU_REPORT") && !asked("UPTEMPO_VGPU_CHECK"))
    usage(
        "--report has no findings to write without --check: add --check fences, memory, races or "
        "atomics");
  if (asked("UPTEMPO_VGPU_ERROR_EXITCODE") && !asked("UPTEMPO_VGPU_CHECK"))
    usage("--error-exitcode depends on findings: add --check fences, memory, races or atomics");
  const Checks checks = checks_asked_for();
  if (asked("UPTEMPO_VGPU_SUPPRESSIONS") && !checks.fences && !checks.memory && !checks.races)
    usage("--suppressions has no findings to suppress without --check fences, memory or races");
  if (asked("UPTEMPO_VGPU_CHECK") && asked("UPTEMPO_VGPU_NULL_KERNELS"))
    usage("--check has no accesses to check under --null-kernels: leave out one of them");
  if (asked("UPTEMPO_VGPU_INCOHERENT") && (checks.fences || checks.races))
    usage(std::string("--check ") + (checks.fences ? "fences" : "races") +
          " and --incoherent exclude each other: run the program once with each");
  // ROCr divides blocks of device memory among small allocations. Without that, findings know each
  // allocation, and freed memory is forgotten.
  if ((checks.fences || checks.races) && !checks.memory && !asked("HSA_DISABLE_FRAGMENT_ALLOCATOR"))
    set("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1");
  check_sockets();
  check_single_modes();
  if (asked("UPTEMPO_VGPU_LAZY_BAR") && (checks.fences || checks.memory))
    usage(std::string(checks.memory ? "--check memory" : "--check fences") +
          " and --bar lazy exclude each other: run the program once with each");
  const std::string path = find_program(arguments[first]);
  const uptempo::support::PreloadTarget program = uptempo::support::inspect_preload_target(path);
  if (!program.obstacle.empty())
    throw Failure{kCannotRun,
                  "the virtual GPU cannot be preloaded: '" + path + "' " + program.obstacle};
  check_rocm(path, program);
  const std::string library = find_library();
  set("LD_PRELOAD", preload_list(program, library, checks.fences || checks.memory || checks.races));
  if (checks.memory) set("HSA_TOOLS_LIB", tools_list(library));
  std::vector<char*> argv;
  for (size_t i = first; i < arguments.size(); ++i)
    argv.push_back(const_cast<char*>(arguments[i].c_str()));
  argv.push_back(nullptr);
  launcher::empty(outputs, path);
  execv(path.c_str(), argv.data());
  throw Failure{errno == ENOENT ? kNotFound : kCannotRun,
                "cannot run '" + path + "': " + std::strerror(errno)};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const Failure& failure) {
    std::cerr << "uptempo-vgpu: " << failure.sentence << '\n';
    return failure.status;
  } catch (const std::exception& error) {
    std::cerr << "uptempo-vgpu: " << error.what() << '\n';
    return kCannotRun;
  }
}
