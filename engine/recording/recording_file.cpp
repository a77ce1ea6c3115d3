#include <uptempo/recording/recording_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <uptempo/aql/whole_file.hpp>
#include <uptempo/program/code_object.hpp>
#include <uptempo/recording/recording_payload.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

constexpr std::string_view kMagic = "uptempo-recording ";
using detail::kNewestVersion;
using detail::Origin;
// 18 characters, three numbers of at most 20 digits, two spaces
constexpr size_t kLongestLine = 80;
constexpr size_t kPortionBytes = 64 << 10;

uint64_t hash_of(std::string_view payload) noexcept {
  return content_hash(std::as_bytes(std::span(payload)));
}

std::string file_of(const Recording& recording, const Bindings& memory) {
  const detail::RecordingState& state = detail::RecordingState::of(recording, "save_recording");
  state.require_usable();
  const detail::Payload payload = detail::write_payload(state, memory);
  return fmt::format("{}{} {} {:016x}\n{}", kMagic, payload.version, payload.text.size(),
                     hash_of(payload.text), payload.text);
}

[[noreturn]] void refuse(const Origin& origin, std::string found, const char* remedy) {
  origin.refuse(HSA_STATUS_ERROR_INVALID_FILE, std::move(found), remedy);
}
constexpr const char* kCutOff = "the file was cut off: copy or save it again";
constexpr const char* kDamaged = "the file was damaged: copy or save it again";

// Parses the whole text as a number, in the form that std::to_string writes.
std::optional<uint64_t> decimal(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || fmt::to_string(number) != text)
    return {};
  return number;
}

// Returns the text up to the next space, or all of it, and removes it and the space from `rest`.
std::string_view word_of(std::string_view& rest) {
  const size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
  return word;
}

struct FirstLine {
  uint64_t version;
  uint64_t payload_bytes;
  std::string_view hash;  // refers to the line
};

// `line`: what could be read: up to its end, the end of the input, or kLongestLine characters.
FirstLine parse_first_line(std::string_view line, bool at_end, const Origin& origin) {
  if (line.empty()) refuse(origin, "an empty input", kCutOff);
  if (line.substr(0, kMagic.size()) != kMagic.substr(0, line.size()))
    refuse(origin, fmt::format("bytes that do not begin with '{}'", kMagic),
           "pass a file that save_recording() wrote");
  const bool ended = line.ends_with('\n');
  std::string_view rest =
      line.substr(std::min(line.size(), kMagic.size()), line.size() - kMagic.size() - ended);
  const bool has_version = ended || !at_end || rest.find(' ') != std::string_view::npos;
  const std::optional<uint64_t> version = decimal(word_of(rest));
  if (has_version && version && *version > kNewestVersion)
    refuse(
        origin,
        fmt::format("version {}; this library reads versions up to {}", *version, kNewestVersion),
        "load it with the version of this library that saved it, or a newer one");
  if (!ended && at_end)
    refuse(origin, fmt::format("{} bytes, cut off in the first line", line.size()), kCutOff);
  const std::optional<uint64_t> bytes = decimal(word_of(rest));
  const std::string_view hash = rest;
  if (!ended || !version || *version == 0 || !bytes || hash.size() != 16 ||
      hash.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    refuse(origin, "a first line that is not '<version> <bytes> <hash>' after its name", kDamaged);
  return {*version, *bytes, hash};
}

detail::Payload read_payload(std::istream& in, const Origin& origin) {
  std::string line;
  for (char c; line.size() < kLongestLine && !line.ends_with('\n') && in.get(c);) line += c;
  if (in.bad()) refuse(origin, "it cannot be read", "pass a regular file that may be read");
  const FirstLine first = parse_first_line(line, in.eof(), origin);
  std::string payload;
  // In portions: the size in the first line is only a claim until the bytes have been read.
  while (payload.size() < first.payload_bytes && in) {
    const size_t before = payload.size();
    payload.resize(before + static_cast<size_t>(
                                std::min<uint64_t>(kPortionBytes, first.payload_bytes - before)));
    in.read(payload.data() + before, static_cast<std::streamsize>(payload.size() - before));
    payload.resize(before + static_cast<size_t>(in.gcount()));
  }
  if (payload.size() < first.payload_bytes)
    refuse(origin,
           fmt::format("{} of {} bytes after the first line", payload.size(), first.payload_bytes),
           kCutOff);
  const std::string hash = fmt::format("{:016x}", hash_of(payload));
  if (hash != first.hash)
    refuse(origin,
           fmt::format("bytes whose hash is {}, but the first line has {}", hash, first.hash),
           kDamaged);
  return {first.version, std::move(payload)};
}

std::unique_ptr<Recording> load(std::istream& in, const Origin& origin, bool to_its_end,
                                const std::vector<KernelSource>& kernels, const Bindings& memory,
                                const detail::MakeRecording& make) {
  const detail::Payload payload = read_payload(in, origin);
  if (to_its_end && in.peek() != std::istream::traits_type::eof())
    refuse(origin,
           fmt::format("more than the {} bytes that the first line announces", payload.text.size()),
           kDamaged);
  std::unique_ptr<Recording> recording = make();
  detail::read_payload(payload.text, payload.version, origin, kernels, memory,
                       detail::RecordingState::of(*recording, "load_recording"));
  return recording;
}

}  // namespace

void detail::Origin::refuse(hsa_status_t status, std::string found, std::string remedy) const {
  throw Error({.code = code_of(status),
               .status = status,
               .call = "load_recording",
               .asked = fmt::format("the recording in {}", name),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

Bindings& Bindings::add(std::string name, const void* data, size_t size_bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto refuse = [&](std::string found, std::string remedy) {
    throw Error(
        {.code = ErrorCode::argument,
         .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
         .call = "Bindings",
         .asked = fmt::format("the name '{}' for {} bytes at 0x{:x}", name, size_bytes, begin),
         .found = std::move(found),
         .remedy = std::move(remedy)});
  };
  if (name.empty()) refuse("no name", "pass the name that loading will look up");
  if (begin == 0 || size_bytes == 0 || size_bytes - 1 > UINTPTR_MAX - begin)
    refuse("no memory", "pass its address and its size in bytes");
  if (names_.contains(name)) refuse("the name is taken", "give each range a name of its own");
  const auto next = ranges_.upper_bound(begin + (size_bytes - 1));
  if (next != ranges_.begin()) {
    const detail::MemoryRange& before = std::prev(next)->second;
    if (before.begin + (before.size_bytes - 1) >= begin)
      refuse(fmt::format("some of them already belong to '{}': {} bytes at 0x{:x}", before.name,
                         before.size_bytes, before.begin),
             "name each byte once");
  }
  ranges_.emplace(begin, detail::MemoryRange{name, begin, size_bytes});
  try {
    names_.emplace(std::move(name), begin);
  } catch (...) {
    ranges_.erase(begin);
    throw;
  }
  return *this;
}

const detail::MemoryRange* Bindings::find(std::string_view name) const noexcept {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : find(found->second);
}

const detail::MemoryRange* Bindings::find(uintptr_t address) const noexcept {
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  const detail::MemoryRange& range = std::prev(next)->second;
  return address - range.begin < range.size_bytes ? &range : nullptr;
}

std::string Bindings::list() const {
  std::string text;
  for (const auto& [begin, range] : ranges_)
    text +=
        fmt::format("{}'{}' of {} bytes", text.empty() ? "" : ", ", range.name, range.size_bytes);
  return text.empty() ? "nothing" : text;
}

void save_recording(const Recording& recording, std::ostream& out, const Bindings& memory) {
  const std::string file = file_of(recording, memory);
  out.write(file.data(), static_cast<std::streamsize>(file.size())).flush();
  if (!out)
    throw Error({.code = ErrorCode::file,
                 .status = HSA_STATUS_ERROR_INVALID_FILE,
                 .call = "save_recording",
                 .asked = fmt::format("{} bytes to a stream", file.size()),
                 .found = "the stream has failed",
                 .remedy = "check the device or file of the stream"});
}

void save_recording(const Recording& recording, const std::filesystem::path& file,
                    const Bindings& memory) {
  const std::string reason =
      aql::write_whole_file(file.string(), file_of(recording, memory), aql::InPlace::refused);
  if (reason.empty()) return;
  throw Error({.code = ErrorCode::file,
               .status = HSA_STATUS_ERROR_INVALID_FILE,
               .call = "save_recording",
               .asked = fmt::format("a file '{}'", file.string()),
               .found = fmt::format("it cannot be written: {}", reason),
               .remedy =
                   "pass a path in a directory where files may be made and there is room; what was "
                   "there is unchanged"});
}

std::unique_ptr<Recording> load_recording(Queue& queue, const std::filesystem::path& file,
                                          const std::vector<KernelSource>& kernels,
                                          const Bindings& memory, const RecordingOptions& options) {
  const Origin origin{fmt::format("'{}'", file.string())};
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    const std::string reason = std::strerror(errno);
    refuse(origin, fmt::format("it cannot be opened: {}", reason), "pass a file that may be read");
  }
  return load(in, origin, true, kernels, memory,
              [&] { return std::make_unique<Recording>(queue, options); });
}

std::unique_ptr<Recording> load_recording(Queue& queue, std::istream& in,
                                          const std::vector<KernelSource>& kernels,
                                          const Bindings& memory, const RecordingOptions& options) {
  return detail::load_recording(in, kernels, memory,
                                [&] { return std::make_unique<Recording>(queue, options); });
}

std::unique_ptr<Recording> detail::load_recording(std::istream& in,
                                                  const std::vector<KernelSource>& kernels,
                                                  const Bindings& memory,
                                                  const MakeRecording& make) {
  return load(in, {"a stream"}, false, kernels, memory, make);
}

}  // namespace uptempo
