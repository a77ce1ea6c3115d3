#include "device/ignored_atomics.hpp"

#include <cstdio>
#include <new>

#include "device/caches/caching.hpp"
#include "device/demangled.hpp"
#include "device/json_text.hpp"

namespace uptempo::vgpu {
namespace {

constexpr std::string_view kReason =
    "only L2 executes floating-point atomics, and it does not hold such memory for writing: memory "
    "does not change, and the lane gets 0";
constexpr std::string_view kRemedy =
    "use coarse-grained memory, or a compare-and-swap loop, which compilers emit without "
    "-munsafe-fp-atomics and unsafeAtomicAdd";
constexpr std::string_view kRule = "ROCm, \"Hardware atomics operation support\", MI200 and MI100";

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string to_json(const IgnoredAtomic& atomic, std::string_view target) {
  const auto number = [](auto value) { return std::to_string(value); };
  return R"({"class":"ignored-atomic","kernel":)" + json_quoted(atomic.kernel) +
         R"(,"instruction":)" + json_quoted(atomic.instruction) + R"(,"offset":)" +
         number(atomic.offset) + R"(,"workgroup":[)" + number(atomic.workgroup[0]) + "," +
         number(atomic.workgroup[1]) + "," + number(atomic.workgroup[2]) + R"(],"wave":)" +
         number(atomic.wave) + R"(,"lanes":)" + number(atomic.lanes) + R"(,"address":)" +
         number(atomic.address) + R"(,"memory":)" + json_quoted(memory_kind_name(atomic.kind)) +
         R"(,"reason":)" + json_quoted(kReason) + R"(,"remedy":)" + json_quoted(kRemedy) +
         R"(,"rule":)" + json_quoted(kRule) + R"(,"device":)" + json_quoted(target) + "}";
}

std::string to_sentence(const IgnoredAtomic& atomic, std::string_view target) {
  const bool before = atomic.offset < 0;
  const auto distance = static_cast<uint64_t>(before ? -atomic.offset : atomic.offset);
  return "ignored-atomic: " + shown_kernel(std::string(atomic.kernel)) + (before ? " - " : " + ") +
         hex(distance) + " (workgroup " + std::to_string(atomic.workgroup[0]) + "," +
         std::to_string(atomic.workgroup[1]) + "," + std::to_string(atomic.workgroup[2]) +
         ", wave " + std::to_string(atomic.wave) + "): " + std::string(atomic.instruction) +
         " of " + std::to_string(atomic.lanes) + " lanes at address " + hex(atomic.address) +
         ", in " + std::string(memory_kind_name(atomic.kind)) + ": on " + std::string(target) +
         " " + std::string(kReason) + "; " + std::string(kRemedy) + " (" + std::string(kRule) + ")";
}

void IgnoredAtomics::add(const IgnoredAtomic& atomic) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    uint64_t& lanes = lanes_by_place_[{std::string(atomic.kernel), atomic.offset, atomic.kind}];
    const bool first = lanes == 0;
    lanes += atomic.lanes;
    if (first) report_(atomic);
  } catch (const std::bad_alloc&) {
    // Not reported for lack of memory.
  }
}

IgnoredAtomics::Counts IgnoredAtomics::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts;
  for (const auto& [place, lanes] : lanes_by_place_) counts.lanes += lanes;
  counts.places = lanes_by_place_.size();
  return counts;
}

}  // namespace uptempo::vgpu
