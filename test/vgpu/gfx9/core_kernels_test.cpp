// Compiled kernels, run by the core alone and compared with the CPU.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <uptempo/kernels/core_kernels.hpp>
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

template <class T>
Buffer upload(Machine& machine, const std::vector<T>& values) {
  const Buffer buffer = machine.allocate(values.size() * sizeof(T));
  std::memcpy(buffer.bytes.data(), values.data(), values.size() * sizeof(T));
  return buffer;
}

template <class T>
std::vector<T> random_values(size_t count, uint32_t seed, T low, T high) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = std::uniform_real_distribution<T>(low, high)(random);
    } else {
      value =
          static_cast<T>(low + static_cast<T>(random() % (static_cast<uint64_t>(high - low) + 1)));
    }
  }
  return values;
}

template <class T>
std::vector<T> download(const Buffer& buffer) {
  const auto values = buffer.as<T>();
  return {values.begin(), values.end()};
}

void require_ends(const std::optional<Executor::Fault>& fault) {
  INFO((fault ? fault->message : std::string()));
  REQUIRE_FALSE(fault);
}

Launch line(uint32_t items, uint16_t workgroup) { return {{items, 1, 1}, {workgroup, 1, 1}, 0}; }

struct Kernels : Machine {
  explicit Kernels(Target wanted = Target::gfx90a) : Machine(wanted) {
    load(kernels::core_kernels());
  }
};

constexpr Target kTargets[] = {Target::gfx90a, Target::gfx908, Target::gfx906, Target::gfx900};

}  // namespace

TEST_CASE("a kernel adds two vectors on each target, with a partial last workgroup") {
  for (const Target target : kTargets) {
    Kernels machine(target);
    constexpr uint32_t kCount = 1000;
    const auto a = random_values<uint32_t>(kCount, 1, 0, 0xffffffff),
               b = random_values<uint32_t>(kCount, 2, 0, 0xffffffff);
    const Buffer out = machine.allocate(kCount * 4);
    require_ends(machine.run(
        "vector_add", line(kCount, 192),
        Arguments().add(upload(machine, a)).add(upload(machine, b)).add(out).add(kCount)));
    std::vector<uint32_t> expected(kCount);
    std::transform(a.begin(), a.end(), b.begin(), expected.begin(), std::plus<>());
    CHECK(download<uint32_t>(out) == expected);
  }
}

TEST_CASE("lanes that leave a loop early keep their results") {
  Kernels machine;
  constexpr uint32_t kCount = 512;
  const auto in = random_values<uint32_t>(kCount, 3, 1, 100000);
  const Buffer out = machine.allocate(kCount * 4);
  require_ends(
      machine.run("collatz", line(kCount, 256), Arguments().add(upload(machine, in)).add(out)));
  for (uint32_t i = 0; i < kCount; ++i) {
    uint32_t n = in[i], steps = 0;
    while (n != 1) {
      n = n % 2 != 0 ? 3 * n + 1 : n / 2;
      if (++steps == 500) break;
    }
    REQUIRE(out.as<uint32_t>()[i] == steps);
  }
}

TEST_CASE("waves of a workgroup meet at barriers and share dynamic LDS in a tree reduction") {
  Kernels machine;
  constexpr uint32_t kCount = 4096, kGroup = 512;
  const auto in = random_values<uint32_t>(kCount, 4, 0, 0xffffffff);
  const Buffer out = machine.allocate(kCount / kGroup * 4);
  Launch launch = line(kCount, kGroup);
  launch.dynamic_lds = kGroup * 4;
  const auto dispatch =
      machine.prepare(machine.kernel("reduce"), launch,
                      Arguments().add(upload(machine, in)).add(out).add(uint32_t{0}).bytes());
  // Slices of 7 instructions stop waves anywhere between the barriers.
  require_ends(machine.run(dispatch, 7));
  for (uint32_t group = 0; group < kCount / kGroup; ++group)
    CHECK(out.as<uint32_t>()[group] ==
          std::accumulate(in.begin() + group * kGroup, in.begin() + (group + 1) * kGroup, 0u));
}

TEST_CASE("global atomics of all work-items add up") {
  Kernels machine;
  constexpr uint32_t kCount = 1024;
  const auto in = random_values<uint32_t>(kCount, 5, 0, 1000000);
  const Buffer bins = upload(machine, std::vector<uint32_t>(17, 0));
  const Buffer sum = upload(machine, std::vector<uint64_t>{1});
  const Buffer extremes = upload(machine, std::vector<int32_t>{500000, 500000});
  require_ends(machine.run("histogram", line(kCount, 256),
                           Arguments().add(upload(machine, in)).add(bins).add(sum).add(extremes)));
  std::vector<uint32_t> expected(17, 0);
  for (const uint32_t value : in) ++expected[value % 16];
  expected[16] = 2 * kCount;
  CHECK(download<uint32_t>(bins) == expected);
  CHECK(sum.as<uint64_t>()[0] == std::accumulate(in.begin(), in.end(), uint64_t{1}));
  CHECK(extremes.as<uint32_t>()[0] == *std::min_element(in.begin(), in.end()));
  CHECK(extremes.as<uint32_t>()[1] == *std::max_element(in.begin(), in.end()));
}

TEST_CASE("LDS atomics of all waves add up") {
  Kernels machine;
  constexpr uint32_t kCount = 512;
  const auto in = random_values<uint32_t>(kCount, 6, 0, 1000);
  const Buffer out = machine.allocate(2 * 32 * 4);
  require_ends(machine.run("local_atomics", line(kCount, 256),
                           Arguments().add(upload(machine, in)).add(out)));
  std::vector<uint32_t> expected(64, 0);
  for (uint32_t i = 0; i < kCount; ++i) expected[i / 256 * 32 + in[i] % 32] += i % 256;
  CHECK(download<uint32_t>(out) == expected);
}

TEST_CASE("each work-item has its own arrays in private memory") {
  for (const Target target : kTargets) {
    Kernels machine(target);
    constexpr uint32_t kCount = 384, kRounds = 200;
    const auto in = random_values<uint32_t>(kCount, 7, 0, 0xffffffff);
    const Buffer out = machine.allocate(kCount * 4);
    require_ends(machine.run("private_array", line(kCount, 128),
                             Arguments().add(upload(machine, in)).add(out).add(kRounds)));
    for (uint32_t i = 0; i < kCount; ++i) {
      uint32_t table[61];
      for (uint32_t k = 0; k < 61; ++k) table[k] = in[i] + k * k;
      for (uint32_t r = 0; r < kRounds; ++r)
        table[(i + r * 13) % 61] ^= table[(in[i] + r * 7) % 61] + r;
      uint32_t result = 0;
      for (const uint32_t value : table) result = result * 31 + value;
      REQUIRE(out.as<uint32_t>()[i] == result);
    }
  }
}

TEST_CASE("bytes in private memory keep their neighbours") {
  Kernels machine;
  constexpr uint32_t kCount = 192;
  const auto in = random_values<uint8_t>(kCount, 8, 0, 255);
  const Buffer out = machine.allocate(kCount * 4);
  require_ends(machine.run("private_bytes", line(kCount, 64),
                           Arguments().add(upload(machine, in)).add(out)));
  for (uint32_t i = 0; i < kCount; ++i) {
    uint8_t text[40];
    for (uint32_t k = 0; k < 40; ++k) text[(k * 7 + in[i]) % 40] = static_cast<uint8_t>(in[i] * k);
    uint32_t result = 0;
    for (const uint8_t value : text) result = result * 17 + value;
    REQUIRE(out.as<uint32_t>()[i] == result);
  }
}

TEST_CASE("64-bit integers: sums, products, quotients, shifts and counts are exact") {
  Kernels machine;
  constexpr uint32_t kCount = 256;
  auto a = random_values<uint64_t>(kCount, 9, 0, ~uint64_t{1}),
       b = random_values<uint64_t>(kCount, 10, 0, ~uint64_t{1});
  for (uint32_t i = 0; i < kCount; i += 2) b[i] >>= i % 64;
  const Buffer out = machine.allocate(kCount * 64);
  require_ends(machine.run("long_math", line(kCount, 64),
                           Arguments().add(upload(machine, a)).add(upload(machine, b)).add(out)));
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint64_t x = a[i], y = b[i] | 1;
    const auto high = static_cast<uint64_t>(static_cast<unsigned __int128>(x) * y >> 64);
    const uint64_t expected[8] = {
        x + y,
        x * y,
        x / y,
        x % y,
        static_cast<uint64_t>(static_cast<int64_t>(x) / static_cast<int64_t>(y)),
        x >> (y & 63),
        high,
        static_cast<uint64_t>(std::countl_zero(x) + std::popcount(y))};
    for (unsigned k = 0; k < 8; ++k) {
      CAPTURE(i, k, x, y);
      REQUIRE(out.as<uint64_t>()[8 * i + k] == expected[k]);
    }
  }
}

TEST_CASE("32-bit integer division is exact") {
  Kernels machine;
  constexpr uint32_t kCount = 256;
  const auto a = random_values<int32_t>(kCount, 11, -2000000000, 100);
  auto b = random_values<int32_t>(kCount, 12, -1000, 1000);
  for (auto& value : b) value = value == 0 ? 1 : value;
  const Buffer out = machine.allocate(kCount * 16);
  require_ends(machine.run("int_division", line(kCount, 64),
                           Arguments().add(upload(machine, a)).add(upload(machine, b)).add(out)));
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto ua = static_cast<uint32_t>(a[i]), ub = static_cast<uint32_t>(b[i]);
    const uint32_t expected[4] = {static_cast<uint32_t>(a[i] / b[i]),
                                  static_cast<uint32_t>(a[i] % b[i]), ua / ub, ua % ub};
    for (unsigned k = 0; k < 4; ++k) {
      CAPTURE(i, k, a[i], b[i]);
      REQUIRE(out.as<uint32_t>()[4 * i + k] == expected[k]);
    }
  }
}

TEST_CASE("float quotients are within OpenCL's 2.5 units in the last place") {
  Kernels machine;
  constexpr uint32_t kCount = 512;
  const auto a = random_values<float>(kCount, 13, -1e10f, 1e10f),
             b = random_values<float>(kCount, 14, -3.0f, 3.0f);
  const Buffer out = machine.allocate(kCount * 4);
  require_ends(machine.run("float_division", line(kCount, 64),
                           Arguments().add(upload(machine, a)).add(upload(machine, b)).add(out)));
  for (uint32_t i = 0; i < kCount; ++i) {
    const float exact = a[i] / b[i];
    const float unit = std::abs(std::nextafter(exact, INFINITY) - exact);
    CAPTURE(a[i], b[i]);
    REQUIRE(std::abs(out.as<float>()[i] - exact) <= 2.5f * unit);
  }
}

TEST_CASE("doubles: sums, products, quotients and fused multiply-adds are correctly rounded") {
  Kernels machine;
  constexpr uint32_t kCount = 256;
  const auto a = random_values<double>(kCount, 15, -1e100, 1e100),
             b = random_values<double>(kCount, 16, -7.0, 7.0);
  const Buffer out = machine.allocate(kCount * 32);
  require_ends(machine.run("double_math", line(kCount, 64),
                           Arguments().add(upload(machine, a)).add(upload(machine, b)).add(out)));
  for (uint32_t i = 0; i < kCount; ++i) {
    const double expected[4] = {a[i] + b[i], a[i] * b[i], a[i] / b[i], std::fma(a[i], b[i], a[i])};
    for (unsigned k = 0; k < 4; ++k) {
      CAPTURE(i, k, a[i], b[i]);
      REQUIRE(out.as<double>()[4 * i + k] == expected[k]);
    }
  }
}

TEST_CASE("bytes and halfwords are loaded, extended and stored") {
  Kernels machine;
  constexpr uint32_t kCount = 200;
  const auto c = random_values<uint8_t>(kCount, 17, 0, 255);
  const auto s = random_values<uint16_t>(kCount, 18, 0, 65535);
  const Buffer c_out = machine.allocate(kCount), s_out = machine.allocate(kCount * 2);
  require_ends(machine.run(
      "sub_dword", line(kCount, 64),
      Arguments().add(upload(machine, c)).add(upload(machine, s)).add(c_out).add(s_out)));
  for (uint32_t i = 0; i < kCount; ++i) {
    const int value = static_cast<int8_t>(c[i]);
    REQUIRE(c_out.as<int8_t>()[i] == static_cast<int8_t>(value - s[i]));
    REQUIRE(s_out.as<int16_t>()[i] == static_cast<int16_t>(value * 3 + s[i]));
  }
}

TEST_CASE("vectors of two, three and four dwords keep their order, in full and partial waves") {
  for (const uint32_t count : {128u, 100u}) {
    Kernels machine;
    const auto in = random_values<uint32_t>(count * 4, 19, 0, 0xffffffff),
               pairs = random_values<uint32_t>(count * 2, 20, 0, 0xffffffff);
    const Buffer out = machine.allocate(count * 16), triples = machine.allocate(count * 12);
    require_ends(machine.run(
        "wide", line(count, 64),
        Arguments().add(upload(machine, in)).add(out).add(upload(machine, pairs)).add(triples)));
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t expected[4] = {in[4 * i + 3] + pairs[2 * i], in[4 * i + 2] + pairs[2 * i + 1],
                                    in[4 * i + 1] + i, in[4 * i] + 7};
      for (unsigned k = 0; k < 4; ++k) REQUIRE(out.as<uint32_t>()[4 * i + k] == expected[k]);
      for (unsigned k = 0; k < 3; ++k) REQUIRE(triples.as<uint32_t>()[3 * i + k] == in[4 * i + k]);
    }
  }
}

TEST_CASE(
    "work-item ids, workgroup ids and sizes are right in three dimensions, with partial workgroups "
    "at each edge") {
  for (const Target target : kTargets) {
    Kernels machine(target);
    const Launch launch{{13, 9, 5}, {8, 4, 2}, 0};
    const Buffer out = machine.allocate(13 * 9 * 5 * 48);
    require_ends(machine.run("ids", launch, Arguments().add(out)));
    const uint32_t groups[3] = {2, 3, 3};
    for (uint32_t z = 0; z < 5; ++z) {
      for (uint32_t y = 0; y < 9; ++y) {
        for (uint32_t x = 0; x < 13; ++x) {
          const uint32_t at[3] = {x, y, z};
          const uint32_t* row = out.as<uint32_t>().data() + 12 * ((z * 9 + y) * 13 + x);
          for (unsigned d = 0; d < 3; ++d) {
            CAPTURE(x, y, z, d);
            const uint32_t first = at[d] / launch.workgroup[d] * launch.workgroup[d];
            REQUIRE(row[d] == at[d] % launch.workgroup[d]);
            REQUIRE(row[3 + d] == at[d] / launch.workgroup[d]);
            REQUIRE(row[6 + d] == groups[d]);
            REQUIRE(row[9 + d] == std::min<uint32_t>(launch.workgroup[d], launch.grid[d] - first));
          }
        }
      }
    }
  }
}

TEST_CASE("functions are called and return, even for some lanes only") {
  Kernels machine;
  constexpr uint32_t kCount = 128;
  const auto in = random_values<uint32_t>(kCount, 21, 0, 0xffffffff);
  const Buffer out = machine.allocate(kCount * 4);
  require_ends(
      machine.run("calls", line(kCount, 64), Arguments().add(upload(machine, in)).add(out)));
  const auto mix = [](uint32_t a, uint32_t b) { return (a ^ (b << 3)) * 2654435761u + (b >> 5); };
  for (uint32_t i = 0; i < kCount; ++i)
    REQUIRE(out.as<uint32_t>()[i] ==
            (in[i] % 2 != 0 ? mix(mix(in[i], i), mix(i, in[i])) : mix(in[i], i)));
}

TEST_CASE("generic pointers reach LDS, private and global memory") {
  for (const Target target : kTargets) {
    Kernels machine(target);
    constexpr uint32_t kCount = 128;
    const auto in = random_values<uint32_t>(kCount, 22, 0, 0xffffffff);
    const Buffer out = machine.allocate(kCount * 12);
    require_ends(machine.run("generic_pointers", line(kCount, 64),
                             Arguments().add(upload(machine, in)).add(out)));
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint32_t group =
          std::accumulate(in.begin() + i / 64 * 64, in.begin() + i / 64 * 64 + 64, 0u);
      REQUIRE(out.as<uint32_t>()[3 * i] == group);
      REQUIRE(out.as<uint32_t>()[3 * i + 1] == in[i] * 28);
      REQUIRE(out.as<uint32_t>()[3 * i + 2] == group);
    }
  }
}

TEST_CASE("a workgroup that spins on another one does not prevent it from running") {
  Kernels machine;
  const Buffer flags = upload(machine, std::vector<uint32_t>{0, 0}), out = machine.allocate(4);
  require_ends(machine.run("spin", line(128, 64), Arguments().add(flags).add(out)));
  CHECK(out.as<uint32_t>()[0] == 42);
}

TEST_CASE("stores to scattered addresses reach their places") {
  Kernels machine;
  constexpr uint32_t kCount = 1024;
  std::vector<uint32_t> index(kCount);
  std::iota(index.begin(), index.end(), 0u);
  std::shuffle(index.begin(), index.end(), std::mt19937(23));
  const Buffer out = machine.allocate(kCount * 4);
  require_ends(
      machine.run("scatter", line(kCount, 256), Arguments().add(upload(machine, index)).add(out)));
  for (uint32_t i = 0; i < kCount; ++i) REQUIRE(out.as<uint32_t>()[index[i]] == i);
}

TEST_CASE("a scalar index selects an element of a vector in registers") {
  Kernels machine;
  constexpr uint32_t kCount = 64;
  const auto in = random_values<uint32_t>(kCount * 16, 24, 0, 0xffffffff);
  const Buffer source = upload(machine, in);
  for (uint32_t at = 0; at < 16; ++at) {
    const Buffer out = machine.allocate(kCount * 64);
    require_ends(
        machine.run("indexed", line(kCount, 64), Arguments().add(source).add(out).add(at)));
    auto expected = in;
    for (uint32_t i = 0; i < kCount; ++i) expected[16 * i + at] = in[16 * i + (at + 5) % 16] + 1;
    CHECK(download<uint32_t>(out) == expected);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
