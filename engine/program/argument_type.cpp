#include "engine/program/argument_type.hpp"

namespace uptempo {
namespace {

using Scalar = ElementType::Scalar;

struct NamedElement {
  std::string_view name;
  ElementType element;
};
// OpenCL C specification, "Built-in Scalar Data Types", and the names of its atomic types.
constexpr NamedElement kNamedElements[] = {
    {"void", {Scalar::bytes, 1}},
    {"bool", {Scalar::boolean, 1}},
    {"char", {Scalar::integer, 1}},
    {"uchar", {Scalar::integer, 1}},
    {"short", {Scalar::integer, 2}},
    {"ushort", {Scalar::integer, 2}},
    {"int", {Scalar::integer, 4}},
    {"uint", {Scalar::integer, 4}},
    {"long", {Scalar::integer, 8}},
    {"ulong", {Scalar::integer, 8}},
    {"half", {Scalar::floating, 2}},
    {"float", {Scalar::floating, 4}},
    {"double", {Scalar::floating, 8}},
    {"size_t", {Scalar::integer, 8}},
    {"ptrdiff_t", {Scalar::integer, 8}},
    {"intptr_t", {Scalar::integer, 8}},
    {"uintptr_t", {Scalar::integer, 8}},
    {"atomic_int", {Scalar::integer, 4}},
    {"atomic_uint", {Scalar::integer, 4}},
    {"atomic_long", {Scalar::integer, 8}},
    {"atomic_ulong", {Scalar::integer, 8}},
    {"atomic_float", {Scalar::floating, 4}},
    {"atomic_double", {Scalar::floating, 8}},
};

// "Built-in Vector Data Types": the scalar's name and the number of elements.
std::string_view without_vector_size(std::string_view name) noexcept {
  for (const std::string_view size : {"16", "2", "3", "4", "8"})
    if (name.ends_with(size)) return name.substr(0, name.size() - size.size());
  return name;
}

}  // namespace

ElementType declared_element(std::string_view type_name) noexcept {
  if (type_name.ends_with('*')) type_name.remove_suffix(1);
  const std::string_view scalar = without_vector_size(type_name);
  for (const NamedElement& known : kNamedElements)
    if (known.name == scalar) return known.element;
  return {};
}

bool fits(const ArgumentType& given, const ElementType& declared) noexcept {
  const ElementType& element = given.element;
  if (element.scalar == Scalar::unknown || declared.scalar == Scalar::unknown) return true;
  if (element.scalar == Scalar::bytes || declared.scalar == Scalar::bytes) return true;
  if (element.scalar == Scalar::half_bits)
    return declared.size_bytes == 2 && declared.scalar != Scalar::boolean;
  return element == declared;
}

}  // namespace uptempo
