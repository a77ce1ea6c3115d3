#include <uptempo/c/completion.h>

#include <algorithm>
#include <optional>

#include <uptempo/c/call.hpp>
#include <uptempo/completion/notifier.hpp>

using namespace uptempo;
using namespace uptempo::c;

struct uptempo_notifier : Handle<Kind::notifier> {
  uptempo_notifier(uint32_t capacity, std::optional<int> eventfd) : notifier(capacity, eventfd) {}
  CompletionNotifier notifier;
};

uptempo_status uptempo_completion_wait(uptempo_completion completion, uint64_t timeout_ns,
                                       uptempo_wait how) {
  return guarded(__func__, [&] {
    return status_of(completion_of(completion).wait(deadline_of(timeout_ns), policy_of(how)));
  });
}

uptempo_status uptempo_completion_poll(uptempo_completion completion) {
  return guarded(__func__, [&] { return status_of(completion_of(completion).ready()); });
}

uptempo_status uptempo_completion_times(uptempo_completion completion, uptempo_packet_time* times,
                                        size_t capacity, size_t* count) {
  return guarded(__func__, [&] {
    size_t& result = place(count, "count");
    if (capacity != 0) (void)place(times, "times");
    const std::vector<PacketTime> all = completion_of(completion).times();
    for (size_t i = 0; i < std::min(capacity, all.size()); ++i)
      times[i] = {all[i].start_ns, all[i].end_ns};
    result = all.size();
  });
}

uptempo_status uptempo_notifier_create(const uptempo_notifier_options* options,
                                       uptempo_notifier** notifier) {
  return create(__func__, notifier, [&] {
    const auto given = options_of(options, "options");
    return new uptempo_notifier(or_default(given.capacity, 64u), given.has_eventfd != 0
                                                                     ? std::optional(given.eventfd)
                                                                     : std::nullopt);
  });
}

uptempo_status uptempo_notifier_destroy(uptempo_notifier* notifier) {
  return destroy(__func__, notifier, "notifier");
}

uptempo_status uptempo_notifier_fd(const uptempo_notifier* notifier, int32_t* fd) {
  return guarded(__func__, [&] { place(fd, "fd") = handle(notifier, "notifier").notifier.fd(); });
}

uptempo_status uptempo_notifier_watch(uptempo_notifier* notifier, uptempo_completion completion,
                                      uint64_t tag) {
  return guarded(__func__, [&] {
    return status_of(
        handle(notifier, "notifier").notifier.try_watch(completion_of(completion), tag));
  });
}

uptempo_status uptempo_notifier_take(uptempo_notifier* notifier, uptempo_notice* notice) {
  return guarded(__func__, [&] {
    uptempo_notice& result = place(notice, "notice");
    const auto taken = handle(notifier, "notifier").notifier.take();
    if (taken) result = {completion_of(taken->completion), taken->tag, taken->failed};
    return status_of(taken.has_value());
  });
}
