// Completions in C: wait, poll, file descriptors (engine/completion/completion.hpp, notifier.hpp).
#ifndef UPTEMPO_C_COMPLETION_H
#define UPTEMPO_C_COMPLETION_H

#include <uptempo/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// Names one publication of one queue. A value that owns nothing: copies are free, and it may
// outlive its queue and the Runtime. All zero: complete. Complete means: all packets of that
// publication, and of all earlier ones of its queue, are complete, and their writes are visible to
// the host and to copies.
typedef struct uptempo_completion {
  void* timeline;
  uint64_t value;
} uptempo_completion;

// How a call waits.
typedef enum uptempo_wait UPTEMPO_ENUM_TYPE {
  UPTEMPO_WAIT_DEFAULT = 0,  // spins for 20 us, then sleeps
  UPTEMPO_WAIT_ACTIVE = 1,   // spins: lowest latency, one core busy
  UPTEMPO_WAIT_BLOCKED = 2,  // sleeps in the driver at once: 5-50 us added latency
} uptempo_wait;

// Waits until complete. Returns UPTEMPO_NOT_READY if the time limit passes first, and the queue's
// error if the queue has failed. Any thread.
UPTEMPO_API uptempo_status uptempo_completion_wait(uptempo_completion completion,
                                                   uint64_t timeout_ns, uptempo_wait how);
// Returns UPTEMPO_OK once complete, until then UPTEMPO_NOT_READY, and the queue's error if the
// queue has failed. Makes no call of HSA. Any thread.
UPTEMPO_API uptempo_status uptempo_completion_poll(uptempo_completion completion);

// Start and end of a packet on the device, in nanoseconds of the system's monotonic clock domain.
typedef struct uptempo_packet_time {
  uint64_t start_ns;
  uint64_t end_ns;
} uptempo_packet_time;

// Returns the times of the packets that uptempo_timing chose, in order: fills at most `capacity`
// entries, and returns the number that there is. Times stay until as many further publications of
// the queue as uptempo_queue_options::publications have followed. Fails if the publication is not
// complete or has failed, or if its times are gone. Any thread.
UPTEMPO_API uptempo_status uptempo_completion_times(uptempo_completion completion,
                                                    uptempo_packet_time* times, size_t capacity,
                                                    size_t* count);

// Notifier: makes a file descriptor readable when completions finish, for programs that sleep in
// poll, epoll or io_uring.
//
//   uptempo_notifier_watch(notifier, completion, tag);
//   ...                                          // the descriptor is readable:
//   read(fd, &count, sizeof count);              // first, then take until there is no notice
//   while (uptempo_notifier_take(notifier, &notice) == UPTEMPO_OK) finish(notice.tag);

typedef struct uptempo_notifier_options {
  size_t size;
  uint32_t capacity;  // completions that are watched or not yet taken; 0: 64
  uint32_t has_eventfd;
  // With has_eventfd: the caller's eventfd, which must outlive the notifier. Else it creates one.
  int32_t eventfd;
  int32_t reserved;  // 0
} uptempo_notifier_options;

UPTEMPO_API uptempo_status uptempo_notifier_create(const uptempo_notifier_options* options,
                                                   uptempo_notifier** notifier);
// Drops all watched completions. Queues and the Runtime may be destroyed before.
UPTEMPO_API uptempo_status uptempo_notifier_destroy(uptempo_notifier* notifier);

// The following functions: any thread.

// Returns the eventfd.
UPTEMPO_API uptempo_status uptempo_notifier_fd(const uptempo_notifier* notifier, int32_t* fd);
// Watches a completion until it is complete or failed. Returns UPTEMPO_NOT_READY if `capacity`
// completions are watched or not yet taken.
UPTEMPO_API uptempo_status uptempo_notifier_watch(uptempo_notifier* notifier,
                                                  uptempo_completion completion, uint64_t tag);

typedef struct uptempo_notice {
  uptempo_completion completion;
  uint64_t tag;
  uint64_t failed;  // not 0: uptempo_completion_poll() returns the error
} uptempo_notice;

// Returns the oldest notice, or UPTEMPO_NOT_READY if there is none.
UPTEMPO_API uptempo_status uptempo_notifier_take(uptempo_notifier* notifier,
                                                 uptempo_notice* notice);

#ifdef __cplusplus
}
#endif

#endif
