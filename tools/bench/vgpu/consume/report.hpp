// Figures, what they are held against, and both as text and JSON.
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/support/statistics.hpp"

namespace uptempo::vgpu::consume {

// One row: a value for each round.
struct Row {
  std::string_view name;
  std::string_view unit;
  std::string_view floor;  // the row that it is divided by; empty: none
  std::vector<double> values;
};

class Rows {
 public:
  // Throws std::invalid_argument for a row whose floor is not there.
  void declare(std::string_view name, std::string_view unit, std::string_view floor = {});
  void add(std::string_view name, double value);

  const std::vector<Row>& all() const noexcept { return rows_; }
  const Row& at(std::string_view name) const;
  support::MedianInterval figure(std::string_view name) const;
  // Row by floor, round by round.
  std::optional<support::MedianInterval> ratio_to_floor(std::string_view name) const;

 private:
  std::vector<Row> rows_;
};

// A figure and the value that the worse end of its interval may not pass.
struct Bar {
  std::string_view row;
  double limit;
  bool at_least = false;  // else at most
  // Of the ratio to the row's floor instead of the figure itself.
  bool of_ratio = false;
};

struct Judged {
  Bar bar;
  double value;  // the worse end
  bool met;
};
std::vector<Judged> judge(const Rows& rows, const std::vector<Bar>& bars);

struct Conditions {
  std::string device;
  unsigned rounds;
  uint64_t seed;
  int host_core, device_core;
};
std::string table(const Rows& rows, const std::vector<Judged>& bars);
nlohmann::json json(const Conditions& conditions, const Rows& rows, const std::vector<Judged>& bars);

}  // namespace uptempo::vgpu::consume
