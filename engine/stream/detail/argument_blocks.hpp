// ArgumentBlocks: the kernel arguments that a launcher keeps in kernel-readable memory. Private:
// the templates of Launcher need it.
//
// A block is not rewritten while an unfinished launch reads it: published data does not change.
// Each block has a shadow, a copy in ordinary memory, which new arguments are compared with. There
// are few blocks. If no block holds a launch's arguments and all are being read, the launch uses
// the queue's own kernarg memory.
//
// Prediction: the block that followed the last-used block the previous time. This is right for
// constant arguments and for alternating ones (two buffers swapped at each step), at the cost of
// one comparison. If it is wrong, find() tries the last block, then all others. After many
// unsuccessful searches it rarely tries the others, because arguments that change with every launch
// match none.
//
// Thread safety: one owner.
// Lifetime: blocks must live until all_are_free().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/dispatch/detail/dispatch_shape.hpp"
#include "engine/memory/buffer.hpp"

namespace uptempo::detail {

class KernargMemory;
class StreamQueue;
struct QueueUse;

struct ArgumentBlock {
  std::byte* block = nullptr;   // read by kernels
  std::byte* shadow = nullptr;  // copy of the whole block
  ArgumentBlock* next = this;   // block used after this one
  // The launch that its hidden arguments were written for. If kernel, grid or queue differ, they
  // are compared word by word.
  DispatchShape::Key key;
  const StreamQueue* queue = nullptr;
  std::vector<uint64_t> implicit{};
  std::vector<QueueUse> uses;  // per queue: the last use

  bool is_free() const noexcept;
  // True if a launch of that shape in that queue can read it, provided that its explicit arguments
  // match.
  bool serves(const DispatchShape& shape, const StreamQueue& in) noexcept {
    return (queue == &in && key == shape.key) || serves_as_well(shape, in);
  }
  // A launch in the queue is about to read the block. Returns the place of its use. Throws
  // std::bad_alloc.
  size_t expect_use(StreamQueue& in);
  // The launch is published, in an epoch of the queue.
  void note_use(size_t place, uint64_t epoch) noexcept;

 private:
  bool serves_as_well(const DispatchShape& shape, const StreamQueue& in) noexcept;
};

class ArgumentBlocks {
 public:
  // Allocates nothing yet. If `agent` is null, queues do not use ROCr. `on_device`: blocks are in
  // device memory.
  ArgumentBlocks(const Agent* agent, const KernelInfo& kernel, uint32_t most,
                 bool on_device) noexcept;
  ~ArgumentBlocks();
  ArgumentBlocks(ArgumentBlocks&&) noexcept;

  // Returns the block that a launch of that shape in that queue can read and whose shadow `holds`
  // its explicit arguments; otherwise null.
  template <class Holds>
  ArgumentBlock* find(const DispatchShape& shape, const StreamQueue& queue,
                      Holds&& holds) noexcept {
    const auto fits = [&](ArgumentBlock& block) {
      return holds(block.shadow) && block.serves(shape, queue);
    };
    if (last_ == nullptr) return nullptr;
    if (fits(*last_->next)) [[likely]]
      return last_->next;
    if (last_->next != last_ && fits(*last_)) return last_;
    if (++searches_ > kSearchesInARow && searches_ % kSearchesInARow != 0) return nullptr;
    for (size_t i = 0; i < unused_; ++i) {
      if (!fits(*blocks_[i])) continue;
      searches_ = 0;
      return blocks_[i].get();
    }
    return nullptr;
  }
  // Returns a block that no launch reads, or null.
  ArgumentBlock* find_free() noexcept;
  bool can_grow() const noexcept { return blocks_.size() < most_; }
  // Adds blocks. Throws Error.
  void grow();

  // Copies the block's shadow, which the caller has filled for that shape and queue.
  void write(ArgumentBlock& block, const DispatchShape& shape, const StreamQueue& queue);
  // Records that a launch has used the block.
  void note_last(ArgumentBlock& block) noexcept {
    if (last_ != nullptr) last_->next = &block;
    last_ = &block;
  }

  // True if no launch may read a block.
  bool all_are_free() const noexcept;
  size_t size() const noexcept { return blocks_.size(); }

 private:
  const Agent* agent_;
  const bool on_device_;
  const uint32_t block_bytes_;
  const size_t implicit_words_;
  const uint32_t most_;
  std::vector<std::unique_ptr<ArgumentBlock>> blocks_;
  std::vector<KernargMemory> memory_;
  std::vector<std::unique_ptr<std::byte[]>> shadows_;
  static constexpr uint32_t kSearchesInARow = 32;

  ArgumentBlock* last_ = nullptr;
  uint32_t searches_ = 0;  // since the last successful search
  size_t unused_ = 0;      // blocks from this index on have never been used
  size_t hand_ = 0;        // index where the next search for a free block starts
};

// Memory of a launcher that is destroyed, or that abandons it: until no packet uses it.
struct LauncherMemory {
  std::optional<ArgumentBlocks> blocks{};
  std::vector<DeviceBuffer<std::byte>> buffers{};
  StreamQueue* buffers_used_in = nullptr;  // null: by no packet
  uint64_t buffers_used_until = 0;         // epoch

  bool is_over() const noexcept;
};

}  // namespace uptempo::detail
