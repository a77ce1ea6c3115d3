#include "tools/support/python_calls.hpp"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "tools/support/python_lines.hpp"

namespace uptempo::support {
namespace {

// Offsets in CPython's structures, in bytes.
struct Layout {
  uint64_t cframe;   // PyThreadState: the address of a _PyCFrame; 0: there is none
  uint64_t current;  // in that, or in PyThreadState: the innermost frame
  uint64_t previous, code, instruction, owner;       // _PyInterpreterFrame
  uint64_t file, name, first_line, lines, units;     // PyCodeObject
  uint64_t type;                                     // PyObject
  uint64_t bytes_size, bytes;                        // PyBytesObject
  uint64_t text_length, text_state, ascii, compact;  // PyUnicodeObject; the last two: characters
};

// Sources: cpython/code.h, cpython/pystate.h, cpython/unicodeobject.h and pycore_frame.h of both.
constexpr Layout kPython311{.cframe = 56,
                            .current = 8,
                            .previous = 48,
                            .code = 32,
                            .instruction = 56,
                            .owner = 69,
                            .file = 112,
                            .name = 128,
                            .first_line = 72,
                            .lines = 136,
                            .units = 184,
                            .type = 8,
                            .bytes_size = 16,
                            .bytes = 32,
                            .text_length = 16,
                            .text_state = 32,
                            .ascii = 48,
                            .compact = 72};
constexpr Layout kPython312{.cframe = 56,
                            .current = 0,
                            .previous = 8,
                            .code = 0,
                            .instruction = 56,
                            .owner = 70,
                            .file = 112,
                            .name = 128,
                            .first_line = 68,
                            .lines = 136,
                            .units = 192,
                            .type = 8,
                            .bytes_size = 16,
                            .bytes = 32,
                            .text_length = 16,
                            .text_state = 32,
                            .ascii = 40,
                            .compact = 56};

// From 3.13 on, _PyRuntime begins with a table of offsets for debuggers, of words of 64 bits: a
// cookie, the version, whether there is no global interpreter lock, then the offsets. The positions
// of some in it (struct _Py_DebugOffsets of pycore_runtime.h, in 3.14 of pycore_debug_offsets.h):
struct DebugWords {
  size_t current, previous, executable, instruction, owner;
  size_t file, qualified_name, lines, first_line, units;
  size_t type, bytes_size, bytes, text_state, text_length, ascii;
};
constexpr DebugWords kWords313{23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70};
constexpr DebugWords kWords314{26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80};

// Values of a frame's `owner`. From the last one on, the interpreter or C code owns it: it is no
// call of Python.
enum : uint8_t { kOfGenerator = 1, kOfInterpreter = 3 };

struct Interpreter {
  Layout layout{};
  void* (*this_thread)() = nullptr;  // PyGILState_GetThisThreadState(), which needs no lock
  int (*is_ending)() = nullptr;
  uintptr_t code_type = 0, bytes_type = 0, text_type = 0;
};

template <typename T>
T symbol(const char* name) {
  return reinterpret_cast<T>(dlsym(RTLD_DEFAULT, name));
}

std::optional<Layout> debug_layout(uint64_t version, const DebugWords& at) {
  constexpr size_t kVersion = 1, kWithoutLock = 2;
  constexpr uint64_t kMostBytes = 4096;  // of the parts of a structure that matter here
  const auto* const words = symbol<const uint64_t*>("_PyRuntime");
  if (words == nullptr || std::memcmp(words, "xdebugpy", 8) != 0 || words[kVersion] != version ||
      words[kWithoutLock] != 0)
    return std::nullopt;
  bool is_sound = true;
  const auto word = [&](size_t index) {
    is_sound = is_sound && words[index] < kMostBytes;
    return words[index];
  };
  // In memory, a text that is not ASCII has two words more before its characters.
  const Layout layout{.cframe = 0,
                      .current = word(at.current),
                      .previous = word(at.previous),
                      .code = word(at.executable),
                      .instruction = word(at.instruction),
                      .owner = word(at.owner),
                      .file = word(at.file),
                      .name = word(at.qualified_name),
                      .first_line = word(at.first_line),
                      .lines = word(at.lines),
                      .units = word(at.units),
                      .type = word(at.type),
                      .bytes_size = word(at.bytes_size),
                      .bytes = word(at.bytes),
                      .text_length = word(at.text_length),
                      .text_state = word(at.text_state),
                      .ascii = word(at.ascii),
                      .compact = word(at.ascii) + 16};
  return is_sound ? std::optional(layout) : std::nullopt;
}

std::optional<Layout> layout_of(uint64_t version) {
  switch (version >> 16) {
    case 0x030b:
      return kPython311;
    case 0x030c:
      return kPython312;
    case 0x030d:
      return debug_layout(version, kWords313);
    case 0x030e:
      return debug_layout(version, kWords314);
    default:
      return std::nullopt;
  }
}

constinit Interpreter interpreter;
// `checked`: a whole stack was what the layout promises.
enum class State : uint8_t { unknown, publishing, refused, found, checked };
constinit std::atomic<State> state{State::unknown};

// --- memory of the interpreter ---

// Whether the program may read these bytes. False also if a sandbox forbids the call.
bool is_readable(uintptr_t address, uint64_t bytes) noexcept {
  constexpr uint64_t kMostBytes = uint64_t{16} << 20;
  if (bytes > kMostBytes) return false;
  std::array<char, 256> buffer;
  for (uint64_t done = 0; done < bytes; done += buffer.size()) {
    const size_t part = std::min<uint64_t>(buffer.size(), bytes - done);
    const iovec to{buffer.data(), part};
    const iovec from{reinterpret_cast<void*>(address + done), part};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(part)) return false;
  }
  return true;
}

// Reads objects; the first stack with `checks`, which costs microseconds a read.
class Objects {
 public:
  explicit Objects(bool checks) noexcept : checks_(checks) {}

  template <typename T>
  bool get(T& to, uintptr_t address) const noexcept {
    if (checks_ && !is_readable(address, sizeof to)) return false;
    std::memcpy(&to, reinterpret_cast<const void*>(address), sizeof to);
    return true;
  }
  bool has_type(uintptr_t object, uintptr_t type) const noexcept {
    uintptr_t its = 0;
    return object != 0 && get(its, object + interpreter.layout.type) && its == type;
  }
  // The bytes of an array, where they are.
  bool get(std::span<const uint8_t>& to, uintptr_t address, uint64_t size) const noexcept {
    if (checks_ && !is_readable(address, size)) return false;
    to = {reinterpret_cast<const uint8_t*>(address), size};
    return true;
  }

 private:
  const bool checks_;
};

// Text in a buffer, cut where it is longer.
template <size_t kSize>
struct Text {
  std::array<char, kSize> bytes;
  size_t size = 0;

  std::string_view view() const noexcept { return {bytes.data(), size}; }
  // Returns false if there is no room. A character in UTF-8 is in the buffer whole, or not at all.
  bool add(uint32_t character) noexcept {
    const size_t length = character < 0x80      ? 1
                          : character < 0x800   ? 2
                          : character < 0x10000 ? 3
                                                : 4;
    if (kSize - size < length) return false;
    constexpr std::array<unsigned, 5> kLead{0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; character >>= 6)
      bytes[size + i] = static_cast<char>(0x80 | (character & 63));
    bytes[size] = static_cast<char>(kLead[length] | character);
    size += length;
    return true;
  }
};

// Copies a text: its begin, or with `end` the part that fits in the buffer in any case.
template <size_t kSize>
bool get_text(const Objects& objects, uintptr_t object, bool end, Text<kSize>& to) noexcept {
  const Layout& layout = interpreter.layout;
  uint64_t length = 0;
  uint32_t flags = 0;
  uintptr_t type = 0;
  if (!objects.get(type, object + layout.type) ||
      !objects.get(length, object + layout.text_length) ||
      !objects.get(flags, object + layout.text_state))
    return false;
  // The same bits in all versions.
  const uint64_t width = flags >> 2 & 7;
  const bool is_compact = (flags & 1u << 5) != 0, is_ascii = (flags & 1u << 6) != 0;
  // Code may have a name of a class of its own, which is laid out otherwise.
  if (type != interpreter.text_type || !is_compact || (width != 1 && width != 2 && width != 4)) {
    to.add('?');
    return true;
  }
  const uint64_t most = end ? kSize / (is_ascii ? 1 : 4) : kSize;
  const uint64_t first = end && length > most ? length - most : 0;
  const uint64_t count = std::min(length - first, most);
  std::span<const uint8_t> bytes;
  if (!objects.get(bytes, object + (is_ascii ? layout.ascii : layout.compact) + first * width,
                   count * width))
    return false;
  if (is_ascii) {
    std::memcpy(to.bytes.data(), bytes.data(), count);
    to.size = count;
    return true;
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t character = 0;
    std::memcpy(&character, &bytes[i * width], width);
    if (!to.add(character)) break;
  }
  return true;
}

// --- names of files ---

struct ShownFile {
  std::string_view name;
  bool of_library = false;  // of an installed package or the standard library
};

ShownFile shown_file(std::string_view path) noexcept {
  if (path.starts_with("<frozen ")) return {path, true};
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = path.rfind(folder); at != std::string_view::npos)
      return {path.substr(at + folder.size()), true};
  for (const std::string_view folder : {"/lib/python3.", "/lib64/python3."})
    if (const size_t at = path.rfind(folder); at != std::string_view::npos)
      if (const size_t end = path.find('/', at + folder.size()); end != std::string_view::npos)
        return {path.substr(end + 1), true};
  size_t begin = path.rfind('/') + 1;
  // Every package has these names.
  if (begin > 1 && (path.ends_with("/__init__.py") || path.ends_with("/__main__.py")))
    begin = path.rfind('/', begin - 2) + 1;
  return {path.substr(begin), false};
}

// --- places ---

struct Place {
  std::atomic<uint64_t> tag{0};   // 63 bits of the place's hash, and 1; 0: free
  std::atomic<uint32_t> size{0};  // of `text`; 0: not complete
  uint32_t line = 0;
  uint32_t function_size = 0;
  std::array<char, 236> text{};  // the function, then the file
};
constinit std::array<Place, kPythonCalls> places;

PythonCallId place_of(std::string_view function, std::string_view file, uint32_t line) noexcept {
  std::array<char, sizeof(Place::text)> text{};
  function = function.substr(0, text.size() / 2);
  const size_t room = text.size() - function.size();
  if (file.size() > room) file.remove_prefix(file.size() - room);
  const size_t size = function.size() + file.size();
  if (size == 0) return 0;
  std::memcpy(text.data(), function.data(), function.size());
  std::memcpy(text.data() + function.size(), file.data(), file.size());
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, by words
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  };
  add(uint64_t{line} << 32 | function.size());
  for (size_t at = 0; at < size; at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    add(word);
  }
  const uint64_t tag = hash | 1;  // not 0
  constexpr size_t kProbes = 16;
  for (size_t probe = 0; probe < kProbes; ++probe) {
    const size_t index = (hash + probe) % kPythonCalls;
    const auto id = static_cast<PythonCallId>(index + 1);
    Place& place = places[index];
    // No order: the text is ordered by `size`. A load first, since most places are known.
    uint64_t owner = place.tag.load(std::memory_order_relaxed);
    if (owner == 0 && place.tag.compare_exchange_strong(owner, tag, std::memory_order_relaxed)) {
      place.line = line;
      place.function_size = static_cast<uint32_t>(function.size());
      place.text = text;
      place.size.store(static_cast<uint32_t>(size),
                       std::memory_order_release);  // the rest is there
      return id;
    }
    if (owner != tag) continue;
    // Another thread may still be filling it, so that there is nothing to compare with.
    const PythonCall known = python_call(id);
    if (known.function.empty() ||
        (known.line == line && known.function == function && known.file == file))
      return id;
  }
  return 0;
}

// --- frames ---

// A frame's code object and instruction, in code units from its begin.
struct Frame {
  uintptr_t code = 0;
  int64_t unit = 0;
};

// Calls visit(frame) for the thread's frames, innermost first, until it returns false. Returns
// false if memory is not what the layout promises.
template <typename Visit>
bool for_each_frame(const Objects& objects, Visit& visit) noexcept {
  constexpr int kMostFrames = 256;
  const Layout& layout = interpreter.layout;
  auto at = reinterpret_cast<uintptr_t>(interpreter.this_thread());
  if (at == 0) return true;
  if (layout.cframe != 0 && !objects.get(at, at + layout.cframe)) return false;
  uintptr_t address = 0;
  if (!objects.get(address, at + layout.current)) return false;
  for (int i = 0; i < kMostFrames && address != 0; ++i) {
    // At its end, the interpreter frees the frames of threads that still run.
    if (interpreter.is_ending() != 0) return true;
    uint8_t owner = 0;
    uintptr_t code = 0, instruction = 0, previous = 0;
    if (!objects.get(owner, address + layout.owner) || !objects.get(code, address + layout.code) ||
        !objects.get(instruction, address + layout.instruction) ||
        !objects.get(previous, address + layout.previous))
      return false;
    address = previous;
    if (owner >= kOfInterpreter) continue;
    code &= ~uintptr_t{7};  // 3.14 keeps flags in the lowest bits
    if (!objects.has_type(code, interpreter.code_type)) return false;
    const Frame frame{code, static_cast<int64_t>(instruction - (code + layout.units)) / 2};
    // A frame is no call of the program until the first instruction that tracers see. Some never
    // have one: those that the interpreter makes for a class's __init__.
    int32_t first_traced = 0;
    if (!objects.get(first_traced, code + layout.units - 16)) return false;
    if (owner != kOfGenerator && frame.unit < first_traced) continue;
    if (!visit(frame)) return true;
  }
  return true;
}

// The place of a frame. Returns nothing if memory is not what the layout promises.
std::optional<PythonCallId> place_of(const Objects& objects, const Frame& frame,
                                     const ShownFile& file) noexcept {
  const Layout& layout = interpreter.layout;
  uintptr_t name = 0, lines = 0;
  int32_t first_line = 0;
  uint64_t size = 0;
  std::span<const uint8_t> table;
  Text<sizeof(Place::text) / 2> function;
  if (!objects.get(name, frame.code + layout.name) ||
      !objects.get(lines, frame.code + layout.lines) ||
      !objects.get(first_line, frame.code + layout.first_line) ||
      !objects.has_type(lines, interpreter.bytes_type) ||
      !objects.get(size, lines + layout.bytes_size) ||
      !objects.get(table, lines + layout.bytes, size) || !get_text(objects, name, false, function))
    return std::nullopt;
  const int64_t line = python_line(table, first_line, frame.unit);
  return place_of(function.view(), file.name, static_cast<uint32_t>(std::max<int64_t>(line, 0)));
}

// Collects the calls of a PythonStack.
class Collector {
 public:
  explicit Collector(const Objects& objects) noexcept : objects_(objects) {}

  bool operator()(const Frame& frame) noexcept {
    Text<kMostOfPath> path;
    if (!get_path(frame, path)) return false;
    const ShownFile file = shown_file(path.view());
    if (file.of_library) {
      if (own_ == 0 && inner_count_ < inner_.size()) inner_[inner_count_++] = frame;
      outermost_ = frame;
      return true;
    }
    if (outermost_.code != 0) add(std::exchange(outermost_, {}));
    if (!is_sound_) return false;
    add(frame, file);
    if (own_ == 0 && stack_.count != 0) stack_.own = stack_.ids[stack_.count - 1];
    return is_sound_ && ++own_ < PythonStack::kOwn;
  }

  // Nothing if an object was not what the layout promises.
  std::optional<PythonStack> finish() noexcept {
    for (size_t i = 0; own_ == 0 && i < inner_count_; ++i) add(inner_[i]);
    if (own_ == 0) stack_.own = stack_.ids[0];
    return is_sound_ ? std::optional(stack_) : std::nullopt;
  }

 private:
  static constexpr size_t kMostOfPath = 512;

  bool get_path(const Frame& frame, Text<kMostOfPath>& path) noexcept {
    uintptr_t object = 0;
    is_sound_ = is_sound_ && objects_.get(object, frame.code + interpreter.layout.file) &&
                get_text(objects_, object, true, path);
    return is_sound_;
  }
  void add(const Frame& frame) noexcept {
    Text<kMostOfPath> path;
    if (get_path(frame, path)) add(frame, shown_file(path.view()));
  }
  void add(const Frame& frame, const ShownFile& file) noexcept {
    const auto id = place_of(objects_, frame, file);
    is_sound_ = is_sound_ && id.has_value();
    if (id.value_or(0) != 0) stack_.ids[stack_.count++] = *id;
  }

  const Objects& objects_;
  PythonStack stack_;
  size_t own_ = 0;
  Frame outermost_{};                             // of a run of calls in libraries
  std::array<Frame, PythonStack::kOwn> inner_{};  // innermost calls, in case there are no others
  size_t inner_count_ = 0;
  bool is_sound_ = true;
};

}  // namespace

void find_python() noexcept {
  if (state.load(std::memory_order_relaxed) != State::unknown) return;
  // Without a lock of ours: a thread in a library's constructor has the loader's.
  const auto* const version = symbol<const unsigned long*>("Py_Version");
  if (version == nullptr) return;  // none, or older than 3.11
  Interpreter found{.this_thread = symbol<void* (*)()>("PyGILState_GetThisThreadState"),
                    .is_ending = symbol<int (*)()>("_Py_IsFinalizing"),
                    .code_type = symbol<uintptr_t>("PyCode_Type"),
                    .bytes_type = symbol<uintptr_t>("PyBytes_Type"),
                    .text_type = symbol<uintptr_t>("PyUnicode_Type")};
  if (found.is_ending == nullptr) found.is_ending = symbol<int (*)()>("Py_IsFinalizing");
  const auto layout = layout_of(*version);
  if (layout) found.layout = *layout;
  const bool is_known = layout && found.this_thread != nullptr && found.is_ending != nullptr &&
                        found.code_type != 0 && found.bytes_type != 0 && found.text_type != 0;
  State expected = State::unknown;
  if (!state.compare_exchange_strong(expected, State::publishing, std::memory_order_relaxed))
    return;
  interpreter = found;
  state.store(is_known ? State::found : State::refused, std::memory_order_release);
}

PythonStack python_calls() noexcept {
  // acquire: `interpreter` is complete
  const State before = state.load(std::memory_order_acquire);
  if (before != State::found && before != State::checked) return {};
  const Objects objects(before == State::found);
  Collector collector(objects);
  const bool has_frames = for_each_frame(objects, collector);
  const auto stack = collector.finish();
  const bool is_sound = has_frames && stack;
  if (before == State::found && (!is_sound || stack->count != 0))
    state.store(is_sound ? State::checked : State::refused, std::memory_order_relaxed);
  return is_sound ? *stack : PythonStack();
}

PythonCall python_call(PythonCallId id) noexcept {
  if (id == 0 || id > kPythonCalls) return {};
  const Place& place = places[id - 1];
  const size_t size = place.size.load(std::memory_order_acquire);  // the rest is complete
  if (size == 0) return {};
  const std::string_view text(place.text.data(), size);
  return {text.substr(0, place.function_size), text.substr(place.function_size), place.line};
}

bool is_python_file(std::string_view file) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"libpython3.", "python3", "_ctypes.", "libffi",
                                                   "_cffi_backend."};
  return file == "python" ||
         std::ranges::any_of(kNames, [&](std::string_view name) { return file.starts_with(name); });
}

bool knows_python() noexcept {
  const State now = state.load(std::memory_order_relaxed);
  return now == State::found || now == State::checked;
}

}  // namespace uptempo::support
