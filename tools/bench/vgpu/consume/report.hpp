// Figures and their bars, as text and as JSON.
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

// One row: a value per round.
struct Row {
  std::string_view name;
  std::string_view unit;
  std::string_view floor;  // the row that this one is divided by; empty: none
  std::vector<double> values;
};

class Rows {
 public:
  // Throws std::invalid_argument if the row's floor does not exist.
  void declare(std::string_view name, std::string_view unit, std::string_view floor = {});
  void add(std::string_view name, double value);

  const std::vector<Row>& all() const noexcept { return rows_; }
  const Row& at(std::string_view name) const;
  support::MedianInterval figure(std::string_view name) const;
  // Median of the rounds' ratios of the row to its floor.
  std::optional<support::MedianInterval> ratio_to_floor(std::string_view name) const;

 private:
  std::vector<Row> rows_;
};

// A row and the limit for the worse end of its interval.
struct Bar {
  std::string_view row;
  double limit;
  bool at_least = false;  // false: at most
  // Applies to the ratio to the row's floor instead of the row's own value.
  bool of_ratio = false;
};

struct Judged {
  Bar bar;
  double value;  // the worse end of the interval
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
nlohmann::json json(const Conditions& conditions, const Rows& rows,
                    const std::vector<Judged>& bars);

}  // namespace uptempo::vgpu::consume
