// The kernels of basics.cl, bitonic_sort.cl and probes.cl, run on the device, against the same
// computation on the host.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/kernels/probes_v4.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

struct Device : test::OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Program probes{gpu, builtin_kernels::probes()};
  Queue queue{gpu};
  Copier copier{gpu};
  BatchSubmitter batch{queue};

  template <class T>
  DeviceBuffer<T> upload(const std::vector<T>& host) {
    DeviceBuffer<T> buffer{gpu, host.size()};
    copier.copy(buffer, host);
    return buffer;
  }
  template <class T>
  std::vector<T> download(const DeviceBuffer<T>& buffer) {
    std::vector<T> host(buffer.size());
    copier.copy(host, buffer);
    return host;
  }
  void run() { batch.submit().wait(); }
};

std::vector<uint32_t> random_words(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> words(count);
  std::generate(words.begin(), words.end(), random);
  return words;
}

// The struct parameter of probe_arguments, in OpenCL C's layout.
struct ProbeStruct {
  uint32_t first;
  uint8_t second;
  uint64_t third;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};

}  // namespace

TEST_CASE("bitonic_sort: all passes sort, up and down, for every power of two", "[kernels]") {
  Device device;
  const Program program{device.gpu, builtin_kernels::bitonic_sort()};
  const auto sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
  for (uint32_t log2 = 1; log2 <= 12; ++log2) {
    const uint32_t length = 1u << log2;
    for (const uint32_t ascending : {0u, 1u}) {
      std::vector<uint32_t> keys = random_words(length, log2 * 2 + ascending);
      if (length > 4) keys[length / 2] = keys[0] = UINT32_MAX, keys[length - 1] = keys[1] = 0;
      const auto buffer = device.upload(keys);
      for (uint32_t stage = 0; stage < log2; ++stage)
        for (uint32_t pass = 0; pass <= stage; ++pass)
          device.batch.dispatch(sort, Grid{length / 2}.by(std::min(length / 2, 256u)),
                                buffer.data(), stage, pass, ascending);
      device.run();
      std::sort(keys.begin(), keys.end());
      if (ascending == 0) std::reverse(keys.begin(), keys.end());
      CAPTURE(length, ascending);
      CHECK(device.download(buffer) == keys);
    }
  }
}

TEST_CASE("fill, iota and copy write every element, also of partial workgroups", "[kernels]") {
  Device device;
  const auto fill = device.basics.kernel<uint32_t*, uint32_t>("fill");
  const auto iota = device.basics.kernel<uint32_t*, uint32_t, uint32_t>("iota");
  const auto copy = device.basics.kernel<uint32_t*, const uint32_t*>("copy");
  for (const uint32_t length : {1u, 63u, 64u, 65u, 1000u, 4096u}) {
    const DeviceBuffer<uint32_t> a{device.gpu, length}, b{device.gpu, length},
        c{device.gpu, length};
    const Grid grid = Grid{length}.by(std::min(length, 256u));
    device.batch.dispatch(fill, grid, a.data(), 0xa5a5a5a5u);
    device.batch.dispatch(iota, grid, b.data(), 7u, 3u);
    device.batch.dispatch(copy, grid, c.data(), b.data());
    device.run();
    std::vector<uint32_t> expected(length);
    for (uint32_t i = 0; i < length; ++i) expected[i] = 7 + i * 3;
    CAPTURE(length);
    CHECK(device.download(a) == std::vector<uint32_t>(length, 0xa5a5a5a5u));
    CHECK(device.download(b) == expected);
    CHECK(device.download(c) == expected);
  }
}

TEST_CASE("vector_add and saxpy round as the host does and stop at their length", "[kernels]") {
  Device device;
  const auto add = device.basics.kernel<float*, const float*, const float*, uint32_t>("vector_add");
  const auto saxpy = device.basics.kernel<float*, const float*, float, uint32_t>("saxpy");
  std::mt19937 random(3);
  std::uniform_real_distribution<float> real(-1e6f, 1e6f);
  std::vector<float> x(1000), y(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = real(random), y[i] = real(random);
  const auto dx = device.upload(x), dy = device.upload(y),
             sum = device.upload(std::vector<float>(1000, -1.f));
  device.batch.dispatch(add, Grid{1024}.by(256), sum.data(), dx.data(), dy.data(), 990u);
  device.batch.dispatch(saxpy, Grid{1024}.by(256), dy.data(), dx.data(), 2.7f, 1000u);
  device.run();
  const auto got_sum = device.download(sum), got_y = device.download(dy);
  for (size_t i = 0; i < 1000; ++i) {
    volatile const float product = 2.7f * x[i];  // volatile: two roundings on the host as well
    const float expected_sum = i < 990 ? x[i] + y[i] : -1.f;
    if (std::bit_cast<uint32_t>(got_sum[i]) != std::bit_cast<uint32_t>(expected_sum))
      FAIL("vector_add at " << i);
    if (std::bit_cast<uint32_t>(got_y[i]) != std::bit_cast<uint32_t>(product + y[i]))
      FAIL("saxpy at " << i);
  }
}

TEST_CASE("count_work_items counts every work-item once", "[kernels]") {
  Device device;
  const auto count = device.basics.kernel<uint32_t*>("count_work_items");
  const auto counter = device.upload(std::vector<uint32_t>{0});
  device.batch.dispatch(count, Grid{1000}.by(64), counter.data());
  device.batch.dispatch(count, Grid{33, 5, 7}.by(8, 4, 2), counter.data());
  device.run();
  CHECK(device.download(counter)[0] == 1000 + 33 * 5 * 7);
}

TEST_CASE("tally marks its dispatch once, whatever its workgroup", "[kernels]") {
  Device device;
  const auto tally = device.basics.kernel<uint32_t*, uint32_t>("tally");
  const auto tallies = device.upload(std::vector<uint32_t>{0, 0, 0, 7});
  for (const uint32_t dispatch : {0u, 2u, 2u})
    device.batch.dispatch(tally, Grid{64}, tallies.data(), dispatch);
  device.batch.dispatch(tally, Grid{256}.by(256), tallies.data(), 3u);
  device.run();
  CHECK(device.download(tallies) == std::vector<uint32_t>{1, 0, 2, 8});
}

TEST_CASE("reduce_lds sums through LDS for every workgroup size", "[kernels]") {
  Device device;
  const auto reduce = device.basics.kernel<uint32_t*, const uint32_t*, uint32_t>("reduce_lds");
  CHECK(reduce.info().group_segment_size == 1024);
  const auto words = random_words(5000, 9);
  const auto in = device.upload(words);
  for (const uint32_t workgroup : {1u, 2u, 63u, 64u, 65u, 128u, 200u, 256u}) {
    const auto total = device.upload(std::vector<uint32_t>{0});
    const uint32_t grid = (5000 + workgroup - 1) / workgroup * workgroup;
    device.batch.dispatch(reduce, Grid{grid}.by(workgroup), total.data(), in.data(), 5000u);
    device.run();
    CAPTURE(workgroup);
    CHECK(device.download(total)[0] == std::accumulate(words.begin(), words.end(), 0u));
  }
}

TEST_CASE("chain_increment applies once per launch", "[kernels]") {
  Device device;
  const auto chain = device.basics.kernel<uint32_t*, uint32_t>("chain_increment");
  const auto values = device.upload(std::vector<uint32_t>(100, 1));
  device.batch.dispatch(chain, Grid{100}.by(50), values.data(), 4u);
  device.batch.dispatch(chain, Grid{100}.by(50), values.data(), 5u);
  device.run();
  CHECK(device.download(values) == std::vector<uint32_t>(100, (1 * 3 + 4) * 3 + 5));
}

TEST_CASE("probe_arguments stores every argument as it was passed", "[kernels]") {
  Device device;
  const auto probe =
      device.probes.kernel<uint64_t*, int8_t, int16_t, int32_t, int64_t, uint8_t, float, double,
                           Float4, ProbeStruct, const uint32_t*>("probe_arguments");
  const DeviceBuffer<uint64_t> out{device.gpu, 13};
  const auto in = device.upload(std::vector<uint32_t>{424242});
  device.batch.dispatch(probe, Grid{64}, out.data(), int8_t{-5}, int16_t{-3000}, -123456789,
                        int64_t{-1234567890123}, uint8_t{200}, 1.5f, -2.25,
                        Float4{1.f, 2.f, 3.f, 4.f}, ProbeStruct{11, 22, 33}, in.data());
  device.run();
  const std::vector<uint64_t> expected = {static_cast<uint64_t>(int64_t{-5}),
                                          static_cast<uint64_t>(int64_t{-3000}),
                                          static_cast<uint64_t>(int64_t{-123456789}),
                                          static_cast<uint64_t>(int64_t{-1234567890123}),
                                          200,
                                          std::bit_cast<uint32_t>(1.5f),
                                          std::bit_cast<uint64_t>(-2.25),
                                          std::bit_cast<uint32_t>(1.f),
                                          std::bit_cast<uint32_t>(4.f),
                                          11,
                                          22,
                                          33,
                                          424242};
  CHECK(device.download(out) == expected);
}

TEST_CASE("probe_geometry stores the geometry of the dispatch, in both code object versions",
          "[kernels]") {
  Device device;
  const bool is_v5 = GENERATE(false, true);
  CAPTURE(is_v5);
  const Program probes_v4{device.gpu, test::kernels::probes_v4()};
  const auto probe = (is_v5 ? device.probes : probes_v4).kernel<uint32_t*>("probe_geometry");
  CHECK(probe.info().arguments.size_bytes() == (is_v5 ? 264 : 64));
  const DeviceBuffer<uint32_t> out{device.gpu, 16};
  struct Case {
    Grid grid;
    std::vector<uint32_t> expected;
  };
  // global size, local size, groups, offset, enqueued local size, dimensions
  const Case cases[] = {
      {Grid{128}.by(64), {128, 1, 1, 64, 1, 1, 2, 1, 1, 0, 0, 0, 64, 1, 1, 1}},
      {Grid{30, 20}.by(10, 4), {30, 20, 1, 10, 4, 1, 3, 5, 1, 0, 0, 0, 10, 4, 1, 2}},
      {Grid{9, 5, 3}.by(4, 4, 2), {9, 5, 3, 4, 4, 2, 3, 2, 2, 0, 0, 0, 4, 4, 2, 3}},
  };
  for (const Case& c : cases) {
    device.batch.dispatch(probe, c.grid, out.data());
    device.run();
    CHECK(device.download(out) == c.expected);
  }
}

TEST_CASE("spin stores its flag last, and wait_for_gate ends by gate or by count", "[kernels]") {
  Device device;
  const auto spin = device.probes.kernel<uint32_t*, uint32_t, uint32_t>("spin");
  const auto gate = device.probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  const PinnedBuffer<uint32_t> out{device.gpu, 4};
  out[0] = out[1] = out[2] = out[3] = 0;
  device.batch.dispatch(spin, Grid{64}, out.data(), 3u, 99u);
  device.batch.dispatch(gate, Grid{1}, out.data() + 2, 10u, out.data() + 3);
  device.run();
  uint32_t x = 1;
  for (int i = 0; i < 3; ++i) x ^= x << 13, x ^= x >> 17, x ^= x << 5;
  CHECK(out[0] == 99);
  CHECK(out[1] == x);
  CHECK(out[3] == 2);  // gave up
  out[2] = 1;
  device.batch.dispatch(gate, Grid{1}, out.data() + 2, 1000000u, out.data() + 3);
  device.run();
  CHECK(out[3] == 1);
}

TEST_CASE("wait_for_gate reads a store of another queue's kernel", "[kernels]") {
  Device device;
  const auto gate = device.probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  const auto fill = device.basics.kernel<uint32_t*, uint32_t>("fill");
  const PinnedBuffer<uint32_t> word{device.gpu, 64};
  word[0] = word[32] = 0;
  Queue second{device.gpu};
  BatchSubmitter other{second};
  device.batch.dispatch(gate, Grid{1}, word.data(), UINT32_MAX, word.data() + 32);
  const Completion waiting = device.batch.submit();
  other.dispatch(fill, Grid{1}, word.data(), 1u);
  other.submit().wait();
  waiting.wait();
  CHECK(word[32] == 1);
}

TEST_CASE(
    "meet: kernels of two queues find each other, those of one queue with barrier bits do not",
    "[kernels]") {
  Device device;
  const auto meet =
      device.probes.kernel<uint32_t*, uint32_t*, uint32_t, uint32_t, uint32_t*>("meet");
  const DeviceBuffer<uint32_t> flags = device.upload(std::vector<uint32_t>(64, 0));
  const PinnedBuffer<uint32_t> met{device.gpu, 2};
  uint32_t* const one = flags.data();
  uint32_t* const two = flags.data() + 32;
  Queue second{device.gpu};
  BatchSubmitter other{second};
  for (const uint32_t round : {1u, 2u, 3u}) {
    met[0] = met[1] = 0;
    device.batch.dispatch(meet, Grid{1}, one, two, round, UINT32_MAX, met.data());
    const Completion first = device.batch.submit();
    other.dispatch(meet, Grid{1}, two, one, round, UINT32_MAX, met.data() + 1);
    other.submit().wait();
    first.wait();
    CHECK(met[0] == 1);
    CHECK(met[1] == 1);
  }
  // The second kernel finds the flag that the first left; the first finds none.
  device.batch.dispatch(meet, Grid{1}, one, two, 4u, 100u, met.data());
  device.batch.dispatch(meet, Grid{1}, two, one, 4u, 100u, met.data() + 1);
  device.run();
  CHECK(met[0] == 2);
  CHECK(met[1] == 1);
}

TEST_CASE("combine reads three inputs, one of them from the other end", "[kernels]") {
  Device device;
  const auto combine =
      device.probes.kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t>("combine");
  constexpr uint32_t count = 300;
  std::vector<uint32_t> out(count), a(count), b(count);
  for (uint32_t i = 0; i < count; ++i) out[i] = i, a[i] = 0x90000000u + i * i, b[i] = ~i;
  const DeviceBuffer<uint32_t> on_device = device.upload(out), of_a = device.upload(a),
                               of_b = device.upload(b);
  device.batch.dispatch(combine, Grid{count}.by(64), on_device.data(), of_a.data(), of_b.data(),
                        11u);
  device.run();
  for (uint32_t i = 0; i < count; ++i) out[i] = out[i] * 7 + a[count - 1 - i] * 3 + b[i] * 5 + 11;
  CHECK(device.download(on_device) == out);
}

TEST_CASE("each program lists its kernels in order of their definition", "[kernels]") {
  Device device;
  CHECK(device.basics.kernel_names() ==
        std::vector<std::string>{"empty", "fill", "iota", "copy", "vector_add", "saxpy",
                                 "chain_increment", "count_work_items", "reduce_lds", "tally"});
  CHECK(device.probes.kernel_names() ==
        std::vector<std::string>{"spin", "wait_for_gate", "meet", "combine", "probe_arguments",
                                 "probe_geometry", "probe_private"});
}
