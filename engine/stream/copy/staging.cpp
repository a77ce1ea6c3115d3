#include <uptempo/stream/copy/staging.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

// Alignment of chunks: covers the line size of every cache, and the copy engines' fetch unit.
constexpr size_t kAlignment = 256;
// A longer list would take as much memory as the pieces, and long to search.
constexpr size_t kMostPieces = 65'536;

}  // namespace

Staging::Staging(const Agent* gpu, size_t size_bytes, size_t piece_bytes)
    : piece_bytes_(piece_bytes) {
  const auto refuse = [&](std::string found, const char* remedy) {
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Streams",
                 .asked = fmt::format("staging memory of {} bytes in pieces of {}", size_bytes,
                                      piece_bytes),
                 .found = std::move(found),
                 .remedy = remedy});
  };
  if (piece_bytes == 0 || size_bytes < piece_bytes)
    refuse("no piece fits in it", "correct CopyLimits::staging_bytes and piece_bytes");
  const size_t pieces = size_bytes / piece_bytes;
  if (pieces > kMostPieces)
    refuse(fmt::format("{} pieces, of at most {}", pieces, kMostPieces),
           "raise CopyLimits::piece_bytes, or lower staging_bytes");
  pieces_.resize(pieces);
  if (gpu != nullptr) {
    pinned_ = PinnedBuffer<std::byte>(*gpu, size_bytes);
    memory_ = pinned_.data();
  } else {
    ordinary_.resize(size_bytes);
    memory_ = ordinary_.data();
  }
}

Staging::~Staging() {
  const bool in_use = std::ranges::any_of(pieces_, [](Piece& piece) { return !is_free(piece); });
  if (in_use) pinned_.leave_to_session();
}

bool Staging::is_free(Piece& piece) noexcept { return piece.chunks == 0 && piece.uses.are_over(); }

Staging::Chunk Staging::try_take(size_t bytes) {
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
  Chunk chunk(memory_ + current_ * piece_bytes_ + used_, {this, current_});
  used_ = std::min(used_ + taken, piece_bytes_);
  ++piece.chunks;
  return chunk;
}

void Staging::use_until(const Chunk& chunk, const Completion& end) noexcept {
  const std::lock_guard lock(mutex_);
  pieces_[chunk.get_deleter().piece].uses.add(end);
}

std::optional<Completion> Staging::unfinished() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Piece& piece : pieces_)
    if (const std::optional<Completion> use = piece.uses.unfinished()) return use;
  return {};
}

void Staging::end_use(size_t piece) noexcept {
  const std::lock_guard lock(mutex_);
  --pieces_[piece].chunks;
}

}  // namespace uptempo::detail
