// The settings of the environment variable UPTEMPO_LINT: key=value pairs, separated by commas.
//
//   format=text|json   the report as a text of at most 80 columns, or as JSON lines (text)
//   file=PATH          appends the report there instead of to stderr; %p is the process's number
//   sites=K|off        samples the call site of one doorbell in 2^K, 0 to 20 (13)
//   top=N              prints at most N findings, 1 to 100000 (20); JSON has all
//   cost.KIND=NS       nanoseconds that one occurrence costs on the user's device; the kinds are
//                      acquire, release, barrier, signal, doorbell, kernarg
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/lint/counts.hpp"

namespace uptempo::lint {

enum class Format : uint8_t { text, json };

struct Settings {
  Format format = Format::text;
  std::string file;  // empty: stderr
  std::optional<uint32_t> sites = 13;
  uint32_t top = 20;
  std::array<std::optional<double>, kFindingCount> cost_ns{};  // by Finding
};

// Throws std::invalid_argument with a sentence that names the option and its values.
Settings parse_settings(std::string_view text);

// Replaces each %p by `process`, and %% by %. Throws std::invalid_argument for another letter.
std::string expand_file_name(std::string_view name, int process);

}  // namespace uptempo::lint
