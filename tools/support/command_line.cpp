#include "tools/support/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "tools/support/launch/completion.hpp"
#include "tools/support/option_text.hpp"
#include "tools/support/program.hpp"

namespace uptempo::support {

namespace {

constexpr const char* kOutputFile = "output file";  // a validator's name

bool is_output(CLI::Option& option) {
  try {
    return option.get_validator(kOutputFile) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

// CLI11 calls an option configurable if it may come from a configuration file. Here no option is
// configurable unless it says so.
bool is_repeatable(CLI::Option& option) { return option.get_configurable() && !is_output(option); }

// Whether writing one file would destroy the other.
bool is_same_file(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_other(one, error)) return false;  // a device or pipe
  return fs::equivalent(one, other, error) ||
         fs::weakly_canonical(fs::absolute(one)) == fs::weakly_canonical(fs::absolute(other));
}

// An empty text often means the same as none. CLI11 2.1 alone takes "" for 0, "-1" and 2^64 for
// 2^64 - 1, and "nan" as within every range.
template <class T>
std::string value_problem(const std::string& text) {
  if (text.empty()) return "the value is empty";
  const char *begin = text.data(), *const end = begin + text.size();
  if constexpr (std::is_same_v<T, std::string>) {
    return "";
  } else if constexpr (std::is_floating_point_v<T>) {
    T number{};
    const std::from_chars_result parsed = std::from_chars(begin, end, number);
    if (parsed.ec == std::errc{} && parsed.ptr == end && std::isfinite(number)) return "";
    return fmt::format("'{}' is not a number", text);
  } else {
    T number{};
    const bool is_hexadecimal = text.starts_with("0x");
    const std::from_chars_result parsed =
        std::from_chars(is_hexadecimal ? begin + 2 : begin, end, number, is_hexadecimal ? 16 : 10);
    if (parsed.ec == std::errc{} && parsed.ptr == end) return "";
    return fmt::format("'{}' is not a whole number from {} to {}", text,
                       std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  }
}

// A number with or without a unit; CLI11 checks the unit and the product.
std::string size_problem(const std::string& text) {
  uint64_t number = 0;
  const bool is_too_large = std::from_chars(text.data(), text.data() + text.size(), number).ec ==
                            std::errc::result_out_of_range;
  if (!is_too_large && !text.starts_with('-')) return "";
  return fmt::format("'{}' is not a size from 0 to 2^64 - 1", text);
}

// CLI11 2.6 wraps text that has lines of its own, and begins the usage line with the name. Older
// ones begin it with "Usage: ", which man pages are made from.
class HelpText : public CLI::Formatter {
 public:
  HelpText() {
    column_width(32);
    keep_lines(*this);
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    if (usage.find("Usage: ") == std::string::npos) usage.insert(usage.find(name), "Usage: ");
    return usage;
  }

 private:
  template <class Formatter>
  static void keep_lines(Formatter& formatter) {
    if constexpr (requires { formatter.enable_footer_formatting(false); }) {
      formatter.enable_description_formatting(false);
      formatter.enable_footer_formatting(false);
    }
  }
};

// "--rounds N" holds the name to declare, and the word that stands for the value in the help text.
std::string without_placeholder(const std::string& names) {
  return names.substr(0, names.find(' '));
}
CLI::Option* set_placeholder(CLI::Option* option, const std::string& names) {
  if (const size_t blank = names.find(' '); blank != std::string::npos)
    option->type_name(names.substr(blank + 1));
  return option;
}

template <class Value>
struct Each {
  using Type = Value;
};
template <class Value>
struct Each<std::vector<Value>> {
  using Type = Value;
};
template <class Value>
struct Each<std::set<Value>> {
  using Type = Value;
};

}  // namespace

// Validators have no description, because the help texts of the options name the valid values.

Option& Option::show_default() {
  declared_->capture_default_str();
  return *this;
}

Option& Option::group(std::string_view name) {
  declared_->group(std::string(name));
  return *this;
}

Option& Option::hidden() { return group(""); }

Option& Option::range(uint32_t least, uint32_t most) {
  declared_->check(CLI::Range(least, most).description(""));
  return *this;
}

Option& Option::range(double least, double most) {
  declared_->check(CLI::Range(least, most).description(""));
  return *this;
}

Option& Option::positive() {
  declared_->check(CLI::Validator(
      [](const std::string& text) { return std::stod(text) > 0 ? "" : text + " is not above 0"; },
      ""));
  return *this;
}

Option& Option::not_negative() {
  declared_->check(CLI::Validator(
      [](const std::string& text) { return std::stod(text) >= 0 ? "" : text + " is below 0"; },
      ""));
  return *this;
}

Option& Option::one_of(std::span<const uint32_t> values) {
  declared_->check(CLI::IsMember(std::set<uint32_t>(values.begin(), values.end())).description(""));
  return *this;
}

Option& Option::one_of(std::vector<std::string> values) {
  (*choices_)[declared_] = values;
  declared_->check(CLI::IsMember(std::move(values)).description(""));
  return *this;
}

Option& Option::check(std::function<std::string(const std::string& value)> problem) {
  declared_->check(CLI::Validator(
      [problem = std::move(problem)](const std::string& value) { return problem(value); }, ""));
  return *this;
}

Option& Option::output_file() {
  declared_->check(CLI::Validator(output_problem, "", kOutputFile));
  return *this;
}

Option& Option::repeatable() {
  declared_->configurable();
  return *this;
}

Option& Option::sizes() {
  declared_->transform(CLI::AsSizeValue(false).description(""));
  declared_->transform(CLI::Validator(size_problem, ""));  // the last transformation comes first
  return *this;
}

Option& Option::required() {
  declared_->required();
  return *this;
}

Option& Option::separator(char between_values) {
  declared_->delimiter(between_values);
  return *this;
}

Option& Option::needs(Option other) {
  declared_->needs(other.declared_);
  return *this;
}

Option& Option::excludes(Option other) {
  declared_->excludes(other.declared_);
  return *this;
}

CommandLine::CommandLine(std::string name, std::string description)
    : owned_(std::make_unique<CLI::App>(std::move(description), std::move(name))),
      app_(owned_.get()) {
  app_->formatter(std::make_shared<HelpText>());
  app_->option_defaults()->configurable(false);  // also of the commands, which copy it
}

CommandLine::CommandLine(CLI::App& command) : app_(&command) {}

CommandLine::~CommandLine() = default;

Option CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  return {*app_->add_flag(names, value, help), choices_};
}

template <class Value>
Option CommandLine::option(const std::string& names, Value& value, const std::string& help) {
  CLI::Option* const added = app_->add_option(without_placeholder(names), value, help);
  return {*set_placeholder(added, names)
               ->check(CLI::Validator(value_problem<typename Each<Value>::Type>, "")),
          choices_};
}
template Option CommandLine::option(const std::string&, std::string&, const std::string&);
template Option CommandLine::option(const std::string&, int64_t&, const std::string&);
template Option CommandLine::option(const std::string&, uint32_t&, const std::string&);
template Option CommandLine::option(const std::string&, uint64_t&, const std::string&);
template Option CommandLine::option(const std::string&, double&, const std::string&);
template Option CommandLine::option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option CommandLine::option(const std::string&, std::vector<uint32_t>&, const std::string&);
template Option CommandLine::option(const std::string&, std::vector<uint64_t>&, const std::string&);
template Option CommandLine::option(const std::string&, std::vector<double>&, const std::string&);
template Option CommandLine::option(const std::string&, std::set<uint32_t>&, const std::string&);

Option CommandLine::option(const std::string& names, std::function<void(double value)> store,
                           const std::string& help) {
  CLI::Option* const added = app_->add_option_function<double>(
      without_placeholder(names), [store = std::move(store)](const double& value) { store(value); },
      help);
  return {*set_placeholder(added, names)->check(CLI::Validator(value_problem<double>, "")),
          choices_};
}

Option CommandLine::choice(const std::string& names, std::vector<std::string> values,
                           std::function<void(const std::vector<std::string>& given)> store,
                           int count, const std::string& help) {
  CLI::Option* declared =
      app_->add_option_function<std::vector<std::string>>(without_placeholder(names), store, help);
  set_placeholder(declared, names)
      ->expected(count)
      ->check(CLI::IsMember(std::move(values)).description(""));
  return {*declared, choices_};
}

Option CommandLine::declared(const std::string& name) {
  CLI::Option* option = app_->get_option_no_throw(name);
  if (option == nullptr) throw std::logic_error("no option " + name + " was declared");
  return {*option, choices_};
}

CommandLine& CommandLine::command(const std::string& name, const std::string& description) {
  CLI::App* added = app_->add_subcommand(name, description);
  commands_.push_back(std::unique_ptr<CommandLine>(new CommandLine(*added)));
  return *commands_.back();
}

void CommandLine::require_commands(size_t least, size_t most) {
  app_->require_subcommand(least, most);
}

void CommandLine::allow_options_after_command() { app_->fallthrough(); }

void CommandLine::footer(const std::string& text) { app_->footer(text); }

// CLI11 writes '[' before the label and ']' after it. Before 2.4 it has no other place for this.
void CommandLine::runs_a_program() {
  app_->get_formatter()->label("OPTIONS", "OPTIONS] -- program [arguments");
  std::vector<std::string> shells;
  for (std::string_view rest = kShells; !rest.empty();
       rest.remove_prefix(std::min(rest.size(), shells.back().size() + 1)))
    shells.emplace_back(rest.substr(0, rest.find('|')));
  option(fmt::format("--completion {}", kShells), completion_shell_,
         "Print a script by which the shell completes these options")
      .one_of(std::move(shells));
}

const std::string& CommandLine::name() const { return app_->get_name(); }

std::string CommandLine::description() const { return app_->get_description(); }

bool CommandLine::parsed() const { return app_->parsed(); }

std::vector<std::string> CommandLine::option_names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const auto& command : commands_)
    if (command->parsed())
      for (std::string& name : command->option_names()) names.push_back(std::move(name));
  return names;
}

std::optional<std::string> CommandLine::unknown_argument() const {
  const std::vector<std::string> unknown = app_->remaining(true);
  const auto option = std::ranges::find_if(
      unknown, [](const std::string& word) { return word.starts_with('-') && word != "--"; });
  if (option != unknown.end())
    return unknown_text("option", option->substr(0, option->find('=')), option_names());
  if (unknown.empty()) return std::nullopt;
  const bool has_command =
      std::ranges::any_of(commands_, [](const auto& each) { return each->parsed(); });
  if (commands_.empty() || has_command)
    return fmt::format("unexpected argument '{}' (see --help)", unknown.front());
  std::vector<std::string> names;
  for (const auto& command : commands_) names.push_back(command->name());
  return unknown_text("command", unknown.front(), names);
}

std::optional<std::string> CommandLine::parse(std::vector<std::string> arguments) {
  if (app_->get_version_ptr() == nullptr)  // declared last, so that the help text ends with it
    app_->set_version_flag("--version", version_text(name(), version()));
  std::optional<std::string> text = parse_words(std::move(arguments));
  if (!text && !completion_shell_.empty()) text = completion(completion_shell_);
  return text;
}

std::string CommandLine::completion(const std::string& shell) const {
  std::vector<OptionText> options;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->get_group().empty() || option->get_lnames().empty()) continue;
    const bool is_flag = option->get_items_expected_max() == 0;
    OptionText text{.name = "--" + option->get_lnames().front(),
                    .value = is_flag ? "" : option->get_type_name(),
                    .help = option->get_description()};
    if (const auto found = choices_.find(option); found != choices_.end())
      text.choices = found->second;
    options.push_back(std::move(text));
  }
  return completion_script(shell, name(), options);
}

std::optional<std::string> CommandLine::parse_words(std::vector<std::string> arguments) {
  std::ranges::reverse(arguments);  // CLI11 takes them from the end
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::CallForVersion& request) {
    return std::string(request.what());
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::ParseError& error) {
    // CLI11 reports a missing command or argument first, which may be missing for that reason.
    throw UsageError(unknown_argument().value_or(error.what()));
  }
  std::vector<CLI::Option*> outputs;
  collect_outputs(outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t j = i + 1; j < outputs.size(); ++j) {
      const std::string &one = outputs[i]->results().front(),
                        &other = outputs[j]->results().front();
      if (one != "-" && other != "-" && is_same_file(one, other))
        throw UsageError(fmt::format("{} and {} name the same file, '{}'", outputs[i]->get_name(),
                                     outputs[j]->get_name(), one));
    }
  return std::nullopt;
}

std::vector<std::vector<std::string>> CommandLine::repeatable_arguments() const {
  std::vector<std::vector<std::string>> arguments;
  for (CLI::Option* option : app_->get_options()) {
    if (option->count() == 0 || !is_repeatable(*option)) continue;
    std::vector<std::string> words{"--" + option->get_lnames().front()};
    if (option->get_items_expected_max() > 0) {  // not a flag
      const std::vector<std::string>& values = option->results();
      if (const char separator = option->get_delimiter(); separator != '\0')
        words.push_back(fmt::format("{}", fmt::join(values, std::string(1, separator))));
      else
        words.insert(words.end(), values.begin(), values.end());
    }
    arguments.push_back(std::move(words));
  }
  return arguments;
}

void CommandLine::collect_outputs(std::vector<CLI::Option*>& outputs) const {
  for (CLI::Option* option : app_->get_options())
    if (option->count() > 0 && is_output(*option)) outputs.push_back(option);
  for (const auto& command : commands_) command->collect_outputs(outputs);
}

void CommandLine::keep_repeatable() {
  app_->set_help_flag();
  for (CLI::Option* option : app_->get_options())
    if (!is_repeatable(*option)) app_->remove_option(option);
  for (const auto& command : commands_) command->keep_repeatable();
}

void CommandLine::repeat(std::vector<std::string> arguments) {
  keep_repeatable();
  parse_words(std::move(arguments));
}

}  // namespace uptempo::support
