#include "test/vgpu/gfx9/random_program.hpp"

#include <bit>
#include <cmath>
#include <random>
#include <string_view>
#include <type_traits>
#include <vector>

namespace uptempo::vgpu::gfx9::test {
namespace {

using State = RandomProgram::State;
using u64 = uint64_t;
using u32 = uint32_t;

enum class Type : unsigned { uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64 };
constexpr unsigned kTypes = 9, kIntegers = 7, kVariables = 2 * kTypes;

// Calls f with a value of the type.
template <class F>
auto dispatch(Type type, F f) {
  switch (type) {
    case Type::uint8:
      return f(uint8_t{});
    case Type::int16:
      return f(int16_t{});
    case Type::uint16:
      return f(uint16_t{});
    case Type::int32:
      return f(int32_t{});
    case Type::uint32:
      return f(uint32_t{});
    case Type::int64:
      return f(int64_t{});
    case Type::uint64:
      return f(uint64_t{});
    case Type::float32:
      return f(float{});
    case Type::float64:
      break;
  }
  return f(double{});
}

constexpr std::string_view kNames[] = {"uchar", "short", "ushort", "int",   "uint",
                                       "long",  "ulong", "float",  "double"};
template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, double>) return Type::float64;
  if constexpr (std::is_same_v<T, float>) return Type::float32;
  if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? Type::int64 : Type::uint64;
  if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? Type::int32 : Type::uint32;
  if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? Type::int16 : Type::uint16;
  return Type::uint8;
}
template <class T>
std::string name() {
  return std::string(kNames[static_cast<unsigned>(type_of<T>())]);
}

template <class T>
T value_of(u64 bits) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<u32>(bits));
  else
    return static_cast<T>(bits);
}
template <class T>
u64 bits_of(T value) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<u64>(value);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<u32>(value);
  else
    return static_cast<std::make_unsigned_t<T>>(value);
}
// A NaN has no defined bits, only its class.
u64 visible(Type type, u64 bits) {
  if (type == Type::float32 && std::isnan(value_of<float>(bits))) return 0x7fc00000;
  if (type == Type::float64 && std::isnan(value_of<double>(bits))) return 0x7ff8000000000000;
  return bits;
}
u64 mixed(u64 hash, u64 bits) {
  hash = (hash ^ bits) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

template <class T>
struct Expression {
  std::string text;
  std::function<T(State&)> value;
};
struct Statement {
  std::string text;
  std::function<void(State&)> run;
};

class Generator {
 public:
  explicit Generator(u32 seed) : random_(seed) {}

  Statement block(unsigned depth) {
    std::vector<Statement> all;
    for (unsigned n = 1 + below(3); n != 0; --n) all.push_back(statement(depth));
    std::string text;
    for (const Statement& each : all) text += each.text;
    return {text, [all](State& s) {
              for (const Statement& each : all) each.run(s);
            }};
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  template <class T>
  Expression<T> variable() {
    const unsigned index = 2 * static_cast<unsigned>(type_of<T>()) + below(2);
    return {"v" + std::to_string(index),
            [index](State& s) { return value_of<T>(s.variable[index]); }};
  }

  template <class T>
  Expression<T> constant() {
    T value;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr double kValues[] = {0.5, 1, -1, 2, 0.1, 1e-3, 100, -7.5, 65504, 0x1p-120, 3e30};
      value = static_cast<T>(kValues[below(std::size(kValues))]);
    } else {
      constexpr u64 kValues[] = {0,  1,   2,   3,   5,      15,       31,
                                 64, 127, 128, 255, 0x8000, 0xffffff, ~u64{0}};
      const unsigned pick = below(std::size(kValues) + 4);
      value = static_cast<T>(pick < std::size(kValues) ? kValues[pick] : random_());
    }
    const std::string bits = std::to_string(bits_of(value)) + "ul";
    if constexpr (std::is_same_v<T, float>)
      return {"__builtin_astype((uint)" + bits + ", float)", always(value)};
    if constexpr (std::is_same_v<T, double>)
      return {"__builtin_astype(" + bits + ", double)", always(value)};
    return {"(" + name<T>() + ")" + bits, always(value)};
  }
  template <class T>
  static std::function<T(State&)> always(T value) {
    return [value](State&) { return value; };
  }

  template <class T>
  Expression<T> expression(unsigned depth) {
    if (depth == 0 || below(8) == 0) return below(4) == 0 ? constant<T>() : variable<T>();
    if (below(5) == 0) return converted<T>(depth - 1);
    if constexpr (std::is_floating_point_v<T>)
      return floating<T>(depth - 1);
    else
      return integer<T>(depth - 1);
  }

  // Converts from any other type. A float in the range of long becomes an integer through long,
  // which is defined for every integer type.
  template <class T>
  Expression<T> converted(unsigned depth) {
    return dispatch(static_cast<Type>(below(kTypes)), [&]<class From>(From) -> Expression<T> {
      const Expression<From> from = expression<From>(depth);
      if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<T>) {
        const unsigned temporary = temporaries_++;
        const std::string x = "t" + std::to_string(temporary);
        declarations_ += "  double " + x + ";\n";
        return {"((" + x + " = " + from.text + ", " + x + " > -0x1p62 && " + x + " < 0x1p62) ? (" +
                    name<T>() + ")(long)" + x + " : (" + name<T>() + ")7)",
                [from](State& s) {
                  const double value = static_cast<double>(from.value(s));
                  return value > -0x1p62 && value < 0x1p62
                             ? static_cast<T>(static_cast<int64_t>(value))
                             : T{7};
                }};
      } else {
        return {"(" + name<T>() + ")(" + from.text + ")",
                [from](State& s) { return static_cast<T>(from.value(s)); }};
      }
    });
  }

  Expression<bool> condition(unsigned depth) {
    return dispatch(static_cast<Type>(below(kTypes)), [&]<class T>(T) -> Expression<bool> {
      const auto a = expression<T>(depth), b = expression<T>(depth);
      const auto compared = [&](std::string_view op, auto compare) -> Expression<bool> {
        return {"(" + a.text + ") " + std::string(op) + " (" + b.text + ")",
                [=](State& s) { return compare(a.value(s), b.value(s)); }};
      };
      switch (below(4)) {
        case 0:
          return compared("<", [](T x, T y) { return x < y; });
        case 1:
          return compared(">=", [](T x, T y) { return x >= y; });
        case 2:
          return compared("==", [](T x, T y) { return x == y; });
        default:
          return compared("!=", [](T x, T y) { return x != y; });
      }
    });
  }

  template <class T, class F>
  static Expression<T> binary(const std::string& before, const Expression<T>& a,
                              const std::string& between, const Expression<T>& b,
                              const std::string& after, F f) {
    return {before + "(" + a.text + ")" + between + "(" + b.text + ")" + after,
            [a, b, f](State& s) { return static_cast<T>(f(a.value(s), b.value(s))); }};
  }

  template <class T>
  Expression<T> integer(unsigned depth) {
    // Arithmetic is done in an unsigned type, where it wraps.
    using W = std::conditional_t<sizeof(T) == 8, u64, u32>;
    constexpr unsigned kWidth = 8 * sizeof(T);
    const std::string t = "(" + name<T>() + ")", w = "(" + name<W>() + ")",
                      mask = std::to_string(kWidth - 1);
    const Expression<T> a = expression<T>(depth), b = expression<T>(depth);
    switch (below(15)) {
      case 0:
      case 1:
        return binary(t + "(" + w, a, " + " + w, b, ")",
                      [](T x, T y) { return static_cast<W>(x) + static_cast<W>(y); });
      case 2:
        return binary(t + "(" + w, a, " - " + w, b, ")",
                      [](T x, T y) { return static_cast<W>(x) - static_cast<W>(y); });
      case 3:
      case 4:
        return binary(t + "(" + w, a, " * " + w, b, ")",
                      [](T x, T y) { return static_cast<W>(x) * static_cast<W>(y); });
      case 5:
        return binary(t + "(" + w, a, " & " + w, b, ")",
                      [](T x, T y) { return static_cast<W>(x) & static_cast<W>(y); });
      case 6:
        return binary(t + "(" + w, a, " | " + w, b, ")",
                      [](T x, T y) { return static_cast<W>(x) | static_cast<W>(y); });
      case 7:
        return binary(t + "(" + w, a, " ^ " + w, b, ")",
                      [](T x, T y) { return static_cast<W>(x) ^ static_cast<W>(y); });
      case 8:
        return binary(t + "(" + w, a, " << (", b, " & " + mask + "))", [](T x, T y) {
          return static_cast<W>(x) << (static_cast<W>(y) & (kWidth - 1));
        });
      case 9:
        return binary(t + "(", a, " >> (", b, " & " + mask + "))",
                      [](T x, T y) { return x >> (static_cast<W>(y) & (kWidth - 1)); });
      case 10: {  // a bit field
        const unsigned shift = below(kWidth), bits = 1 + below(kWidth - 1);
        const W field = (W{1} << bits) - 1;
        return {t + "((" + w + "(" + a.text + ") >> " + std::to_string(shift) + ") & " +
                    std::to_string(field) + "ul)",
                [a, shift, field](State& s) {
                  return static_cast<T>(static_cast<W>(a.value(s)) >> shift & field);
                }};
      }
      case 11: {
        const Expression<bool> which = condition(depth);
        return {"((" + which.text + ") ? (" + a.text + ") : (" + b.text + "))",
                [which, a, b](State& s) { return which.value(s) ? a.value(s) : b.value(s); }};
      }
      case 12:
        if constexpr (sizeof(T) <= 4) {
          // Excludes the divisor 0, and the least number over -1, which has no quotient.
          const bool remainder = below(2) == 0;
          const std::string op = remainder ? " % " : " / ", divisor = "(" + b.text + ")",
                            dividend = (std::is_same_v<T, u32> ? "opaque(" : "(") + a.text + ")";
          return {t + "((" + t + "(" + w + divisor + " + 1) < " + t + "2) && " + t + "(" + w +
                      divisor + " + 1) >= " + t + "0 ? " + dividend + " : " + dividend + op +
                      divisor + ")",
                  [a, b, remainder](State& s) {
                    const T x = a.value(s), y = b.value(s);
                    const T next = static_cast<T>(static_cast<W>(y) + 1);
                    if (next < T{2} && next >= T{0}) return x;
                    return static_cast<T>(remainder ? x % y : x / y);
                  }};
        }
        return variable<T>();
      case 13:
        if constexpr (std::is_same_v<T, u32>) return bit_operation(a, b);
        return {"((" + a.text + ") < (" + b.text + ") ? (" + a.text + ") : (" + b.text + "))",
                [a, b](State& s) {
                  const T x = a.value(s), y = b.value(s);
                  return x < y ? x : y;
                }};
      default: {
        const Expression<u32> from = element(depth);
        return {t + from.text, [from](State& s) { return static_cast<T>(from.value(s)); }};
      }
    }
  }

  Expression<u32> bit_operation(const Expression<u32>& a, const Expression<u32>& b) {
    const auto one = [&](const std::string& before, const std::string& after,
                         auto f) -> Expression<u32> {
      return {before + "(" + a.text + ")" + after,
              [a, f](State& s) { return static_cast<u32>(f(a.value(s))); }};
    };
    switch (below(6)) {
      case 0:
        return one("(uint)__builtin_popcount(", ")", [](u32 x) { return std::popcount(x); });
      case 1:
        return one("(uint)__builtin_clz(", " | 1u)", [](u32 x) { return std::countl_zero(x | 1); });
      case 2:
        return one("(uint)__builtin_ctz(", " | 0x80000000u)",
                   [](u32 x) { return std::countr_zero(x | 0x80000000u); });
      case 3:
        return one("__builtin_bswap32(", ")", [](u32 x) { return __builtin_bswap32(x); });
      case 4:
        return one("__builtin_bitreverse32(", ")", [](u32 x) {
          u32 reversed = 0;
          for (unsigned i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
          return reversed;
        });
      default: {
        const unsigned shift = 1 + below(31);
        const std::string left = std::to_string(shift), right = std::to_string(32 - shift);
        return {
            "(((" + a.text + ") << " + left + ") | ((" + b.text + ") >> " + right + "))",
            [a, b, shift](State& s) { return a.value(s) << shift | b.value(s) >> (32 - shift); }};
      }
    }
  }

  template <class T>
  Expression<T> floating(unsigned depth) {
    const std::string suffix = std::is_same_v<T, float> ? "f(" : "(";
    const Expression<T> a = expression<T>(depth), b = expression<T>(depth);
    const auto one = [&](const std::string& before, auto f) -> Expression<T> {
      return {before + a.text + ")", [a, f](State& s) { return static_cast<T>(f(a.value(s))); }};
    };
    switch (below(10)) {
      case 0:
      case 1:
        return binary("(", a, " + ", b, ")", [](T x, T y) { return x + y; });
      case 2:
        return binary("(", a, " - ", b, ")", [](T x, T y) { return x - y; });
      case 3:
      case 4:
        return binary("(", a, " * ", b, ")", [](T x, T y) { return x * y; });
      case 5: {
        const Expression<T> c = expression<T>(depth);
        return {"__builtin_fma" + suffix + a.text + ", " + b.text + ", " + c.text + ")",
                [a, b, c](State& s) { return std::fma(a.value(s), b.value(s), c.value(s)); }};
      }
      case 6:
        return one("(-", [](T x) { return -x; });
      case 7:
        return one("__builtin_fabs" + suffix, [](T x) { return std::fabs(x); });
      case 8:
        return one("__builtin_floor" + suffix, [](T x) { return std::floor(x); });
      default:
        return one("__builtin_rint" + suffix, [](T x) { return std::nearbyint(x); });
    }
  }

  // An element of the array in private memory, of the one in LDS, or of either through a pointer
  // that differs between lanes.
  struct Place {
    std::string text;
    std::function<u32*(State&)> value;
  };
  Place place(unsigned depth) {
    const Expression<u32> index = expression<u32>(depth);
    const std::string at = "[(" + index.text + ") & 15]";
    const auto stack = [index](State& s) { return &s.stack[index.value(s) & 15]; };
    const auto shared = [index](State& s) { return &s.shared[index.value(s) & 15]; };
    switch (below(3)) {
      case 0:
        return {"stack" + at, stack};
      case 1:
        return {"shared" + at, shared};
      default: {
        const Expression<bool> which = condition(depth);
        return {"((" + which.text + ") ? (uint*)stack : (uint*)shared)" + at,
                [which, stack, shared](State& s) { return which.value(s) ? stack(s) : shared(s); }};
      }
    }
  }
  Expression<u32> element(unsigned depth) {
    const Place from = place(depth == 0 ? 0 : depth - 1);
    return {"(" + from.text + ")", [from](State& s) { return *from.value(s); }};
  }

  Statement statement(unsigned depth) {
    switch (depth == 0 ? below(7) : below(11)) {
      case 0: {
        const Place to = place(1);
        const Expression<u32> what = expression<u32>(2);
        const std::string temporary = "u" + std::to_string(temporaries_++);
        declarations_ += "  uint " + temporary + ";\n";
        return {
            "  " + temporary + " = " + what.text + ";\n  " + to.text + " = " + temporary + ";\n",
            [to, what](State& s) {
              const u32 value = what.value(s);
              *to.value(s) = value;
            }};
      }
      case 7:
      case 8: {
        const Expression<bool> which = condition(2);
        const Statement yes = block(depth - 1), no = block(depth - 1);
        return {"  if (" + which.text + ") {\n" + yes.text + "  } else {\n" + no.text + "  }\n",
                [which, yes, no](State& s) { (which.value(s) ? yes : no).run(s); }};
      }
      case 9: {
        const Expression<u32> count = expression<u32>(2);
        const Statement body = block(depth - 1);
        const std::string i = "i" + std::to_string(temporaries_),
                          n = "n" + std::to_string(temporaries_);
        ++temporaries_;
        return {"  for (uint " + i + " = 0, " + n + " = (" + count.text + ") & 7; " + i + " < " +
                    n + "; ++" + i + ") {\n" + body.text + "  }\n",
                [count, body](State& s) {
                  for (u32 left = count.value(s) & 7; left != 0; --left) body.run(s);
                }};
      }
      case 10: {
        const Expression<u32> which = expression<u32>(2);
        std::vector<Statement> cases;
        std::string text = "  switch ((" + which.text + ") & 7) {\n";
        for (unsigned i = 0; i < 7; ++i) {
          cases.push_back(block(0));
          text += "  case " + std::to_string(i) + ":\n" + cases.back().text + "  break;\n";
        }
        return {text + "  default: break;\n  }\n", [which, cases](State& s) {
                  const u32 chosen = which.value(s) & 7;
                  if (chosen < cases.size()) cases[chosen].run(s);
                }};
      }
      default: {
        const unsigned index = below(kVariables);
        return dispatch(static_cast<Type>(index / 2), [&]<class T>(T) -> Statement {
          const Expression<T> what = expression<T>(3);
          return {"  v" + std::to_string(index) + " = " + what.text + ";\n",
                  [what, index](State& s) { s.variable[index] = bits_of(what.value(s)); }};
        });
      }
    }
  }

 public:
  const std::string& declarations() const { return declarations_; }

 private:
  std::mt19937_64 random_;
  unsigned temporaries_ = 0;
  std::string declarations_;
};

// Clang 15 leaves templates undefined that it first meets inside a generic lambda.
template Expression<uint8_t> Generator::integer<uint8_t>(unsigned);
template Expression<int16_t> Generator::integer<int16_t>(unsigned);
template Expression<uint16_t> Generator::integer<uint16_t>(unsigned);
template Expression<int32_t> Generator::integer<int32_t>(unsigned);
template Expression<uint32_t> Generator::integer<uint32_t>(unsigned);
template Expression<int64_t> Generator::integer<int64_t>(unsigned);
template Expression<uint64_t> Generator::integer<uint64_t>(unsigned);
template Expression<float> Generator::floating<float>(unsigned);
template Expression<double> Generator::floating<double>(unsigned);

// The variables of each type are initialised from the two inputs: converted from the first, with
// the bits of the second.
State initial(u64 a, u64 b) {
  State s{};
  for (unsigned type = 0; type < kTypes; ++type) {
    dispatch(static_cast<Type>(type), [&]<class T>(T) {
      s.variable[2 * type] = bits_of(static_cast<T>(static_cast<int64_t>(a)));
      s.variable[2 * type + 1] = bits_of(value_of<T>(b));
    });
  }
  for (u32 i = 0; i < RandomProgram::kArray; ++i) {
    s.stack[i] = static_cast<u32>(a) + i;
    s.shared[i] = static_cast<u32>(b) ^ i;
  }
  return s;
}

constexpr std::string_view kHead = R"(#pragma OPENCL FP_CONTRACT OFF
static ulong mixed(ulong hash, ulong bits) {
  hash = (hash ^ bits) * 0x9e3779b97f4a7c15ul;
  return hash ^ hash >> 29;
}
// A number of which the compiler knows nothing.
static uint opaque(uint x) {
  __asm__("" : "+v"(x));
  return x;
}
kernel __attribute__((reqd_work_group_size(128, 1, 1))) void run(global const ulong* in, global ulong* out) {
  const uint id = __builtin_amdgcn_workitem_id_x();
  const uint item = __builtin_amdgcn_workgroup_id_x() * 128 + id;
  const ulong a = in[2 * item], b = in[2 * item + 1];
  local uint all[128][16];
  local uint* shared = all[id];
  uint stack[16];
  for (uint i = 0; i < 16; ++i) {
    stack[i] = (uint)a + i;
    shared[i] = (uint)b ^ i;
  }
)";

}  // namespace

RandomProgram::RandomProgram(uint32_t seed) {
  Generator generator(seed);
  std::vector<Statement> body;
  for (unsigned i = 0; i < 12; ++i) body.push_back(generator.block(2));

  source_ = kHead;
  source_ += generator.declarations();
  for (unsigned type = 0; type < kTypes; ++type) {
    const std::string name(kNames[type]), first = "v" + std::to_string(2 * type),
                                          second = "v" + std::to_string(2 * type + 1);
    source_ += "  " + name + " " + first + " = (" + name + ")(long)a;\n  " + name + " " + second +
               " = " +
               (type < kIntegers ? "(" + name + ")b"
                : static_cast<Type>(type) == Type::float32
                    ? std::string("__builtin_astype((uint)b, float)")
                    : std::string("__builtin_astype(b, double)")) +
               ";\n";
  }
  for (const Statement& each : body) source_ += each.text;
  source_ += "  ulong hash = 1;\n";
  for (unsigned i = 0; i < kVariables; ++i) {
    const std::string v = "v" + std::to_string(i);
    const Type type = static_cast<Type>(i / 2);
    const std::string bits =
        type == Type::float32
            ? "(" + v + " != " + v + " ? 0x7fc00000u : __builtin_astype(" + v + ", uint))"
        : type == Type::float64
            ? "(" + v + " != " + v + " ? 0x7ff8000000000000ul : __builtin_astype(" + v + ", ulong))"
            : "(u" + std::string(kNames[i / 2]).substr(kNames[i / 2][0] == 'u') + ")" + v;
    source_ += "  hash = mixed(hash, " + bits + ");\n";
  }
  source_ +=
      "  for (uint i = 0; i < 16; ++i) hash = mixed(mixed(hash, stack[i]), shared[i]);\n  "
      "out[item] = "
      "hash;\n}\n";

  body_ = [body](State& s) {
    for (const Statement& each : body) each.run(s);
  };
}

uint64_t RandomProgram::expected(uint64_t a, uint64_t b) const {
  State s = initial(a, b);
  body_(s);
  u64 hash = 1;
  for (unsigned i = 0; i < kVariables; ++i)
    hash = mixed(hash, visible(static_cast<Type>(i / 2), s.variable[i]));
  for (unsigned i = 0; i < kArray; ++i) hash = mixed(mixed(hash, s.stack[i]), s.shared[i]);
  return hash;
}

}  // namespace uptempo::vgpu::gfx9::test
