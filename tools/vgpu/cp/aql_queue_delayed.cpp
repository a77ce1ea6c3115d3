// Behaviour of a compute queue under --delay only.
#include <utility>

#include "cp/aql_queue.hpp"

namespace uptempo::vgpu {

std::optional<bool> AqlQueue::hold_back() {
  if (!delays_->over(DelayPlace::launch, next_)) return wait_for(Waiting::delay);
  if (!late_completion_) return std::nullopt;
  if (!delays_->over(DelayPlace::completion, next_)) return wait_for(Waiting::delay);
  const LateCompletion late = *std::exchange(late_completion_, std::nullopt);
  return complete_in_place(late.header, late.signal, late.dispatch ? &*late.dispatch : nullptr,
                           &late.kernel);
}

// Until the delay ends, the packet's slot, its signal and packets with a barrier bit wait as they
// do while the dispatch runs.
bool AqlQueue::is_late(InFlight& packet, uint64_t index) {
  if (!packet.late_until_ns) packet.late_until_ns = delays_->begin(DelayPlace::completion, index);
  return !delays_->reached(*packet.late_until_ns);
}

// The packet has executed; it is not executed again. A dependency that was met once stays met.
bool AqlQueue::completes_late(AqlHeader header, hsa_signal_t signal,
                              const hsa_kernel_dispatch_packet_t* dispatch,
                              const std::string* kernel) {
  if (delays_->over(DelayPlace::completion, next_)) return false;
  LateCompletion& late = late_completion_.emplace(
      LateCompletion{.header = header, .signal = signal, .dispatch = {}, .kernel = {}});
  if (dispatch != nullptr) late.dispatch = *dispatch;
  if (kernel != nullptr) late.kernel = *kernel;
  wait_for(Waiting::delay);
  return true;
}

std::string AqlQueue::drawn_delays(uint64_t index) const {
  const auto drawn = [&](DelayPlace place) {
    return std::to_string(delays_->drawn_ns(place, index));
  };
  return R"(,"delays_ns":{"launch":)" + drawn(DelayPlace::launch) + R"(,"completion":)" +
         drawn(DelayPlace::completion) + R"(,"interrupt":)" + drawn(DelayPlace::interrupt) + '}';
}

}  // namespace uptempo::vgpu
