#include <uptempo/stream/launcher.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <uptempo/dispatch/pools/kernarg_pool.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/copy/retired.hpp>
#include <uptempo/stream/streams_state.hpp>

namespace uptempo::detail {
namespace {

uint32_t blocks_for(const KernelInfo& kernel, std::optional<uint32_t> asked, bool on_device) {
  constexpr uint32_t kUsual = 8;
  constexpr size_t kCheaperFrom = 512;  // bytes in host memory (tools/bench/stream)
  if (kernel.arguments.explicit_count() == 0) return 0;
  const bool saves_time = on_device || kernel.arguments.size_bytes() >= kCheaperFrom;
  return asked.value_or(saves_time ? kUsual : 0);
}

}  // namespace

bool ArgumentBlock::serves_as_well(const DispatchShape& shape, const StreamQueue& in) noexcept {
  // The words include the queue's address, if the kernel requests it, and values that depend on the
  // grid.
  if (queue == nullptr ||
      !std::ranges::equal(implicit, shape.implicit, {}, {}, &DispatchShape::Word::value))
    return false;
  key = shape.key;
  queue = &in;
  return true;
}

void ArgumentBlocks::make(const KernargMemory& memory, const KernelInfo& kernel,
                          size_t block_bytes) {
  std::vector<ArgumentBlock> blocks(memory.size_bytes() / block_bytes);
  auto shadows = std::make_unique<std::byte[]>(memory.size_bytes());
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].block = memory.data() + i * block_bytes;
    blocks[i].shadow = shadows.get() + i * block_bytes;
    blocks[i].implicit.reserve(kernel.arguments.implicit_words().size());
    blocks[i].uses.expect(4);  // an agent has few queues
  }
  blocks_ = std::move(blocks);
  shadows_ = std::move(shadows);
  block_bytes_ = block_bytes;
}

// Blocks that have never been written come first, so that all alternating arguments stay stored.
ArgumentBlock* ArgumentBlocks::find_free() noexcept {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    ArgumentBlock& block = blocks_[hand_];
    hand_ = (hand_ + 1) % blocks_.size();
    if (&block != last_ && block.uses.are_over()) return &block;
  }
  return last_ != nullptr && last_->uses.are_over() ? last_ : nullptr;
}

void ArgumentBlocks::write(ArgumentBlock& block, const DispatchShape& shape,
                           const StreamQueue& queue) noexcept {
  std::memcpy(block.block, block.shadow, block_bytes_);
  block.key = shape.key;
  block.queue = &queue;
  block.implicit.clear();
  for (const DispatchShape::Word& word : shape.implicit) block.implicit.push_back(word.value);
}

void ArgumentBlocks::add_uses(Uses& all) const noexcept {
  for (const ArgumentBlock& block : blocks_)
    for (const Completion& use : block.uses.each()) all.add(use);
}

LauncherCore::LauncherCore(Streams& streams, std::shared_ptr<const KernelInfo> kernel,
                           std::optional<uint32_t> blocks)
    : streams_(streams.state_),
      kernel_(std::move(kernel)),
      most_blocks_(blocks_for(*kernel_, blocks, streams_->kernargs().is_on_device())),
      at_end_(RetiredList::of_process().make_entry()) {}

LauncherCore::~LauncherCore() {
  Retired& memory = at_end_.front();
  blocks_.add_uses(memory.uses);
  if (scratch_use_.queue != nullptr) memory.uses.add(last_use_of_scratch());
  memory.memory = std::move(scratch_);
  memory.owner = &streams_->transfers();
  RetiredList::of_process().add(std::move(at_end_));
  release_retired();
}

void LauncherCore::make_blocks() {
  const size_t block_bytes = KernargPool::block_bytes(kernel_->arguments.size_bytes());
  KernargMemory memory(streams_->agent(), block_bytes * most_blocks_,
                       streams_->kernargs().is_on_device());
  blocks_.make(memory, *kernel_, block_bytes);
  at_end_.front().kernargs = std::move(memory);
}

bool LauncherCore::try_take_block(const Stream& stream, LaunchReservation& reserved) noexcept {
  return stream.queue_->try_take_block(reserved);
}

// The destructor then adds later uses by this queue without allocation.
void LauncherCore::expect_use(Timeline& queue) {
  Uses& uses = at_end_.front().uses;
  if (uses.includes(queue)) return;
  uses.expect(1);
  uses.add(completion_of(queue, 0));
}

void LauncherCore::launch(Stream& stream, LaunchReservation&& reserved, ArgumentBlock& block,
                          uint32_t group_segment) {
  aql::Packet64 packet;
  aql::store_behind_gate(packet, reserved.shape->packet, block.block, group_segment);
  Timeline& timeline = stream.queue_->timeline();
  if (!block.uses.includes(timeline)) [[unlikely]] {
    block.uses.expect(1);
    expect_use(timeline);
  }
  stream.commit(std::move(reserved), packet);
  blocks_.note_use(block, completion_of(timeline, stream.position_.epoch));
}

Completion LauncherCore::last_use_of_scratch() const noexcept {
  return completion_of(scratch_use_.queue->timeline(), scratch_use_.position.epoch);
}

void LauncherCore::begin_arrays(Stream& stream) {
  require(stream);
  if (scratch_use_.queue != nullptr && !is_done(last_use_of_scratch())) stream.follow(scratch_use_);
  scratch_.resize(kernel_->arguments.explicit_count());
}

void* LauncherCore::room(Stream& stream, size_t argument, size_t bytes) {
  constexpr size_t kLeastBytes = 4096;  // the driver's smallest allocation
  Allocation& memory = scratch_[argument];
  if (bytes > memory.size_bytes()) {
    // Powers of two, so that arrays that grow step by step do not allocate at each step.
    Allocation larger(*streams_->agent(), MemoryKind::device,
                      std::bit_ceil(std::max(bytes, kLeastBytes)));
    if (memory.data() != nullptr) stream.free_after_work(std::move(memory));
    memory = std::move(larger);
  }
  return memory.data();
}

// Staged: pinning memory for each copy would cost system calls per launch and would hold the
// caller's memory beyond the call's return.
void LauncherCore::copy_in(Stream& stream, size_t argument, std::span<const std::byte> host) {
  stream.copy(CopyTarget::device(scratch_[argument].data(), host.size()), host, CopyPath::automatic,
              true);
}

void LauncherCore::copy_out(Stream& stream, size_t argument, std::span<std::byte> host) {
  stream.copy(host, CopySource::device(scratch_[argument].data(), host.size()), CopyPath::automatic,
              true);
}

void LauncherCore::end_arrays(Stream& stream) {
  expect_use(stream.queue_->timeline());
  scratch_use_ = {
      .queue = stream.queue_, .position = stream.position_, .behind_host = stream.is_behind_host()};
}

void LauncherCore::abandon_arrays(Stream& stream) noexcept {
  try {
    for (Allocation& memory : scratch_)
      if (memory.data() != nullptr) stream.free_after_work(std::move(memory));
  } catch (...) {  // the rest is not known to be unused before the end of the Runtime
    for (Allocation& memory : scratch_) memory.leave_to_session();
  }
  scratch_.clear();
  scratch_use_ = {};
}

void LauncherCore::count_hit() const noexcept {
  CounterBlock& counters = counters_of_this_thread();
  count(counters.argument_hits, 1);
  count(counters.argument_bytes_saved, kernel_->arguments.size_bytes());
}

void LauncherCore::count_miss() const noexcept { count(&CounterBlock::argument_misses); }

void LauncherCore::refuse_stream(const Stream& stream) const {
  stream.require_here("Launcher::launch");
  throw Error(
      {.code = ErrorCode::argument,
       .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = "Launcher::launch",
       .asked = fmt::format("kernel '{}' on a stream", kernel_->name),
       .found = "the stream belongs to other Streams than the Launcher",
       .remedy = "create the Launcher with the Streams of the streams that it is used with"});
}

}  // namespace uptempo::detail
