#include "device/fences/report/suppressions.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "device/fences/report/finding_text.hpp"
#include "device/memory_check/finding.hpp"

namespace uptempo::vgpu::fences {
namespace {

bool glob_matches(std::string_view glob, std::string_view name) {
  size_t at = 0, in_name = 0;
  size_t star = std::string_view::npos,
         after_star = 0;  // where to go on if the rest does not match
  while (in_name < name.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      after_star = in_name;
    } else if (at < glob.size() && (glob[at] == '?' || glob[at] == name[in_name])) {
      ++at;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++after_star;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at) == std::string_view::npos;
}

bool names_kernel(std::string_view glob, std::string_view name) {
  constexpr std::string_view kSuffix = ".kd";
  if (glob_matches(glob, name)) return true;
  if (name.ends_with(kSuffix) && glob_matches(glob, name.substr(0, name.size() - kSuffix.size())))
    return true;
  return glob_matches(glob, readable_kernel(name));
}

bool names(std::string_view glob, const Task& task) {
  return task.kind == Task::Kind::dispatch ? names_kernel(glob, task.name)
                                           : glob_matches(glob, task.name);
}

constexpr std::string_view kSpaces = " \t\r";
constexpr size_t kMaxFileBytes = size_t{1} << 20;

// Splits a line at spaces outside double quotes; # begins a comment.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = line.find_first_not_of(kSpaces); at != std::string_view::npos && line[at] != '#';
       at = line.find_first_not_of(kSpaces, at)) {
    if (line[at] == '"') {
      const size_t end = line.find('"', at + 1);
      if (end == std::string_view::npos) throw std::invalid_argument("a quote does not end");
      words.emplace_back(line.substr(at + 1, end - at - 1));
      at = end + 1;
      if (at < line.size() && kSpaces.find(line[at]) == std::string_view::npos)
        throw std::invalid_argument("a space must follow the end of a quote");
    } else {
      const size_t end = std::min(line.find_first_of(kSpaces, at), line.size());
      words.emplace_back(line.substr(at, end - at));
      if (words.back().find('"') != std::string::npos)
        throw std::invalid_argument("a quote must begin a word and enclose all of it");
      at = end;
    }
  }
  return words;
}

constexpr std::string_view kRace = "race";

const std::string& class_of(const std::string& word) {
  std::string known;
  const auto is = [&](std::string_view name) {
    known += std::string(name) + ", ";
    return word == name;
  };
  for (const auto what :
       {Finding::Class::unordered, Finding::Class::stale, Finding::Class::unreleased})
    if (is(class_name(what))) return word;
  for (const std::string_view name : memory_check::kClassNames)
    if (is(name)) return word;
  if (is(kRace)) return word;
  if (word == "*") return word;
  throw std::invalid_argument("'" + word + "' is not one of " + known + "and *");
}

std::string contents_of(const std::string& file) {
  const auto fail = [&](const std::string& reason) {
    throw std::invalid_argument("cannot read '" + file + "': " + reason);
  };
  // O_NONBLOCK: a pipe without a writer is refused, too.
  const int descriptor = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) fail(std::strerror(errno));
  std::string text;
  std::string mistake;
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    mistake = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    mistake = "it is not a regular file";
  }
  std::array<char, 4096> part;
  while (mistake.empty()) {
    const ssize_t bytes = ::read(descriptor, part.data(), part.size());
    if (bytes == 0) break;
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      mistake = std::strerror(errno);
    } else {
      text.append(part.data(), static_cast<size_t>(bytes));
      if (text.size() > kMaxFileBytes)
        mistake = "it is larger than " + std::to_string(kMaxFileBytes >> 20) + " MiB";
    }
  }
  close(descriptor);
  if (!mistake.empty()) fail(mistake);
  return text;
}

uint32_t queue_of(const std::string& word) {
  constexpr std::string_view kName = "queue=";
  uint32_t queue = 0;
  const char* const end = word.data() + word.size();
  if (word.starts_with(kName)) {
    const auto [rest, error] = std::from_chars(word.data() + kName.size(), end, queue);
    if (error == std::errc{} && rest == end) return queue;
  }
  throw std::invalid_argument("'" + word + "' is not queue=N");
}

}  // namespace

bool Suppressions::Rule::matches(const Finding& finding) const {
  const Task& one = *finding.writer;
  const Task& other = *finding.reader;
  if (what != "*" && what != class_name(finding.what)) return false;
  const auto is_on_queue = [this](const Task& task) {
    return task.kind != Task::Kind::host && task.queue == *queue;
  };
  if (queue && !is_on_queue(one) && !is_on_queue(other)) return false;
  return (names(writer, one) && names(reader, other)) ||
         (finding.conflict == Finding::Conflict::write_after_write && names(writer, other) &&
          names(reader, one));
}

bool Suppressions::Rule::matches(const OfMemory& finding) const {
  if ((what != "*" && what != finding.what) || (queue && finding.queue != queue) ||
      !(finding.is_dispatch ? names_kernel(writer, finding.task)
                            : glob_matches(writer, finding.task)))
    return false;
  return glob_matches(reader, "") ||
         std::ranges::any_of(finding.allocated_by, [this](const std::string& function) {
           return glob_matches(reader, function) ||
                  glob_matches(reader, without_arguments(function));
         });
}

bool Suppressions::Rule::matches_race(const std::string& kernel, uint32_t on_queue) const {
  return (what == "*" || what == kRace) && (!queue || *queue == on_queue) &&
         names_kernel(writer, kernel) && names_kernel(reader, kernel);
}

Suppressions Suppressions::parse(std::string_view text, const std::string& file) {
  Suppressions suppressions;
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string place = file + ':' + std::to_string(number);
    try {
      const std::vector<std::string> words = words_of(text.substr(begin, end - begin));
      if (!words.empty()) {
        if (words.size() < 3 || words.size() > 4)
          throw std::invalid_argument("a rule is CLASS WRITER READER [queue=N]");
        suppressions.rules_.push_back(
            {.what = class_of(words[0]),
             .writer = words[1],
             .reader = words[2],
             .queue = words.size() == 4 ? std::optional(queue_of(words[3])) : std::nullopt,
             .place = place});
      }
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(place + ": " + error.what());
    }
    begin = end + 1;
  }
  return suppressions;
}

Suppressions Suppressions::read(const std::string& file) {
  if (file.empty()) return {};
  return parse(contents_of(file), file);
}

template <class Matches>
bool Suppressions::suppress_if(Matches matches) {
  bool suppressed = false;
  for (Rule& rule : rules_) {
    if (!matches(rule)) continue;
    rule.used = true;
    suppressed = true;
  }
  return suppressed;
}

bool Suppressions::suppress(const Finding& finding) {
  return suppress_if([&](const Rule& rule) { return rule.matches(finding); });
}

bool Suppressions::suppress(const OfMemory& finding) {
  return suppress_if([&](const Rule& rule) { return rule.matches(finding); });
}

bool Suppressions::suppress_race(const std::string& kernel, uint32_t queue) {
  return suppress_if([&](const Rule& rule) { return rule.matches_race(kernel, queue); });
}

std::vector<std::string> Suppressions::unused() const {
  std::vector<std::string> places;
  for (const Rule& rule : rules_)
    if (!rule.used) places.push_back(rule.place);
  return places;
}

}  // namespace uptempo::vgpu::fences
