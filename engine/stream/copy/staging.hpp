// Staging: pinned memory for copies of pageable memory. Private to engine/stream and its tests.
//
// The memory consists of pieces of equal size. Chunks are taken from one piece after another. A
// piece becomes free when the host holds none of its chunks and every use noted with use_until() is
// over.
//
// Thread safety: every function may be called from any thread.
// Lifetime: chunks are destroyed before the staging memory. At destruction, memory that the device
// may still use is left to the session.
// Cost: after construction, only a piece's uses allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <uptempo/completion/detail/uses.hpp>
#include <uptempo/memory/buffer.hpp>

namespace uptempo::detail {

class Staging {
 public:
  // Allocates; for a null agent, ordinary memory. Throws Error, also if `size_bytes` is smaller
  // than a piece.
  Staging(const Agent* gpu, size_t size_bytes, size_t piece_bytes);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Gives a chunk back to its piece.
  struct EndUse {
    Staging* staging = nullptr;
    size_t piece = 0;
    void operator()(std::byte*) const noexcept { staging->end_use(piece); }
  };
  using Chunk = std::unique_ptr<std::byte, EndUse>;

  // Takes at most piece_bytes(). Null if no piece is free. Throws std::bad_alloc.
  Chunk try_take(size_t bytes);
  // Notes that the device uses the chunk until then. Once for each chunk, which may be destroyed at
  // once.
  void use_until(const Chunk& chunk, const Completion& end) noexcept;
  // Returns a publication that delays the reuse of a piece. Empty if only the host delays it.
  std::optional<Completion> unfinished() noexcept;

  size_t piece_bytes() const noexcept { return piece_bytes_; }
  size_t pieces() const noexcept { return pieces_.size(); }

 private:
  struct Piece {
    uint32_t chunks = 0;  // held by the host
    Uses uses{};          // has room for one of each chunk that the host holds
  };
  static constexpr size_t kNone = SIZE_MAX;

  void end_use(size_t piece) noexcept;
  static bool is_free(Piece& piece) noexcept;

  PinnedBuffer<std::byte> pinned_;
  std::vector<std::byte> ordinary_;
  std::byte* memory_ = nullptr;
  const size_t piece_bytes_;
  std::mutex mutex_;
  std::vector<Piece> pieces_;
  size_t current_ = kNone;  // piece that chunks are taken from
  size_t used_ = 0;         // bytes used in that piece
};

}  // namespace uptempo::detail
