// Whole numbers in JSON that a tool reads. nlohmann's get<T>() converts any number to T: it cuts off
// fractions and upper bits, and a float out of range has undefined behaviour.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace uptempo::support {

// Throws std::runtime_error, which shows the value, unless it is a whole number that T holds.
template <class T, class Json>
T whole(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<int64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  }
  throw std::runtime_error(value.dump(-1, ' ', false, Json::error_handler_t::replace) +
                           " is not a whole number from " +
                           std::to_string(std::numeric_limits<T>::min()) + " to " +
                           std::to_string(std::numeric_limits<T>::max()));
}

}  // namespace uptempo::support
