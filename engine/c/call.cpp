#include <uptempo/c/call.hpp>

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>

#include <uptempo/runtime/error.hpp>

namespace uptempo::c {
namespace {

// The thread's last error. The texts of `info` are those of the thread's KeptError, of `text`, or
// literals. Trivial: handlers of atexit() and destructors of pthread_key_create() use it after the
// thread's C++ objects have ended.
struct LastError {
  uptempo_error_info info{
      sizeof(uptempo_error_info), UPTEMPO_OK, HSA_STATUS_SUCCESS, "", "", "", "", "", ""};
  bool is_ended = false;  // the KeptError
  std::array<char, 512> text{};

  // Makes `info` an error of which only the function and a message remain, cut to `text`.
  void keep_text(const char* function, const Error& error) noexcept {
    // snprintf allocates nothing for %s.
    std::snprintf(text.data(), text.size(), "%s", error.what());
    info = {sizeof(uptempo_error_info),
            static_cast<uptempo_status>(error.code()),
            static_cast<int32_t>(error.status()),
            function,
            function,
            "",
            "",
            "",
            text.data()};
  }
};
static_assert(std::is_trivially_destructible_v<LastError>);
constinit thread_local LastError last_error;

// Owns the texts of the thread's last error until the thread's C++ objects end.
struct KeptError {
  KeptError() = default;
  KeptError(const KeptError&) = delete;
  KeptError& operator=(const KeptError&) = delete;
  ~KeptError() {
    if (error) last_error.keep_text(last_error.info.function, *error);
    last_error.is_ended = true;
  }
  std::optional<Error> error;
};
thread_local KeptError kept_error;

uptempo_status keep(LastError& last, const char* function, const Error& error) noexcept {
  if (last.is_ended) {
    last.keep_text(function, error);
    return last.info.status;
  }
  kept_error.error = error;  // copies a pointer
  const Error& kept = *kept_error.error;
  last.info = {sizeof(uptempo_error_info),
               static_cast<uptempo_status>(kept.code()),
               static_cast<int32_t>(kept.status()),
               function,
               kept.call().c_str(),
               kept.asked().c_str(),
               kept.found().c_str(),
               kept.remedy().c_str(),
               kept.what()};
  return last.info.status;
}

uptempo_status keep(LastError& last, const char* function, uptempo_status status,
                    hsa_status_t hsa_status, const char* found, const char* remedy) noexcept {
  if (!last.is_ended) kept_error.error.reset();
  std::snprintf(last.text.data(), last.text.size(), "%s: %s; %s", function, found, remedy);
  last.info = {sizeof(uptempo_error_info),
               status,
               static_cast<int32_t>(hsa_status),
               function,
               function,
               "",
               found,
               remedy,
               last.text.data()};
  return status;
}

uptempo_status keep_shortage(LastError& last, const char* function) noexcept {
  return keep(last, function, UPTEMPO_ERROR_MEMORY, HSA_STATUS_ERROR_OUT_OF_RESOURCES,
              "the host's memory is exhausted", "free some, and call again");
}

// The Error of a parameter, which does not know the function.
Error of_function(const Error& error, const char* function) {
  return Error({.code = error.code(),
                .status = error.status(),
                .call = function,
                .asked = error.asked(),
                .found = error.found(),
                .remedy = error.remedy()});
}

}  // namespace

void register_thread() noexcept {
  if (!last_error.is_ended) (void)kept_error.error.has_value();
}

uptempo_status keep_error(const char* function) noexcept {
  LastError& last = last_error;
  try {
    throw;
  } catch (const Error& error) {
    if (!error.call().empty()) return keep(last, function, error);
    try {
      return keep(last, function, of_function(error, function));
    } catch (const std::bad_alloc&) {
      return keep_shortage(last, function);
    }
  } catch (const std::bad_alloc&) {
    return keep_shortage(last, function);
  } catch (const std::exception& error) {
    // Into the text first: the exception ends with this handler.
    static thread_local std::array<char, 256> found;
    std::snprintf(found.data(), found.size(), "%s", error.what());
    return keep(last, function, UPTEMPO_ERROR_INTERNAL, HSA_STATUS_ERROR_EXCEPTION, found.data(),
                "see the documentation of the call");
  } catch (...) {
    return keep(last, function, UPTEMPO_ERROR_INTERNAL, HSA_STATUS_ERROR_EXCEPTION,
                "an exception of unknown type", "report it with the program that shows it");
  }
}

void refuse_parameter(std::string_view parameter, std::string found, std::string remedy) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "",
               .asked = fmt::format("parameter '{}'", parameter),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

std::string_view name_of(Kind kind) noexcept {
  constexpr std::array<std::string_view, 13> kNames{
      "uptempo_runtime", "uptempo_agent",  "uptempo_program",  "uptempo_kernel",
      "uptempo_queue",   "uptempo_batch",  "uptempo_notifier", "uptempo_recording",
      "uptempo_streams", "uptempo_stream", "uptempo_event",    "uptempo_copier",
      "uptempo_buffer"};
  return kNames[static_cast<size_t>(kind) - static_cast<size_t>(Kind::runtime)];
}

void refuse_handle(Kind expected, std::string_view parameter, bool is_null) {
  const std::string_view name = name_of(expected);
  refuse_parameter(
      parameter,
      is_null ? std::string("it is NULL") : fmt::format("it is no {}, or has been destroyed", name),
      fmt::format("pass a live {}", name));
}

void refuse_null(std::string_view parameter) {
  refuse_parameter(parameter, "it is NULL", "pass the address of an object");
}

char* text_copy(std::string_view text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  return copy;
}

void require_index(size_t index, size_t count, std::string_view things) {
  if (index >= count)
    refuse_parameter("index", fmt::format("it is {}, and there are {} {}", index, count, things),
                     "use a smaller one");
}

void refuse_number(std::string_view field, uint64_t given, uint64_t most) {
  refuse_parameter(field, fmt::format("it is {}", given), fmt::format("use at most {}", most));
}

void require_size(const void* given, size_t size, size_t known, std::string_view parameter) {
  if (size < sizeof size)
    refuse_parameter(parameter, fmt::format("its size is {}", size),
                     "set its member size to its sizeof, and all fields that you do not use to 0");
  const auto* const bytes = static_cast<const unsigned char*>(given);
  for (size_t i = known; i < size; ++i)
    if (bytes[i] != 0)
      refuse_parameter(parameter,
                       fmt::format("it has {} bytes, and byte {} is not 0; this library knows {}",
                                   size, i, known),
                       "set fields that this library does not know to 0, or use a newer library");
}

WaitPolicy policy_of(uptempo_wait how) {
  switch (how) {
    case UPTEMPO_WAIT_DEFAULT:
      return {};
    case UPTEMPO_WAIT_ACTIVE:
      return WaitPolicy::active();
    case UPTEMPO_WAIT_BLOCKED:
      return WaitPolicy::blocked();
  }
  refuse_parameter("how", fmt::format("it is {}", static_cast<int>(how)),
                   "use a constant of uptempo_wait");
}

Grid converted(const uptempo_grid& given) {
  const uptempo_grid known = options_of(&given, "grid");
  if (known.dimensions > 3)
    refuse_parameter("grid", fmt::format("it has {} dimensions", known.dimensions),
                     "use 1 to 3, or 0");
  Grid grid{known.items[0], or_default(known.items[1], 1u), or_default(known.items[2], 1u)};
  grid.workgroup = {known.workgroup[0], or_default(known.workgroup[1], 1u),
                    or_default(known.workgroup[2], 1u)};
  grid.dimensions = known.dimensions != 0 ? static_cast<uint16_t>(known.dimensions)
                                          : aql::dimensions_of(grid.items);
  grid.lds_bytes = known.lds_bytes;
  return grid;
}

void refuse_arguments() {
  refuse_parameter("arguments", "its data is NULL", "pass the address of the packed arguments");
}

}  // namespace uptempo::c

using namespace uptempo;
using namespace uptempo::c;

// The codes, as X(constant's ending, ErrorCode's enumerator).
#define UPTEMPO_C_CODES(X)    \
  X(ARGUMENT, argument)       \
  X(MISUSE, misuse)           \
  X(UNAVAILABLE, unavailable) \
  X(PROGRAM, program)         \
  X(FILE, file)               \
  X(MEMORY, memory)           \
  X(RING, ring)               \
  X(KERNARGS, kernargs)       \
  X(TIMELINE, timeline)       \
  X(SIGNALS, signals)         \
  X(LIMIT, limit)             \
  X(DEADLINE, deadline)       \
  X(TOO_LONG, too_long)       \
  X(FAILED, failed)           \
  X(DEVICE_LOST, device_lost) \
  X(HSA, hsa)
#define UPTEMPO_C_SAME(constant, code) \
  static_assert(UPTEMPO_ERROR_##constant == static_cast<int>(ErrorCode::code));
UPTEMPO_C_CODES(UPTEMPO_C_SAME)
#undef UPTEMPO_C_SAME

uint32_t uptempo_version() { return UPTEMPO_VERSION_NUMBER; }

const char* uptempo_status_name(uptempo_status status) {
  switch (status) {
#define UPTEMPO_C_NAME(constant, code) \
  case UPTEMPO_ERROR_##constant:       \
    return "UPTEMPO_ERROR_" #constant;
    UPTEMPO_C_CODES(UPTEMPO_C_NAME)
#undef UPTEMPO_C_NAME
    case UPTEMPO_OK:
      return "UPTEMPO_OK";
    case UPTEMPO_NOT_READY:
      return "UPTEMPO_NOT_READY";
    case UPTEMPO_ERROR_INTERNAL:
      return "UPTEMPO_ERROR_INTERNAL";
  }
  return "unknown status";
}

const uptempo_error_info* uptempo_error(void) { return &last_error.info; }

void uptempo_free(void* memory) { std::free(memory); }
