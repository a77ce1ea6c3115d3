// Tried<T>: the result of a try_ form: a T, or the reason why there is none.
//
//   if (const Tried<Completion> done = batch.try_submit()) {
//     last = *done;
//   } else if (is_exhausted(done.code())) {
//     later();                              // nothing has changed
//   } else {
//     report(done.error().what());
//   }
//
// try_ forms never wait for room. They return every refusal as a value: an exhausted resource, a
// batch that is too long, a failed queue or a lost device, a deadline, and an argument that is not
// acceptable. Only ErrorCode::misuse is thrown: calls of objects that were moved from or whose
// queue or Runtime has ended, and calls in the wrong order. So a program that is compiled without
// exceptions uses these forms after set-up, and ends if it misuses an object. Host memory that is
// exhausted is std::bad_alloc in either kind of program.
//
// Cost: a T and a null pointer. If a resource is exhausted or the deadline has passed, a refusal of
// a batch, a recording or a Completion costs no allocation. All others make the text of an Error,
// as do those of Stream::try_launch() for an exhausted resource.
//
// Thread safety: a value.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <uptempo/runtime/error.hpp>

namespace uptempo {

class [[nodiscard]] Refusal {
 public:
  // `call` is a string literal: the refused try_ form.
  Refusal(ErrorCode code, const char* call) noexcept : code_(code), call_(call) {}
  explicit Refusal(const Error& error) noexcept : code_(error.code()), facts_(error.facts_) {}

  ErrorCode code() const noexcept { return code_; }
  // The same in words. Made by this call for an exhausted resource of a queue and for a deadline.
  Error error() const;

 private:
  ErrorCode code_;
  const char* call_ = nullptr;
  std::shared_ptr<const ErrorFacts> facts_;  // null: error() words the code
};

// T is void for a call without a result.
template <class T = void>
class [[nodiscard]] Tried {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  // NOLINTBEGIN(google-explicit-constructor): a function returns one or the other
  Tried(Value value) noexcept(std::is_nothrow_move_constructible_v<Value>)
      : result_(std::in_place_index<0>, std::move(value)) {}
  Tried(Refusal refusal) noexcept : result_(std::in_place_index<1>, std::move(refusal)) {}
  // NOLINTEND(google-explicit-constructor)

  bool has_value() const noexcept { return result_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // Require a value.
  Value& operator*() & noexcept { return *std::get_if<0>(&result_); }
  const Value& operator*() const& noexcept { return *std::get_if<0>(&result_); }
  Value&& operator*() && noexcept { return std::move(*std::get_if<0>(&result_)); }
  Value* operator->() noexcept { return std::get_if<0>(&result_); }
  const Value* operator->() const noexcept { return std::get_if<0>(&result_); }

  // Require a refusal.
  ErrorCode code() const noexcept { return refusal().code(); }
  Error error() const { return refusal().error(); }
  const Refusal& refusal() const noexcept { return *std::get_if<1>(&result_); }

 private:
  std::variant<Value, Refusal> result_;
};

}  // namespace uptempo
