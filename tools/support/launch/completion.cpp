#include "tools/support/launch/completion.hpp"

#include <algorithm>

namespace uptempo::support {
namespace {

// One entry for each name, with the choices of all.
std::vector<OptionText> merged(const std::vector<OptionText>& options) {
  std::vector<OptionText> merged;
  for (const OptionText& option : options) {
    const auto known = std::ranges::find(merged, option.name, &OptionText::name);
    if (known == merged.end())
      merged.push_back(option);
    else
      known->choices.insert(known->choices.end(), option.choices.begin(), option.choices.end());
  }
  return merged;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

bool is_file(const OptionText& option) { return option.value.starts_with("FILE"); }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

constexpr std::string_view kBash =
    R"(# bash completion of COMMAND, made by `COMMAND --completion bash`
FUNCTION() {
  local word=${COMP_WORDS[COMP_CWORD]} at=1 option program=0
  COMPREPLY=()
  while ((program == 0 && at < COMP_CWORD)); do
    option=${COMP_WORDS[at]}
    case $option in
      --) program=$((at + 1)) ;;
      WITH_VALUE)
        if [[ ${COMP_WORDS[at + 1]} == = ]]; then ((++at)); fi
        if ((at + 1 >= COMP_CWORD)); then
          if [[ $word == = ]]; then word=; fi
          compopt +o default +o bashdefault 2>/dev/null  # no files
          case $option in
VALUES          esac
          return
        fi
        ((at += 2))
        ;;
      -* | [0-9]*) ((++at)) ;;
      *) program=$at ;;
    esac
  done
  if ((program == 0)); then
    COMPREPLY=($(compgen -W '-- OPTIONS' -- "$word"))
  elif declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset $program
  elif declare -F _command_offset >/dev/null; then
    _command_offset $program
  elif ((program == COMP_CWORD)); then
    COMPREPLY=($(compgen -c -- "$word"))
  fi
}
complete -o bashdefault -o default -F FUNCTION COMMAND
)";

constexpr std::string_view kZsh = R"(#compdef COMMAND
# zsh completion of COMMAND, made by `COMMAND --completion zsh`
FUNCTION() {
  _arguments -S -A '-*' \
OPTIONS    '(-)1:program:_command_names -e' \
    '*::argument:_normal'
}
if [[ $funcstack[1] == _COMMAND ]]; then
  FUNCTION "$@"
else
  compdef FUNCTION COMMAND
fi
)";

std::string bash(const std::vector<OptionText>& options) {
  std::vector<std::string> names, with_value;
  std::string values, files;
  for (const OptionText& option : options) {
    names.push_back(option.name);
    if (option.value.empty()) continue;
    with_value.push_back(option.name);
    if (!option.choices.empty())
      values += "            " + option.name + ") COMPREPLY=($(compgen -W '" +
                joined(option.choices, " ") + "' -- \"$word\")) ;;\n";
    else if (is_file(option))
      values +=
          "            " + option.name + ") compopt -o default -o bashdefault 2>/dev/null ;;\n";
  }
  std::string script(kBash);
  replace_all(script, "WITH_VALUE", joined(with_value, " | "));
  replace_all(script, "VALUES", values);
  replace_all(script, "OPTIONS", joined(names, " "));
  return script;
}

// The first sentence of a help text, in a word of _arguments within single quotes.
std::string zsh_text(const std::string& help) {
  std::string text;
  for (const char letter : help.substr(0, help.find(". "))) {
    if (letter == '\'')
      text += "'\\''";
    else if (letter == '[' || letter == ']' || letter == ':' || letter == '\\')
      text += std::string("\\") + letter;
    else
      text += letter;
  }
  return text;
}

std::string zsh(const std::vector<OptionText>& options) {
  std::string lines;
  for (const OptionText& option : options) {
    lines += "    '*" + option.name + (option.value.empty() ? "" : "=") + '[' +
             zsh_text(option.help) + ']';
    if (!option.value.empty()) lines += ":value:";
    if (!option.choices.empty())
      lines += '(' + joined(option.choices, " ") + ')';
    else if (is_file(option))
      lines += "_files";
    lines += "' \\\n";
  }
  std::string script(kZsh);
  replace_all(script, "OPTIONS", lines);
  return script;
}

}  // namespace

std::string completion_script(std::string_view shell, std::string_view command,
                              const std::vector<OptionText>& options) {
  std::string script;
  if (shell == "bash") script = bash(merged(options));
  if (shell == "zsh") script = zsh(merged(options));
  std::string function = '_' + std::string(command);
  std::ranges::replace(function, '-', '_');
  replace_all(script, "FUNCTION", function);
  replace_all(script, "COMMAND", command);
  return script;
}

}  // namespace uptempo::support
