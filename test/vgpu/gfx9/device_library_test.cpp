// AMD's device libraries, compiled for each target and run. Reductions and scans over lanes are
// checked against sums on the host, mathematical functions against libm.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>

#include <uptempo/kernels/device_library.hpp>
#include <uptempo/kernels/wave_atomics.hpp>
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

constexpr Target kTargets[] = {Target::gfx90a, Target::gfx908, Target::gfx906, Target::gfx900};
constexpr uint32_t kWave = 64;

template <class T>
Buffer upload(Machine& machine, const std::vector<T>& values) {
  const Buffer buffer = machine.allocate(values.size() * sizeof(T));
  std::memcpy(buffer.bytes.data(), values.data(), values.size() * sizeof(T));
  return buffer;
}
void run(Machine& machine, const std::string& kernel, uint32_t items, uint16_t workgroup,
         const Arguments& arguments) {
  const auto fault = machine.run(kernel, {{items, 1, 1}, {workgroup, 1, 1}, 0}, arguments);
  INFO(kernel << ": " << (fault ? fault->message : std::string()));
  REQUIRE_FALSE(fault);
}

// ---- lanes ----

template <class T>
T wrapped_sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
}

// Floats hold small integers, whose sums are exact in any order.
template <class T>
std::vector<T> lane_values(uint32_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(static_cast<int>(random() % 20001) - 10000) / 4;
    else
      value = static_cast<T>(random() >> random() % 40);
  }
  return values;
}

template <class T>
void check_lanes(Target target, const std::string& name) {
  constexpr uint32_t kItems = 1024;
  constexpr uint16_t kGroup = 256;
  Machine machine(target);
  machine.load(kernels::device_library());
  const auto in = lane_values<T>(kItems, 31);
  const Buffer out = machine.allocate(10 * kItems * sizeof(T));
  run(machine, "lanes_" + name, kItems, kGroup, Arguments().add(upload(machine, in)).add(out));
  const auto got = out.as<T>();
  for (uint32_t i = 0; i < kItems; ++i) {
    const uint32_t wave = i / kWave * kWave, group = i / kGroup * kGroup;
    const auto begin = in.begin() + wave, here = in.begin() + i, end = begin + kWave;
    const auto add = [](T a, T b) { return wrapped_sum(a, b); };
    const T want[] = {std::accumulate(begin, end, T{0}, add),
                      *std::min_element(begin, end),
                      *std::max_element(begin, end),
                      std::accumulate(begin, here + 1, T{0}, add),
                      std::accumulate(begin, here, T{0}, add),
                      *std::min_element(begin, here + 1),
                      *std::max_element(begin, here + 1),
                      in[wave + 37],
                      std::accumulate(in.begin() + group, here + 1, T{0}, add),
                      *std::max_element(in.begin() + group, in.begin() + group + kGroup)};
    for (uint32_t row = 0; row < std::size(want); ++row) {
      CAPTURE(name, i, row);
      REQUIRE(got[row * kItems + i] == want[row]);
    }
  }
}

// ---- functions ----

// The distance of `got` from `want`, in units of the last place of T at `want`.
template <class T>
double error_in_ulp(T got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  const T rounded = static_cast<T>(want);
  if (got == rounded) return 0;
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  // If the error bound reaches beyond the largest number, infinity and the largest number are
  // equally right.
  const long double largest = std::numeric_limits<T>::max();
  const long double finite = std::isinf(got) ? std::copysign(largest, static_cast<long double>(got))
                                             : static_cast<long double>(got);
  const long double limited = std::clamp(want, -largest, largest);
  const int exponent =
      limited == 0 ? std::numeric_limits<T>::min_exponent
                   : std::max(std::ilogb(limited) + 1, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::abs(finite - limited) /
                             std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits));
}

template <class T>
std::vector<T> arguments(uint32_t count, uint64_t seed) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Limits = std::numeric_limits<T>;
  const T edges[] = {T(0),
                     -T(0),
                     T(1),
                     T(-1),
                     T(0.5),
                     T(2),
                     T(-2),
                     T(0.1),
                     Limits::infinity(),
                     -Limits::infinity(),
                     Limits::quiet_NaN(),
                     Limits::max(),
                     -Limits::max(),
                     Limits::min(),
                     Limits::denorm_min(),
                     Limits::min() / 3,
                     T(1) + Limits::epsilon(),
                     T(1) - Limits::epsilon() / 2,
                     T(3.14159265358979),
                     T(1.5707963267948966),
                     T(100),
                     T(88.7),
                     T(-103.9),
                     T(710.2),
                     T(1e10),
                     T(1.5),
                     T(2.5),
                     T(-0.4999),
                     T(1e22)};
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    switch (random() % 5) {
      case 0:
        value = edges[random() % std::size(edges)];
        break;
      case 1:  // any bits, so every magnitude
        value = std::bit_cast<T>(static_cast<Bits>(random()));
        break;
      case 2:
        value = static_cast<T>(std::uniform_real_distribution<double>(-700, 700)(random));
        break;
      default:
        value = static_cast<T>(std::uniform_real_distribution<double>(-8, 8)(random));
        break;
    }
  }
  return values;
}

template <class T>
struct Function {
  const char* name;
  double allowed;
  long double (*reference)(T a, T b);
};

// float32 from float64, float64 from the 64-bit significand of the x87.
template <class T>
using More = std::conditional_t<sizeof(T) == 4, double, long double>;

const Function<float> kFloat[] = {
#define FLOAT(function, error) \
  {#function, error, [](float a, float) -> long double { return std::function(More<float>{a}); }},
#define FLOAT2(function, error) \
  {#function, error,            \
   [](float a, float b) -> long double { return std::function(More<float>{a}, More<float>{b}); }},
#define DOUBLE(function, error)
#define DOUBLE2(function, error)
#include "test/vgpu/gfx9/kernels/device_library.inc"
#undef FLOAT
#undef FLOAT2
    {"divide", 2.5, [](float a, float b) -> long double { return double{a} / double{b}; }},
};
const Function<double> kDouble[] = {
#define FLOAT(function, error)
#define FLOAT2(function, error)
#undef DOUBLE
#undef DOUBLE2
#define DOUBLE(function, error) \
  {#function, error,            \
   [](double a, double) -> long double { return std::function(More<double>{a}); }},
#define DOUBLE2(function, error)                             \
  {#function, error, [](double a, double b) -> long double { \
     return std::function(More<double>{a}, More<double>{b}); \
   }},
#include "test/vgpu/gfx9/kernels/device_library.inc"
    {"divide", 0, [](double a, double b) -> long double { return a / b; }},
};

template <class T>
void check_function(Machine& machine, const Function<T>& function) {
  constexpr uint32_t kItems = 4096;
  const auto a = arguments<T>(kItems, 41), b = arguments<T>(kItems, 42);
  const Buffer out = machine.allocate(kItems * sizeof(T));
  const std::string kernel = std::string(sizeof(T) == 4 ? "float_" : "double_") + function.name;
  run(machine, kernel, kItems, 256,
      Arguments().add(upload(machine, a)).add(upload(machine, b)).add(out));
  for (uint32_t i = 0; i < kItems; ++i) {
    long double want = function.reference(a[i], b[i]);
    // The neighbour of the result as a float of this width.
    if (std::string(function.name) == "nextafter") want = std::nextafter(a[i], b[i]);
    if (std::string(function.name) == "sqrt") {
      // Rounded once. LLVM 15 emits v_sqrt_f32 alone, which flushes denormals; later releases scale
      // them first.
      want = std::sqrt(a[i]);
      if (sizeof(T) == 4 && std::fpclassify(a[i]) == FP_SUBNORMAL) continue;
    }
    const T got = out.as<T>()[i];
    if (!(error_in_ulp(got, want) <= function.allowed)) {
      CAPTURE(kernel, a[i], b[i], got, static_cast<double>(want), error_in_ulp(got, want));
      CHECK(error_in_ulp(got, want) <= function.allowed);
      return;
    }
  }
  SUCCEED(kernel);
}

template <class T>
void check_parts(Machine& machine) {
  constexpr uint32_t kItems = 4096;
  const auto a = arguments<T>(kItems, 43);
  std::mt19937_64 random(44);
  std::vector<int> by(kItems);
  for (int& n : by)
    n = random() % 8 == 0 ? static_cast<int>(random()) : static_cast<int>(random() % 4400) - 2200;
  const Buffer out = machine.allocate(2 * kItems * sizeof(T)),
               exponents = machine.allocate(kItems * 4);
  run(machine, sizeof(T) == 4 ? "float_parts" : "double_parts", kItems, 256,
      Arguments().add(upload(machine, a)).add(upload(machine, by)).add(out).add(exponents));
  for (uint32_t i = 0; i < kItems; ++i) {
    int exponent = 0;
    const T fraction = std::frexp(a[i], &exponent), scaled = std::ldexp(a[i], by[i]);
    CAPTURE(a[i], by[i]);
    const auto same = [](T x, T y) { return x == y || (std::isnan(x) && std::isnan(y)); };
    CHECK(same(out.as<T>()[2 * i], fraction));
    CHECK(same(out.as<T>()[2 * i + 1], scaled));
    if (std::isfinite(a[i])) CHECK(exponents.as<int>()[i] == exponent);
  }
}

}  // namespace

TEST_CASE("AMD's reductions and scans over lanes give the sums and extremes of the lanes") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<unsigned>(target));
    check_lanes<int32_t>(target, "int");
    check_lanes<uint32_t>(target, "uint");
    check_lanes<int64_t>(target, "long");
    check_lanes<uint64_t>(target, "ulong");
    check_lanes<float>(target, "float");
    check_lanes<double>(target, "double");
  }
}

TEST_CASE("votes over lanes and lane numbers are those of the sub-group") {
  for (const Target target : kTargets) {
    Machine machine(target);
    machine.load(kernels::device_library());
    constexpr uint32_t kItems = 512;
    std::vector<uint32_t> in(kItems);
    for (uint32_t i = 0; i < kItems; ++i) in[i] = i % 100 == 77 ? 7 : i == 300 ? 1000 : 8;
    const Buffer out = machine.allocate(3 * kItems * 4);
    run(machine, "votes", kItems, 128, Arguments().add(upload(machine, in)).add(out));
    for (uint32_t i = 0; i < kItems; ++i) {
      const auto begin = in.begin() + i / kWave * kWave, end = begin + kWave;
      CAPTURE(i);
      CHECK(out.as<uint32_t>()[3 * i] == (std::count(begin, end, 7u) > 0));
      CHECK(out.as<uint32_t>()[3 * i + 1] == (*std::max_element(begin, end) < 1000));
      CHECK(out.as<uint32_t>()[3 * i + 2] == i % kWave);
    }
  }
}

TEST_CASE(
    "AMD's shifts over lanes read the lane at that distance, and lanes at the end keep their own "
    "value") {
  for (const Target target : kTargets) {
    Machine machine(target);
    machine.load(kernels::device_library());
    constexpr uint32_t kItems = 256;
    std::mt19937_64 random(52);
    std::vector<int32_t> in(kItems);
    for (int32_t& value : in) value = static_cast<int32_t>(random() & 0x3fffffff);
    const Buffer out = machine.allocate(4 * kItems * 4);
    run(machine, "shifted_lanes", kItems, 128, Arguments().add(upload(machine, in)).add(out));
    int active = 0;
    for (uint32_t i = 0; i < kItems; ++i) {
      if (i % kWave == 0) active = 0;
      const auto from = [&](int distance) {
        const int lane = static_cast<int>(i % kWave) + distance;
        return lane >= 0 && lane < static_cast<int>(kWave)
                   ? in[i - i % kWave + static_cast<uint32_t>(lane)]
                   : in[i];
      };
      const auto* const row = out.as<int32_t>().data() + 4 * i;
      CAPTURE(static_cast<unsigned>(target), i);
      CHECK(row[0] == from(1));
      CHECK(row[1] == from(37));
      CHECK(row[3] == ((in[i] & 1) != 0 ? active++ : -1));
    }
  }
}

TEST_CASE("AMD's dot products are the same on targets with and without instructions for them") {
  for (const Target target : kTargets) {
    Machine machine(target);
    machine.load(kernels::device_library());
    constexpr uint32_t kItems = 1024;
    std::mt19937_64 random(53);
    std::vector<uint32_t> in(3 * kItems);
    constexpr uint32_t kEdges[] = {0,          0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80008000,
                                   0x7fff7fff, 0x88888888, 0x77777777, 0x80000000, 0x7fffffff};
    for (uint32_t& value : in)
      value = random() % 2 != 0 ? kEdges[random() % std::size(kEdges)]
                                : static_cast<uint32_t>(random());
    const Buffer out = machine.allocate(12 * kItems * 4);
    run(machine, "dots", kItems, 128, Arguments().add(upload(machine, in)).add(out));
    for (uint32_t i = 0; i < kItems; ++i) {
      const uint32_t a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
      const uint32_t* row = out.as<uint32_t>().data() + 12 * i;
      for (const unsigned width : {16u, 8u, 4u}) {
        for (const bool is_signed : {true, false}) {
          __int128 sum = is_signed ? int64_t{static_cast<int32_t>(c)} : int64_t{c};
          for (unsigned at = 0; at < 32; at += width) {
            const auto field = [&](uint32_t v) -> int64_t {
              const auto top = static_cast<int64_t>(uint64_t{v} << (64 - width - at));
              return is_signed ? top >> (64 - width)
                               : static_cast<int64_t>(static_cast<uint64_t>(top) >> (64 - width));
            };
            sum += field(a) * field(b);
          }
          const __int128 low = is_signed ? std::numeric_limits<int32_t>::min() : 0,
                         high = is_signed ? __int128{std::numeric_limits<int32_t>::max()}
                                          : __int128{0xffffffff};
          CAPTURE(static_cast<unsigned>(target), width, is_signed, a, b, c);
          CHECK(*row++ == static_cast<uint32_t>(sum));
          CHECK(*row++ == static_cast<uint32_t>(std::clamp(sum, low, high)));
        }
      }
    }
    std::vector<int32_t> small(5 * kItems);
    for (int32_t& value : small) value = static_cast<int32_t>(random() % 201) - 100;
    const Buffer halves = machine.allocate(4 * kItems * 4);
    run(machine, "half_dots", kItems, 128, Arguments().add(upload(machine, small)).add(halves));
    for (uint32_t i = 0; i < kItems; ++i) {
      const int32_t* x = small.data() + 5 * i;
      const int dot = x[0] * x[2] + x[1] * x[3];
      const auto* const row = halves.as<float>().data() + 4 * i;
      CAPTURE(static_cast<unsigned>(target), i);
      CHECK(row[0] == static_cast<float>(dot + x[4]));
      CHECK(row[1] == static_cast<float>(x[4] - dot));
      CHECK(row[2] == static_cast<float>(-dot - x[4]));
      CHECK(row[3] ==
            std::clamp(static_cast<float>(-x[0] * x[3] + x[1] * x[2] + x[4]), 0.0f, 1.0f));
    }
  }
}

TEST_CASE("atomics that LLVM combines over a wave give each lane its own part") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<unsigned>(target));
    Machine machine(target);
    machine.load(kernels::wave_atomics());
    constexpr uint32_t kItems = 1000;  // the last wave is partial
    std::mt19937_64 random(51);
    std::vector<uint32_t> in(kItems);
    for (uint32_t& value : in) value = static_cast<uint32_t>(random() % 100000 + 1);
    for (const bool odd : {false, true}) {
      const Buffer out = machine.allocate(kItems * 4), total = machine.allocate(4);
      total.as<uint32_t>()[0] = 5;
      run(machine, odd ? "sums_of_odd" : "sums", kItems, 200,
          Arguments().add(upload(machine, in)).add(out).add(total));
      // In any order of the atomics, each must have got the value that its predecessors had left.
      std::vector<std::pair<uint32_t, uint32_t>> steps;
      for (uint32_t i = 0; i < kItems; ++i) {
        if (!odd || (in[i] & 1) != 0) steps.emplace_back(out.as<uint32_t>()[i], in[i]);
      }
      std::sort(steps.begin(), steps.end());
      uint32_t sum = 5;
      for (const auto& [before, added] : steps) {
        REQUIRE(before == sum);
        sum += added;
      }
      CHECK(total.as<uint32_t>()[0] == sum);
    }
    const Buffer out = machine.allocate(kItems * 4), extremes = machine.allocate(8);
    extremes.as<int32_t>()[0] = std::numeric_limits<int>::min();
    extremes.as<int32_t>()[1] = std::numeric_limits<int>::max();
    run(machine, "extremes", kItems, 200,
        Arguments().add(upload(machine, in)).add(out).add(extremes));
    CHECK(extremes.as<uint32_t>()[0] == *std::max_element(in.begin(), in.end()));
    CHECK(extremes.as<uint32_t>()[1] == *std::min_element(in.begin(), in.end()));
    run(machine, "local_masks", kItems, 200, Arguments().add(upload(machine, in)).add(out));
    for (uint32_t group = 0; group < kItems / 200; ++group) {
      uint32_t all = ~0u, any = 0;
      for (uint32_t i = 0; i < 200; ++i) {
        const uint32_t v = in[group * 200 + i];
        all &= v | 0x0f0f0f0f;
        if ((v & 2) != 0) any |= v;
      }
      CHECK(out.as<uint32_t>()[2 * group] == all);
      CHECK(out.as<uint32_t>()[2 * group + 1] == any);
    }
  }
}

TEST_CASE("AMD's mathematical functions are as precise as OpenCL C requires") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<unsigned>(target));
    Machine machine(target);
    machine.load(kernels::device_library());
    for (const auto& function : kFloat) check_function(machine, function);
    for (const auto& function : kDouble) check_function(machine, function);
    check_parts<float>(machine);
    check_parts<double>(machine);
  }
}

TEST_CASE("floats belong to the classes that C names") {
  Machine machine;
  machine.load(kernels::device_library());
  constexpr uint32_t kItems = 2048;
  const auto a = arguments<float>(kItems, 45);
  const Buffer out = machine.allocate(kItems * 4);
  run(machine, "float_classes", kItems, 256, Arguments().add(upload(machine, a)).add(out));
  for (uint32_t i = 0; i < kItems; ++i) {
    CAPTURE(a[i]);
    const unsigned want = unsigned{std::isnan(a[i])} | unsigned{std::isinf(a[i])} << 1 |
                          unsigned{std::isnormal(a[i])} << 2 | unsigned{std::isfinite(a[i])} << 3 |
                          unsigned{std::signbit(a[i])} << 4;
    CHECK(out.as<uint32_t>()[i] == want);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
