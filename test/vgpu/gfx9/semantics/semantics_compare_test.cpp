// All compares: every condition of every type, with and without the write to EXEC, from one
// definition of the relation of two numbers.
#include <cmath>
#include <random>
#include <string>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;

enum class Relation { less, equal, greater, unordered };

template <class T>
Relation relation(T a, T b) {
  return a < b    ? Relation::less
         : a > b  ? Relation::greater
         : a == b ? Relation::equal
                  : Relation::unordered;
}

struct Type {
  const char* name;
  unsigned bits;
  bool is_float;
  Relation (*relate)(u64 a, u64 b);
};
const Type kTypes[] = {
    {"i16", 16, false,
     [](u64 a, u64 b) { return relation(static_cast<int16_t>(a), static_cast<int16_t>(b)); }},
    {"u16", 16, false,
     [](u64 a, u64 b) { return relation(static_cast<uint16_t>(a), static_cast<uint16_t>(b)); }},
    {"i32", 32, false,
     [](u64 a, u64 b) { return relation(static_cast<int32_t>(a), static_cast<int32_t>(b)); }},
    {"u32", 32, false,
     [](u64 a, u64 b) { return relation(static_cast<uint32_t>(a), static_cast<uint32_t>(b)); }},
    {"i64", 64, false,
     [](u64 a, u64 b) { return relation(static_cast<int64_t>(a), static_cast<int64_t>(b)); }},
    {"u64", 64, false, [](u64 a, u64 b) { return relation(a, b); }},
    {"f16", 16, true, [](u64 a, u64 b) { return relation(f16(a & 0xffff), f16(b & 0xffff)); }},
    {"f32", 32, true, [](u64 a, u64 b) { return relation(f32(a), f32(b)); }},
    {"f64", 64, true, [](u64 a, u64 b) { return relation(f64(a), f64(b)); }},
};

// A condition holds for these relations: less 1, equal 2, greater 4, unordered 8.
struct Condition {
  const char* name;
  unsigned holds;
};
const Condition kIntegers[] = {{"f", 0},  {"lt", 1}, {"eq", 2}, {"le", 3},
                               {"gt", 4}, {"ne", 5}, {"ge", 6}, {"t", 7}};
const Condition kFloats[] = {{"f", 0},    {"lt", 1},   {"eq", 2},   {"le", 3},
                             {"gt", 4},   {"lg", 5},   {"ge", 6},   {"o", 7},
                             {"u", 8},    {"nge", 9},  {"nlg", 10}, {"ngt", 11},
                             {"nle", 12}, {"neq", 13}, {"nlt", 14}, {"tru", 15}};

u64 number(const Type& type, std::mt19937_64& random) {
  constexpr u64 k16[] = {0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00,
                         0x7c01, 1,      0x8001, 0x7fff, 0xffff, 0x4000};
  constexpr u64 k32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                         0x7fc00000, 0x7f800001, 1,          0x80000001, 0x7fffffff, 0xffffffff};
  constexpr u64 k64[] = {0,
                         u64{1} << 63,
                         0x3ff0000000000000,
                         0xbff0000000000000,
                         0x7ff0000000000000,
                         0xfff0000000000000,
                         0x7ff8000000000000,
                         1,
                         0x8000000000000001,
                         0x7fffffffffffffff,
                         ~u64{0},
                         0xffffffff,
                         0x100000000};
  if (random() % 4 == 0) return random();
  const u64 high = random() << (type.bits == 16 ? 16 : 32);
  if (type.bits == 16) return k16[random() % std::size(k16)] | high;
  if (type.bits == 32) return k32[random() % std::size(k32)] | high;
  return k64[random() % std::size(k64)];
}

void check_compare(const Type& type, const Condition& condition, bool writes_exec) {
  LaneBench bench;
  std::mt19937_64 random(condition.holds + 1);
  const bool wide = type.bits == 64, vcc = condition.holds % 2 != 0;
  const std::string text = std::string(writes_exec ? "v_cmpx_" : "v_cmp_") + condition.name + "_" +
                           type.name + (vcc ? " vcc" : " s[10:11]") +
                           (wide ? ", v[0:1], v[2:3]" : ", v0, v2");
  for (const u64 exec : {~u64{0}, u64{0x0123456789abcdef}, u64{0}}) {
    u64 want = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const u64 a = number(type, random), b = random() % 4 == 0 ? a : number(type, random);
      for (unsigned half = 0; half < 2; ++half) {
        bench.registers[half].lane[lane] = static_cast<uint32_t>(a >> 32 * half);
        bench.registers[2 + half].lane[lane] = static_cast<uint32_t>(b >> 32 * half);
      }
      const auto bit = static_cast<unsigned>(type.relate(a, b));
      if ((exec >> lane & 1) && (condition.holds >> bit & 1)) want |= u64{1} << lane;
    }
    bench.wave.set_exec(exec);
    bench.wave.set_pair(vcc ? kVccLo : 10, 0x5555555555555555);
    bench.run(text);
    CAPTURE(text, exec);
    CHECK(bench.wave.pair(vcc ? kVccLo : 10) == want);
    CHECK(bench.wave.exec() == (writes_exec ? want : exec));
  }
}

}  // namespace

TEST_CASE("every compare of every type is true when its condition is") {
  for (const Type& type : kTypes) {
    for (const bool writes_exec : {false, true}) {
      if (type.is_float) {
        for (const Condition& condition : kFloats) check_compare(type, condition, writes_exec);
      } else {
        for (const Condition& condition : kIntegers) check_compare(type, condition, writes_exec);
      }
    }
  }
}

}  // namespace uptempo::vgpu::gfx9::test
