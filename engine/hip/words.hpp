// Words: 8-byte words in which a HIP stream and an Uptempo queue meet. HIP's stream memory
// operations write them and wait for them; packets use them as signals. HIP allocates each
// (hipMallocSignalMemory) as the value of an HSA signal without an event, so the signal's handle is
// the word's address minus the offset of the value in amd_signal_t. Private to engine/hip and its
// tests.
//
// Use. The caller takes a word, gives it to both sides and then calls a function that says when its
// use is over:
//   HIP writes 0, packets wait for 0:                            expect_read()
//   a packet decrements 0, HIP waits and then writes kFree:      expect_ack()
//   the completion thread stores -1, HIP waits and writes kFree: complete_after()
// A later take() reuses a word whose use is over. It looks at a few words, so its cost does not
// depend on their number.
//
// Loss: a word for which none of these is called is never reused, nor one whose publication is
// lost: a packet of a queue that could not be stopped may still decrement it.
//
// Thread safety: any thread. A lock is held while a word is taken or given up; the first uses
// allocate under it.
// Lifetime: a set of words per HIP device, from the first use to the end of the process. HIP and
// ROCr keep the memory until then: HIP never ends its own use of HSA. hipDeviceReset() frees it.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include <uptempo/completion/completion.hpp>
#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/completed_signal.hpp>

namespace uptempo::hip {

struct Word {
  int64_t* address = nullptr;

  hsa_signal_t signal() const noexcept;
};

class Words {
 public:
  // Value that HIP writes after its wait.
  static constexpr uint64_t kFree = 2;
  // Bit that is set once a packet has decremented the word from 0.
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static constexpr size_t kMost = 4096;

  // Throws Error if the HIP device has no stream memory operations, or HIP submits later
  // (AMD_DIRECT_DISPATCH=0).
  static Words& of(int device);

  // Returns a word that holds `value`. Throws Error if kMost words are in use, or if HIP has no
  // memory.
  Word take(int64_t value);
  // The word is unused.
  void give_back(Word word) noexcept;
  // HIP writes 0, and a packet of the publication waits for it.
  void expect_read(Word word, const Completion& packet) noexcept;
  // A packet of the publication decrements the word, and HIP then writes kFree. Call after the
  // packet has been published and before HIP waits. `place`: made before that.
  void expect_ack(Word word, const Completion& packet,
                  detail::CompletedSignal::Place&& place) noexcept;
  // The completion thread stores -1 in the word, which holds 0, when the publication has completed
  // or failed. HIP then writes kFree. The publication is not complete yet. Throws std::bad_alloc or
  // std::system_error; the word is then unused.
  void complete_after(Word word, const Completion& awaited);
  // Number of words allocated so far.
  size_t size() const;

  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

 private:
  struct Use {
    Word word;
    int64_t over;  // HIP's last write
    Completion packet{};
    std::optional<detail::CompletedSignal> completed{};
  };
  // A request to the completion thread, reused.
  struct Request : detail::Awaited {
    Words* words = nullptr;
    Word word;
  };
  static void on_finished(detail::Awaited& awaited) noexcept;
  explicit Words(int device);
  Word allocate();
  std::optional<Word> take_over(size_t looks) noexcept;

  const int device_;
  mutable std::mutex mutex_;
  std::vector<Word> free_;
  std::vector<Use> uses_;
  std::deque<Request> requests_;  // all; they never move
  std::vector<Request*> free_requests_;
  size_t next_ = 0;  // the use to look at next
  size_t size_ = 0;
};

}  // namespace uptempo::hip
