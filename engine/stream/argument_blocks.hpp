// The arguments that a launcher keeps where kernels read them. Private to engine/stream.
//
// A block is written once and not again while a launch that reads it is unfinished: what is published does not change. Beside each lies a copy in ordinary memory, its shadow, with
// which new arguments are compared. Blocks are few: a launch whose arguments are in none of them, while all are being read, uses the queue's own kernarg memory.
//
// Which block a launch is likely to need: the one that came after the last one the time before. For arguments that never change that is the same again, and
// for those that take turns (two buffers that change places at every step) it is right as well, at one comparison. Where it is wrong the last one is asked, and then all others, but those hardly ever
// any more once that has been in vain for some time: arguments that change with every launch are found in none.
//
// Thread safety: one owner. Lifetime: blocks until everything in uses() is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/dispatch/dispatch_shape.hpp"
#include "engine/dispatch/pools/spill_pool.hpp"
#include "engine/stream/queue/stream_queue.hpp"

namespace uptempo::detail {

struct ArgumentBlock {
  std::byte* block = nullptr;   // for kernels
  std::byte* shadow = nullptr;  // of the whole block
  ArgumentBlock* next = this;   // that was used after it
  // What its hidden arguments are for. They are compared word by word where kernel, grid or queue are others.
  DispatchShape::Key key;
  const StreamQueue* queue = nullptr;
  std::vector<uint64_t> implicit{};
  std::vector<QueueUse> uses{};  // of each queue that has read it, the last

  bool is_free() const noexcept;
  // Whether a launch of that shape in that queue can read it, if its explicit arguments fit.
  bool serves(const DispatchShape& shape, const StreamQueue& in) noexcept {
    return (queue == &in && key == shape.key) || serves_as_well(shape, in);
  }
  // A launch with it is in the queue's epoch.
  void note_use(StreamQueue& in, uint64_t epoch);

 private:
  bool serves_as_well(const DispatchShape& shape, const StreamQueue& in) noexcept;
};

class ArgumentBlocks {
 public:
  // Allocates nothing yet. `agent` null: queues without ROCr.
  ArgumentBlocks(const Agent* agent, const KernelInfo& kernel, uint32_t most) noexcept;

  // The block that a launch of that shape in that queue can read, and whose shadow `holds` its explicit arguments; or null.
  template <class Holds>
  ArgumentBlock* find(const DispatchShape& shape, const StreamQueue& queue, Holds&& holds) noexcept {
    const auto fits = [&](ArgumentBlock& block) { return holds(block.shadow) && block.serves(shape, queue); };
    if (last_ == nullptr) return nullptr;
    if (fits(*last_->next)) [[likely]]
      return last_->next;
    if (last_->next != last_ && fits(*last_)) return last_;
    if (++searches_ > searches_in_a_row && searches_ % searches_in_a_row != 0) return nullptr;
    for (size_t i = 0; i < unused_; ++i) {
      if (!fits(*blocks_[i])) continue;
      searches_ = 0;
      return blocks_[i].get();
    }
    return nullptr;
  }
  // One that no launch reads, or null.
  ArgumentBlock* find_free() noexcept;
  bool can_grow() const noexcept { return blocks_.size() < most_; }
  // More blocks. Throws Error.
  void grow();

  // The block has been filled, for that shape and queue: its shadow is copied.
  void write(ArgumentBlock& block, const DispatchShape& shape, const StreamQueue& queue);
  // A launch has used it.
  void note_last(ArgumentBlock& block) noexcept {
    if (last_ != nullptr) last_->next = &block;
    last_ = &block;
  }

  // All launches that may read one of them.
  std::vector<QueueUse> uses() const;
  // The memory of all of them, which none of them has any more.
  std::shared_ptr<void> take_memory();
  size_t size() const noexcept { return blocks_.size(); }

 private:
  const Agent* agent_;
  const uint32_t block_bytes_;
  const size_t implicit_words_;
  const uint32_t most_;
  std::vector<std::unique_ptr<ArgumentBlock>> blocks_;
  std::vector<KernargMemory> memory_;
  std::vector<std::unique_ptr<std::byte[]>> shadows_;
  static constexpr uint32_t searches_in_a_row = 32;

  ArgumentBlock* last_ = nullptr;
  uint32_t searches_ = 0;  // since one found something
  size_t unused_ = 0;      // blocks from here on have never been used
  size_t hand_ = 0;        // where the search for a free one goes on
};

}  // namespace uptempo::detail
