// Copies and fills between two GPUs: each end at either, each path, and their refusals.
#include <numeric>
#include <string>

#include "test/engine/peers.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

using Bytes = std::vector<uint8_t>;

// ROCr divides blocks of 2 MiB among smaller allocations, which share the access of their block
// (MemoryRegion::AllowAccess). Memory with access of its own is larger.
constexpr size_t kOwnBlockBytes = (size_t{4} << 20) + 100;

Bytes pattern(size_t bytes, uint8_t first) {
  Bytes result(bytes);
  for (size_t i = 0; i < bytes; ++i) result[i] = static_cast<uint8_t>(first + i * 7 + i / 251);
  return result;
}

// Reads and writes memory of any GPU from the host, without the code under test: by a copy of HSA
// that runs on the GPU that owns the memory.
struct Host : OnPeers {
  void write(const DeviceBuffer<uint8_t>& to, const Bytes& bytes) {
    check(hsa_memory_copy(to.data(), bytes.data(), bytes.size()), "hsa_memory_copy");
  }
  Bytes read(const DeviceBuffer<uint8_t>& from) {
    Bytes bytes(from.size());
    check(hsa_memory_copy(bytes.data(), from.data(), bytes.size()), "hsa_memory_copy");
    return bytes;
  }
};

std::array<Agent, 2> with_first(const std::array<Agent, 2>& gpus, size_t first) {
  return {gpus[first], gpus[1 - first]};
}

}  // namespace

TEST_CASE_METHOD(Host, "copies between two GPUs have the source's bytes, with each end at either",
                 "[peers][copy]") {
  for (const size_t bytes : {size_t{4}, size_t{4096}, size_t{300'001}}) {
    for (const CopyPath path : {CopyPath::engine, CopyPath::kernel, CopyPath::automatic}) {
      for (size_t runs = 0; runs < 2; ++runs) {
        Streams streams(gpus[runs]);
        Stream stream(streams);
        for (size_t to_gpu = 0; to_gpu < 2; ++to_gpu) {
          for (size_t from_gpu = 0; from_gpu < 2; ++from_gpu) {
            CAPTURE(bytes, name_of(path), runs, to_gpu, from_gpu);
            const DeviceBuffer<uint8_t> from{with_first(gpus, from_gpu), bytes};
            const DeviceBuffer<uint8_t> to{with_first(gpus, to_gpu), bytes};
            const Bytes expected = pattern(bytes, static_cast<uint8_t>(4 * runs + to_gpu));
            write(from, expected);
            stream.copy(to, from, path);
            stream.synchronize();
            REQUIRE(read(to) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE_METHOD(Host, "an engine copies where only the stream's GPU may access both ends",
                 "[peers][copy]") {
  constexpr size_t kBytes = kOwnBlockBytes;
  Streams streams(gpus[0]);
  Stream stream(streams);
  // The source's GPU, on which ROCr would run the copy, may not access the target.
  const DeviceBuffer<uint8_t> own{gpus[0], kBytes}, back{gpus[0], kBytes};
  const DeviceBuffer<uint8_t> remote{with_first(gpus, 1), kBytes};
  const PinnedBuffer<uint8_t> pinned{gpus[0], kBytes};
  const Bytes expected = pattern(kBytes, 3);
  std::ranges::copy(expected, pinned.begin());
  stream.copy(remote, pinned, CopyPath::engine);
  stream.copy(own, remote, CopyPath::engine);
  stream.copy(remote, own, CopyPath::engine);
  stream.copy(back, remote, CopyPath::engine);
  stream.synchronize();  // the first copy reads it
  std::ranges::fill(pinned, uint8_t{0});
  stream.copy(pinned, remote, CopyPath::engine);
  stream.synchronize();
  CHECK((read(back) == expected));  // without 4 MiB of expansion
  CHECK(std::ranges::equal(pinned, expected));
}

TEST_CASE_METHOD(Host, "copies between a peer and pageable memory are staged or pinned",
                 "[peers][copy]") {
  for (size_t runs = 0; runs < 2; ++runs) {
    for (const size_t stage_bytes : {CopyLimits{}.stage_bytes, size_t{0}}) {
      Streams streams(gpus[runs], {.copies = {.stage_bytes = stage_bytes}});
      Stream stream(streams);
      for (const CopyPath path : {CopyPath::engine, CopyPath::kernel}) {
        CAPTURE(runs, name_of(path), stage_bytes);
        const Bytes expected = pattern(300'001, static_cast<uint8_t>(runs));
        Bytes found(expected.size());
        const DeviceBuffer<uint8_t> remote{with_first(gpus, 1 - runs), expected.size()};
        stream.copy(remote, std::span(expected), path);
        stream.copy(std::span(found), remote, path);
        stream.synchronize();
        CHECK(found == expected);
      }
    }
  }
}

TEST_CASE_METHOD(Host, "rows are copied and filled in a peer's memory", "[peers][copy]") {
  constexpr size_t kPitch = 48, kRows = 20;
  Streams streams(gpus[0]);
  Stream stream(streams);
  for (size_t to_gpu = 0; to_gpu < 2; ++to_gpu) {
    const DeviceBuffer<uint8_t> to{with_first(gpus, to_gpu), kPitch * kRows};
    const DeviceBuffer<uint8_t> from{with_first(gpus, 1 - to_gpu), kPitch * kRows};
    const Bytes source = pattern(kPitch * kRows, 9);
    write(from, source);
    Bytes expected(kPitch * kRows, 0x11);
    stream.fill(to, uint8_t{0x11});
    stream.copy_2d(to, from,
                   {.width_bytes = 20, .height = kRows, .to_pitch = kPitch, .from_pitch = 40});
    stream.fill_2d(to, {.width_bytes = 4, .height = kRows, .to_pitch = kPitch}, uint16_t{0x2233});
    stream.synchronize();
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t i = 0; i < 20; ++i) expected[row * kPitch + i] = source[row * 40 + i];
      for (size_t i = 0; i < 4; ++i) expected[row * kPitch + i] = i % 2 == 0 ? 0x33 : 0x22;
    }
    CHECK(read(to) == expected);
  }
}

TEST_CASE_METHOD(Host,
                 "memory that the stream's GPU may not access is refused, and both GPUs named",
                 "[peers][copy][refused]") {
  constexpr size_t kBytes = kOwnBlockBytes;
  Streams streams(gpus[0]);
  Stream stream(streams);
  const DeviceBuffer<uint8_t> own{gpus[0], kBytes}, remote{gpus[1], kBytes};
  const PinnedBuffer<uint8_t> pinned{gpus[0], kBytes}, of_other{gpus[1], kBytes};
  Bytes pageable(kBytes);
  const auto refused = [&](auto&& f) {
    const std::string error = error_of<Error>(f);
    CAPTURE(error);
    CHECK(contains(error, name(0) + " may not access the memory of " + name(1)));
    CHECK(contains(error, "allow_access"));
  };
  for (const CopyPath path : {CopyPath::automatic, CopyPath::engine, CopyPath::kernel}) {
    refused([&] { stream.copy(own, remote, path); });
    refused([&] { stream.copy(remote, own, path); });
    refused([&] { stream.copy(remote, pinned, path); });
    refused([&] { stream.copy(std::span(pageable), remote, path); });
    refused([&] { stream.copy(own, of_other, path); });
  }
  refused([&] { stream.fill(remote, 1); });
  refused([&] { stream.copy(CopyTarget::peer(gpus[1], remote.data(), kBytes), own); });
  // Nothing was started, and access may be granted later.
  CHECK_FALSE(has_access(gpus[0], remote.data()));
  allow_access(gpus[1], remote.data(), gpus);
  CHECK(has_access(gpus[0], remote.data()));
  CHECK(has_access(gpus[1], remote.data()));
  allow_access(gpus[1], of_other.data(), gpus);
  const Bytes expected = pattern(kBytes, 1);
  std::ranges::copy(expected, of_other.begin());
  stream.copy(own, of_other, CopyPath::engine);
  stream.copy(remote, own, CopyPath::engine);
  stream.synchronize();
  CHECK(read(remote) == expected);
}

TEST_CASE_METHOD(OnPeers, "kernels of both GPUs use pinned memory that was made for both",
                 "[peers][memory]") {
  const PinnedBuffer<uint32_t> words{gpus, 1024};
  const DeviceBuffer<uint32_t> of_second{std::array{gpus[1], gpus[0]}, 64};
  CHECK(of_second.gpu().handle == gpus[1].handle().handle);
  for (size_t which = 0; which < 2; ++which) {
    CHECK(has_access(gpus[which], words.data()));
    CHECK(has_access(gpus[which], of_second.data()));
    Queue queue{gpus[which]};
    BatchSubmitter batch{queue};
    batch.dispatch(programs[which].iota, Grid{512}.by(64), words.data() + 512 * which,
                   static_cast<uint32_t>(1000 * which), 3u);
    batch.submit().wait();
  }
  for (uint32_t i = 0; i < 1024; ++i) REQUIRE(words[i] == 1000 * (i / 512) + 3 * (i % 512));
}

TEST_CASE_METHOD(OnPeers, "the host copies pinned memory that was made for another GPU",
                 "[peers][copy]") {
  const PinnedBuffer<uint32_t> own{gpus[0], 64}, of_peer{gpus[1], 64};
  Streams streams(gpus[0]);
  Stream stream(streams);
  std::iota(own.begin(), own.end(), 5u);
  CHECK(stream.copy(of_peer, own) == CopyPath::host);
  CHECK(std::ranges::equal(of_peer.span(), own.span()));
  CHECK_THROWS_AS(stream.copy(of_peer, own, CopyPath::kernel), Error);
}

TEST_CASE_METHOD(OnPeers,
                 "access of the host and of a peer to one buffer do not exclude each other",
                 "[peers][memory]") {
  const DeviceBuffer<uint32_t> words{gpus, 64};
  allow_host_access(gpus[0], words.data());
  CHECK(has_access(gpus[0], words.data()));
  CHECK(has_access(gpus[1], words.data()));
  words.data()[3] = 77;
  CHECK(words.data()[3] == 77);
}

TEST_CASE_METHOD(OnPeers, "access to memory is granted in its owner's name", "[peers][memory]") {
  const DeviceBuffer<uint32_t> words{gpus[1], kOwnBlockBytes / 4};
  const std::string error =
      error_of<Error>([&] { allow_access(gpus[0], words.data(), std::array{gpus[0]}); });
  CHECK(error.find("is memory of " + name(1)) != std::string::npos);
  CHECK_FALSE(has_access(gpus[0], words.data()));
}

TEST_CASE_METHOD(OnPeers, "memory for no GPU is refused", "[peers][memory]") {
  const std::string error =
      error_of<Error>([&] { PinnedBuffer<uint32_t>(std::span<const Agent>(), 4); });
  CHECK(contains(error, "an empty list of GPUs"));
}
