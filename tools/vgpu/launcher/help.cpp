#include "launcher/help.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "device/description.hpp"

namespace uptempo::vgpu::launcher {
namespace {

using support::OptionText;

constexpr size_t kTextColumn = 22, kColumns = 100;

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const DeviceDescription& description : device_descriptions())
    names.emplace_back(description.target);
  return names;
}

// The values that a word of the help text begins with: "same-id|own-id", "lazy SEED",
// "fences[,hsa]". Words in capitals stand for others.
std::vector<std::string> choices(std::string_view value) {
  if (value == "TARGET") return target_names();
  std::vector<std::string> words;
  if (value.empty() || std::islower(static_cast<unsigned char>(value.front())) == 0) return words;
  value = value.substr(0, value.find_first_of("[ "));
  while (!value.empty()) {
    words.emplace_back(value.substr(0, value.find('|')));
    value.remove_prefix(std::min(value.size(), words.back().size() + 1));
  }
  return words;
}

// "  --name VALUE" and the help text beside it.
std::string paragraph(const OptionText& option) {
  std::string text = "  " + option.name + (option.value.empty() ? "" : " ") + option.value;
  size_t column = text.size();
  if (column >= kTextColumn) {
    text += '\n';
    column = 0;
  }
  std::string_view rest = option.help;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (column > kTextColumn && column + 1 + word.size() > kColumns) {
      text += '\n';
      column = 0;
    }
    const size_t blanks = column < kTextColumn ? kTextColumn - column : 1;
    text.append(blanks, ' ').append(word);
    column += blanks + word.size();
  }
  return text + '\n';
}

}  // namespace

std::string targets() {
  std::string names;
  for (const std::string& name : target_names()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::vector<OptionText> options() {
  std::vector<OptionText> options = {
      {"--device", "TARGET", targets() + " (default gfx90a). gfx942 needs ROCr 6.1 or newer"},
      {"--gpus", "N|LIST",
       "be a machine with 1 to 8 GPUs of TARGET, or with those of a list, as gfx90a,gfx908 "
       "(default 1). Excludes --check fences with advice or waits, and --bar lazy"},
      {"--partitions", "same-id|own-id",
       "make the GPUs of --gpus partitions of one card, as an MI300 is in CPX mode: one PCI "
       "device, and the card's unique id (same-id) or one each (own-id)"},
      {"--join", "NAME",
       "share one machine, its device memory and IPC handles, with the user's other programs "
       "that name it. The options that describe the machine must agree. Excludes --check "
       "fences, --incoherent, --bar lazy and --deterministic"},
      {"--reset-gpu", "INDEX",
       "run no program, but reset a GPU of the machine: all queues on it stop, and its "
       "processes receive the driver's HW_EXCEPTION event"},
      {"--kfd", "VERSION",
       "be a driver with KFD 1.8 to 1.18 (default 1.18): its version, features and refusals; "
       "from 1.13 on, queue errors are exceptions"},
      {"--trace", "FILE",
       "write each packet and doorbell as a line of JSON; %p stands for the process id. A "
       "pipe must have a reader"},
      {"--check", "fences[,hsa][,repeated][,advice|,waits]",
       "find accesses of dispatches, copies and the host that no order or fence separates. "
       "hsa: also those that only the specification forbids. repeated: report each, not only "
       "the first of one reason, kernels and place of allocation. advice: at the program's "
       "end, list fences and barrier bits that could be narrower. waits: also what the host "
       "reads or writes without having waited, whatever the timing; slower"},
      {"--check", "memory[,buffers][,repeated]",
       "find accesses beyond allocations, after their release and under running kernels, "
       "reads of memory and LDS without contents, and leaks. buffers: also lanes that the "
       "range check of a buffer excludes. Excludes --check fences and --bar lazy"},
      {"--check", "races[,same-values][,repeated]",
       "find data races inside kernels, in LDS and in global memory: missing barriers, "
       "atomics and fences. same-values: also stores of what memory holds. Combines with the "
       "other checks. device/races/README.md says what it does not model"},
      {"--check", "atomics",
       "find floating-point atomics that have no effect because their memory is not "
       "coarse-grained; every --check finds them"},
      {"--report", "FILE",
       "write the findings of --check to FILE as lines of JSON (default: sentences on "
       "stderr)"},
      {"--suppressions", "FILE",
       "leave out findings of --check that a rule in FILE names. A rule is a line: CLASS "
       "WRITER READER [queue=N], for example: unordered fill* add*"},
      {"--error-exitcode", "N",
       "end each process in which --check finds anything with status N (1 to 255), in place "
       "of the program's own status, also a failure's. Advice is no finding. A process that "
       "a signal ends keeps that end"},
      {"--null-kernels", "", "complete dispatches without executing them, to measure their cost"},
      {"--early-read-index", "",
       "advance the read index when a packet is launched, as hardware may: a kernel that "
       "reads its packet finds what the slot then holds"},
      {"--grouped-read-index", "",
       "advance the read index in groups of eight packets, as some processors do: a program "
       "that waits for an exact value hangs"},
      {"--eager-packets", "",
       "take a packet as soon as its header is valid, even beyond the write index, as "
       "hardware may. Excludes --check fences"},
      {"--deterministic", "",
       "use one worker and a seeded order: the same trace on every run. Each of several GPUs "
       "has them; the order between the GPUs is the host's"},
      {"--incoherent", "SEED",
       "keep stale cache lines wherever fences allow it, so that a missing fence gives wrong "
       "results for some seed. Implies --deterministic; excludes --check fences and races"},
      {"--bar", "lazy SEED",
       "hold the host's stores to device memory back until an HDP flush or a read-back, and "
       "count the host's reads of it. Excludes --check fences"},
      {"--bar", "small",
       "give the host no access to device memory, as on a machine without a large BAR"},
      {"--delay", "SEED",
       "delay packets, copies, doorbells and interrupts at random, so that a program without "
       "the necessary order fails for some seed"},
      {"--inject", "RULES",
       "faults on purpose, as ioctl=ALLOC_MEMORY_OF_GPU errno=ENOMEM nth=3, or packet "
       "error=WAVE_ILLEGAL_INSTRUCTION; ';' separates rules, and the option may be repeated. "
       "device/inject/rules.hpp has the language"},
      {"--seed", "N", "seed of all other random choices (default: that of --incoherent, or 1)"},
      {"--workers", "N",
       "number of threads of a GPU that execute waves (default: one per core, divided by the "
       "number of GPUs; from 8 cores on, one core is left to the program)"},
      {"--sockets", "N",
       "be a machine with 1 to 8 processor sockets (default 1): CPU agents and NUMA nodes. "
       "The host's processors and memory are divided among them"},
      {"--gpu-socket", "N",
       "socket that the GPUs are connected to, counted from 0 (default: the last; several "
       "GPUs are divided among the sockets)"},
      {"--watchdog", "SECONDS",
       "report on stderr what the queues wait for when one has work and no packet has "
       "completed for SECONDS; SIGQUIT asks for the same report. The program continues"},
      {"--verbose", "", "report unknown ioctls and refused requests on stderr"},
      {"--completion", std::string(support::kShells),
       "print a script by which the shell completes these options"},
      {"--help", "", ""},
      {"--version", "", ""},
  };
  for (OptionText& option : options) option.choices = choices(option.value);
  return options;
}

std::string help() {
  std::string text =
      "Usage: uptempo-vgpu [options] [--] program [argument...]\n"
      "  or:  uptempo-vgpu --join NAME --reset-gpu INDEX\n"
      "\n"
      "Runs a program that uses ROCr, ROCT or HIP on a virtual AMD GPU. The exit status is the "
      "program's.\n"
      "\n";
  for (const OptionText& option : options())
    if (!option.help.empty()) text += paragraph(option);
  return text + "  --help, --version\n";
}

}  // namespace uptempo::vgpu::launcher
