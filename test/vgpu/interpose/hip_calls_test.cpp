// The functions of HIP that note their stream: where HIP's header has it, and what they pass on.
// HIP's library is not loaded: the functions under test call the double of this file.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <hip/hip_runtime_api.h>
#pragma GCC diagnostic pop

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "device/host/publisher.hpp"
#include "interpose/hip_calls.hpp"
#include "interpose/hip_library.hpp"
#include "test/support/catch.hpp"

// hip_ext.h needs hipcc. The name is mangled as HIP's library exports it, or does not link.
hipError_t hipExtModuleLaunchKernel(hipFunction_t kernel, uint32_t x, uint32_t y, uint32_t z,
                                    uint32_t local_x, uint32_t local_y, uint32_t local_z,
                                    size_t lds_bytes, hipStream_t stream, void** parameters,
                                    void** extra, hipEvent_t start, hipEvent_t stop,
                                    uint32_t flags);

namespace {

using namespace uptempo::vgpu;
using hip::kDefault;

// The word of the argument list (System V ABI for x86-64, 3.2.3) where the parameter of type
// hipStream_t is. The parameters of these functions are of class INTEGER, or MEMORY if they are
// larger than 16 bytes.
template <typename... Parameters>
constexpr size_t word_of_stream(hipError_t (*)(Parameters...)) {
  size_t registers = 0, stack = 0, found = hip::kDefault;
  const auto add = [&](size_t bytes, bool is_stream) {
    const size_t words = (bytes + 7) / 8;
    const bool in_registers = words <= 2 && registers + words <= hip::kRegisters;
    if (is_stream) found = in_registers ? registers : hip::kRegisters + stack;
    (in_registers ? registers : stack) += words;
  };
  (add(sizeof(Parameters), std::is_same_v<Parameters, hipStream_t>), ...);
  return found;
}

namespace in_c {
// The header has overloads of these for C++.
constexpr hipError_t (*hipMemcpyToSymbol)(const void*, const void*, size_t, size_t,
                                          hipMemcpyKind) = &::hipMemcpyToSymbol;
constexpr hipError_t (*hipMemcpyFromSymbol)(void*, const void*, size_t, size_t,
                                            hipMemcpyKind) = &::hipMemcpyFromSymbol;
constexpr hipError_t (*hipMemcpyToSymbolAsync)(const void*, const void*, size_t, size_t,
                                               hipMemcpyKind,
                                               hipStream_t) = &::hipMemcpyToSymbolAsync;
constexpr hipError_t (*hipMemcpyFromSymbolAsync)(void*, const void*, size_t, size_t, hipMemcpyKind,
                                                 hipStream_t) = &::hipMemcpyFromSymbolAsync;
constexpr hipError_t (*hipLaunchCooperativeKernel)(const void*, dim3, dim3, void**, unsigned,
                                                   hipStream_t) = &::hipLaunchCooperativeKernel;
#define UPTEMPO_SAME_WORD(name, word) static_assert(word_of_stream(name) == (word), #name);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
UPTEMPO_HIP_CALLS(UPTEMPO_SAME_WORD)
UPTEMPO_HIP_CALLS_PER_THREAD(UPTEMPO_SAME_WORD)
#if HIP_VERSION >= 50700000
UPTEMPO_LATER_HIP_CALLS(UPTEMPO_SAME_WORD)
UPTEMPO_LATER_HIP_CALLS_PER_THREAD(UPTEMPO_SAME_WORD)
#endif
UPTEMPO_SAME_WORD(hipExtModuleLaunchKernel, 8)
#pragma GCC diagnostic pop
}  // namespace in_c

struct Received {
  std::string function;
  std::array<uint64_t, hip::kMostWords> words{};
  HipStream stream = HipStream::unknown;
};
Received received;
std::string found_last;

int receive(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
            uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m, uint64_t n) {
  received = {found_last, {a, b, c, d, e, f, g, h, i, j, k, l, m, n}, calling_stream()};
  return 17;
}
// HIP calls itself.
int receive_in_another_call(uint64_t to, uint64_t from, uint64_t bytes, uint64_t kind) {
  const auto kind_given = static_cast<hipMemcpyKind>(kind);
  return hipMemcpyAsync(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                        kind_given, reinterpret_cast<hipStream_t>(0x5000));
}

template <typename T>
T handle(uint64_t value) {
  return reinterpret_cast<T>(value);
}
const auto kStream = handle<hipStream_t>(0x55d0c0);
constexpr HipStream kNoted{0x55d0c0};

}  // namespace

namespace uptempo::vgpu::hip {
void* of_hip(const char* name) noexcept {
  found_last = name;
  if (found_last == "hipMemPrefetchAsync") return nullptr;
  if (found_last == "hipMemcpy") return reinterpret_cast<void*>(&receive_in_another_call);
  return reinterpret_cast<void*>(&receive);
}
}  // namespace uptempo::vgpu::hip

TEST_CASE("a launch passes all its arguments, and its stream is known during the call") {
  void* arguments[] = {nullptr};
  CHECK(hipLaunchKernel(handle<void*>(1), dim3(2, 3, 4), dim3(5, 6, 7), arguments, 8, kStream) ==
        17);
  CHECK(received.stream == kNoted);
  CHECK(calling_stream() == HipStream::unknown);
  const auto& words = received.words;
  CHECK(words[0] == 1);
  CHECK(words[1] == (uint64_t{3} << 32 | 2));
  CHECK(static_cast<uint32_t>(words[2]) == 4);
  CHECK(words[3] == (uint64_t{6} << 32 | 5));
  CHECK(static_cast<uint32_t>(words[4]) == 7);
  CHECK(words[5] == reinterpret_cast<uint64_t>(arguments));
  CHECK(words[6] == 8);
  CHECK(words[7] == reinterpret_cast<uint64_t>(kStream));
}

TEST_CASE("structures on the stack, and the longest list of arguments") {
  CHECK(hipMemset3DAsync({handle<void*>(1), 2, 3, 4}, 5, {6, 7, 8}, kStream) == 17);
  CHECK(received.stream == kNoted);
  CHECK(static_cast<uint32_t>(received.words[0]) == 5);
  for (size_t i = 0; i < 4; ++i) CHECK(received.words[6 + i] == i + 1);
  for (size_t i = 0; i < 3; ++i) CHECK(received.words[10 + i] == i + 6);

  CHECK(hipExtModuleLaunchKernel(handle<hipFunction_t>(1), 2, 3, 4, 5, 6, 7, 8, kStream,
                                 handle<void**>(10), handle<void**>(11), handle<hipEvent_t>(12),
                                 handle<hipEvent_t>(13), 14) == 17);
  CHECK(received.stream == kNoted);
  for (size_t i = 0; i < hip::kMostWords; ++i) {
    CAPTURE(i);
    if (i != 8) CHECK(static_cast<uint32_t>(received.words[i]) == i + 1);
  }
}

TEST_CASE("a stream of 0 is the null stream, or the thread's in a program that asks for it") {
  const auto stream_of = [](hipError_t status) {
    CHECK(status == 17);
    return received.stream;
  };
  void* const memory = handle<void*>(1);
  CHECK(stream_of(hipMemsetAsync(memory, 0, 1, nullptr)) == HipStream::null);
  CHECK(stream_of(hipMemset(memory, 0, 1)) == HipStream::null);
  CHECK(stream_of(hipMemcpyAsync(memory, memory, 1, hipMemcpyDefault, hipStreamPerThread)) ==
        HipStream::per_thread);
  CHECK(stream_of(hipMemset_spt(memory, 0, 1)) == HipStream::per_thread);
  CHECK(stream_of(hipMemcpyAsync_spt(memory, memory, 1, hipMemcpyDefault, nullptr)) ==
        HipStream::per_thread);
  CHECK(stream_of(hipMemcpyAsync_spt(memory, memory, 1, hipMemcpyDefault, kStream)) == kNoted);
}

TEST_CASE("the program's call counts where HIP calls itself") {
  CHECK(hipMemcpy(handle<void*>(1), handle<void*>(2), 3, hipMemcpyDefault) == 17);
  CHECK(received.words[4] == 0x5000);
  CHECK(received.stream == HipStream::null);
  CHECK(calling_stream() == HipStream::unknown);
}

TEST_CASE("a function that HIP lacks is an error") {
  CHECK(hipMemPrefetchAsync(handle<void*>(1), 2, 3, kStream) == hipErrorNotInitialized);
  CHECK(calling_stream() == HipStream::unknown);
}
