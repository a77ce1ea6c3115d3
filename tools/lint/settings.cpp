#include "tools/lint/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace uptempo::lint {
namespace {

template <typename Number>
Number number(std::string_view key, std::string_view text, Number low, Number high) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || last != end || !(value >= low && value <= high))
    throw std::invalid_argument(
        fmt::format("{}={} is not a number from {} to {}", key, text, low, high));
  return value;
}

std::string keys() {
  std::string text = "format, file, sites, top";
  for (const FindingText& finding : kFindings)
    if (!finding.cost.empty()) text += fmt::format(", cost.{}", finding.cost);
  return text;
}

void set(Settings& settings, std::string_view key, std::string_view value) {
  if (key == "format") {
    if (value != "text" && value != "json")
      throw std::invalid_argument(fmt::format("format={} is neither text nor json", value));
    settings.format = value == "text" ? Format::text : Format::json;
    return;
  }
  if (key == "file") {
    if (value.empty()) throw std::invalid_argument("file= lacks a name");
    settings.file = value;
    return;
  }
  if (key == "sites") {
    settings.sites.reset();
    if (value != "off") settings.sites = number<uint32_t>(key, value, 0, 20);
    return;
  }
  if (key == "top") {
    settings.top = number<uint32_t>(key, value, 1, 100000);
    return;
  }
  for (const FindingText& finding : kFindings) {
    if (finding.cost.empty() || key != fmt::format("cost.{}", finding.cost)) continue;
    settings.cost_ns[static_cast<size_t>(finding.finding)] = number<double>(key, value, 0, 1e12);
    return;
  }
  throw std::invalid_argument(
      fmt::format("'{}' is not an option; the options are {}", key, keys()));
}

}  // namespace

Settings parse_settings(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t sign = item.find('=');
    if (sign == std::string_view::npos)
      throw std::invalid_argument(
          fmt::format("'{}' lacks a value; the options are {}", item, keys()));
    set(settings, item.substr(0, sign), item.substr(sign + 1));
  }
  return settings;
}

std::string expand_file_name(std::string_view name, int process) {
  std::string expanded;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      expanded += name[i];
      continue;
    }
    const char letter = ++i < name.size() ? name[i] : '\0';
    if (letter == 'p') {
      expanded += std::to_string(process);
    } else if (letter == '%') {
      expanded += '%';
    } else {
      throw std::invalid_argument(fmt::format("file={} has a % that is neither %p nor %%", name));
    }
  }
  return expanded;
}

}  // namespace uptempo::lint
