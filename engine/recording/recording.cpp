#include <uptempo/recording/recording.hpp>

#include <fmt/format.h>

#include <utility>

#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/recording/recording_state.hpp>
#include <uptempo/runtime/attempt.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

const RecordingOptions& checked(const RecordingOptions& options) {
  constexpr size_t kMostSpareBytes = 256 << 20;
  if (options.spare_kernarg_bytes > kMostSpareBytes)
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
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

Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

detail::RecordingState& Recording::state(const char* call) const {
  if (state_) return *state_;
  detail::refuse_moved(call, "Recording");
}

void Recording::raw(const aql::Packet64& packet) { state("Recording::raw").raw(packet); }

Completion Recording::replay(Queue& queue, CallSite site) {
  return state("Recording::replay").replay(queue.state("Recording::replay"), site);
}

Completion Recording::replay(Queue& queue, Deadline deadline, CallSite site) {
  return state("Recording::replay").replay(queue.state("Recording::replay"), deadline, site);
}

Tried<Completion> Recording::try_replay(Queue& queue, CallSite site) {
  detail::RecordingState& own = state("Recording::try_replay");
  detail::BatchQueue& on = queue.state("Recording::try_replay");
  return detail::attempt([&]() -> Tried<Completion> {
    if (const auto completion = own.submit(on, Deadline::now(), site)) return *completion;
    return Refusal(on.last_refusal(), "Recording::try_replay");
  });
}

void Recording::abandon() noexcept {
  if (state_) state_->abandon();
}

size_t Recording::size() const noexcept { return state_ ? state_->size() : 0; }
const KernargPlace& Recording::kernargs() const { return state("Recording::kernargs").place(); }
uint64_t Recording::replays() const noexcept { return state_ ? state_->replays() : 0; }
std::span<const PacketPlan> Recording::plan() { return state("Recording::plan").plan(); }
std::string Recording::explain() { return uptempo::explain(plan()); }

detail::OpenNode Recording::add(const std::shared_ptr<const KernelInfo>& kernel, const Grid& grid) {
  return state("Recording::dispatch").add(kernel, grid);
}

std::byte* Recording::writable_argument(const detail::NodeHandle& node, size_t argument) {
  return state("Recording::set").writable_argument(node, argument);
}

void Recording::set_address(const detail::NodeHandle& node, size_t argument, uintptr_t value) {
  state("Recording::set").set_address(node, argument, value);
}

void Recording::set_value(const detail::NodeHandle& node, size_t argument,
                          std::span<const std::byte> value) {
  state("Recording::set").set_value(node, argument, value);
}

void Recording::set_values(const detail::NodeHandle& node, const Arguments& values) {
  state("Recording::set").set_values(node, values);
}

void Recording::change_grid(const detail::NodeHandle& node, const Grid& grid) {
  state("Recording::set_grid").change_grid(node, grid);
}

detail::OpenNode Recording::change(const detail::NodeHandle& node,
                                   const std::shared_ptr<const KernelInfo>& kernel,
                                   const Grid& grid) {
  return state("Recording::replace").replace(node, kernel, grid);
}

detail::NodeHandle Recording::handle_of(size_t index,
                                        std::optional<std::span<const ArgumentType>> types) const {
  return state("Recording::node").node(index, types);
}

void Recording::set_group_segment_size(uint32_t index, uint32_t size_bytes) noexcept {
  state_->set_group_segment_size(index, size_bytes);
}

}  // namespace uptempo
