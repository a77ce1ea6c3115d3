// Atomics of LDS, FLAT, GLOBAL and buffers. One definition for each: its effect on memory and the
// value that it returns.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/fragment.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;
using u32 = uint32_t;
using i64 = int64_t;
using i32 = int32_t;

// The new value in memory. `a` is the data, `b` the second datum: the value that cmpst stores, the
// bits that mskor sets.
using Update = u64 (*)(u64 memory, u64 a, u64 b);

struct Operation {
  const char* lds;     // between "ds_" and the type; nullptr if LDS has none
  const char* type32;  // "u32"
  const char* type64;  // nullptr if there is no such form
  const char* vmem;    // after "atomic_"; nullptr if there is none
  bool two_data;       // LDS: data0 and data1; vmem: the pair new, compare
  Update update32, update64;
};

template <class T>
u64 smaller(u64 m, u64 a, u64) {
  return static_cast<u64>(std::min(static_cast<T>(m), static_cast<T>(a)));
}
template <class T>
u64 larger(u64 m, u64 a, u64) {
  return static_cast<u64>(std::max(static_cast<T>(m), static_cast<T>(a)));
}
template <class T>
u64 incremented(u64 m, u64 a, u64) {
  return static_cast<T>(m) >= static_cast<T>(a) ? 0 : m + 1;
}
template <class T>
u64 decremented(u64 m, u64 a, u64) {
  return static_cast<T>(m) == 0 || static_cast<T>(m) > static_cast<T>(a) ? a : m - 1;
}
u64 sum(u64 m, u64 a, u64) { return m + a; }
u64 difference(u64 m, u64 a, u64) { return m - a; }
u64 reverse_difference(u64 m, u64 a, u64) { return a - m; }
u64 conjunction(u64 m, u64 a, u64) { return m & a; }
u64 disjunction(u64 m, u64 a, u64) { return m | a; }
u64 exclusive(u64 m, u64 a, u64) { return m ^ a; }
u64 masked(u64 m, u64 a, u64 b) { return (m & ~a) | b; }
u64 exchanged(u64, u64 a, u64) { return a; }
template <class T>
u64 compared(u64 m, u64 compare, u64 value) {
  return static_cast<T>(m) == static_cast<T>(compare) ? value : m;
}

// clang-format off
const Operation kOperations[] = {
    {"add",    "u32", "u64", "add",     false, sum,                 sum},
    {"sub",    "u32", "u64", "sub",     false, difference,          difference},
    {"rsub",   "u32", "u64", nullptr,   false, reverse_difference,  reverse_difference},
    {"inc",    "u32", "u64", "inc",     false, incremented<u32>,    incremented<u64>},
    {"dec",    "u32", "u64", "dec",     false, decremented<u32>,    decremented<u64>},
    {"min",    "i32", "i64", "smin",    false, smaller<i32>,        smaller<i64>},
    {"max",    "i32", "i64", "smax",    false, larger<i32>,         larger<i64>},
    {"min",    "u32", "u64", "umin",    false, smaller<u32>,        smaller<u64>},
    {"max",    "u32", "u64", "umax",    false, larger<u32>,         larger<u64>},
    {"and",    "b32", "b64", "and",     false, conjunction,         conjunction},
    {"or",     "b32", "b64", "or",      false, disjunction,         disjunction},
    {"xor",    "b32", "b64", "xor",     false, exclusive,           exclusive},
    {"mskor",  "b32", "b64", nullptr,   true,  masked,              masked},
    {"wrxchg", "b32", "b64", "swap",    false, exchanged,           exchanged},
    {"cmpst",  "b32", "b64", "cmpswap", true,  compared<u32>,       compared<u64>},
};
// clang-format on

constexpr u64 kExec = 0xf0f05555ffff0123;
constexpr unsigned kStride = 24;  // bytes between the lanes' values

struct Values {
  std::array<u64, kLanes> memory, a, b;
};

Values values(std::mt19937_64& random, bool wide) {
  constexpr u64 kEdges[] = {0,
                            1,
                            2,
                            5,
                            0x7fffffff,
                            0x80000000,
                            0xffffffff,
                            0xfffffffe,
                            0x7fffffffffffffff,
                            0x8000000000000000,
                            ~u64{0},
                            0x100000000};
  Values v;
  const auto number = [&] {
    const u64 n = random() % 3 ? kEdges[random() % std::size(kEdges)] : random();
    return wide ? n : n & 0xffffffff;
  };
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    v.memory[lane] = number();
    v.a[lane] = random() % 3 == 0 ? v.memory[lane] : number();
    v.b[lane] = number();
  }
  return v;
}

void put(std::byte* at, u64 value, bool wide) { std::memcpy(at, &value, wide ? 8 : 4); }
u64 get(const std::byte* at, bool wide) {
  u64 value = 0;
  std::memcpy(&value, at, wide ? 8 : 4);
  return value;
}
void set(Wave& wave, unsigned reg, unsigned lane, u64 value) {
  wave.vgpr[reg].lane[lane] = static_cast<u32>(value);
  wave.vgpr[reg + 1].lane[lane] = static_cast<u32>(value >> 32);
}
u64 reg(const Wave& wave, unsigned number, unsigned lane, bool wide) {
  return wave.vgpr[number].lane[lane] | (wide ? u64{wave.vgpr[number + 1].lane[lane]} << 32 : 0);
}
std::string registers(unsigned first, unsigned count) {
  return count == 1 ? "v" + std::to_string(first)
                    : "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

// The expected state after `text` ran on `wave`: memory at `base` + kStride * lane, and the
// returned value in `result`, if any.
void check_lanes(const std::string& text, const Wave& wave, const std::byte* base, const Values& v,
                 Update update, bool wide, int result) {
  count_as_checked(text);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const bool active = kExec >> lane & 1;
    CAPTURE(text, lane, active, v.memory[lane], v.a[lane], v.b[lane]);
    u64 want = active ? update(v.memory[lane], v.a[lane], v.b[lane]) : v.memory[lane];
    if (!wide) want &= 0xffffffff;
    CHECK(get(base + kStride * lane, wide) == want);
    if (result >= 0 && active)
      CHECK(reg(wave, static_cast<unsigned>(result), lane, wide) == v.memory[lane]);
    if (result == 10 && !active) CHECK(wave.vgpr[10].lane[lane] == 0xabcd);
  }
}

void check_lds(const Operation& op, bool wide, bool returns) {
  const std::string type = wide ? op.type64 : op.type32;
  const unsigned n = wide ? 2 : 1;
  const std::string text = std::string("ds_") + op.lds + (returns ? "_rtn_" : "_") + type +
                           (returns ? " " + registers(10, n) + "," : "") + " v0, " +
                           registers(2, n) + (op.two_data ? ", " + registers(4, n) : "") +
                           " offset:16";
  std::mt19937_64 random(1);
  const Values v = values(random, wide);
  Fragment fragment;
  Wave& wave = fragment.prepare(text, 2048);
  wave.set_exec(kExec);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    put(wave.lds + 16 + kStride * lane, v.memory[lane], wide);
    wave.vgpr[0].lane[lane] = kStride * lane;
    set(wave, 2, lane, v.a[lane]);
    set(wave, 4, lane, v.b[lane]);
    wave.vgpr[10].lane[lane] = 0xabcd;
  }
  fragment.finish();
  check_lanes(text, wave, wave.lds + 16, v, wide ? op.update64 : op.update32, wide,
              returns ? 10 : -1);
}

enum class Form { flat, global, global_based, buffer };

void check_vmem(const Operation& op, bool wide, bool returns, Form form) {
  const unsigned n = wide ? 2 : 1, data = op.two_data ? 2 * n : n;
  const std::string name = std::string("atomic_") + op.vmem + (wide ? "_x2" : "");
  const std::string result = returns ? " " + registers(10, n) + "," : "",
                    glc = returns ? " glc" : "";
  std::string text;
  switch (form) {
    case Form::flat:
      text = "flat_" + name + result + " v[0:1], " + registers(2, data) + glc;
      break;
    case Form::global:
      text = "global_" + name + result + " v[0:1], " + registers(2, data) + ", off" + glc;
      break;
    case Form::global_based:
      text = "global_" + name + result + " v0, " + registers(2, data) + ", s[2:3] offset:16" + glc;
      break;
    case Form::buffer:
      text = "buffer_" + name + " " + registers(2, data) + ", v0, s[4:7], 0 offen offset:16" + glc;
      break;
  }
  std::mt19937_64 random(2);
  const Values v = values(random, wide);
  Fragment fragment;
  const Buffer buffer = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare(text);
  wave.set_exec(kExec);
  wave.set_pair(2, buffer.address);
  wave.set_pair(4, buffer.address);
  wave.scalar[6] = 4096;        // records of 1 byte
  wave.scalar[7] = 0x00027000;  // as compilers set it: 32-bit data
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    put(buffer.bytes.data() + 16 + kStride * lane, v.memory[lane], wide);
    const bool offsets = form == Form::global_based || form == Form::buffer;
    set(wave, 0, lane, offsets ? kStride * lane : buffer.address + 16 + kStride * lane);
    // Memory instructions take the new value before the comparand; LDS the reverse.
    set(wave, 2, lane, op.two_data ? v.b[lane] : v.a[lane]);
    if (op.two_data && wide) set(wave, 4, lane, v.a[lane]);
    if (op.two_data && !wide) wave.vgpr[3].lane[lane] = static_cast<u32>(v.a[lane]);
    wave.vgpr[10].lane[lane] = 0xabcd;
  }
  fragment.finish();
  check_lanes(text, wave, buffer.bytes.data() + 16, v, wide ? op.update64 : op.update32, wide,
              !returns               ? -1
              : form == Form::buffer ? 2
                                     : 10);
}

// Float atomics, one address per lane, numbers only.
void check_float(const std::string& name, bool wide, u64 (*update)(u64 memory, u64 a)) {
  const bool lds = name.starts_with("ds_");
  const unsigned n = wide ? 2 : 1;
  const std::string text =
      lds ? name + " v0, " + registers(2, n)
          : name + " v[0:1], " + registers(2, n) + (name.starts_with("global") ? ", off" : "");
  Fragment fragment;
  const Buffer buffer = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare(text, 2048);
  std::array<u64, kLanes> memory{}, a{};
  std::byte* base = lds ? wave.lds : buffer.bytes.data();
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const double x = (static_cast<int>(lane) - 30) * 1.625, y = 7.25 - 0.5 * lane;
    memory[lane] = wide ? bits(x) : bits(static_cast<float>(x));
    a[lane] = wide ? bits(y) : bits(static_cast<float>(y));
    put(base + kStride * lane, memory[lane], wide);
    set(wave, 0, lane, lds ? kStride * lane : buffer.address + kStride * lane);
    set(wave, 2, lane, a[lane]);
  }
  fragment.finish();
  count_as_checked(text);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    CAPTURE(text, lane, memory[lane], a[lane]);
    CHECK(get(base + kStride * lane, wide) == update(memory[lane], a[lane]));
  }
}

}  // namespace

TEST_CASE("LDS atomics update memory and return the old value") {
  for (const Operation& op : kOperations) {
    for (const bool wide : {false, true}) {
      // An exchange that returns nothing is a write.
      for (const bool returns : {false, true}) {
        if (returns || op.update32 != exchanged) check_lds(op, wide, returns);
      }
    }
  }
}

TEST_CASE("memory atomics update memory and return the old value if GLC is set") {
  for (const Operation& op : kOperations) {
    if (!op.vmem) continue;
    for (const Form form : {Form::flat, Form::global, Form::global_based, Form::buffer}) {
      for (const bool wide : {false, true}) {
        for (const bool returns : {false, true}) check_vmem(op, wide, returns, form);
      }
    }
  }
}

TEST_CASE("float atomics of gfx90a add and order numbers") {
  const auto add32 = [](u64 m, u64 a) { return bits(f32(m) + f32(a)); };
  const auto add64 = [](u64 m, u64 a) { return bits(f64(m) + f64(a)); };
  check_float("ds_add_f32", false, add32);
  check_float("ds_min_f32", false, [](u64 m, u64 a) { return bits(std::min(f32(m), f32(a))); });
  check_float("ds_max_f32", false, [](u64 m, u64 a) { return bits(std::max(f32(m), f32(a))); });
  check_float("ds_add_f64", true, add64);
  check_float("ds_min_f64", true, [](u64 m, u64 a) { return bits(std::min(f64(m), f64(a))); });
  check_float("ds_max_f64", true, [](u64 m, u64 a) { return bits(std::max(f64(m), f64(a))); });
  check_float("global_atomic_add_f32", false, add32);
  for (const char* space : {"global", "flat"}) {
    check_float(std::string(space) + "_atomic_add_f64", true, add64);
    check_float(std::string(space) + "_atomic_min_f64", true,
                [](u64 m, u64 a) { return bits(std::min(f64(m), f64(a))); });
    check_float(std::string(space) + "_atomic_max_f64", true,
                [](u64 m, u64 a) { return bits(std::max(f64(m), f64(a))); });
  }
}

TEST_CASE("lanes that access one address each get a value of their own") {
  Fragment fragment;
  const Buffer buffer = fragment.machine.allocate(4096);
  Wave& wave =
      fragment.prepare("global_atomic_add v10, v0, v2, s[2:3] glc\nds_add_rtn_u32 v11, v0, v2", 64);
  wave.set_pair(2, buffer.address);
  std::memset(buffer.bytes.data(), 0, 4);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    wave.vgpr[0].lane[lane] = 0;
    wave.vgpr[2].lane[lane] = 1;
  }
  fragment.finish();
  CHECK(get(buffer.bytes.data(), false) == kLanes);
  CHECK(get(wave.lds, false) == kLanes);
  u64 seen_global = 0, seen_lds = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    seen_global |= u64{1} << (wave.vgpr[10].lane[lane] & 63);
    seen_lds |= u64{1} << (wave.vgpr[11].lane[lane] & 63);
  }
  CHECK(seen_global == ~u64{0});
  CHECK(seen_lds == ~u64{0});
}

}  // namespace uptempo::vgpu::gfx9::test
