#include <uptempo/recording/recording_state.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include <uptempo/completion/waiter.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/say.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {
namespace {

// Distinguishes recordings, also those at a reused address.
uint64_t next_id() noexcept {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::optional<Agent> agent_of(const BatchQueue& state) {
  return state.agent() == nullptr ? std::nullopt : std::optional(*state.agent());
}

constexpr auto kDrainTimeout = std::chrono::seconds(10);

// Kernels that may still run after their recording was destroyed. They stay loaded until the end of
// the Runtime, which unloads all code.
struct LeftLoaded {
  std::mutex mutex;
  RecordingState::Kernels kernels;
};
LeftLoaded& left_loaded() {
  static auto* const all = new LeftLoaded;
  return *all;
}

}  // namespace

void refuse_recording(std::string asked, std::string found, std::string remedy) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Recording",
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

void require_same(const NodeHandle& own, const NodeHandle& other) {
  if (own.recording == other.recording) return;
  refuse_recording(
      fmt::format("node {} after node {} of another recording", own.packet, other.packet),
      "the nodes of a recording depend on one another only",
      "wait for the other recording's completion");
}

Declarations& NodeHandle::declarations() const { return state->declarations_of(*this); }
std::vector<AccessRange>& NodeHandle::accesses() const { return state->accesses_of(*this); }

RecordingState::RecordingState(BatchQueue& state, const RecordingOptions& options)
    : RecordingState(state, options, state.place(),
                     [this](size_t bytes) { return allocate(bytes); }) {}

RecordingState::RecordingState(BatchQueue& state, std::span<std::byte> kernargs,
                               const RecordingOptions& options, const DeviceWrites& writes)
    : RecordingState(state, options, {}, [this, rest = kernargs](size_t bytes) mutable {
        if (rest.size() < bytes)
          refuse_recording(fmt::format("{} bytes of kernargs", bytes),
                           fmt::format("{} bytes are left", rest.size()),
                           "pass more kernarg memory to the recording");
        const std::span<std::byte> chunk = rest.first(bytes);
        rest = rest.subspan(bytes);
        return writes_.needed() ? with_mirror(chunk) : chunk;
      }) {
  writes_ = writes;
}

RecordingState::RecordingState(BatchQueue& state, const RecordingOptions& options,
                               const KernargPlace& place, Allocate allocate)
    : agent_(agent_of(state)),
      session_(agent_ ? Session::current() : nullptr),
      facts_(state.facts()),
      options_(options),
      id_(next_id()),
      publication_(options.fences, true, state.agent()),
      shapes_(facts_, publication_.plain_flags(), &publication_.holds_slots),
      place_(place),
      blocks_(std::move(allocate)) {
  publication_.kernargs_go_stale_in_l2 =
      kernargs_go_stale_in_l2(state.agent(), place_.is_on_device());
  publication_.timing = options.timing;
  publication_.chunking = options.chunking;
  (void)left_loaded();  // here, where it may throw
  if (!state.usable())
    refuse_recording("a recording for a queue", "the Runtime of that queue was destroyed",
                     "make a new Runtime and a new Queue");
}

RecordingState::~RecordingState() {
  abandon();
  const Deadline deadline = Deadline::after(kDrainTimeout);
  for (; !flights_.empty(); flights_.pop_front()) {
    const Flight& flight = flights_.front();
    const WaitResult result =
        wait_for_end(*flight.timeline, flight.value, deadline, [] { return "a recording"; });
    if (result == WaitResult::timed_out && !lost_)
      say([&] {
        return "a recording is destroyed before its replays are complete: " +
               flight.timeline->describe_unfinished();
      });
    if (result != WaitResult::done) lost_ = true;
  }
  if (!lost_) return;
  for (KernargMemory& memory : memory_) memory.leave_to_session();
  const std::lock_guard lock(left_loaded().mutex);
  left_loaded().kernels.merge(kernels_);
}

std::span<std::byte> RecordingState::allocate(size_t bytes) {
  const bool on_device = place_.is_on_device();
  // The line for read-backs follows the blocks of the first chunk.
  const size_t line = on_device && !writes_.needed() ? DeviceWrites::kLineBytes : 0;
  KernargMemory memory(&*agent_, bytes + line, on_device);
  const std::span<std::byte> chunk = memory.span().first(bytes);
  if (!on_device) {
    memory_.push_back(std::move(memory));
    return chunk;
  }
  std::byte* const last = memory.span().last(DeviceWrites::kLineBytes).data();
  memory_.push_back(std::move(memory));
  if (line != 0) writes_ = {place_.hdp_flush, last, place_.coherent_link};
  return with_mirror(chunk);
}

std::span<std::byte> RecordingState::with_mirror(std::span<std::byte> device) {
  mirrors_.push_back({device, std::make_unique<std::byte[]>(device.size())});
  return device;
}

// Chunks double in size, so there are few.
std::byte* RecordingState::host_of(std::byte* block) const noexcept {
  for (const Mirror& mirror : mirrors_)
    if (block >= mirror.device.data() && block < mirror.device.data() + mirror.device.size())
      return mirror.host.get() + (block - mirror.device.data());
  return block;
}

void RecordingState::note_write(uint32_t index) noexcept {
  Recorded& recorded = nodes_[index];
  if (recorded.is_stale || recorded.host == recorded.block) return;
  recorded.is_stale = true;
  stale_.push_back(index);  // has room for every node
}

void RecordingState::write_stale_blocks() noexcept {
  for (const uint32_t index : stale_) {
    Recorded& recorded = nodes_[index];
    if (recorded.block != nullptr) std::memcpy(recorded.block, recorded.host, recorded.block_bytes);
    recorded.is_stale = false;
  }
  stale_.clear();
  writes_.flush();
}

void RecordingState::require_not_partly_out(const char* asked) const {
  require_usable();
  if (publication_.queue != nullptr) BatchQueue::refuse_more(publication_, asked);
}

RecordingState::Recorded& RecordingState::find(const NodeHandle& node) {
  require_not_partly_out("a patch");
  if (node.recording != id_)
    refuse_recording(fmt::format("node {} of another recording", node.packet),
                     fmt::format("this one has {} nodes", size()),
                     "patch a node through the recording that it belongs to");
  Recorded& recorded = nodes_[node.packet];
  if (recorded.generation != node.generation)
    refuse_recording(
        fmt::format("node {} as it was before replace()", node.packet),
        fmt::format("it has been replaced {} times since it was recorded", recorded.generation),
        "use the handle that replace() returned");
  return recorded;
}

NodeHandle RecordingState::node(size_t index, std::optional<std::span<const ArgumentType>> types) {
  if (index >= nodes_.size())
    refuse_recording(fmt::format("node {}", index),
                     fmt::format("the recording has {} nodes", nodes_.size()),
                     "count nodes from 0 in the order of recording");
  if (nodes_[index].kernel == nullptr)
    refuse_recording(fmt::format("node {} as a dispatch", index), "it is a finished packet",
                     "ask for nodes that are dispatches");
  if (types) nodes_[index].kernel->arguments.require(*types);
  return {this, id_, static_cast<uint32_t>(index), nodes_[index].generation};
}

OpenNode RecordingState::open(uint32_t index) noexcept {
  const Recorded& recorded = nodes_[index];
  return {.handle = {this, id_, index, recorded.generation},
          .kernel = recorded.kernel.get(),
          .block = recorded.host,
          .group_segment_bytes = recorded.kernel->group_segment_size + recorded.grid.lds_bytes};
}

// A replay that ends with a finished packet has appended a barrier packet.
void RecordingState::keep_in_step() {
  if (nodes_.size() != publication_.packets.size()) nodes_.resize(publication_.packets.size());
}

void RecordingState::expect(uint32_t block_bytes) {
  blocks_.expect(block_bytes);
  if (scratch_.size() < block_bytes) scratch_.resize(block_bytes);
}

OpenNode RecordingState::add(const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid) {
  require_not_partly_out("one more dispatch");
  keep_in_step();
  const DispatchShape& shape = shapes_.of(*kernel, grid);
  Recorded recorded{
      .kernel = kernel, .grid = grid, .block_bytes = shape.block_bytes, .since = replays_};
  if (shape.block_bytes != 0) {
    expect(shape.block_bytes);
    recorded.block = blocks_.take_first(shape.block_bytes);
    recorded.host = host_of(recorded.block);
  }
  if (publication_.packets.full()) publication_.packets.grow();
  kernels_.insert(kernel);
  if (stale_.capacity() <= nodes_.size()) stale_.reserve(2 * nodes_.size() + 16);
  nodes_.push_back(std::move(recorded));
  publication_.packets.add();
  publication_.replan();
  spare_kept_ = false;
  const auto index = static_cast<uint32_t>(nodes_.size() - 1);
  put_packet(index, shape);
  naming_queue_ += kernel->arguments.names_queue();
  return open(index);
}

void RecordingState::put_packet(uint32_t index, const DispatchShape& shape) {
  const Recorded& recorded = nodes_[index];
  note_write(index);
  if (recorded.host != nullptr) shape.put_implicit(recorded.host);
  publication_.exchange(index, shape.packet).set_kernarg_address(recorded.block);
}

void RecordingState::raw(const aql::Packet64& packet) {
  require_not_partly_out("one more packet");
  keep_in_step();
  if (publication_.packets.full()) publication_.packets.grow();
  // Room for the barrier packet of a replay.
  if (nodes_.capacity() < nodes_.size() + 2) nodes_.reserve(2 * (nodes_.size() + 2));
  publication_.put(packet);
  nodes_.emplace_back();
  publication_.replan();
}

void RecordingState::complete_finished() {
  keep_in_step();
  if (publication_.packets.full()) publication_.packets.grow();
  nodes_.reserve(nodes_.size() + 1);
  publication_.put_barrier();
  nodes_.emplace_back();
  publication_.replan();
}

OpenNode RecordingState::replace(const NodeHandle& node,
                                 const std::shared_ptr<const KernelInfo>& kernel,
                                 const Grid& grid) {
  Recorded& recorded = find(node);
  const uint32_t index = node.packet;
  const DispatchShape& shape = shapes_.of(*kernel, grid);  // may throw, so before any change
  kernels_.insert(kernel);
  publication_.drop_unused_accesses();  // declarations after replace() move ranges
  std::byte* block = nullptr;
  if (shape.block_bytes != 0 && shape.block_bytes == recorded.block_bytes) {
    writable_block(index);
    block = recorded.block;
  } else if (shape.block_bytes != 0) {
    expect(shape.block_bytes);
    block = wait_for_spare(shape.block_bytes);
  }
  if (recorded.block != nullptr && recorded.block != block)
    blocks_.retire(recorded.block, recorded.block_bytes, replays_);
  naming_queue_ += kernel->arguments.names_queue();
  if (recorded.kernel != nullptr) naming_queue_ -= recorded.kernel->arguments.names_queue();
  recorded = {.kernel = kernel,
              .grid = grid,
              .block = block,
              .host = host_of(block),
              .block_bytes = shape.block_bytes,
              .generation = recorded.generation + 1,
              .is_stale = recorded.is_stale,
              .since = replays_};
  put_packet(index, shape);
  if (publication_.forget_declarations(index)) publication_.replan();
  return open(index);
}

void RecordingState::change_grid(const NodeHandle& node, const Grid& grid) {
  Recorded& recorded = find(node);
  const uint32_t index = node.packet;
  const DispatchShape& shape = shapes_.of(*recorded.kernel, grid);
  const uint64_t group_segment =
      place_local_arrays(index, shape.packet.group_segment_size(), recorded.host, nullptr);
  require_group_segment(*recorded.kernel, grid.lds_bytes, group_segment);
  std::byte* const block = shape.block_bytes == 0 ? nullptr : writable_block(index);
  // A word with hidden arguments may also hold explicit ones.
  const std::span<const std::byte> old(block, shape.block_bytes);
  std::copy(old.begin(), old.end(), scratch_.begin());
  place_local_arrays(index, shape.packet.group_segment_size(), scratch_.data(), scratch_.data());
  recorded.grid = grid;
  put_packet(index, shape);
  const ArgumentLayout& layout = recorded.kernel->arguments;
  for (size_t i = 0; i < layout.explicit_count(); ++i)
    std::memcpy(block + layout.offset(i), scratch_.data() + layout.offset(i), layout.size(i));
  publication_.packets[index].set_group_segment_size(static_cast<uint32_t>(group_segment));
}

std::byte* RecordingState::writable_block(uint32_t index) {
  Recorded& recorded = nodes_[index];
  note_write(index);
  if (recorded.since == replays_) return recorded.host;
  if (landed_checked_at_ != replays_) {  // once for all patches between two replays
    had_landed_ = all_landed();
    landed_checked_at_ = replays_;
  }
  if (had_landed_) return recorded.host;
  std::byte* const fresh = wait_for_spare(recorded.block_bytes);
  std::byte* const host = host_of(fresh);
  std::memcpy(host, recorded.host, recorded.block_bytes);
  blocks_.retire(recorded.block, recorded.block_bytes, replays_);
  recorded.block = fresh;
  recorded.host = host;
  recorded.since = replays_;
  publication_.packets[index].set_kernarg_address(fresh);
  return host;
}

void RecordingState::keep_spare() {
  if (spare_kept_) return;
  blocks_.keep_spare(options_.spare_kernarg_bytes);
  spare_kept_ = true;
}

std::byte* RecordingState::wait_for_spare(uint32_t size) {
  keep_spare();
  if (std::byte* const block = blocks_.take_spare(size, completed_)) return block;
  for (Waiter waiter(options_.patience);;) {
    all_landed();
    if (std::byte* const block = blocks_.take_spare(size, completed_)) return block;
    const Flight* const oldest = flights_.empty() ? nullptr : &flights_.front();
    if (oldest != nullptr && waiter.wait(completion_of(*oldest->timeline, oldest->value))) continue;
    std::string unfinished = oldest == nullptr ? "" : oldest->timeline->describe_unfinished();
    if (!unfinished.empty()) unfinished.insert(0, "; first unfinished: ");
    throw Error(
        {.code = lost_ ? ErrorCode::failed : ErrorCode::kernargs,
         .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
         .call = "Recording",
         .asked = fmt::format("a kernarg block of {} bytes for a patched node", size),
         .found = fmt::format(
             "none of {} spare bytes is free; {} replays are in flight and hold {} blocks{}",
             options_.spare_kernarg_bytes, flights_.size(), blocks_.held(completed_),
             lost_ ? ", because a queue failed before it had finished one" : unfinished),
         .remedy =
             lost_
                 ? "record it again"
                 : "give the recording more spare_kernarg_bytes, or have fewer replays in flight"});
  }
}

bool RecordingState::all_landed() noexcept {
  while (!flights_.empty()) {
    const Flight& oldest = flights_.front();
    if (!oldest.timeline->is_done(oldest.value)) {
      if (!oldest.timeline->failed() || oldest.timeline->is_done(oldest.value)) break;
      lost_ = true;
    }
    // It is unknown when the packets of a lost replay end, so no block in use until then is reused.
    if (!lost_) completed_ = oldest.replay;
    flights_.pop_front();
  }
  if (lost_ || !flights_.empty()) return false;
  completed_ = replays_;
  return true;
}

// `resumes`: it continues the last replay, whose published parts are in flight already.
[[gnu::always_inline]] inline void RecordingState::note_flight(BatchQueue& state, uint64_t value,
                                                               bool resumes) noexcept {
  if (resumes && !flights_.empty() && flights_.back().replay == replays_) flights_.pop_back();
  replays_ += !resumes;
  flights_.push_back({replays_, &state.timeline(), value});
}

void RecordingState::require_queue(BatchQueue& state) const {
  if (publication_.queue != nullptr && publication_.queue != &state)
    require_not_partly_out("a replay on another queue");
  const Agent* const agent = state.agent();
  if ((agent != nullptr) != agent_.has_value() ||
      (agent != nullptr && agent->handle().handle != agent_->handle().handle))
    refuse_recording(
        fmt::format("a replay on {}", agent == nullptr ? "a queue without agent" : agent->name()),
        fmt::format("it was recorded for {}", agent_ ? agent_->name() : "a queue without agent"),
        "record it for that agent");
  if (naming_queue_ == 0 || state.facts().queue_address == facts_.queue_address) return;
  const auto naming = std::find_if(nodes_.begin(), nodes_.end(), [](const Recorded& recorded) {
    return recorded.kernel != nullptr && recorded.kernel->arguments.names_queue();
  });
  refuse_recording(
      "a replay on another queue",
      fmt::format("a hidden argument of kernel '{}' holds the address of its queue",
                  naming->kernel->name),
      "replay it on the queue that it was recorded for, or record it for this one too");
}

std::optional<Completion> RecordingState::submit(BatchQueue& state, Deadline deadline,
                                                 const CallSite& site) {
  require_usable();
  publication_.site = site;
  const bool resumes = publication_.queue != nullptr;
  if (agent_ || state.agent() != nullptr || naming_queue_ != 0 || resumes) require_queue(state);
  if (!spare_kept_) keep_spare();
  if (flights_.full()) {
    all_landed();
    if (flights_.full()) flights_.reserve(std::max<size_t>(16, 2 * flights_.size()));
  }
  // Before the first header.
  if (!stale_.empty()) write_stale_blocks();
  const uint64_t before = state.timeline().last_begun();
  const auto note_parts = [&]() noexcept {
    const uint64_t begun = state.timeline().last_begun();
    if (begun != before) note_flight(state, begun, resumes);
    if (publication_.queue != nullptr) [[unlikely]]
      BatchQueue::leave(publication_);
    if (publication_.published != 0) [[unlikely]]
      state.join(publication_);
  };
  std::optional<uint64_t> value;
  try {
    value = state.submit(publication_, deadline);
  } catch (...) {
    note_parts();
    throw;
  }
  note_parts();
  keep_in_step();  // a barrier packet may have been appended
  if (!value) return {};
  return completion_of(state.timeline(), *value);
}

Completion RecordingState::replay(BatchQueue& state, Deadline deadline, const CallSite& site) {
  if (const auto completion = submit(state, deadline, site)) return *completion;
  state.throw_last_refusal(publication_);
}

Completion RecordingState::replay(BatchQueue& state, const CallSite& site) {
  // Usually there is room at once, and the clock is not read.
  if (publication_.packets.size() < state.longest_run())
    if (const auto completion = submit(state, Deadline::now(), site)) return *completion;
  return replay(state, Deadline::after(options_.patience), site);
}

void RecordingState::abandon() noexcept {
  if (publication_.queue == nullptr) return;
  publication_.queue->drop(publication_);
  BatchQueue::leave(publication_);
}

}  // namespace uptempo::detail
