#include "engine/stream/detail/argument_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "engine/dispatch/pools/kernarg_pool.hpp"
#include "engine/dispatch/pools/spill_pool.hpp"
#include "engine/stream/queue/stream_queue.hpp"

namespace uptempo::detail {
namespace {

// The driver's smallest allocation.
constexpr uint32_t kPageBytes = 4096;

}  // namespace

bool ArgumentBlock::serves_as_well(const DispatchShape& shape, const StreamQueue& in) noexcept {
  // The words include the queue's address, if the kernel requests it, and values that depend on the
  // grid.
  if (!std::ranges::equal(implicit, shape.implicit, {}, {}, &DispatchShape::Word::value))
    return false;
  key = shape.key;
  queue = &in;
  return true;
}

ArgumentBlocks::ArgumentBlocks(const Agent* agent, const KernelInfo& kernel, uint32_t most,
                               bool on_device) noexcept
    : agent_(agent),
      on_device_(on_device),
      block_bytes_(static_cast<uint32_t>(KernargPool::block_bytes(kernel.arguments.size_bytes()))),
      implicit_words_(kernel.arguments.implicit_words().size()),
      most_(most) {}

ArgumentBlocks::~ArgumentBlocks() = default;

ArgumentBlock* ArgumentBlocks::find_free() noexcept {
  // Never-used blocks first, so that all alternating arguments stay stored.
  if (unused_ != blocks_.size()) return blocks_[unused_].get();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    ArgumentBlock* const block = blocks_[hand_].get();
    hand_ = (hand_ + 1) % blocks_.size();
    if (block != last_ && block->uses.are_over()) return block;
  }
  return last_ != nullptr && last_->uses.are_over() ? last_ : nullptr;
}

void ArgumentBlocks::grow() {
  const size_t count =
      std::min<size_t>(std::max(kPageBytes / block_bytes_, 2u), most_ - blocks_.size());
  KernargMemory memory(agent_, uint64_t{block_bytes_} * count, on_device_);
  auto shadow = std::make_unique<std::byte[]>(size_t{block_bytes_} * count);
  std::vector<std::unique_ptr<ArgumentBlock>> blocks(count);
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = std::make_unique<ArgumentBlock>();
    blocks[i]->block = memory.data() + i * block_bytes_;
    blocks[i]->shadow = shadow.get() + i * block_bytes_;
    blocks[i]->implicit.reserve(implicit_words_);
    blocks[i]->uses.expect(4);  // an agent has few queues
  }
  blocks_.reserve(blocks_.size() + count);
  memory_.reserve(memory_.size() + 1);
  shadows_.reserve(shadows_.size() + 1);
  // Nothing fails from here on: the blocks refer to both memories.
  std::ranges::move(blocks, std::back_inserter(blocks_));
  memory_.push_back(std::move(memory));
  shadows_.push_back(std::move(shadow));
}

void ArgumentBlocks::write(ArgumentBlock& block, const DispatchShape& shape,
                           const StreamQueue& queue) {
  std::memcpy(block.block, block.shadow, block_bytes_);
  block.key = shape.key;
  block.queue = &queue;
  block.implicit.clear();
  for (const DispatchShape::Word& word : shape.implicit) block.implicit.push_back(word.value);
  if (unused_ != blocks_.size() && blocks_[unused_].get() == &block) ++unused_;
}

void ArgumentBlocks::expect_first_use(ArgumentBlock& block) {
  block.uses.expect(1);
  ++use_entries_;
}

void ArgumentBlocks::add_uses(Uses& all) const noexcept {
  for (const auto& block : blocks_)
    for (const Completion& use : block->uses.each()) all.add(use);
}

std::vector<KernargMemory> ArgumentBlocks::take_memory() noexcept {
  blocks_.clear();
  last_ = nullptr;
  return std::exchange(memory_, {});
}

}  // namespace uptempo::detail
