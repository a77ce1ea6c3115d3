// The shape of a bitonic sort of 2^n keys: n stages; stage s (from 0) has s + 1 passes; each pass
// is one kernel with one work-item per pair of keys. 32,768 keys need 120 kernels of 16,384
// work-items.
#pragma once

#include <cstdint>
#include <vector>

namespace uptempo::sort {

inline constexpr uint32_t kMinLength = 2;
inline constexpr uint32_t kMaxLength = 1u << 24;

struct Pass {
  uint32_t stage;
  uint32_t pass;
};

class Network {
 public:
  // Throws std::invalid_argument unless `length` is a power of two from 2 to 2^24.
  explicit Network(int64_t length);

  uint32_t length() const noexcept { return length_; }
  uint32_t work_items() const noexcept { return length_ / 2; }
  uint32_t workgroup() const noexcept;  // min(256, length/2)
  const std::vector<Pass>& passes() const noexcept { return passes_; }

 private:
  uint32_t length_;
  std::vector<Pass> passes_;
};

}  // namespace uptempo::sort
