// Pinned memory through which copies of pageable memory go. Private to engine/stream and its tests.
//
// It consists of pieces of equal size. Chunks are cut from one piece after another; a piece can be cut anew when no chunk of it is in the hands of
// the host and the device has passed every point up to which it was promised one. Nothing is allocated after the constructor but the list of a piece's points, which has one for
// each timeline.
//
// Thread safety: every function from any thread. Lifetime: chunks go before the staging memory does. What the device may still use when that is destroyed is left to the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/completion/timeline.hpp"
#include "engine/memory/buffer.hpp"

namespace uptempo::detail {

// A value of a timeline, which may be one that has not begun.
struct TimelinePoint {
  Timeline* timeline = nullptr;  // null: reached
  uint64_t value = 0;

  bool is_done() const noexcept { return timeline == nullptr || timeline->is_done(value); }
};

class Staging {
 public:
  // Allocates. Throws Error, also where `size_bytes` holds no piece.
  Staging(const Agent& gpu, size_t size_bytes, size_t piece_bytes);
  // Over memory that lives as long as `keep`.
  Staging(std::span<std::byte> memory, size_t piece_bytes, std::shared_ptr<void> keep);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  class Chunk {
   public:
    Chunk() = default;
    Chunk(Chunk&& other) noexcept
        : staging_(std::exchange(other.staging_, nullptr)), piece_(other.piece_), data_(other.data_) {}
    Chunk& operator=(Chunk&& other) noexcept {
      give_back();
      staging_ = std::exchange(other.staging_, nullptr);
      piece_ = other.piece_;
      data_ = other.data_;
      return *this;
    }
    ~Chunk() { give_back(); }

    std::byte* data() const noexcept { return data_; }

   private:
    friend class Staging;
    Chunk(Staging& staging, size_t piece, std::byte* data) noexcept
        : staging_(&staging), piece_(piece), data_(data) {}
    void give_back() noexcept {
      if (staging_ != nullptr) std::exchange(staging_, nullptr)->end_use(piece_);
    }

    Staging* staging_ = nullptr;
    size_t piece_ = 0;
    std::byte* data_ = nullptr;
  };

  // Of at most piece_bytes(). Nothing if no piece is free.
  std::optional<Chunk> try_take(size_t bytes) noexcept;
  // The device uses it until that point; the chunk itself may be destroyed at once.
  void use_until(const Chunk& chunk, TimelinePoint point);
  // A point that keeps a piece from being used again. Nothing if it is the host that keeps them.
  std::optional<TimelinePoint> unfinished() noexcept;

  size_t size_bytes() const noexcept { return memory_.size(); }
  size_t piece_bytes() const noexcept { return piece_bytes_; }
  size_t pieces() const noexcept { return pieces_.size(); }
  size_t free_pieces() noexcept;

 private:
  struct Piece {
    uint32_t chunks = 0;                  // in the hands of the host
    std::vector<TimelinePoint> points{};  // of the device, one for each timeline
  };
  static constexpr size_t none = SIZE_MAX;

  void cut();
  void end_use(size_t piece) noexcept;
  static bool is_free(Piece& piece) noexcept;

  PinnedBuffer<std::byte> owned_;
  std::shared_ptr<void> keep_;
  std::span<std::byte> memory_;
  const size_t piece_bytes_;
  std::mutex mutex_;
  std::vector<Piece> pieces_;
  size_t current_ = none;  // that chunks are cut from
  size_t used_ = 0;        // bytes of it
};

}  // namespace uptempo::detail
