// Reads JSON that others wrote. An error names the place of the mistake, what is there and what
// should be, for example
// "steps[2].arguments[1].u32: 7.5; take a whole number from 0 to 4294967295".
//
// Thread safety: pure functions.
// Errors: std::runtime_error with that text.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace uptempo::support {

// nlohmann's parser has no limit of nesting, but its functions that copy, compare or print a value
// recurse: a file of nested lists would overflow the stack.
inline constexpr int kDeepestJson = 64;
// Throws std::runtime_error for deeper values. Call it before Json::parse(): a parse with a
// callback takes time that grows with the square of a list's length.
void require_shallow_json(std::string_view text);
// Throws the same, and what nlohmann's parse() throws.
nlohmann::ordered_json parse_json(std::string_view text);

// A value and its place in the file. The document must outlive it.
class JsonField {
 public:
  explicit JsonField(const nlohmann::ordered_json& value, std::string place = {})
      : value_(&value), place_(std::move(place)) {}

  const nlohmann::ordered_json& json() const noexcept { return *value_; }
  [[noreturn]] void refuse(const std::string& why) const;
  // Refuses the value; `wanted` is what the field may hold.
  [[noreturn]] void refuse_for(std::string_view wanted) const;

  bool is_null() const noexcept { return value_->is_null(); }
  bool is_text() const noexcept { return value_->is_string(); }
  bool is_list() const noexcept { return value_->is_array(); }

  // Requires an object without other fields than these.
  const JsonField& object(std::initializer_list<const char*> fields) const;
  // A field of an object; `find` returns no value if it is missing.
  std::optional<JsonField> find(const std::string& name) const;
  JsonField operator[](const std::string& name) const;
  // The only field of an object with exactly one, and its name.
  std::pair<std::string, JsonField> only(std::string_view wanted) const;
  std::vector<std::pair<std::string, JsonField>> fields() const;
  std::vector<JsonField> elements(size_t most = SIZE_MAX) const;

  std::string text() const;
  bool flag() const;
  double number() const;
  // nlohmann's get<T>() converts any number to T: it cuts off fractions and upper bits, and a float
  // out of range has undefined behaviour.
  template <class T>
  T whole(T least = std::numeric_limits<T>::min(), T most = std::numeric_limits<T>::max()) const {
    const auto is_in_range = [&](auto number) {
      return std::cmp_greater_equal(number, least) && std::cmp_less_equal(number, most);
    };
    if (value_->is_number_unsigned()) {
      if (const auto number = value_->get<uint64_t>(); is_in_range(number))
        return static_cast<T>(number);
    } else if (value_->is_number_integer()) {
      if (const auto number = value_->get<int64_t>(); is_in_range(number))
        return static_cast<T>(number);
    }
    refuse_for("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  // A real number that T holds.
  template <class T>
  T real() const {
    const double found = number();
    if (std::abs(found) > static_cast<double>(std::numeric_limits<T>::max()))
      refuse_for("a number that the type can hold");
    return static_cast<T>(found);
  }

 private:
  const nlohmann::ordered_json* value_;
  std::string place_;
};

}  // namespace uptempo::support
