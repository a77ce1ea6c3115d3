#include <uptempo/hip/words.hpp>

#include <fmt/format.h>
#include <hsa/amd_hsa_signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/hip/current_device.hpp>
#include <uptempo/hip/per_device.hpp>
#include <uptempo/hip/status.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {
namespace {

using detail::CompletedSignal;

// Uses that each take() looks at. More than one, so that words are found faster than they are used.
constexpr size_t kLooks = 4;

}  // namespace

hsa_signal_t Word::signal() const noexcept {
  return {reinterpret_cast<uint64_t>(address) - offsetof(amd_signal_t, value)};
}

Words& Words::of(int device) {
  static constinit PerDevice<Words> all;
  return all.of(device, [](int number) { return std::unique_ptr<Words>(new Words(number)); });
}

Words::Words(int device) : device_(device) {
  int can = 0;
  check(hipDeviceGetAttribute(&can, hipDeviceAttributeCanUseStreamWaitValue, device),
        "hipDeviceGetAttribute", "hipDeviceAttributeCanUseStreamWaitValue");
  if (can == 0) {
    throw Error({.code = ErrorCode::unavailable,
                 .status = HSA_STATUS_ERROR,
                 .call = "hip::after",
                 .asked = fmt::format("stream memory operations of HIP device {}", device),
                 .found = "HIP has none for it (hipDeviceAttributeCanUseStreamWaitValue is 0)",
                 .remedy = "wait on the host, with hipStreamSynchronize() and Completion::wait()"});
  }
  if (const char* const direct = std::getenv("AMD_DIRECT_DISPATCH");
      direct != nullptr && std::string_view(direct) == "0") {
    throw Error({.code = ErrorCode::unavailable,
                 .status = HSA_STATUS_ERROR,
                 .call = "hip::after",
                 .asked = "a wait on the device between a HIP stream and a queue",
                 .found = "AMD_DIRECT_DISPATCH=0: HIP submits later, in an order that can deadlock",
                 .remedy = "unset AMD_DIRECT_DISPATCH, or wait on the host"});
  }
  free_.reserve(kMost);
  uses_.reserve(kMost);
}

Word Words::take(int64_t value) {
  const std::lock_guard lock(mutex_);
  std::optional<Word> word;
  if (!free_.empty()) {
    word = free_.back();
    free_.pop_back();
  }
  if (!word) word = take_over(kLooks);
  if (!word && size_ == kMost) word = take_over(uses_.size());
  if (!word) word = allocate();
  // The packets and commands that use the word are published after this store.
  aql::rearm(word->signal(), value);
  return *word;
}

Word Words::allocate() {
  if (size_ == kMost) {
    throw Error({.code = ErrorCode::limit,
                 .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                 .call = "hip::after",
                 .asked = "a word for one more wait between a HIP stream and a queue",
                 .found = fmt::format("{} waits are unfinished", kMost),
                 .remedy = "synchronize with the device before enqueuing more waits"});
  }
  const CurrentDevice current(device_);
  void* memory = nullptr;
  check(hipExtMallocWithFlags(&memory, sizeof(int64_t), hipMallocSignalMemory),
        "hipExtMallocWithFlags", "8 bytes of signal memory");
  ++size_;
  return {static_cast<int64_t*>(memory)};
}

void Words::give_back(Word word) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(word);
}

void Words::expect_read(Word word, const Completion& packet) noexcept {
  const std::lock_guard lock(mutex_);
  uses_.push_back({.word = word, .over = 0, .packet = packet});
}

void Words::expect_ack(Word word, const Completion& packet,
                       CompletedSignal::Place&& place) noexcept {
  const CompletedSignal completed(word.signal(), packet, std::move(place));
  const std::lock_guard lock(mutex_);
  uses_.push_back({.word = word, .over = kFree, .packet = packet, .completed = completed});
}

void Words::complete_after(Word word, const Completion& awaited) {
  Request* request = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_requests_.empty()) {
      free_requests_.reserve(requests_.size() + 1);
      requests_.emplace_back();
      free_requests_.push_back(&requests_.back());
    }
    request = free_requests_.back();
    free_requests_.pop_back();
  }
  request->on_finished = &on_finished;
  request->words = this;
  request->word = word;
  try {
    detail::CompletedSignal::await(awaited, *request);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    free_requests_.push_back(request);
    free_.push_back(word);
    throw;
  }
  const std::lock_guard lock(mutex_);
  uses_.push_back({.word = word, .over = kFree});
}

void Words::on_finished(detail::Awaited& awaited) noexcept {
  Request& request = static_cast<Request&>(awaited);
  hsa_signal_store_screlease(request.word.signal(), -1);
  Words& words = *request.words;
  const std::lock_guard lock(words.mutex_);
  words.free_requests_.push_back(&request);
}

// Requires mutex_.
std::optional<Word> Words::take_over(size_t looks) noexcept {
  for (size_t i = 0; i < std::min(looks, uses_.size()); ++i) {
    if (next_ >= uses_.size()) next_ = 0;
    Use& use = uses_[next_];
    const bool is_written = aql::load_acquire(use.word.signal()) == use.over;
    const auto fate = !is_written     ? CompletedSignal::Fate::unfinished
                      : use.completed ? use.completed->fate()
                                      : CompletedSignal::fate_of(use.packet);
    if (fate == CompletedSignal::Fate::unfinished) {
      ++next_;
      continue;
    }
    const Word word = use.word;
    const bool may_change = use.completed && fate == CompletedSignal::Fate::lost;
    use = uses_.back();
    uses_.pop_back();
    if (!may_change) return word;
  }
  return {};
}

size_t Words::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

}  // namespace uptempo::hip
