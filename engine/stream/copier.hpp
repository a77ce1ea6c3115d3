// Copier: copies and fills that are complete when the call returns.
//
//   Copier copier{gpu};
//   copier.copy(keys, host);    // std::vector, array, span or PinnedBuffer to DeviceBuffer
//   copier.fill(keys, 7u);
//   copier.copy(host, keys);    // and back
//
// It is a Stream (stream.hpp) of its own Streams that waits for each call. copy_ends.hpp describes
// ends, paths and limits; kernels make no copies, so that a Copier takes a hardware queue with its
// first fill only. Programs with a Stream copy with it and need no Copier.
//
// Order: a copy sees what the device wrote before a completion that the caller has observed, and
// device work that is submitted later sees what it wrote.
// Errors: as Stream::copy() and synchronize(). A memory fault and the loss of the GPU end copies
// and fills with an Error, within a quarter of a second; later ones throw at once.
//
// Thread safety: one thread at a time per Copier.
// Lifetime: as for a Stream. Memory of a copy that a fault has ended must live until the end of the
// Runtime.
#pragma once

#include "engine/stream/stream.hpp"
#include "engine/stream/streams.hpp"

namespace uptempo {

class Copier {
 public:
  // Throws Error.
  explicit Copier(const Agent& gpu)
      : streams_(gpu, {.copies = {.kernel_bytes = 0, .staging_bytes = 512 << 10}}),
        stream_(streams_.state_, {}, false) {}

  // Return the path used. Throw Error.
  CopyPath copy(const CopyTarget& to, const CopySource& from, const CopyOptions& options = {}) {
    return finish([&] { return stream_.copy(to, from, options); });
  }
  template <class T>
  CopyPath fill(const CopyTarget& to, const T& pattern) {
    return finish([&] { return stream_.fill(to, pattern); });
  }

 private:
  // Waits, also for the parts that had begun before an exception.
  template <class Begin>
  CopyPath finish(Begin&& begin) {
    try {
      const CopyPath path = begin();
      stream_.synchronize();
      return path;
    } catch (...) {
      wait_for_begun();
      throw;
    }
  }
  void wait_for_begun() noexcept;

  Streams streams_;
  Stream stream_;
};

}  // namespace uptempo
