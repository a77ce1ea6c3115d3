// C++ types that fit a kernel's arguments: against type names that clang writes for OpenCL C, and
// against metadata without type names, as for HIP.
#include <hsa/hsa.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/code_object.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

struct Pair {
  int32_t a;
  float b;
};
struct Four {
  float x, y, z, w;
};
struct Half {
  uint16_t bits;
};
struct Opaque;
enum class Color : uint32_t { red };
enum class Small : int16_t { none };

ArgumentLayout layout_of(const char* name, std::span<const std::byte> bundle) {
  const auto target = parse_target_id("gfx90a");
  REQUIRE(target);
  for (const KernelMetadata& kernel :
       read_metadata(metadata_note(select_code_object(bundle, *target))).kernels)
    if (kernel.name == name) return ArgumentLayout(kernel, false);
  FAIL("no kernel " << name);
  throw 0;
}

// A kernel with one argument, declared as `type_name`; empty for a compiler that writes no names.
ArgumentLayout taking(const std::string& type_name, uint32_t size,
                      ArgumentKind kind = ArgumentKind::by_value) {
  KernelMetadata kernel;
  kernel.name = "k";
  kernel.kernarg_size = size;
  kernel.kernarg_alignment = 8;
  kernel.arguments = {{.kind = kind,
                       .kind_name = "any",
                       .offset = 0,
                       .size = size,
                       .name = {},
                       .type_name = type_name}};
  return ArgumentLayout(kernel, false);
}

template <class... Args>
std::string refusal(const ArgumentLayout& layout) {
  const std::array<ArgumentType, sizeof...(Args)> types{argument_type<Args>()...};
  return error_of<Error>([&] { layout.require(types); });
}

template <class T>
bool value_fits(const std::string& type_name) {
  return refusal<T>(taking(type_name, sizeof(T))) == "no error";
}

template <class T>
bool pointer_fits(const std::string& type_name) {
  return refusal<T>(taking(type_name, 8, ArgumentKind::global_buffer)) == "no error";
}

}  // namespace

TEST_CASE("a type of the right size and the wrong kind is refused", "[argument_types]") {
  // saxpy(global float* y, global const float* x, float a, uint length)
  const ArgumentLayout saxpy = layout_of("saxpy", builtin_kernels::basics());
  CHECK(refusal<float*, const float*, float, uint32_t>(saxpy) == "no error");
  const std::string error = refusal<float*, const float*, int, float>(saxpy);
  CAPTURE(error);
  CHECK(contains(error, "kernel 'saxpy'"));
  CHECK(contains(error, "argument 2 as 'int' (4 bytes)"));
  CHECK(contains(error, "argument 3 as 'float' (4 bytes)"));
  CHECK(contains(error, "argument 2 'float' (4 bytes, by value, at offset 16)"));
  CHECK(contains(error, "argument 3 'uint' (4 bytes, by value, at offset 20)"));
  CHECK_FALSE(contains(error, "argument 0"));
  CHECK_FALSE(contains(error, "argument 1"));
  CHECK(contains(refusal<float*, const int*, float, uint32_t>(saxpy), "argument 1 as 'const int"));
}

TEST_CASE(
    "the argument check distinguishes every parameter of the probe kernel from its neighbours",
    "[argument_types]") {
  // out, char, short, int, long, uchar, float, double, float4, struct, in
  const ArgumentLayout probe = layout_of("probe_arguments", builtin_kernels::probes());
  struct Third {
    uint32_t first;
    uint8_t second;
    uint64_t third;
  };
  CHECK(refusal<uint64_t*, int8_t, int16_t, int32_t, int64_t, uint8_t, float, double,
                std::array<float, 4>, Third, const uint32_t*>(probe) == "no error");
  const std::string error = refusal<double*, Opaque*, Half, float, double, Small, int32_t, int64_t,
                                    std::array<int32_t, 4>, Third, const float*>(probe);
  CAPTURE(error);
  for (const char* wrong :
       {"argument 0 as", "argument 1 as", "argument 3 as", "argument 4 as", "argument 5 as",
        "argument 6 as", "argument 7 as", "argument 8 as", "argument 10 as"})
    CHECK(contains(error, wrong));
  CHECK_FALSE(contains(error, "argument 2 as"));  // a class of that size
  CHECK_FALSE(contains(error, "argument 9 as"));
}

TEST_CASE("integers of one size fit each other, and enumerations are integers",
          "[argument_types]") {
  for (const char* type : {"int", "uint"}) {
    CAPTURE(type);
    CHECK(value_fits<int32_t>(type));
    CHECK(value_fits<uint32_t>(type));
    CHECK(value_fits<char32_t>(type));
    CHECK(value_fits<Color>(type));
    CHECK_FALSE(value_fits<float>(type));
  }
  CHECK(value_fits<const int32_t>("uint"));
  CHECK(value_fits<long>("long"));
  CHECK(value_fits<long long>("ulong"));
  CHECK_FALSE(value_fits<double>("ulong"));
  CHECK(value_fits<char>("uchar"));
  CHECK(value_fits<char8_t>("char"));
  CHECK(value_fits<std::byte>("uchar"));
  CHECK(value_fits<Small>("ushort"));
  CHECK_FALSE(value_fits<int32_t>("float"));
  CHECK_FALSE(value_fits<uint64_t>("double"));
}

TEST_CASE("half is a floating-point type of its own", "[argument_types]") {
  CHECK_FALSE(value_fits<uint16_t>("half"));
  CHECK_FALSE(value_fits<int16_t>("half"));
  CHECK(value_fits<Half>("half"));
#ifdef __FLT16_MANT_DIG__
  CHECK(value_fits<_Float16>("half"));
  CHECK_FALSE(value_fits<_Float16>("short"));
  CHECK(pointer_fits<_Float16*>("half*"));
  CHECK_FALSE(pointer_fits<_Float16*>("ushort*"));
#endif
  CHECK(pointer_fits<const uint16_t*>("half*"));  // cl_half
  CHECK(pointer_fits<uint16_t*>("short*"));
  CHECK_FALSE(pointer_fits<int16_t*>("half*"));
  CHECK_FALSE(pointer_fits<uint16_t*>("float*"));
}

TEST_CASE("bool fits a one-byte parameter that is declared as bool or has no type name",
          "[argument_types]") {
  CHECK(value_fits<bool>("bool"));
  CHECK(value_fits<bool>(""));
  CHECK_FALSE(value_fits<bool>("uchar"));
  CHECK_FALSE(value_fits<uint8_t>("bool"));
  CHECK(contains(refusal<bool>(taking("int", 4)), "argument 0 as 'bool' (1 byte)"));
  CHECK(contains(refusal<bool>(taking("", 4)), "argument 0 (4 bytes, by value, at offset 0)"));
  CHECK(pointer_fits<bool*>("bool*"));
  CHECK_FALSE(pointer_fits<bool*>("char*"));
}

TEST_CASE("a vector parameter accepts an array of its elements or a class of its size",
          "[argument_types]") {
  CHECK(value_fits<std::array<float, 4>>("float4"));
  CHECK(value_fits<std::array<float, 4>>("float3"));
  CHECK(value_fits<std::array<std::array<float, 2>, 2>>("float4"));
  CHECK(value_fits<Four>("float4"));
  CHECK(value_fits<Four>("double2"));  // the members of a class are not known
  CHECK(value_fits<std::complex<float>>("float2"));
  CHECK_FALSE(value_fits<std::array<uint32_t, 4>>("float4"));
  CHECK_FALSE(value_fits<std::array<double, 2>>("float4"));
  CHECK_FALSE(value_fits<uint64_t>("uint2"));
  CHECK_FALSE(value_fits<double>("float2"));
  CHECK_FALSE(value_fits<std::array<float, 2>>("double"));
  CHECK(value_fits<std::array<int8_t, 16>>("uchar16"));
  CHECK(contains(refusal<std::array<float, 3>>(taking("float3", 16)), "(12 bytes)"));
}

TEST_CASE("names that OpenCL C does not define are compared by size alone", "[argument_types]") {
  CHECK(value_fits<Pair>("S"));
  CHECK(value_fits<double>("S"));
  CHECK(value_fits<float>("real"));
  CHECK(value_fits<uint32_t>("enum E"));
  CHECK(
      contains(refusal<float>(taking("S", 8)), "argument 0 'S' (8 bytes, by value, at offset 0)"));
  CHECK(pointer_fits<float*>("S*"));
  CHECK(pointer_fits<int*>("__global float[4]*"));
  CHECK(pointer_fits<int*>("struct (unnamed struct at t.cl:5:462)*"));
}

TEST_CASE("a pointer fits if its element type fits", "[argument_types]") {
  CHECK(pointer_fits<float*>("float*"));
  CHECK(pointer_fits<const float*>("float*"));
  CHECK(pointer_fits<volatile uint32_t*>("int*"));
  CHECK_FALSE(pointer_fits<int*>("float*"));
  CHECK_FALSE(pointer_fits<double*>("float*"));
  CHECK_FALSE(pointer_fits<uint64_t*>("uint*"));
  CHECK(pointer_fits<float*>("float4*"));
  CHECK(pointer_fits<std::array<float, 4>*>("float4*"));
  CHECK(pointer_fits<std::array<float, 4>*>("float*"));
  CHECK_FALSE(pointer_fits<std::array<int, 4>*>("float4*"));
  CHECK(pointer_fits<uint32_t*>("atomic_uint*"));
  CHECK_FALSE(pointer_fits<float*>("atomic_uint*"));
  CHECK(pointer_fits<Color*>("uint*"));
  CHECK(pointer_fits<float**>("ulong*"));
  CHECK_FALSE(pointer_fits<float**>("float*"));
  for (const char* type : {"float*", "double2*", "S*", "void*", ""}) {
    CAPTURE(type);
    CHECK(pointer_fits<void*>(type));
    CHECK(pointer_fits<const std::byte*>(type));
    CHECK(pointer_fits<uint8_t*>(type));
    CHECK(pointer_fits<Four*>(type));
    CHECK(pointer_fits<Opaque*>(type));
  }
  for (const char* type : {"void*", "S*", ""}) CHECK(pointer_fits<float*>(type));
}

TEST_CASE("without type names, values and addresses are still distinguished", "[argument_types]") {
  CHECK(value_fits<float>(""));
  CHECK(value_fits<int32_t>(""));
  CHECK(contains(refusal<float*>(taking("", 8)), "argument 0 as 'float"));
  CHECK(contains(refusal<uint64_t>(taking("", 8, ArgumentKind::global_buffer)),
                 "argument 0 (8 bytes, an address, at offset 0)"));
  CHECK(contains(refusal<uint32_t>(taking("float*", 4, ArgumentKind::dynamic_shared_pointer)),
                 "argument 0 'float*' (an LDS array: LocalBytes)"));
  CHECK(refusal<LocalBytes>(taking("float*", 4, ArgumentKind::dynamic_shared_pointer)) ==
        "no error");
}

TEST_CASE("a refusal includes the parameter's name if the compiler kept it", "[argument_types]") {
  KernelMetadata kernel;
  kernel.name = "k";
  kernel.kernarg_size = 4;
  kernel.kernarg_alignment = 8;
  kernel.arguments = {{.kind = ArgumentKind::by_value,
                       .kind_name = "by_value",
                       .offset = 0,
                       .size = 4,
                       .name = "dt",
                       .type_name = "float"}};
  CHECK(contains(refusal<int>(ArgumentLayout(kernel, false)),
                 "argument 0 dt 'float' (4 bytes, by value, at offset 0)"));
}
