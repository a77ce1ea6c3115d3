// The command line of a program: options, positional arguments and commands. Only
// command_line.cpp compiles CLI11, whose templates cost a source several seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace uptempo::support {

// Refers to a declared option or argument. Each function returns the same option. Valid as long as
// the CommandLine; copies refer to the same option.
class Option {
 public:
  // Adds the default to the help text.
  Option& show_default();
  // Heading of the help text under which the option is shown.
  Option& group(std::string_view name);
  Option& hidden();

  // Conditions that a value must satisfy. An option with several values checks each.
  Option& range(uint32_t least, uint32_t most);
  Option& range(double least, double most);
  Option& positive();
  Option& not_negative();
  Option& one_of(std::span<const uint32_t> values);
  Option& one_of(std::vector<std::string> values);
  // `problem` returns what is wrong with a value, or "".
  Option& check(std::function<std::string(const std::string& value)> problem);
  // The value is a file that the program writes, or "-". It must be writable now, so that a mistake
  // ends the program before its work. Two options must not name the same file.
  Option& output_file();
  // The option may be repeated from a file that someone else wrote (CommandLine::repeat()). It may
  // neither write a file nor read one that its value names. Has no effect on output_file().
  Option& repeatable();
  // The value may have a unit: "64K" is 65,536, "1M" is 1,048,576.
  Option& sizes();

  Option& required();
  Option& separator(char between_values);
  Option& needs(Option other);
  Option& excludes(Option other);

 private:
  friend class CommandLine;
  using Choices = std::map<const CLI::Option*, std::vector<std::string>>;
  Option(CLI::Option& declared, Choices& choices) : declared_(&declared), choices_(&choices) {}

  CLI::Option* declared_;
  Choices* choices_;  // of the CommandLine: values that one_of() names
};

// A program's command line, or one of its commands. Options are declared first; parsing stores
// their values in the variables of the declarations, which must outlive it. A variable keeps its
// value if the option is not given.
// Thread safety: one owner.
class CommandLine {
 public:
  CommandLine(std::string name, std::string description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // A flag stores true.
  Option flag(const std::string& names, bool& value, const std::string& help);

  // An option if the name begins with "--", else a positional argument. A word after the name
  // stands for the value in the help text: "--rounds N". The value is a text, a number (int64_t,
  // uint32_t, uint64_t, double), a vector of these except int64_t, or a std::set<uint32_t>; a
  // vector or set takes several values. An empty value is refused.
  template <class Value>
  Option option(const std::string& names, Value& value, const std::string& help);
  // Calls `store` with the value.
  Option option(const std::string& names, std::function<void(double value)> store,
                const std::string& help);
  // A value that the user names.
  template <class Value>
  Option option(const std::string& names, Value& value, std::map<std::string, Value> values,
                const std::string& help) {
    return choice(
        names, keys_of(values),
        [&value, values](const std::vector<std::string>& given) {
          value = values.at(given.front());
        },
        1, help);
  }
  template <class Value>
  Option option(const std::string& names, std::vector<Value>& value,
                std::map<std::string, Value> values, const std::string& help) {
    return choice(
        names, keys_of(values),
        [&value, values](const std::vector<std::string>& given) {
          value.clear();
          for (const std::string& each : given) value.push_back(values.at(each));
        },
        kAnyNumber, help);
  }
  // The option that was declared with this name. Throws std::logic_error if there is none.
  Option declared(const std::string& name);

  // Adds a command, for example `aql_dump ring`. It lives as long as this object.
  CommandLine& command(const std::string& name, const std::string& description);
  void require_commands(size_t least, size_t most);
  // Options of the program may also follow the command.
  void allow_options_after_command();
  // Text after the options in the help text.
  void footer(const std::string& text);
  // The usage line of the help text ends with "-- program [arguments]", which parse() never sees.
  // Adds the option --completion, for which parse() returns a script (completion.hpp).
  void runs_a_program();

  const std::string& name() const;
  std::string description() const;
  // Whether parsing found this command.
  bool parsed() const;

  // Parses arguments, without the program's name. Throws UsageError with one sentence. For an
  // unknown option or command it names the nearest known one.
  // Returns the text that --help, --version or --completion asked for; the program then ends.
  std::optional<std::string> parse(std::vector<std::string> arguments);

  // The options that parsing found and that are repeatable, each as its name and its values.
  std::vector<std::vector<std::string>> repeatable_arguments() const;
  // Parses arguments that someone else chose. Here, and in the commands, every option that is not
  // repeatable() is removed first, as are --help and --version, so none of them has an effect.
  // Throws UsageError as parse() does.
  void repeat(std::vector<std::string> arguments);

 private:
  static constexpr int kAnyNumber = -1;

  explicit CommandLine(CLI::App& command);
  template <class Value>
  static std::vector<std::string> keys_of(const std::map<std::string, Value>& values) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : values) keys.push_back(key);
    return keys;
  }
  Option choice(const std::string& names, std::vector<std::string> values,
                std::function<void(const std::vector<std::string>& given)> store, int count,
                const std::string& help);

  // The sentence about the first argument that is unknown; none if all are known.
  std::optional<std::string> unknown_argument() const;
  // Names of the options of this command line and of its commands that parsing has found.
  std::vector<std::string> option_names() const;
  std::optional<std::string> parse_words(std::vector<std::string> arguments);
  std::string completion(const std::string& shell) const;
  void keep_repeatable();
  // The given options of output_file(), of this command line and of its commands.
  void collect_outputs(std::vector<CLI::Option*>& outputs) const;

  std::unique_ptr<CLI::App> owned_;  // null in a command
  CLI::App* app_;
  std::vector<std::unique_ptr<CommandLine>> commands_;
  Option::Choices choices_;
  std::string completion_shell_;
};

}  // namespace uptempo::support
