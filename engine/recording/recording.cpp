#include "engine/recording/recording.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/dispatch/batch_queue.hpp"
#include "engine/recording/recording_state.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

const RecordingOptions& checked(const RecordingOptions& options) {
  constexpr size_t kMostSpareBytes = 256 << 20;
  if (options.spare_kernarg_bytes > kMostSpareBytes)
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Recording",
                 .asked = fmt::format("{} spare bytes of kernargs", options.spare_kernarg_bytes),
                 .found = fmt::format("a recording has at most {}", kMostSpareBytes),
                 .remedy = "lower RecordingOptions::spare_kernarg_bytes"});
  return options;
}

}  // namespace

Recording::Recording(Queue& queue, const RecordingOptions& options)
    : state_(std::make_unique<detail::RecordingState>(queue.state("Recording"), checked(options))) {
}

Recording::Recording(std::unique_ptr<detail::RecordingState> state) noexcept
    : state_(std::move(state)) {}

Recording::~Recording() = default;

void Recording::raw(const aql::Packet64& packet) { state_->raw(packet); }

Completion Recording::replay(Queue& queue, CallSite site) {
  state_->called_from(site);
  return state_->replay(queue.state("Recording::replay"));
}

Completion Recording::replay(Queue& queue, Deadline deadline, CallSite site) {
  state_->called_from(site);
  return state_->replay(queue.state("Recording::replay"), deadline);
}

std::optional<Completion> Recording::try_replay(Queue& queue, CallSite site) {
  state_->called_from(site);
  return state_->submit(queue.state("Recording::try_replay"), Deadline::now());
}

void Recording::abandon() noexcept { state_->abandon(); }

size_t Recording::size() const noexcept { return state_->size(); }
const KernargPlace& Recording::kernargs() const noexcept { return state_->place(); }
uint64_t Recording::replays() const noexcept { return state_->replays(); }
std::span<const PacketPlan> Recording::plan() { return state_->plan(); }
std::string Recording::explain() { return uptempo::explain(plan()); }

detail::OpenNode Recording::add(const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid) {
  return state_->add(kernel, grid);
}

std::byte* Recording::writable_argument(const detail::NodeHandle& node, size_t argument,
                                        bool is_address) {
  return state_->writable_argument(node, argument, is_address);
}

void Recording::set_value(const detail::NodeHandle& node, size_t argument,
                          std::span<const std::byte> value) {
  state_->set_value(node, argument, value);
}

void Recording::set_values(const detail::NodeHandle& node, const Arguments& values) {
  state_->set_values(node, values);
}

void Recording::change_grid(const detail::NodeHandle& node, const Grid& grid) {
  state_->change_grid(node, grid);
}

detail::OpenNode Recording::change(const detail::NodeHandle& node,
                                   const std::shared_ptr<const KernelInfo>& kernel,
                                   const Grid& grid) {
  return state_->replace(node, kernel, grid);
}

detail::NodeHandle Recording::handle_of(size_t index) const { return state_->node(index); }

detail::NodeHandle Recording::handle_of(size_t index, std::span<const ArgumentType> types) const {
  return state_->node(index, types);
}

void Recording::set_group_segment_size(uint32_t index, uint32_t size_bytes) noexcept {
  state_->set_group_segment_size(index, size_bytes);
}

}  // namespace uptempo
