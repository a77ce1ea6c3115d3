// ORACLES.md lists the instruction families and the sources of their tests' expected values. Every
// opcode of the tables belongs to exactly one family.
#include <fmt/format.h>
#include <fnmatch.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gfx9/decode/encoding.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

struct Listed {
  std::string name;
  std::vector<std::string> patterns;  // patterns of mnemonics, in the syntax of shell file names
  size_t count = 0;
  std::string sources;
};

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream stream(line);
  std::string cell;
  std::getline(stream, cell, '|');  // before the first bar
  while (std::getline(stream, cell, '|')) {
    const size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    out.push_back(first == cell.npos ? "" : cell.substr(first, last - first + 1));
  }
  return out;
}

// The rows of the table whose heading begins with "| family |".
std::vector<Listed> listed_families() {
  std::ifstream page(UPTEMPO_ORACLES_PAGE);
  REQUIRE(page);
  std::vector<Listed> families;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| family |")) {
      inside = true;
    } else if (inside && !line.starts_with("|")) {
      inside = false;
    } else if (inside && !line.starts_with("|--")) {
      const auto row = cells(line);
      INFO(line);
      REQUIRE(row.size() >= 5);
      Listed family{row[0], {}, std::stoul(row[2]), row[3]};
      std::istringstream patterns(row[1].substr(1, row[1].size() - 2));  // in backticks
      for (std::string pattern; patterns >> pattern;) family.patterns.push_back(pattern);
      families.push_back(std::move(family));
    }
  }
  return families;
}

}  // namespace

TEST_CASE("every opcode belongs to exactly one family of the oracles' page, which counts it") {
  const std::vector<Listed> families = listed_families();
  CHECK(families.size() > 40);
  std::vector<size_t> counted(families.size());
  for (size_t n = 1; n < kOpcodeCount; ++n) {
    const std::string name(mnemonic(static_cast<Opcode>(n)));
    std::string found;
    for (size_t i = 0; i < families.size(); ++i) {
      for (const std::string& pattern : families[i].patterns) {
        if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
        found += (found.empty() ? "" : "; ") + families[i].name;
        ++counted[i];
        break;
      }
    }
    CAPTURE(name, found);
    CHECK_FALSE(found.empty());  // a new opcode: name the source of its test in ORACLES.md
    CHECK(found.find("; ") == found.npos);
  }
  for (size_t i = 0; i < families.size(); ++i) {
    CAPTURE(families[i].name);
    CHECK(counted[i] == families[i].count);
    CHECK_FALSE(families[i].sources.empty());
  }
}

}  // namespace uptempo::vgpu::gfx9::test
