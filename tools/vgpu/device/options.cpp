#include "device/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace uptempo::vgpu {
namespace {

std::string_view value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

bool flag(const char* name) {
  const std::string_view value = value_of(name);
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  throw std::invalid_argument(std::string(name) + " is '" + std::string(value) + "': use 0 or 1");
}

template <typename Integer>
Integer number(const char* name, Integer otherwise) {
  const std::string_view value = value_of(name);
  if (value.empty()) return otherwise;
  Integer result{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size())
    throw std::invalid_argument(std::string(name) + " is '" + std::string(value) +
                                "': use a decimal number");
  return result;
}

// Returns a decimal number from `least` to `most`, or nullopt.
std::optional<uint32_t> number_between(std::string_view text, uint32_t least, uint32_t most) {
  uint32_t result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc{} || end != text.data() + text.size() || result < least || result > most)
    return std::nullopt;
  return result;
}

// A mode that works with one GPU or in one process only, and the reason for each. Null: it works
// with several.
struct SingleMode {
  bool asked;
  const char* option;
  const char* variable;
  const char* several_gpus;
  const char* several_processes;
};

void refuse_single_modes(const Options& options) {
  for (const SingleMode& mode : {
           SingleMode{options.checks.advice, "--check fences,advice",
                      "UPTEMPO_VGPU_CHECK=fences,advice", "advice knows the caches of one GPU",
                      nullptr},
           SingleMode{options.checks.waits, "--check fences,waits",
                      "UPTEMPO_VGPU_CHECK=fences,waits", "the host is held until one GPU rests",
                      nullptr},
           SingleMode{options.checks.fences, "--check fences", "UPTEMPO_VGPU_CHECK=fences", nullptr,
                      "the checker sees accesses of one process only"},
           SingleMode{options.incoherent.has_value(), "--incoherent", "UPTEMPO_VGPU_INCOHERENT",
                      nullptr, "each process would have caches of its own"},
           SingleMode{options.lazy_bar.has_value(), "--bar lazy", "UPTEMPO_VGPU_LAZY_BAR",
                      "only one GPU's memory can hold stores back",
                      "a process holds back its own stores only"},
           SingleMode{std::ranges::any_of(options.inject,
                                          [](const InjectRule& rule) {
                                            return rule.effect == InjectRule::Effect::gone;
                                          }),
                      "--inject with gone", "UPTEMPO_VGPU_INJECT with gone", nullptr,
                      "a GPU disappears for one process only"},
           SingleMode{options.deterministic, "--deterministic", "UPTEMPO_VGPU_DETERMINISTIC",
                      nullptr, "the host decides the order of processes"},
       }) {
    if (!mode.asked) continue;
    const std::string option = mode.option, variable = mode.variable;
    const std::string remedy = ": leave out one of them";
    if (options.gpus.size() > 1 && mode.several_gpus != nullptr)
      throw OptionConflict(
          "UPTEMPO_VGPU_GPUS names " + std::to_string(options.gpus.size()) + " GPUs, but " +
              variable + " needs one (" + mode.several_gpus + ")" + remedy,
          option + " works with one GPU only, because " + mode.several_gpus + remedy);
    if (!options.join.empty() && mode.several_processes != nullptr)
      throw OptionConflict(
          "UPTEMPO_VGPU_JOIN and " + variable + " exclude each other (" + mode.several_processes +
              ")" + remedy,
          option + " and --join exclude each other, because " + mode.several_processes + remedy);
  }
}

// An effect that only another mode makes visible is refused without it.
void refuse_effects_without_mode(const Options& options) {
  const auto refuse = [](const InjectRule& rule, const std::string& variable,
                         const std::string& option, const std::string& reason) {
    const std::string quoted = " '" + rule.text + "' needs ", colon = ": ";
    throw OptionConflict("UPTEMPO_VGPU_INJECT" + quoted + variable + colon + reason,
                         "--inject" + quoted + option + colon + reason);
  };
  for (const InjectRule& rule : options.inject) {
    if (rule.effect == InjectRule::Effect::stale && !options.incoherent)
      refuse(rule, "UPTEMPO_VGPU_INCOHERENT", "--incoherent SEED",
             "other devices have no stale caches");
    if (rule.place == InjectRule::Place::hdp && !options.lazy_bar)
      refuse(rule, "UPTEMPO_VGPU_LAZY_BAR", "--bar lazy SEED",
             "other devices see the host's stores at once");
  }
}

std::string known_targets() {
  std::string names;
  for (const DeviceDescription& description : device_descriptions())
    names += (names.empty() ? "" : ", ") + std::string(description.target);
  return names;
}

}  // namespace

Checks Checks::parse(std::string_view list) {
  Checks checks;
  bool known = true;
  for (size_t begin = 0, comma = 0; comma != std::string_view::npos; begin = comma + 1) {
    comma = list.find(',', begin);
    const std::string_view name = list.substr(begin, comma - begin);
    if (name == "fences") {
      checks.fences = true;
    } else if (name == "races") {
      checks.races = true;
    } else if (name == "atomics") {
      checks.atomics = true;
    } else if (name == "memory") {
      checks.memory = true;
    } else if (name == "buffers") {
      checks.buffers = true;
    } else if (name == "same-values") {
      checks.same_values = true;
    } else if (name == "hsa") {
      checks.specification = true;
    } else if (name == "repeated") {
      checks.repeated = true;
    } else if (name == "advice") {
      checks.advice = true;
    } else if (name == "waits") {
      checks.waits = true;
    } else {
      known = false;
    }
  }
  const bool of_fences = checks.specification || checks.advice || checks.waits;
  const bool lacks_fences = of_fences && !checks.fences;
  const bool lacks_findings =
      !checks.fences && !checks.memory && !checks.races && (checks.repeated || !checks.atomics);
  if (!known || lacks_fences || lacks_findings || (checks.buffers && !checks.memory) ||
      (checks.same_values && !checks.races))
    throw std::invalid_argument(
        "'" + std::string(list) +
        "': use atomics, memory[,buffers][,repeated], races[,same-values][,repeated], or fences "
        "with any of ,hsa "
        ",repeated "
        ",advice ,waits appended; races combines with memory and with fences");
  if (checks.fences && checks.memory)
    throw std::invalid_argument(
        "'" + std::string(list) +
        "': memory and fences exclude each other, because each observes the host by the "
        "protection of its pages: run the program once with each");
  if (checks.advice && checks.waits)
    throw std::invalid_argument(
        "'" + std::string(list) +
        "': advice and waits exclude each other, because advice assumes that "
        "the host knows of all completions");
  checks.atomics = true;
  return checks;
}

Sockets Sockets::parse(std::string_view count, std::string_view of_gpu) {
  Sockets sockets;
  if (!count.empty()) {
    const auto parsed = number_between(count, 1, kMost);
    if (!parsed)
      throw std::invalid_argument("'" + std::string(count) +
                                  "': use a number of sockets from 1 to " + std::to_string(kMost));
    sockets.count = *parsed;
  }
  sockets.of_gpu = sockets.count - 1;
  if (!of_gpu.empty()) {
    const auto parsed = number_between(of_gpu, 0, sockets.count - 1);
    if (!parsed)
      throw std::invalid_argument("'" + std::string(of_gpu) +
                                  "': the GPU's socket is a number below " +
                                  std::to_string(sockets.count) + ", the number of sockets");
    sockets.of_gpu = *parsed;
    sockets.gpu_given = true;
  }
  return sockets;
}

std::optional<uint32_t> Options::parse_kfd(std::string_view version) {
  constexpr std::string_view kMajor = "1.";
  if (!version.starts_with(kMajor)) return std::nullopt;
  version.remove_prefix(kMajor.size());
  uint32_t minor = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  if (error != std::errc{} || end != version.data() + version.size() || version.front() == '0' ||
      minor < kOldestKfd || minor > kNewestKfd)
    return std::nullopt;
  return minor;
}

std::optional<Options::Partitions> Options::parse_partitions(std::string_view ids) {
  if (ids == "same-id") return Partitions::same_id;
  if (ids == "own-id") return Partitions::own_id;
  return std::nullopt;
}

std::optional<uint32_t> Options::parse_watchdog(std::string_view seconds) {
  return number_between(seconds, 1, 1'000'000);
}

std::optional<uint32_t> Options::parse_exitcode(std::string_view status) {
  return number_between(status, 1, 255);
}

bool Options::is_machine_name(std::string_view name) noexcept {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::vector<const DeviceDescription*> Options::parse_gpus(std::string_view list,
                                                          const DeviceDescription& target) {
  if (const auto count = number_between(list, 1, kMostGpus)) return {*count, &target};
  std::vector<const DeviceDescription*> gpus;
  for (size_t begin = 0, comma = 0; comma != std::string_view::npos; begin = comma + 1) {
    comma = list.find(',', begin);
    gpus.push_back(find_device_description(list.substr(begin, comma - begin)));
    if (gpus.back() == nullptr || gpus.size() > kMostGpus)
      throw std::invalid_argument("'" + std::string(list) + "': use a number from 1 to " +
                                  std::to_string(kMostGpus) + ", or a list of so many of " +
                                  known_targets());
  }
  return gpus;
}

Options Options::of_gpu(uint32_t index) const {
  Options options = *this;
  if (!gpus.empty()) options.device = gpus.at(index);
  // An odd constant with few patterns in its bits, so that seeds of neighbouring GPUs are
  // unrelated.
  const uint64_t apart = index * 0x9e3779b97f4a7c15;
  options.seed += apart;
  if (options.incoherent) *options.incoherent += apart;
  return options;
}

Options Options::from_environment() {
  Options options;
  std::string_view target = value_of("UPTEMPO_VGPU_DEVICE");
  if (target.empty()) target = "gfx90a";
  options.device = find_device_description(target);
  if (options.device == nullptr)
    throw std::invalid_argument("UPTEMPO_VGPU_DEVICE is '" + std::string(target) +
                                "': use one of " + known_targets());
  options.gpus = {options.device};
  if (const std::string_view list = value_of("UPTEMPO_VGPU_GPUS"); !list.empty()) {
    try {
      options.gpus = parse_gpus(list, *options.device);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string("UPTEMPO_VGPU_GPUS is ") + error.what());
    }
    options.device = options.gpus.front();
  }
  if (const std::string_view ids = value_of("UPTEMPO_VGPU_PARTITIONS"); !ids.empty()) {
    const auto partitions = parse_partitions(ids);
    if (!partitions)
      throw std::invalid_argument("UPTEMPO_VGPU_PARTITIONS is '" + std::string(ids) +
                                  "': use same-id or own-id");
    options.partitions = *partitions;
    if (std::ranges::any_of(options.gpus, [&](const auto* gpu) { return gpu != options.device; }))
      throw OptionConflict(
          "UPTEMPO_VGPU_PARTITIONS needs GPUs of one target, because they are "
          "parts of one card, but UPTEMPO_VGPU_GPUS names several",
          "--partitions needs GPUs of one target, because they are parts of one "
          "card");
  }
  options.trace_file = value_of("UPTEMPO_VGPU_TRACE");
  if (const std::string_view checks = value_of("UPTEMPO_VGPU_CHECK"); !checks.empty()) {
    try {
      options.checks = Checks::parse(checks);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string("UPTEMPO_VGPU_CHECK is ") + error.what());
    }
  }
  options.report_file = value_of("UPTEMPO_VGPU_REPORT");
  if (const std::string_view status = value_of("UPTEMPO_VGPU_ERROR_EXITCODE"); !status.empty()) {
    options.error_exitcode = parse_exitcode(status);
    if (!options.error_exitcode)
      throw std::invalid_argument("UPTEMPO_VGPU_ERROR_EXITCODE is '" + std::string(status) +
                                  "': use an exit status from 1 to 255");
  }
  options.suppressions_file = value_of("UPTEMPO_VGPU_SUPPRESSIONS");
  options.null_kernels = flag("UPTEMPO_VGPU_NULL_KERNELS");
  options.early_read_index = flag("UPTEMPO_VGPU_EARLY_READ_INDEX");
  options.grouped_read_index = flag("UPTEMPO_VGPU_GROUPED_READ_INDEX");
  options.eager_packets = flag("UPTEMPO_VGPU_EAGER_PACKETS");
  if (options.eager_packets && options.checks.fences)
    throw std::invalid_argument(
        "UPTEMPO_VGPU_EAGER_PACKETS and UPTEMPO_VGPU_CHECK exclude each other: set one of them");
  options.deterministic = flag("UPTEMPO_VGPU_DETERMINISTIC");
  if (!value_of("UPTEMPO_VGPU_INCOHERENT").empty()) {
    options.incoherent = number<uint64_t>("UPTEMPO_VGPU_INCOHERENT", 0);
    options.deterministic = true;
    options.seed = *options.incoherent;
    if (options.checks.fences || options.checks.races)
      throw std::invalid_argument(
          "UPTEMPO_VGPU_INCOHERENT and UPTEMPO_VGPU_CHECK exclude each other: set one of them");
  }
  if (!value_of("UPTEMPO_VGPU_LAZY_BAR").empty()) {
    options.lazy_bar = number<uint64_t>("UPTEMPO_VGPU_LAZY_BAR", 0);
    if (options.checks.fences || options.checks.memory)
      throw std::invalid_argument(
          "UPTEMPO_VGPU_LAZY_BAR and UPTEMPO_VGPU_CHECK exclude each other: set one of them");
  }
  options.small_bar = flag("UPTEMPO_VGPU_SMALL_BAR");
  if (options.small_bar && options.lazy_bar)
    throw std::invalid_argument(
        "UPTEMPO_VGPU_SMALL_BAR and UPTEMPO_VGPU_LAZY_BAR exclude each other: set one of them");
  if (!value_of("UPTEMPO_VGPU_DELAY").empty())
    options.delay = number<uint64_t>("UPTEMPO_VGPU_DELAY", 0);
  options.seed = number<uint64_t>("UPTEMPO_VGPU_SEED", options.seed);
  if (const std::string_view workers = value_of("UPTEMPO_VGPU_WORKERS"); !workers.empty()) {
    const auto count = number_between(workers, 0, kMostWorkers);
    if (!count)
      throw std::invalid_argument("UPTEMPO_VGPU_WORKERS is '" + std::string(workers) +
                                  "': use a number from 0 to " + std::to_string(kMostWorkers));
    options.workers = *count;
  }
  if (const std::string_view version = value_of("UPTEMPO_VGPU_KFD"); !version.empty()) {
    const auto minor = parse_kfd(version);
    if (!minor)
      throw std::invalid_argument("UPTEMPO_VGPU_KFD is '" + std::string(version) +
                                  "': use 1.8 to 1.18");
    options.kfd_minor = *minor;
  }
  try {
    options.sockets =
        Sockets::parse(value_of("UPTEMPO_VGPU_SOCKETS"), value_of("UPTEMPO_VGPU_GPU_SOCKET"));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("UPTEMPO_VGPU_SOCKETS or UPTEMPO_VGPU_GPU_SOCKET is " +
                                std::string(error.what()));
  }
  if (const std::string_view seconds = value_of("UPTEMPO_VGPU_WATCHDOG"); !seconds.empty()) {
    options.watchdog_seconds = parse_watchdog(seconds);
    if (!options.watchdog_seconds)
      throw std::invalid_argument("UPTEMPO_VGPU_WATCHDOG is '" + std::string(seconds) +
                                  "': use a number of seconds from 1 to 1000000");
  }
  if (const std::string_view rules = value_of("UPTEMPO_VGPU_INJECT"); !rules.empty()) {
    try {
      options.inject = parse_inject_rules(rules);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("UPTEMPO_VGPU_INJECT, " + std::string(error.what()));
    }
  }
  options.verbose = flag("UPTEMPO_VGPU_VERBOSE");
  options.join = value_of("UPTEMPO_VGPU_JOIN");
  if (!options.join.empty() && !is_machine_name(options.join))
    throw std::invalid_argument("UPTEMPO_VGPU_JOIN is '" + options.join +
                                "': use 1 to 64 letters, digits, '.', '_' and '-'");
  refuse_single_modes(options);
  refuse_effects_without_mode(options);
  return options;
}

}  // namespace uptempo::vgpu
