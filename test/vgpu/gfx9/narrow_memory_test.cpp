// Kernels of narrow_memory.cl on every target, with private memory reached through buffers and
// through SCRATCH instructions, against the same C on the host.
#include <algorithm>
#include <array>
#include <random>
#include <string>

#include <uptempo/kernels/narrow_memory.hpp>
#include <uptempo/kernels/narrow_memory_scratch.hpp>
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

constexpr Target kTargets[] = {Target::gfx90a, Target::gfx908, Target::gfx906, Target::gfx900};
constexpr u32 kItems = 512, kGroup = 256;

template <class T>
std::vector<T> random_values(u32 count, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random());
  return values;
}
// A permutation: no two work-items write the same place.
std::vector<u32> places(u32 count, u64 seed) {
  std::vector<u32> values(count);
  for (u32 i = 0; i < count; ++i) values[i] = i;
  std::shuffle(values.begin(), values.end(), std::mt19937_64(seed));
  return values;
}
template <class T>
Buffer upload(Machine& machine, const std::vector<T>& values) {
  const Buffer buffer = machine.allocate(values.size() * sizeof(T));
  std::memcpy(buffer.bytes.data(), values.data(), values.size() * sizeof(T));
  return buffer;
}

template <class Out, class In>
std::vector<Out> run(Machine& machine, const std::string& kernel, const std::vector<In>& in,
                     const std::vector<u32>& at, u32 results) {
  const Buffer out = machine.allocate(results * sizeof(Out));
  Arguments arguments;
  arguments.add(upload(machine, in));
  if (!at.empty()) arguments.add(upload(machine, at));
  const auto fault = machine.run(kernel, {{kItems, 1, 1}, {kGroup, 1, 1}, 0}, arguments.add(out));
  INFO(kernel << ": " << (fault ? fault->message : std::string()));
  REQUIRE_FALSE(fault);
  const auto values = out.as<Out>();
  return {values.begin(), values.end()};
}

u32 pair(int low, int high) {
  return (static_cast<u32>(low) & 0xffff) | static_cast<u32>(high) << 16;
}

template <class T>
void check_gather(Machine& machine, const std::string& kernel) {
  const auto in = random_values<T>(2 * kItems, 61);
  const auto at = places(2 * kItems, 62);
  const auto got = run<u32>(machine, kernel, in, at, kItems);
  for (u32 i = 0; i < kItems; ++i) REQUIRE(got[i] == pair(in[at[2 * i]], in[at[2 * i + 1]]));
}
template <class T>
void check_scatter(Machine& machine, const std::string& kernel) {
  const auto in = random_values<u32>(kItems, 63);
  const auto at = places(2 * kItems, 64);
  const auto got = run<T>(machine, kernel, in, at, 2 * kItems);
  for (u32 i = 0; i < kItems; ++i) {
    REQUIRE(got[at[2 * i]] == static_cast<T>(in[i] >> 16));
    REQUIRE(got[at[2 * i + 1]] == static_cast<T>(in[i]));
  }
}
template <class T>
void check_exchange(Machine& machine, const std::string& kernel) {
  const auto in = random_values<u32>(kItems, 65);
  const auto at = places(2 * kGroup, 66);
  const auto got = run<u32>(machine, kernel, in, at, kItems);
  for (u32 group = 0; group < kItems; group += kGroup) {
    std::array<T, 2 * kGroup> shared;
    for (u32 l = 0; l < kGroup; ++l) {
      shared[at[2 * l]] = static_cast<T>(in[group + l] >> 16);
      shared[at[2 * l + 1]] = static_cast<T>(in[group + l]);
    }
    for (u32 l = 0; l < kGroup; ++l) REQUIRE(got[group + l] == pair(shared[l], shared[511 - l]));
  }
}
template <class T>
void check_pairs(Machine& machine, const std::string& kernel, u32 distance) {
  const auto in = random_values<T>(kItems, 67);
  const auto got = run<T>(machine, kernel, in, {}, 4 * kItems);
  for (u32 i = 0; i < kItems; ++i) {
    const u32 group = i / kGroup * kGroup, l = i % kGroup;
    const auto shared = [&](u32 n) {
      return n < distance ? in[group + n] : static_cast<T>(in[group + n - distance] * 3);
    };
    CAPTURE(kernel, i);
    REQUIRE(got[4 * i] == shared(255 - l));
    REQUIRE(got[4 * i + 1] == shared(255 - l + distance));
    REQUIRE(got[4 * i + 2] == shared(l / 4 * 2 + 3));
    REQUIRE(got[4 * i + 3] == shared(l / 4 * 2 + 64));
  }
}
template <class T>
void check_private(Machine& machine, const std::string& kernel) {
  const auto in = random_values<T>(kItems, 68);
  const auto at = random_values<u32>(2 * kItems, 69);
  std::vector<u32> small(at);
  for (u32& n : small) n %= 1000;
  const auto got = run<T>(machine, kernel, in, small, kItems);
  for (u32 i = 0; i < kItems; ++i) {
    T own[24];
    for (u32 n = 0; n < 24; ++n) own[n] = static_cast<T>(in[i] + static_cast<T>(n));
    own[small[2 * i] % 24] = in[i];
    own[small[2 * i + 1] % 24] =
        static_cast<T>(own[small[2 * i + 1] % 24] + own[small[2 * i] % 24]);
    T sum = 0;
    for (u32 n = 0; n < 24; ++n) sum = static_cast<T>(sum * 3 + own[(n * 7 + small[i]) % 24]);
    CAPTURE(kernel, i);
    REQUIRE(got[i] == sum);
  }
}
void check_private_halves(Machine& machine) {
  const auto in = random_values<u32>(kItems, 70);
  std::vector<u32> at = random_values<u32>(2 * kItems, 71);
  for (u32& n : at) n %= 1000;
  const auto got = run<u32>(machine, "private_halves", in, at, kItems);
  for (u32 i = 0; i < kItems; ++i) {
    u16 own[24];
    for (u32 n = 0; n < 24; ++n) own[n] = static_cast<u16>(in[i] * n);
    own[at[2 * i] % 24] = static_cast<u16>(in[i] >> 16);
    REQUIRE(got[i] == pair(own[at[2 * i + 1] % 24], own[at[2 * i] % 24]));
  }
}
void check_all_private(Machine& machine) {
  check_private<u8>(machine, "private_uchar");
  check_private<int8_t>(machine, "private_char");
  check_private<u16>(machine, "private_ushort");
  check_private<int16_t>(machine, "private_short");
  check_private<u32>(machine, "private_uint");
  check_private<u64>(machine, "private_ulong");
  check_private_halves(machine);
}

}  // namespace

TEST_CASE("compiled loads and stores of bytes and halves reach the right part of a register") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<unsigned>(target));
    Machine machine(target);
    machine.load(kernels::narrow_memory());
    check_gather<u16>(machine, "gather_shorts");
    check_gather<u8>(machine, "gather_bytes");
    check_gather<int8_t>(machine, "gather_signed_bytes");
    check_scatter<u16>(machine, "scatter_shorts");
    check_scatter<u8>(machine, "scatter_bytes");
    check_exchange<u16>(machine, "exchange_shorts");
    check_exchange<int8_t>(machine, "exchange_bytes");
    check_exchange<u8>(machine, "exchange_unsigned_bytes");
  }
}

TEST_CASE("compiled accesses to two places of LDS reach both") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<unsigned>(target));
    Machine machine(target);
    machine.load(kernels::narrow_memory());
    check_pairs<u32>(machine, "pairs32", 640);
    check_pairs<u64>(machine, "pairs64", 512);
  }
}

TEST_CASE("compiled arrays in private memory work, through buffers and through SCRATCH") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<unsigned>(target));
    for (const bool scratch : {false, true}) {
      CAPTURE(scratch);
      Machine machine(target);
      machine.load(scratch ? kernels::narrow_memory_scratch() : kernels::narrow_memory());
      check_all_private(machine);
    }
  }
}

}  // namespace uptempo::vgpu::gfx9::test
