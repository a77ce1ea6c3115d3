// Texts that every command line of this tree shares: the version, and what to do about a mistyped
// name. Header only and without other includes of the tree, because tools/vgpu, a project of its
// own, uses it too.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace uptempo::support {

// The line that --version prints, for example "aql_dump (uptempo) 0.1.0\n".
inline std::string version_text(std::string_view program, std::string_view version) {
  return std::string(program) + " (uptempo) " + std::string(version) + '\n';
}

// The number of letters to insert, delete, replace or swap with their neighbour to turn one word
// into the other (optimal string alignment).
inline size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last[b.size()];
}

// The name that the user most likely meant, or "": one that begins with `word`, else the one with
// the fewest edits, at most a third of the word's letters and at least one.
inline std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  const auto letters = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  const size_t length = letters(word).size();
  std::string nearest;
  size_t fewest = std::max<size_t>(1, length / 3) + 1;
  for (const std::string& name : names) {
    const bool begins = length >= 2 && name.starts_with(word);
    const size_t edits = begins ? 0 : edits_between(letters(word), letters(name));
    if (edits >= fewest || edits >= length) continue;
    fewest = edits;
    nearest = name;
  }
  return nearest;
}

// For example "unknown option '--rouds'; did you mean '--rounds'?". `what` is "option" or
// "command".
inline std::string unknown_text(std::string_view what, std::string_view word,
                                const std::vector<std::string>& names) {
  const std::string text = "unknown " + std::string(what) + " '" + std::string(word) + "'";
  const std::string nearest = nearest_name(word, names);
  return nearest.empty() ? text + " (see --help)" : text + "; did you mean '" + nearest + "'?";
}

}  // namespace uptempo::support
