// Streams and events in C (engine/stream/streams.hpp, stream.hpp, event.hpp, copy_memory.hpp).
#ifndef UPTEMPO_C_STREAM_H
#define UPTEMPO_C_STREAM_H

#include <uptempo/c/base.h>
#include <uptempo/c/completion.h>
#include <uptempo/c/memory.h>
#include <uptempo/c/program.h>
#include <uptempo/c/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

// As a limit of bytes: 0 bytes, so no copy takes that path. A field of 0 takes its default.
#define UPTEMPO_ZERO_BYTES UINT64_MAX

// An HSA queue of the caller's for streams (BorrowedQueue of engine/dispatch/queue.hpp). Its type
// must not be HSA_QUEUE_TYPE_SINGLE.
typedef struct uptempo_streams_queue {
  struct hsa_queue_s* queue;
  // Where the queue's error callback stores its hsa_status_t, atomically: by atomic_store() to an
  // _Atomic int32_t or __atomic_store_n(). 0 before. It must live until the last stream has ended.
  // Unfinished work then ends with that error, and streams on the queue refuse later work. NULL:
  // only time limits and memory faults reveal that the queue is dead.
  const int32_t* error;
} uptempo_streams_queue;

typedef struct uptempo_streams_options {
  size_t size;
  uint64_t patience_ns;  // longest wait of a call for room; 0: 30 s
  // Limits of copies (CopyLimits); 0: the measured default, UPTEMPO_ZERO_BYTES: 0.
  uint64_t host_bytes;                 // largest copy by the host
  uint64_t kernel_bytes;               // largest copy by a kernel if an engine could do it, too
  uint64_t stage_bytes;                // largest copy of pageable memory through staging
  uint64_t staging_bytes;              // staging memory
  uint64_t staging_piece_bytes;        // part of it that a step of a copy uses
  const uptempo_queue_options* queue;  // of each hardware queue; NULL: the defaults
  uint32_t hardware_queues;            // at most, for each priority and mask; 0: 4
  uint32_t own_queues;                 // at most, for streams that wait for the host; 0: 4
  uint32_t epoch_packets;              // launches per completion signal; 0: 128
  uint32_t engine_copies;              // unfinished copies per engine; 0: 32
  uint32_t rocr_chooses_engines;       // not 0: ROCr chooses the copy engine of each copy
  uint32_t system_acquires;            // not 0: every launch acquires at system scope
  // HSA queues of the caller's, which streams of normal priority without a mask share; 0: the
  // library creates all queues. Other code publishes to them in uptempo_streams_publish_own() only.
  // The caller destroys them after the last stream. StreamsOptions::queues.
  const uptempo_streams_queue* hsa_queues;
  size_t hsa_queue_count;
} uptempo_streams_options;

// The streams of one agent, and the hardware queues that they share. Any thread.
UPTEMPO_API uptempo_status uptempo_streams_create(const uptempo_agent* agent,
                                                  const uptempo_streams_options* options,
                                                  uptempo_streams** streams);
// When the streams handle and the last stream have been destroyed, unfinished work is awaited up to
// uptempo_queue_options::drain_timeout_ns.
UPTEMPO_API uptempo_status uptempo_streams_destroy(uptempo_streams* streams);
// Waits for all earlier work of all streams. Returns UPTEMPO_NOT_READY if the time limit passes
// first, and the error of a queue that has failed. Any thread.
UPTEMPO_API uptempo_status uptempo_streams_synchronize(uptempo_streams* streams,
                                                       uint64_t timeout_ns, uptempo_wait how);
// Calls publish(data, room), which publishes at most `room` packets of the caller's to one of
// uptempo_streams_options::hsa_queues, headers and doorbell included. `room` may be 0. No stream
// publishes to that queue meanwhile. Streams::publish_own() has the rules: publish() uses no stream
// and waits for no work. It must return: no longjmp(), no end of its thread by pthread_cancel() or
// pthread_exit(). Any thread.
UPTEMPO_API uptempo_status uptempo_streams_publish_own(uptempo_streams* streams,
                                                       const struct hsa_queue_s* hsa_queue,
                                                       void (*publish)(void* data, uint64_t room),
                                                       void* data);
// As uptempo_runtime_describe() and uptempo_queue_report(). Any thread.
UPTEMPO_API uptempo_status uptempo_streams_describe(const uptempo_streams* streams, char** text);
UPTEMPO_API uptempo_status uptempo_streams_report(const uptempo_streams* streams, char** text);

typedef enum uptempo_priority UPTEMPO_ENUM_TYPE {
  UPTEMPO_PRIORITY_LOW = -1,
  UPTEMPO_PRIORITY_NORMAL = 0,
  UPTEMPO_PRIORITY_HIGH = 1,
} uptempo_priority;

typedef struct uptempo_stream_options {
  size_t size;
  // Bit i of word i / 32: compute unit i may be used. NULL: all.
  const uint32_t* cu_mask;
  size_t cu_mask_words;
  uptempo_priority priority;
  uint32_t reserved;  // 0
} uptempo_stream_options;

// Work that executes in the order of its calls, beside that of other streams. One owner at a time,
// for all functions of a stream.
UPTEMPO_API uptempo_status uptempo_stream_create(uptempo_streams* streams,
                                                 const uptempo_stream_options* options,
                                                 uptempo_stream** stream);
// Does not wait; the work continues.
UPTEMPO_API uptempo_status uptempo_stream_destroy(uptempo_stream* stream);

// Publishes one dispatch. `grid` and `arguments` are read before the call returns. Waits for room
// up to patience_ns. Fails as uptempo_batch_dispatch(), and if the hardware queue has failed.
// Kernels and memory must live until completion.
UPTEMPO_API uptempo_status uptempo_stream_launch(uptempo_stream* stream,
                                                 const uptempo_kernel* kernel,
                                                 const uptempo_grid* grid,
                                                 uptempo_arguments arguments, const char* site);
// Later launches see the host's writes to coarse-grained memory.
UPTEMPO_API uptempo_status uptempo_stream_host_wrote(uptempo_stream* stream);
// Waits until all earlier work is complete, or returns UPTEMPO_NOT_READY if the time limit passes
// first. Fails if the hardware queue has failed.
UPTEMPO_API uptempo_status uptempo_stream_synchronize(uptempo_stream* stream, uint64_t timeout_ns,
                                                      uptempo_wait how);
// Returns UPTEMPO_OK if all earlier work is complete, else UPTEMPO_NOT_READY.
UPTEMPO_API uptempo_status uptempo_stream_poll(uptempo_stream* stream);

// Events: points in the work of a stream.

typedef struct uptempo_event_options {
  size_t size;
  uint64_t timed;  // not 0: it has the completion time (uptempo_event_time)
} uptempo_event_options;

// An event that was never recorded is complete. Any thread may use an event, but none while another
// records it.
UPTEMPO_API uptempo_status uptempo_event_create(const uptempo_event_options* options,
                                                uptempo_event** event);
// Owns nothing: neither waits nor affects streams that follow it.
UPTEMPO_API uptempo_status uptempo_event_destroy(uptempo_event* event);
// The event completes when all earlier work of the stream is complete. Replaces its earlier point.
UPTEMPO_API uptempo_status uptempo_stream_record(uptempo_stream* stream, uptempo_event* event);
// Later work of the stream begins after the event. Fails if that needs a hardware queue of its own
// and none is left.
UPTEMPO_API uptempo_status uptempo_stream_after(uptempo_stream* stream, const uptempo_event* event);
// As uptempo_completion_wait() and uptempo_completion_poll(). Copies to pageable memory that the
// event covers are complete then, too.
UPTEMPO_API uptempo_status uptempo_event_wait(const uptempo_event* event, uint64_t timeout_ns,
                                              uptempo_wait how);
UPTEMPO_API uptempo_status uptempo_event_poll(const uptempo_event* event);
// Returns the event as a completion, for notifiers. It covers the device's part: call
// uptempo_event_poll() after it.
UPTEMPO_API uptempo_status uptempo_event_completion(const uptempo_event* event,
                                                    uptempo_completion* completion);
// Returns when a timed event completed, in nanoseconds of the system's clock domain. Fails if it is
// not timed, not recorded or not complete.
UPTEMPO_API uptempo_status uptempo_event_time(const uptempo_event* event, uint64_t* ns);

// HSA signals of the caller's, by hsa_signal_t::handle, which must live until the work is over.

// Later work of the stream begins when the signal is 0. `set_by_device` not 0: submitted work sets
// it, and the stream keeps its hardware queue; else the stream gets one of its own.
UPTEMPO_API uptempo_status uptempo_stream_after_signal(uptempo_stream* stream, uint64_t hsa_signal,
                                                       uint32_t set_by_device);
// Decrements the signal when all earlier work is complete.
UPTEMPO_API uptempo_status uptempo_stream_signal(uptempo_stream* stream, uint64_t hsa_signal);

// How a copy or fill is done (CopyPath).
typedef enum uptempo_path UPTEMPO_ENUM_TYPE {
  UPTEMPO_PATH_AUTOMATIC = 0,  // as `taken`: there was nothing to do
  UPTEMPO_PATH_ENGINE = 1,
  UPTEMPO_PATH_KERNEL = 2,
  UPTEMPO_PATH_HOST = 3,
} uptempo_path;

// `height` rows of `width_bytes`. A pitch is the distance between the begins of two rows.
typedef struct uptempo_rows {
  size_t width_bytes;
  size_t height;
  size_t to_pitch;
  size_t from_pitch;  // unused by fills
} uptempo_rows;

// Copies in stream order. Does not wait for the device, except for room. `taken` gets the path, and
// may be NULL. Pageable memory belongs to the copy until a later event or synchronize has been
// awaited; its bytes are read before the call returns, or when the device does the copy
// (copy_memory.hpp). Fails if the sizes differ, or if the requested path cannot do the copy.
UPTEMPO_API uptempo_status uptempo_stream_copy(uptempo_stream* stream, uptempo_range to,
                                               uptempo_range from, uptempo_path path,
                                               uptempo_path* taken);
// The same for rows.
UPTEMPO_API uptempo_status uptempo_stream_copy_2d(uptempo_stream* stream, uptempo_range to,
                                                  uptempo_range from, const uptempo_rows* rows,
                                                  uptempo_path path, uptempo_path* taken);
// A pattern has 1, 2, 4, 8 or 16 bytes; the target, or each row, holds a whole number of them.
UPTEMPO_API uptempo_status uptempo_stream_fill(uptempo_stream* stream, uptempo_range to,
                                               const void* pattern, size_t pattern_bytes,
                                               uptempo_path path, uptempo_path* taken);
UPTEMPO_API uptempo_status uptempo_stream_fill_2d(uptempo_stream* stream, uptempo_range to,
                                                  const uptempo_rows* rows, const void* pattern,
                                                  size_t pattern_bytes, uptempo_path path,
                                                  uptempo_path* taken);
// Destroys the buffer once all earlier work of the stream is complete. The handle ends at once. On
// failure the caller keeps it.
UPTEMPO_API uptempo_status uptempo_stream_free_after_work(uptempo_stream* stream,
                                                          uptempo_buffer* buffer);

#ifdef __cplusplus
}
#endif

#endif
