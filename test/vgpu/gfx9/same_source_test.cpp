// The same source, compiled for each target and for the host, must give the same numbers. LLVM
// decides which instruction computes an expression, the host compiler defines its meaning. Neither
// depends on the interpreter, nor on its authors' reading of the instruction set documents.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>

#include <uptempo/kernels/same_source.hpp>
#include <uptempo/kernels/same_source_global.hpp>
#include "gfx9/vector/entry.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"
#include "test/vgpu/gfx9/machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

namespace host {

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = uint64_t;

// OpenCL C's definitions of the functions that same_source.cl calls.
template <class T>
T saturated(int64_t v) {
  constexpr auto low = static_cast<int64_t>(std::numeric_limits<T>::min()),
                 high = static_cast<int64_t>(std::numeric_limits<T>::max());
  return static_cast<T>(v < low ? low : v > high ? high : v);
}
uint sat_add_u32(uint a, uint b) { return saturated<uint>(int64_t{a} + b); }
uint sat_sub_u32(uint a, uint b) { return saturated<uint>(int64_t{a} - b); }
int sat_add_i32(int a, int b) { return saturated<int>(int64_t{a} + b); }
int sat_sub_i32(int a, int b) { return saturated<int>(int64_t{a} - b); }
ushort sat_add_u16(ushort a, ushort b) { return saturated<ushort>(a + b); }
ushort sat_sub_u16(ushort a, ushort b) { return saturated<ushort>(a - b); }
short sat_add_i16(short a, short b) { return saturated<short>(a + b); }
short sat_sub_i16(short a, short b) { return saturated<short>(a - b); }
uint min_u(uint a, uint b) { return std::min(a, b); }
uint max_u(uint a, uint b) { return std::max(a, b); }
int min_i(int a, int b) { return std::min(a, b); }
int max_i(int a, int b) { return std::max(a, b); }
ushort min_h(ushort a, ushort b) { return std::min(a, b); }
ushort max_h(ushort a, ushort b) { return std::max(a, b); }
short min_s(short a, short b) { return std::min(a, b); }
short max_s(short a, short b) { return std::max(a, b); }
uint reversed(uint a) {
  uint result = 0;
  for (uint bit = 0; bit < 32; ++bit) result |= (a >> bit & 1) << (31 - bit);
  return result;
}
uint leading_zeros(uint a) { return a != 0 ? static_cast<uint>(__builtin_clz(a)) : 32; }
uint leading_zeros_long(ulong a) { return a != 0 ? static_cast<uint>(__builtin_clzll(a)) : 64; }
uint trailing_zeros(uint a) { return a != 0 ? static_cast<uint>(__builtin_ctz(a)) : 32; }
uint trailing_zeros_long(ulong a) { return a != 0 ? static_cast<uint>(__builtin_ctzll(a)) : 64; }
uint ones(uint a) { return static_cast<uint>(__builtin_popcount(a)); }
uint ones_long(ulong a) { return static_cast<uint>(__builtin_popcountll(a)); }
uint pack(ushort low, ushort high) { return low | static_cast<uint>(high) << 16; }
uint element(uint a, uint b, uint at) { return a + (at & 15) * b; }
uint with_element(uint a, uint b, uint at) {
  uint sum = 0;
  constexpr uint kFactors[16] = {1, 3, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 7, 9};
  for (uint n = 0; n < 16; ++n) sum += kFactors[n] * (n == (at & 15) ? a ^ b : a + n * b);
  return sum;
}
uint pk_add_swapped(uint a, uint b) {
  return pack(static_cast<ushort>(a + (b >> 16)), static_cast<ushort>((a >> 16) + b));
}

template <class Half, class F>
uint both_halves(uint a, uint b, uint c, F f) {
  uint result = 0;
  for (uint at = 0; at < 32; at += 16) {
    const auto half = [at](uint v) { return static_cast<Half>(v >> at); };
    result |= static_cast<uint>(static_cast<ushort>(f(half(a), half(b), half(c)))) << at;
  }
  return result;
}

#define PK(half, type, expression)                                                                \
  both_halves<half>(                                                                              \
      a, b, c, []([[maybe_unused]] type x0, [[maybe_unused]] type y0, [[maybe_unused]] type z0) { \
        return expression;                                                                        \
      })
// uint, because two halves of 16 bits would be multiplied as signed numbers of 32 bits.
#define PK_U(expression) PK(ushort, uint, expression)
#define PK_I(expression) PK(short, short, expression)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wparentheses"
#define FUNCTION(name, instruction, expression)                                              \
  ulong name([[maybe_unused]] ulong x, [[maybe_unused]] ulong y, [[maybe_unused]] ulong z) { \
    [[maybe_unused]] const uint a = static_cast<uint>(x), b = static_cast<uint>(y),          \
                                c = static_cast<uint>(z);                                    \
    [[maybe_unused]] const int i = static_cast<int>(a), j = static_cast<int>(b),             \
                               k = static_cast<int>(c);                                      \
    const auto value = expression;                                                           \
    ulong bits = 0;                                                                          \
    std::memcpy(&bits, &value, sizeof value);                                                \
    return bits;                                                                             \
  }
#define VECTOR FUNCTION
#define SCALAR FUNCTION
#define GLOBAL FUNCTION
#define DOT FUNCTION
#include "test/vgpu/gfx9/kernels/same_source.inc"
#undef VECTOR
#undef SCALAR
#undef GLOBAL
#undef DOT
#pragma GCC diagnostic pop

}  // namespace host

struct Case {
  const char* name;
  const char* instruction;
  uint64_t (*function)(uint64_t, uint64_t, uint64_t);
  enum : uint8_t { vector, scalar, global, dot } kind;

  bool is_scalar() const { return kind == scalar || kind == global; }
};
constexpr Case kCases[] = {
#define VECTOR(name, instruction, expression) {#name, instruction, &host::name, Case::vector},
#define SCALAR(name, instruction, expression) {#name, instruction, &host::name, Case::scalar},
#define GLOBAL(name, instruction, expression) {#name, instruction, &host::name, Case::global},
#define DOT(name, instruction, expression) {#name, instruction, &host::name, Case::dot},
#include "test/vgpu/gfx9/kernels/same_source.inc"
#undef VECTOR
#undef SCALAR
#undef GLOBAL
#undef DOT
};

constexpr Target kTargets[] = {Target::gfx90a, Target::gfx908, Target::gfx906, Target::gfx900};
constexpr uint32_t kItems = 1024;

// Numbers at which integer operations change their behaviour, and random ones of every magnitude.
std::vector<uint64_t> operands() {
  constexpr uint64_t kEdges[] = {0,
                                 1,
                                 2,
                                 7,
                                 8,
                                 15,
                                 16,
                                 31,
                                 32,
                                 33,
                                 63,
                                 64,
                                 0x7f,
                                 0x80,
                                 0xff,
                                 0x100,
                                 0x7fff,
                                 0x8000,
                                 0xffff,
                                 0x10000,
                                 0x7fffff,
                                 0x800000,
                                 0xffffff,
                                 0x1000000,
                                 0x7fffffff,
                                 0x80000000,
                                 0x80000001,
                                 0xffffffff,
                                 0xfffffffe,
                                 0x7fff8000,
                                 0x80007fff,
                                 0x0000ffff00000000,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0xffffffffffffffff,
                                 0x00000001ffffffff,
                                 0x123456789abcdef0};
  std::mt19937_64 random(20);
  std::vector<uint64_t> values(3 * kItems);
  for (uint64_t& value : values)
    value = random() % 2 != 0 ? kEdges[random() % std::size(kEdges)] : random() >> random() % 64;
  // Equal operands test ties.
  for (uint32_t item = 0; item < kItems; item += 5) values[3 * item + 1] = values[3 * item];
  return values;
}

// The instructions of a kernel up to its end, as LLVM's disassembler prints them.
std::string listing(Machine& machine, LlvmMc& llvm, const char* name) {
  const GpuAddress descriptor = machine.kernel(name);
  const auto at = [&](GpuAddress address) {
    machine.executor.enter();
    const Mapping* const mapping = machine.executor.memory.find(address);
    const std::byte* const host = mapping != nullptr ? mapping->at(address) : nullptr;
    machine.executor.leave();
    if (host == nullptr) throw std::runtime_error("nothing is mapped where the kernel should be");
    return host;
  };
  int64_t entry = 0;
  std::memcpy(&entry, at(descriptor) + 16, sizeof entry);
  std::string text;
  const std::byte* code = at(descriptor + static_cast<uint64_t>(entry));
  while (text.find("s_endpgm") == text.npos) {
    std::array<uint32_t, 5> words{};
    std::memcpy(words.data(), code, sizeof words);
    const auto instruction = llvm.disassemble(words);
    if (!instruction)
      throw std::runtime_error("LLVM does not know an instruction of " + std::string(name));
    text += instruction->text + "\n";
    code += instruction->size_bytes;
  }
  return text;
}

void check(const Case& which, Machine& machine, const std::vector<uint64_t>& values) {
  const Buffer in = machine.allocate(values.size() * 8), out = machine.allocate(kItems * 8);
  std::memcpy(in.bytes.data(), values.data(), in.bytes.size());
  std::memset(out.bytes.data(), 0, out.bytes.size());
  // One work-item per workgroup, so the operands are the same in all of a wave's lanes.
  const auto workgroup = static_cast<uint16_t>(which.is_scalar() ? 1 : 256);
  const auto fault =
      machine.run(which.name, {{kItems, 1, 1}, {workgroup, 1, 1}, 0}, Arguments().add(in).add(out));
  INFO((fault ? fault->message : std::string()));
  REQUIRE_FALSE(fault);
  uint32_t wrong = 0;
  for (uint32_t item = 0; item < kItems; ++item) {
    const uint64_t x = values[3 * item], y = values[3 * item + 1], z = values[3 * item + 2];
    const uint64_t want = which.function(x, y, z), got = out.as<uint64_t>()[item];
    if (got != want && wrong++ == 0) {
      CAPTURE(x, y, z);
      CHECK(got == want);
    }
  }
  CHECK(wrong == 0);
  machine.release(in);
  machine.release(out);
}

}  // namespace

namespace {

// Runs every expression with the kernels of one instruction selector. `must_contain` selects those
// whose named instruction must be in the kernel.
void check_all(std::span<const std::byte> object,
               bool (*must_contain)(const Case& which, Target target)) {
  const std::vector<uint64_t> values = operands();
  const vector::Simd best = vector::simd_in_use();
  for (const Target target : kTargets) {
    LlvmMc llvm(target);
    for (const vector::Simd simd :
         {vector::Simd::avx512, vector::Simd::avx2, vector::Simd::baseline}) {
      if (!vector::use_simd(simd)) continue;
      Machine machine(target);
      machine.load(object);
      for (const Case& which : kCases) {
        // The scalar unit does not depend on the SIMD target.
        if (which.is_scalar() && simd != best) continue;
        CAPTURE(cpu_name(target), static_cast<unsigned>(simd), which.name);
        if (simd == best && must_contain(which, target)) {
          const std::string text = listing(machine, llvm, which.name);
          CAPTURE(text);
          CHECK(text.find(which.instruction) != text.npos);
        }
        check(which, machine, values);
      }
    }
  }
  vector::use_simd(best);
}

}  // namespace

TEST_CASE("a C expression gives the same on every target as on the host") {
  check_all(kernels::same_source(), [](const Case& which, Target target) {
    return which.kind != Case::global && !(which.kind == Case::dot && target == Target::gfx900);
  });
}

TEST_CASE("a C expression gives the same through LLVM's second instruction selector") {
  check_all(kernels::same_source_global(),
            [](const Case& which, Target) { return which.kind == Case::global; });
}

}  // namespace uptempo::vgpu::gfx9::test
