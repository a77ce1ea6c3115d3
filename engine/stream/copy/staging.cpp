#include "engine/stream/copy/staging.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

// Alignment of chunks: covers the line size of every cache, and the copy engines' fetch unit.
constexpr size_t kAlignment = 256;
// A longer list would take as much memory as the pieces, and long to search.
constexpr size_t kMostPieces = 65'536;

}  // namespace

Staging::Staging(const Agent& gpu, size_t size_bytes, size_t piece_bytes)
    : owned_(gpu, std::max<size_t>(size_bytes, 1)),
      memory_(owned_.span()),
      piece_bytes_(piece_bytes) {
  cut();
}

Staging::Staging(std::span<std::byte> memory, size_t piece_bytes, std::shared_ptr<void> keep)
    : keep_(std::move(keep)), memory_(memory), piece_bytes_(piece_bytes) {
  cut();
}

void Staging::cut() {
  if (piece_bytes_ == 0 || memory_.size() < piece_bytes_) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Streams",
                 .asked = fmt::format("staging memory of {} bytes in pieces of {}", memory_.size(),
                                      piece_bytes_),
                 .found = "no piece fits in it",
                 .remedy = "correct CopyLimits::staging_bytes and piece_bytes"});
  }
  const size_t pieces = memory_.size() / piece_bytes_;
  if (pieces > kMostPieces) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Streams",
                 .asked = fmt::format("staging memory of {} bytes in pieces of {}", memory_.size(),
                                      piece_bytes_),
                 .found = fmt::format("{} pieces, of at most {}", pieces, kMostPieces),
                 .remedy = "raise CopyLimits::piece_bytes, or lower staging_bytes"});
  }
  pieces_.resize(pieces);
}

Staging::~Staging() {
  const bool in_use = std::ranges::any_of(pieces_, [](Piece& piece) { return !is_free(piece); });
  if (in_use) owned_.leave_to_session();
}

bool Staging::is_free(Piece& piece) noexcept { return piece.chunks == 0 && piece.uses.are_over(); }

std::optional<Staging::Chunk> Staging::try_take(size_t bytes) {
  const size_t taken = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(mutex_);
  if (current_ == kNone || used_ + bytes > piece_bytes_) {
    // Search from the first piece, so that no more memory is used, and kept in caches, than needed
    // at a time.
    const auto next = std::ranges::find_if(pieces_, is_free);
    if (next == pieces_.end()) return {};
    current_ = static_cast<size_t>(next - pieces_.begin());
    used_ = 0;
  }
  Piece& piece = pieces_[current_];
  piece.uses.expect(piece.chunks + 1);
  Chunk chunk(*this, current_, memory_.data() + current_ * piece_bytes_ + used_);
  used_ = std::min(used_ + taken, piece_bytes_);
  ++piece.chunks;
  return chunk;
}

void Staging::use_until(const Chunk& chunk, const Completion& end) noexcept {
  const std::lock_guard lock(mutex_);
  pieces_[chunk.piece_].uses.add(end);
}

std::optional<Completion> Staging::unfinished() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Piece& piece : pieces_)
    if (const std::optional<Completion> use = piece.uses.unfinished()) return use;
  return {};
}

size_t Staging::free_pieces() noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count_if(pieces_, is_free));
}

void Staging::end_use(size_t piece) noexcept {
  const std::lock_guard lock(mutex_);
  --pieces_[piece].chunks;
}

}  // namespace uptempo::detail
