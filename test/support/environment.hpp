// Environment variables of this process for the time of a test. The destructor restores what was
// there before.
//
//   Environment environment{{"HSA_ENABLE_SDMA", "0"}};
//   environment.unset("COLUMNS");
//
// Variables for a child process alone belong into CommandOptions::environment.
//
// Thread safety: none; the C library's environment has none either.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "test/support/catch.hpp"

namespace uptempo::test {

class Environment {
 public:
  Environment(std::initializer_list<std::pair<std::string, std::string>> variables = {}) {
    for (const auto& [name, value] : variables) set(name, value);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value) {
        CHECK(setenv(name.c_str(), value->c_str(), 1) == 0);
      } else {
        CHECK(unsetenv(name.c_str()) == 0);
      }
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void set(const std::string& name, const std::string& value) {
    remember(name);
    REQUIRE(setenv(name.c_str(), value.c_str(), 1) == 0);
  }
  void unset(const std::string& name) {
    remember(name);
    REQUIRE(unsetenv(name.c_str()) == 0);
  }

 private:
  void remember(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    before_.emplace(name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
  }

  std::map<std::string, std::optional<std::string>> before_;  // only the first value of each
};

}  // namespace uptempo::test
