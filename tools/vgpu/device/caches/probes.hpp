// Coherent writes of peers to the memory of a GPU: the probes that its L2s have yet to answer.
// Peers announce them; the GPU's Caches answer them before each access.
//
// Thread safety: any thread. A thread that knows of an announced write finds it pending.
// Lifetime: that of the owner's Caches, and beyond every Mapping that refers to it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

namespace uptempo::vgpu {

class Probes {
 public:
  // Call it when the bytes are in memory.
  void announce(std::span<std::byte> written) noexcept {
    const std::lock_guard lock(mutex_);
    // The lanes of a wave write one after the other.
    if (count_ != 0 && end_of(written_[count_ - 1]) == written.data()) {
      written_[count_ - 1] = {written_[count_ - 1].data(),
                              written_[count_ - 1].size() + written.size()};
    } else if (count_ < written_.size()) {
      written_[count_++] = written;
    } else {
      overflowed_ = true;
    }
    // release: the bytes are in memory.
    pending_.store(true, std::memory_order_release);
  }

  bool pending() const noexcept { return pending_.load(std::memory_order_acquire); }

  // Calls `answer(bytes)` for each announced write, or once with an empty range for "any bytes" if
  // there were too many to keep. `answer` must not announce.
  template <typename Answer>
  void take(Answer answer) noexcept {
    const std::lock_guard lock(mutex_);
    pending_.store(false, std::memory_order_relaxed);
    const size_t count = std::exchange(count_, 0);
    if (std::exchange(overflowed_, false)) return answer(std::span<std::byte>());
    for (size_t i = 0; i < count; ++i) answer(written_[i]);
  }

 private:
  static std::byte* end_of(std::span<std::byte> bytes) noexcept {
    return bytes.data() + bytes.size();
  }

  std::mutex mutex_;
  std::array<std::span<std::byte>, 4096> written_;
  size_t count_ = 0;
  bool overflowed_ = false;
  std::atomic<bool> pending_{false};
};

}  // namespace uptempo::vgpu
