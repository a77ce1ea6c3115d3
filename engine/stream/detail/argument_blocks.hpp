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
// Lifetime: the memory must live until the uses of all blocks are over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <uptempo/completion/detail/uses.hpp>
#include <uptempo/dispatch/detail/dispatch_shape.hpp>

namespace uptempo::detail {

class KernargMemory;
class StreamQueue;

struct ArgumentBlock {
  std::byte* block = nullptr;   // read by kernels
  std::byte* shadow = nullptr;  // copy of the whole block
  ArgumentBlock* next = this;   // block used after this one
  // The launch that its hidden arguments were written for. If kernel, grid or queue differ, they
  // are compared word by word.
  DispatchShape::Key key{};
  const StreamQueue* queue = nullptr;  // null: the block has not been written
  std::vector<uint64_t> implicit{};
  Uses uses{};

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
  bool empty() const noexcept { return blocks_.empty(); }
  // Makes blocks for that kernel in the memory. Throws std::bad_alloc and changes nothing.
  void make(const KernargMemory& memory, const KernelInfo& kernel, size_t block_bytes);

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
    for (ArgumentBlock& block : blocks_) {
      if (!fits(block)) continue;
      searches_ = 0;
      return &block;
    }
    return nullptr;
  }
  // Returns a block that no launch reads, or null.
  ArgumentBlock* find_free() noexcept;
  // Copies the block's shadow, which the caller has filled for that shape and queue.
  void write(ArgumentBlock& block, const DispatchShape& shape, const StreamQueue& queue) noexcept;
  // A launch that reads the block is published, with this completion. Requires room for its use.
  void note_use(ArgumentBlock& block, const Completion& launch) noexcept {
    block.uses.add(launch);
    if (last_ != nullptr) last_->next = &block;
    last_ = &block;
  }
  // Adds the uses of all blocks to `all`, which has room for them.
  void add_uses(Uses& all) const noexcept;

 private:
  static constexpr uint32_t kSearchesInARow = 32;

  std::vector<ArgumentBlock> blocks_;
  std::unique_ptr<std::byte[]> shadows_;
  size_t block_bytes_ = 0;
  ArgumentBlock* last_ = nullptr;
  uint32_t searches_ = 0;  // since the last successful search
  size_t hand_ = 0;        // index where the next search for a free block starts
};

}  // namespace uptempo::detail
