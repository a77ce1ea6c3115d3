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
// Lifetime: the memory of the blocks must live until uses() are over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/completion/detail/uses.hpp"
#include "engine/dispatch/detail/dispatch_shape.hpp"

namespace uptempo::detail {

class KernargMemory;
class StreamQueue;

struct ArgumentBlock {
  std::byte* block = nullptr;   // read by kernels
  std::byte* shadow = nullptr;  // copy of the whole block
  ArgumentBlock* next = this;   // block used after this one
  // The launch that its hidden arguments were written for. If kernel, grid or queue differ, they
  // are compared word by word.
  DispatchShape::Key key;
  const StreamQueue* queue = nullptr;
  std::vector<uint64_t> implicit{};
  Uses uses;
  // True if a launch of that shape in that queue can read it, provided that its explicit arguments
  // match.
  bool serves(const DispatchShape& shape, const StreamQueue& in) noexcept {
    return (queue == &in && key == shape.key) || serves_as_well(shape, in);
  }

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
  // A launch in a queue that has not used the block yet is about to read it. Throws std::bad_alloc.
  void expect_first_use(ArgumentBlock& block);
  // A launch that reads the block is published, with this completion.
  void note_use(ArgumentBlock& block, const Completion& launch) noexcept {
    block.uses.add(launch);
    if (last_ != nullptr) last_->next = &block;
    last_ = &block;
  }

  // Adds the uses of all blocks to `all`, which has room for use_entries() more.
  void add_uses(Uses& all) const noexcept;
  size_t use_entries() const noexcept { return use_entries_; }
  // The memory of the blocks, which are then gone.
  std::vector<KernargMemory> take_memory() noexcept;
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
  size_t use_entries_ = 0;
};

}  // namespace uptempo::detail
