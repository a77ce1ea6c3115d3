// The memory that the race detector may take, and values that count towards it.
//
// Budget: of the process. Meter: the part that one dispatch has taken. Everything whose size grows
// with what a dispatch does is counted: shadows by Meter::take(), vectors and maps by their
// MeterAllocator, shared immutable values by make_counted(). Beyond the budget the latter two throw
// std::bad_alloc.
//
// Thread safety: Budget and Meter are thread-safe. Ref is thread-compatible; copies may refer to
// one value from several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace uptempo::vgpu::races {

// The memory that the detector may take, of all dispatches that run.
class Budget {
 public:
  static constexpr uint64_t kDefaultBytes = uint64_t{1} << 30;
  explicit Budget(uint64_t bytes = kDefaultBytes) : left_(bytes) {}

  bool take(uint64_t bytes) noexcept {
    uint64_t left = left_.load(std::memory_order_relaxed);  // a count that orders nothing
    while (left >= bytes)
      if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  void give_back(uint64_t bytes) noexcept { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> left_;
};

// Outlives what it counts.
class Meter {
 public:
  explicit Meter(Budget& budget) : budget_(budget) {}
  ~Meter() { budget_.give_back(taken_.load(std::memory_order_relaxed)); }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  bool take(uint64_t bytes) noexcept {
    uint64_t spare = spare_.load(std::memory_order_relaxed);  // a count that orders nothing
    while (spare >= bytes)
      if (spare_.compare_exchange_weak(spare, spare - bytes, std::memory_order_relaxed))
        return true;
    // The workers of all dispatches share the budget, so small values do not touch it each time.
    const uint64_t chunk = bytes < kChunkBytes && budget_.take(kChunkBytes) ? kChunkBytes
                           : budget_.take(bytes)                            ? bytes
                                                                            : 0;
    if (chunk == 0) return false;
    taken_.fetch_add(chunk, std::memory_order_relaxed);
    give_back(chunk - bytes);
    return true;
  }
  void give_back(uint64_t bytes) noexcept { spare_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kChunkBytes = uint64_t{1} << 16;

  Budget& budget_;
  std::atomic<uint64_t> taken_{0}, spare_{0};
};

inline constexpr size_t kHeapBytes = 16;  // per allocation, for the heap's own use

template <class T>
class MeterAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  explicit MeterAllocator(Meter& meter) noexcept : meter_(&meter) {}
  template <class Other>
  explicit(false) MeterAllocator(const MeterAllocator<Other>& other) noexcept
      : meter_(other.meter_) {}

  T* allocate(size_t count) {
    if (!meter_->take(bytes(count))) throw std::bad_alloc();
    try {
      return std::allocator<T>().allocate(count);
    } catch (const std::bad_alloc&) {
      meter_->give_back(bytes(count));
      throw;
    }
  }
  void deallocate(T* begin, size_t count) noexcept {
    std::allocator<T>().deallocate(begin, count);
    meter_->give_back(bytes(count));
  }
  bool operator==(const MeterAllocator&) const = default;

 private:
  template <class Other>
  friend class MeterAllocator;

  static size_t bytes(size_t count) noexcept { return count * sizeof(T) + kHeapBytes; }

  Meter* meter_;
};

template <class T>
class Ref;
template <class T>
Ref<T> make_counted(Meter& meter);

// A value that several owners share. make_counted() makes it, and Ref refers to it.
class Counted {
 public:
  virtual ~Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 protected:
  Counted() = default;

 private:
  template <class T>
  friend class Ref;
  template <class T>
  friend Ref<T> make_counted(Meter& meter);

  void refer() const noexcept {
    references_.fetch_add(1, std::memory_order_relaxed);  // the caller has a reference
  }
  void drop() const noexcept {
    // release: of what this owner read; acquire: by the last one, which deletes it
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Meter& meter = *meter_;
    const size_t bytes = bytes_;
    delete this;
    meter.give_back(bytes);
  }

  mutable std::atomic<uint32_t> references_{0};
  uint32_t bytes_ = 0;
  Meter* meter_ = nullptr;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* value) noexcept : value_(value) { refer(); }
  Ref(const Ref& other) noexcept : value_(other.value_) { refer(); }
  Ref(Ref&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  template <class Other>
  explicit(false) Ref(const Ref<Other>& other) noexcept : value_(other.get()) {
    refer();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Ref() {
    if (value_ != nullptr) value_->drop();
  }

  T* get() const noexcept { return value_; }
  T* operator->() const noexcept { return value_; }
  T& operator*() const noexcept { return *value_; }
  explicit operator bool() const noexcept { return value_ != nullptr; }
  bool operator==(const Ref&) const = default;

 private:
  void refer() noexcept {
    if (value_ != nullptr) value_->refer();
  }

  T* value_ = nullptr;
};

// The caller fills the value before others see it.
template <class T>
Ref<T> make_counted(Meter& meter) {
  if (!meter.take(sizeof(T) + kHeapBytes)) throw std::bad_alloc();
  T* value = nullptr;
  try {
    value = new T();
  } catch (const std::bad_alloc&) {
    meter.give_back(sizeof(T) + kHeapBytes);
    throw;
  }
  value->meter_ = &meter;
  value->bytes_ = sizeof(T) + kHeapBytes;
  return Ref<T>(value);
}

}  // namespace uptempo::vgpu::races
