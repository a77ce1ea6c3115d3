#include "tools/hardware/child.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>

#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

namespace uptempo::hardware {
namespace {

constexpr int kSignalled = 128, kNotStarted = 127;

// The last line, without its end and the program's name: programs write the one line of an Error
// last, after what libraries may have written.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  for (const std::string_view program : {"hardware_check: ", "hardware_check_hip: "})
    if (text.starts_with(program)) text.erase(0, program.size());
  return text;
}

// "SIGSEGV"; a number for a signal without an abbreviation.
std::string signal_name(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

}  // namespace

std::string line_of(const Answer& answer) {
  return nlohmann::ordered_json{{"verdict", name_of(answer.verdict)},
                                {"text", answer.text},
                                {"measured", answer.measured}}
             .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         '\n';
}

Answer answer_of_line(const std::string& line) {
  try {
    const auto json = nlohmann::ordered_json::parse(line);
    return {verdict_of(json.at("verdict").get<std::string>()), json.at("text").get<std::string>(),
            json.at("measured")};
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("not a probe's answer: {}", error.what()));
  }
}

namespace {

// The reason for a process that has not printed an answer.
Answer without_answer(const test::CommandResult& result, double limit_s) {
  const std::string said = last_line(result.err);
  const std::string and_said = said.empty() ? "" : ": " + said;
  if (result.timed_out)
    return {Verdict::differs,
            fmt::format("{}: no answer after {:.3g} s{}", kHangs, limit_s, and_said)};
  if (result.exit_code == support::exit_unavailable) return {Verdict::not_asked, said};
  if (result.exit_code == kNotStarted)
    return {Verdict::not_asked, "its program cannot be started" + and_said};
  if (result.exit_code > kSignalled)
    return {Verdict::differs, fmt::format("its process ended by {}{}",
                                          signal_name(result.exit_code - kSignalled), and_said)};
  if (result.exit_code != 0)
    return {Verdict::differs,
            said.empty() ? fmt::format("its process ended with {}", result.exit_code) : said};
  return {Verdict::differs, "it printed no answer" + and_said};
}

}  // namespace

Answer answer_of(const test::CommandResult& result, double limit_s) {
  const std::string line = last_line(result.out);
  if (line.empty() || line.front() != '{') return without_answer(result, limit_s);
  Answer answer;
  try {
    answer = answer_of_line(line);
  } catch (const std::runtime_error& error) {
    return {Verdict::differs, error.what()};
  }
  // The answer holds; the end of HSA may hang or crash.
  if (result.timed_out)
    answer.text += ". Its process did not end";
  else if (result.exit_code != 0)
    answer.text += fmt::format(". Its process then ended with {}", result.exit_code);
  if (result.timed_out || result.exit_code != 0) answer.verdict = Verdict::differs;
  return answer;
}

std::vector<std::string> command_for(const std::string& probe, const std::string& device) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const Probe* const known = find_probe(probe);
  if (known != nullptr && known->run == nullptr) {
    const std::filesystem::path peer = self.parent_path() / "hardware_check_hip";
    if (!std::filesystem::exists(peer) || !vgpu::distrust(peer).empty()) return {};
    return {peer.string(), "--device", device};
  }
  return {self.string(), "--probe", probe, "--device", device};
}

}  // namespace uptempo::hardware
