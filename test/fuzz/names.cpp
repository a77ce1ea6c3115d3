// Short texts: target IDs, kernel names, JSON strings and the options of the virtual GPU, whose
// environment variables are the lines of the input.
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/kernel_names.hpp>
#include "device/json_text.hpp"
#include "device/options.hpp"
#include "test/fuzz/fuzz.hpp"

namespace uptempo::fuzz {
namespace {

constexpr const char* kVariables[] = {"DEVICE",
                                      "GPUS",
                                      "CHECK",
                                      "KFD",
                                      "SOCKETS",
                                      "GPU_SOCKET",
                                      "INCOHERENT",
                                      "LAZY_BAR",
                                      "DELAY",
                                      "SEED",
                                      "WORKERS",
                                      "SMALL_BAR",
                                      "NULL_KERNELS",
                                      "EARLY_READ_INDEX",
                                      "JOIN",
                                      "INJECT",
                                      "WATCHDOG",
                                      "EAGER_PACKETS",
                                      "GROUPED_READ_INDEX"};

void read_options(std::string_view lines) {
  // An environment of its own: the C library keeps every text that setenv() gets.
  std::vector<std::string> variables;
  for (const char* name : kVariables) {
    const std::string line(lines.substr(0, lines.find_first_of(std::string_view("\n\0", 2))));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    variables.push_back(std::string("UPTEMPO_VGPU_") + name + "=" + line);
  }
  std::vector<char*> pointers;
  for (std::string& variable : variables) pointers.push_back(variable.data());
  pointers.push_back(nullptr);
  char** const before = std::exchange(environ, pointers.data());
  accepts_or<std::invalid_argument>([] {
    const vgpu::Options options = vgpu::Options::from_environment();
    require(options.device != nullptr && !options.gpus.empty(), "options name a device");
    for (uint32_t gpu = 0; gpu < options.gpus.size(); ++gpu)
      require(options.socket_of_gpu(gpu) < options.sockets.count, "a GPU is at a socket");
  });
  environ = before;
}

}  // namespace

void names(Bytes input) {
  const std::string text(text_of(input));
  if (const auto id = parse_target_id(text))
    require(parse_target_id(to_string(*id)) == id, "a target's text is the same target");
  const std::vector<std::string> symbols = {text, "_Z5scaleIdEvPT_S0_"};
  require(!kernels_named(text, symbols).empty(), "a symbol names its kernel");
  (void)kernels_named(cpp_name(text), symbols);
  require(nlohmann::json::parse(vgpu::json_quoted(text)).is_string(), "quoted text is JSON");
  (void)vgpu::Options::is_machine_name(text);
  read_options(text);
}

}  // namespace uptempo::fuzz
