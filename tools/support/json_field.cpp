#include "tools/support/json_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

namespace uptempo::support {

using nlohmann::ordered_json;

void require_shallow_json(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (c == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestJson)
        throw std::runtime_error(
            fmt::format("values are nested deeper than {} levels", kDeepestJson));
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

ordered_json parse_json(std::string_view text) {
  require_shallow_json(text);
  return ordered_json::parse(text);
}

void JsonField::refuse(const std::string& why) const {
  throw std::runtime_error(place_.empty() ? why : place_ + ": " + why);
}

void JsonField::refuse_for(std::string_view wanted) const {
  std::string found = value_->dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (found.size() > 40) found = found.substr(0, 37) + "...";
  refuse(fmt::format("{}; take {}", found, wanted));
}

const JsonField& JsonField::object(std::initializer_list<const char*> fields) const {
  if (!value_->is_object()) refuse_for("an object");
  for (const auto& [name, unused] : value_->items())
    if (std::ranges::find(fields, std::string_view(name)) == fields.end())
      refuse(fmt::format("there is no field '{}'; there are {}", name, fmt::join(fields, ", ")));
  return *this;
}

std::optional<JsonField> JsonField::find(const std::string& name) const {
  if (!value_->is_object()) refuse_for("an object");
  const auto found = value_->find(name);
  if (found == value_->end()) return std::nullopt;
  return JsonField(*found, place_.empty() ? name : place_ + '.' + name);
}

JsonField JsonField::operator[](const std::string& name) const {
  if (const std::optional<JsonField> found = find(name)) return *found;
  refuse(fmt::format("the field '{}' is missing", name));
}

std::pair<std::string, JsonField> JsonField::only(std::string_view wanted) const {
  if (!value_->is_object() || value_->size() != 1) refuse_for(wanted);
  return fields().front();
}

std::vector<std::pair<std::string, JsonField>> JsonField::fields() const {
  if (!value_->is_object()) refuse_for("an object");
  std::vector<std::pair<std::string, JsonField>> all;
  for (const auto& [name, value] : value_->items())
    all.emplace_back(name, JsonField(value, place_.empty() ? name : place_ + '.' + name));
  return all;
}

std::vector<JsonField> JsonField::elements(size_t most) const {
  if (!value_->is_array()) refuse_for("a list");
  if (value_->size() > most)
    refuse(fmt::format("{} elements; there can be at most {}", value_->size(), most));
  std::vector<JsonField> all;
  for (size_t i = 0; i < value_->size(); ++i)
    all.emplace_back((*value_)[i], fmt::format("{}[{}]", place_, i));
  return all;
}

std::string JsonField::text() const {
  if (!value_->is_string()) refuse_for("a string");
  return value_->get<std::string>();
}

bool JsonField::flag() const {
  if (!value_->is_boolean()) refuse_for("true or false");
  return value_->get<bool>();
}

double JsonField::number() const {
  if (!value_->is_number()) refuse_for("a number");
  return value_->get<double>();
}

}  // namespace uptempo::support
