// Parts of every function of the C interface: guarded(), which lets no exception out;
// handles, which know their kind; sized structs; conversions.
//
//   uptempo_status uptempo_queue_reclaim(uptempo_queue* queue) {
//     return guarded(__func__, [&] { handle(queue, "queue").queue.reclaim(); });
//   }
//
// Thread safety: pure functions; each thread has its own last error.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <uptempo/c/base.h>
#include <uptempo/c/completion.h>
#include <uptempo/c/program.h>
#include <uptempo/aql/deadline.hpp>
#include <uptempo/completion/completion.hpp>
#include <uptempo/program/arguments.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo::c {

// Keeps the exception that is being handled as the thread's last error. Allocates nothing.
uptempo_status keep_error(const char* function) noexcept;

// Registers the end of the thread's last error, for which the C library allocates: without memory
// it ends the process. Functions that create objects call this, so that a later failure of their
// thread allocates nothing.
void register_thread() noexcept;

// Calls body() for a function of the interface. Costs nothing unless it throws. `body` returns
// nothing, or a status.
template <class Body>
[[gnu::always_inline]] inline uptempo_status guarded(const char* function, Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return UPTEMPO_OK;
    } else {
      return body();
    }
  } catch (...) {
    return keep_error(function);
  }
}

// Throws the Error of a parameter that the caller must change. keep_error() adds the function.
[[noreturn]] void refuse_parameter(std::string_view parameter, std::string found,
                                   std::string remedy);

// The first member of each handle. A handle of another kind has another number.
enum class Kind : uint32_t {
  runtime = 0x75700001,
  agent,
  program,
  kernel,
  queue,
  batch,
  notifier,
  recording,
  streams,
  stream,
  event,
  copier,
  buffer,
};
std::string_view name_of(Kind kind) noexcept;

template <Kind K>
struct Handle {
  static constexpr Kind kKind = K;
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { const_cast<volatile Kind&>(kind) = Kind{}; }
  Kind kind = K;
};

template <class H>
[[gnu::always_inline]] inline bool is_handle(const H* given) noexcept {
  return given != nullptr && given->kind == H::kKind;
}

[[noreturn]] void refuse_handle(Kind expected, std::string_view parameter, bool is_null);

// Throws Error for a NULL and for a handle of another kind.
template <class H>
H& handle(H* given, std::string_view parameter) {
  if (!is_handle(given)) [[unlikely]]
    refuse_handle(H::kKind, parameter, given == nullptr);
  return *given;
}

// The caller's place for a result or for input. Throws Error for a NULL.
[[noreturn]] void refuse_null(std::string_view parameter);
template <class T>
T& place(T* given, std::string_view parameter) {
  if (given == nullptr) [[unlikely]]
    refuse_null(parameter);
  return *given;
}

// Stores what make() returns, a handle or a text, at `result`, and NULL if make() throws.
template <class H, class Make>
uptempo_status create(const char* function, H** result, Make&& make) noexcept {
  register_thread();
  return guarded(function, [&] {
    H*& made = place(result, "the result");
    made = nullptr;
    made = make();
  });
}

template <class H>
uptempo_status destroy(const char* function, H* given, std::string_view parameter) noexcept {
  return guarded(function, [&] {
    if (given != nullptr) delete &handle(given, parameter);
  });
}

// A copy with a terminating zero, which uptempo_free() frees. Throws std::bad_alloc.
char* text_copy(std::string_view text);

// Throws Error unless index < count. `things`: what is counted, "kernels".
void require_index(size_t index, size_t count, std::string_view things);

[[noreturn]] void refuse_number(std::string_view field, uint64_t given, uint64_t most);
template <class To>
To limited(uint64_t given, std::string_view field) {
  if (given > std::numeric_limits<To>::max())
    refuse_number(field, given, std::numeric_limits<To>::max());
  return static_cast<To>(given);
}

// Throws Error unless `size` is that of a struct whose fields beyond `known` bytes are 0.
void require_size(const void* given, size_t size, size_t known, std::string_view parameter);

// A struct of the caller's as the library knows it: fields that it lacks are 0. All fields are 0
// for a NULL. A struct has no padding: bytes that older callers leave undefined would become a
// newer field.
template <class T>
T options_of(const T* given, std::string_view parameter) {
  static_assert(std::has_unique_object_representations_v<T>, "a struct without padding");
  T known{};
  known.size = sizeof known;
  if (given == nullptr) return known;
  require_size(given, given->size, sizeof known, parameter);
  std::memcpy(&known, given, std::min(given->size, sizeof known));
  return known;
}

// Fills a struct of the caller's with facts: as many fields as it has, and zeros beyond them.
template <class T>
void return_facts(T facts, T* result, std::string_view parameter) {
  static_assert(std::has_unique_object_representations_v<T>, "a struct without padding");
  const size_t size = place(result, parameter).size;
  if (size < sizeof size)
    refuse_parameter(parameter, "its size is " + std::to_string(size),
                     "set its member size to its sizeof");
  facts.size = size;
  std::memcpy(result, &facts, std::min(size, sizeof facts));
  if (size > sizeof facts)
    std::memset(reinterpret_cast<std::byte*>(result) + sizeof facts, 0, size - sizeof facts);
}

// The C++ value of an enum of the interface, whose constants have the same numbers. Throws Error
// for a number beyond `last`.
template <class To, class From>
To enum_of(From given, To last, std::string_view field) {
  const auto number = static_cast<int64_t>(given);
  if (number < 0 || number > static_cast<int64_t>(last)) [[unlikely]]
    refuse_parameter(field, "it is " + std::to_string(number),
                     "use a number from 0 to " + std::to_string(static_cast<int64_t>(last)));
  return static_cast<To>(number);
}

template <class T>
T or_default(T given, T fallback) noexcept {
  return given == 0 ? fallback : given;
}
inline std::chrono::nanoseconds duration_of(uint64_t ns) noexcept {
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min<uint64_t>(ns, INT64_MAX)));
}
inline std::chrono::nanoseconds or_default(uint64_t ns, std::chrono::nanoseconds fallback) {
  return ns == 0 ? fallback : duration_of(ns);
}

inline Deadline deadline_of(uint64_t timeout_ns) noexcept {
  if (timeout_ns == UPTEMPO_NO_LIMIT) return Deadline::never();
  return Deadline::after(duration_of(timeout_ns));
}
WaitPolicy policy_of(uptempo_wait how);

static_assert(sizeof(uptempo_completion) == sizeof(Completion) &&
              std::is_trivially_copyable_v<Completion>);
inline Completion completion_of(const uptempo_completion& completion) noexcept {
  return std::bit_cast<Completion>(completion);
}
inline uptempo_completion completion_of(const Completion& completion) noexcept {
  return std::bit_cast<uptempo_completion>(completion);
}

inline uptempo_status status_of(bool done) noexcept {
  return done ? UPTEMPO_OK : UPTEMPO_NOT_READY;
}

// The result of a try_ form: the caller gets UPTEMPO_NOT_READY for an exhausted resource, without a
// text. Throws the Error of any other refusal.
template <class T>
uptempo_status status_of(const Tried<T>& tried) {
  if (tried) [[likely]]
    return UPTEMPO_OK;
  if (is_exhausted(tried.code())) return UPTEMPO_NOT_READY;
  throw tried.error();
}

inline CallSite site_of(const char* site) noexcept { return {site, 0}; }

// Whether a grid of the caller's has this library's size, and no 0 that stands for another number.
[[gnu::always_inline]] inline bool is_complete(const uptempo_grid& given) noexcept {
  return given.size == sizeof given && given.items[1] != 0 && given.items[2] != 0 &&
         given.workgroup[1] != 0 && given.workgroup[2] != 0 && given.dimensions - 1 <= 2;
}
// Requires is_complete().
[[gnu::always_inline]] inline Grid complete_grid(const uptempo_grid& given) noexcept {
  Grid grid{given.items[0], given.items[1], given.items[2]};
  grid.workgroup = {given.workgroup[0], given.workgroup[1], given.workgroup[2]};
  grid.dimensions = static_cast<uint16_t>(given.dimensions);
  grid.lds_bytes = given.lds_bytes;
  return grid;
}
// Any grid. Throws Error for one that no launch can have.
Grid converted(const uptempo_grid& given);
[[gnu::always_inline]] inline Grid grid_of(const uptempo_grid& given) {
  return is_complete(given) ? complete_grid(given) : converted(given);
}

// The caller's arguments. Throws Error for packed bytes at NULL.
[[noreturn]] void refuse_arguments();
[[gnu::always_inline]] inline Arguments arguments_of(const uptempo_arguments& given) {
  if (given.by_pointers == 0) [[likely]] {
    if (given.data == nullptr && given.count != 0) [[unlikely]]
      refuse_arguments();
    return std::span(static_cast<const std::byte*>(given.data), given.count);
  }
  const auto* const params = static_cast<const void* const*>(given.data);
  if (given.count == UPTEMPO_AS_DECLARED) return params;
  return std::span(params, given.count);
}

}  // namespace uptempo::c

struct uptempo_agent : uptempo::c::Handle<uptempo::c::Kind::agent> {
  explicit uptempo_agent(const uptempo::Agent& the_agent)
      : agent(the_agent), pci(uptempo::pci_address(the_agent.properties())) {}
  uptempo::Agent agent;
  std::string pci;
};

// Defined beside its functions.
namespace uptempo::c {
const Program& program_of(const uptempo_program* program, std::string_view parameter);
}

struct uptempo_kernel : uptempo::c::Handle<uptempo::c::Kind::kernel> {
  explicit uptempo_kernel(const uptempo::Kernel<uptempo::Arguments>& the_kernel)
      : kernel(the_kernel) {}
  uptempo::Kernel<uptempo::Arguments> kernel;
};
