#include <uptempo/hip/graph_text.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include <uptempo/hip/graph/graph_error.hpp>
#include <uptempo/hip/status.hpp>

namespace uptempo::hip {
namespace {

using Print = hipError_t (*)(hipGraph_t, const char*, unsigned);
constexpr unsigned kVerbose = 1;  // hipGraphDebugDotFlagsVerbose

// Headers of older releases do not declare it.
Print print_function() {
  static const auto kFunction =
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym returns void*
      reinterpret_cast<Print>(dlsym(RTLD_DEFAULT, "hipGraphDebugDotPrint"));
  return kFunction;
}

// A file in memory, because HIP writes to a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("hip graph", MFD_CLOEXEC)) {
    if (descriptor_ < 0) refuse("memfd_create");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  std::string text() const {
    std::string all;
    std::array<char, 65536> part{};
    for (;;) {
      const ssize_t count =
          ::pread(descriptor_, part.data(), part.size(), static_cast<off_t>(all.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) refuse("pread");
      if (count == 0) return all;
      all.append(part.data(), static_cast<size_t>(count));
    }
  }

 private:
  [[noreturn]] static void refuse(const char* call) {
    refuse_import("the text of a graph with copies or fills",
                  fmt::format("{}: {}", call, std::generic_category().message(errno)),
                  "let the process open files");
  }
  int descriptor_;
};

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Reads a decimal number, or an address as glibc's %p writes it.
bool take_number(std::string_view& line, uint64_t& number) {
  constexpr std::string_view kNull = "(nil)";
  if (line.starts_with(kNull)) {
    number = 0;
    line.remove_prefix(kNull.size());
    return true;
  }
  const bool is_address = line.starts_with("0x");
  if (is_address) line.remove_prefix(2);
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), number, is_address ? 16 : 10);
  if (error != std::errc{}) return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return true;
}

// Reads a line that equals the form, with a number for each '#'.
template <size_t kCount>
bool matches(std::string_view line, std::string_view form, std::array<uint64_t, kCount>& numbers) {
  size_t next = 0;
  for (const char c : form) {
    if (c == '#') {
      if (next == kCount || !take_number(line, numbers[next++])) return false;
    } else {
      if (line.empty() || line.front() != c) return false;
      line.remove_prefix(1);
    }
  }
  return line.empty() && next == kCount;
}

template <class Pointer>
Pointer address(uint64_t number) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast, performance-no-int-to-ptr): HIP
  // writes the address as a number
  return reinterpret_cast<Pointer>(static_cast<uintptr_t>(number));
}

}  // namespace

bool GraphText::exists() { return print_function() != nullptr; }

std::optional<hipMemcpy3DParms> GraphText::copy(hipGraphNode_t node) {
  if (!is_read_) read();
  const auto found = copies_.find(node);
  return found == copies_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<size_t> GraphText::slices(hipGraphNode_t node) {
  if (!is_read_) read();
  const auto found = slices_.find(node);
  return found == slices_.end() ? std::nullopt : std::optional(found->second);
}

void GraphText::read() {
  is_read_ = true;
  const MemoryFile file;
  check(print_function()(graph_, file.path().c_str(), kVerbose), "hipGraphDebugDotPrint",
        "the text of a graph with copies or fills", "mount /proc");
  const std::string all = file.text();
  for (std::string_view text = all; !text.empty();) {
    const std::string_view line = take_line(text);
    if (line == "MEMCPY") add_copy(text);
    if (line == "MEMSET") add_fill(text);
  }
}

void GraphText::add_copy(std::string_view& text) {
  std::array<uint64_t, 2> name{};
  std::array<uint64_t, 8> ends{};  // of the source: pitch, address, xsize, ysize; of the target
  std::array<uint64_t, 9> box{};
  if (!matches(take_line(text), "| {{ID | node handle} | {# | #}}", name)) return;
  take_line(text);  // the kind, which follows from the addresses
  if (!matches(take_line(text),
               "| {{srcPtr | dstPtr} | {pitch | ptr | xsize | ysize | pitch | ptr | xsize | size} "
               "| {# | # | # | # | # | # | # | #}}",
               ends) ||
      !matches(take_line(text),
               "| {{srcPos | {{x | #} | {y | #} | {z | #}}} | {dstPos | {{x | #} | {y | #} | {z | "
               "#}}} | {Extent | {{Width | #} | {Height | #} | {Depth | #}}}}",
               box))
    return;
  if (ends[1] == 0 || ends[5] == 0) return;  // a symbol or an array
  hipMemcpy3DParms copy{};
  copy.srcPtr = {address<void*>(ends[1]), ends[0], ends[2], ends[3]};
  copy.dstPtr = {address<void*>(ends[5]), ends[4], ends[6], ends[7]};
  copy.srcPos = {box[0], box[1], box[2]};
  copy.dstPos = {box[3], box[4], box[5]};
  copy.extent = {box[6], box[7], box[8]};
  copy.kind = hipMemcpyDefault;
  copies_.insert_or_assign(address<hipGraphNode_t>(name[1]), copy);
}

void GraphText::add_fill(std::string_view& text) {
  const std::string_view line = take_line(text);
  std::array<uint64_t, 9> with_depth{};
  std::array<uint64_t, 8> without{};
  if (matches(line,
              "| {{ID | node handle | dptr | pitch | value | elementSize | width | height | depth} "
              "| {# | # | # | # | # | # | # | # | #}}}\"];",
              with_depth)) {
    slices_.insert_or_assign(address<hipGraphNode_t>(with_depth[1]), with_depth[8]);
  } else if (matches(line,
                     "| {{ID | node handle | dptr | pitch | value | elementSize | width | height} "
                     "| {# | # | # | # | # | # | # | #}}}\"];",
                     without)) {
    slices_.insert_or_assign(address<hipGraphNode_t>(without[1]), 1);
  }
}

}  // namespace uptempo::hip
