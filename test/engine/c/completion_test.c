#include <hsa/hsa.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"

// A barrier packet that completes when the gate becomes 0.
static void append_gate(uptempo_batch* batch, hsa_signal_t gate) {
  hsa_barrier_and_packet_t packet;
  memset(&packet, 0, sizeof packet);
  packet.header = HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE |
                  1 << HSA_PACKET_HEADER_BARRIER |
                  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  packet.dep_signal[0] = gate;
  OK(uptempo_batch_raw(batch, &packet));
}

void completion_cases(void) {
  uptempo_kernel* const fill = kernel_of(basics, "fill");
  uptempo_buffer* const words = pinned_buffer(64 * 4);
  const fill_arguments arguments = {uptempo_buffer_data(words), 7};
  const uptempo_grid grid = uptempo_grid_of(64, 64);
  const uptempo_queue_options narrow = {.size = sizeof narrow, .publications = 2};
  const uptempo_batch_options timed = {.size = sizeof timed, .timing = UPTEMPO_TIMING_EACH};
  uptempo_queue* queue = NULL;
  uptempo_batch* batch = NULL;
  OK(uptempo_queue_create(gpu, &narrow, &queue));
  OK(uptempo_batch_create(queue, &timed, &batch));
  hsa_signal_t gate;
  CHECK(hsa_signal_create(1, 0, NULL, &gate) == HSA_STATUS_SUCCESS);
  uptempo_completion done;

  if (begins("a completion without a publication is complete")) {
    const uptempo_completion none = {NULL, 0};
    OK(uptempo_completion_poll(none));
    OK(uptempo_completion_wait(none, 0, UPTEMPO_WAIT_ACTIVE));
    FAILS(uptempo_completion_wait(none, 0, (uptempo_wait)9), ARGUMENT, "parameter 'how': it is 9");
  }
  if (begins("waits end at their time limit, and when the work is complete")) {
    append_gate(batch, gate);
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
    CHECK(uptempo_completion_poll(done) == UPTEMPO_NOT_READY);
    CHECK(uptempo_completion_wait(done, 0, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_NOT_READY);
    CHECK(uptempo_completion_wait(done, 2000000, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_NOT_READY);
    FAILS(uptempo_queue_drain(queue, 1000000), DEADLINE, "completion_test.c");
    // The queue has one publication left; its third one finds no place on the timeline.
    OK(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)));
    OK(uptempo_batch_submit(batch, 0, NULL, &done));
    OK(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)));
    CHECK(uptempo_batch_submit(batch, 0, NULL, &done) == UPTEMPO_NOT_READY);
    FAILS(uptempo_batch_submit(batch, 1000000, NULL, &done), TIMELINE, "");
    hsa_signal_store_screlease(gate, 0);
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_BLOCKED));
    OK(uptempo_completion_poll(done));
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, NULL, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_ACTIVE));
    hsa_signal_store_screlease(gate, 1);
  }
  if (begins("a batch waits for and completes the caller's signals")) {
    hsa_signal_t finished;
    CHECK(hsa_signal_create(9, 0, NULL, &finished) == HSA_STATUS_SUCCESS);
    uint32_t* const out = uptempo_buffer_data(words);
    out[1] = 0;
    OK(uptempo_batch_after_signal(batch, gate.handle));
    OK(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)));
    OK(uptempo_batch_complete_with(batch, finished.handle));
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
    CHECK(hsa_signal_load_scacquire(finished) == 1 && out[1] == 0);
    hsa_signal_store_screlease(gate, 0);
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(hsa_signal_load_scacquire(finished) == 0 && out[1] == 7);
    hsa_signal_store_screlease(gate, 1);
    FAILS(uptempo_batch_after_signal(batch, 0), ARGUMENT, "");
    FAILS(uptempo_batch_complete_with(batch, 0), ARGUMENT, "");
    FAILS(uptempo_batch_complete_with(NULL, finished.handle), ARGUMENT, "'batch'");
    OK(uptempo_queue_reclaim(queue));
    CHECK(hsa_signal_destroy(finished) == HSA_STATUS_SUCCESS);
  }
  if (begins("times of packets are in order")) {
    for (int i = 0; i < 3; ++i)
      OK(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)));
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, NULL, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    uptempo_packet_time times[3] = {{0, 0}, {0, 0}, {1, 1}};
    size_t count = 0;
    OK(uptempo_completion_times(done, NULL, 0, &count));
    CHECK(count == 3);
    OK(uptempo_completion_times(done, times, 2, &count));
    CHECK(count == 3 && times[2].start_ns == 1);
    CHECK(times[0].start_ns != 0 && times[0].start_ns <= times[0].end_ns &&
          times[0].end_ns <= times[1].end_ns);
    FAILS(uptempo_completion_times(done, NULL, 2, &count), ARGUMENT, "'times'");
    FAILS(uptempo_completion_times(done, times, 2, NULL), ARGUMENT, "'count'");
  }
  if (begins("a descriptor becomes readable when watched work is complete")) {
    uptempo_notifier* notifier = NULL;
    const uptempo_notifier_options one = {.size = sizeof one, .capacity = 1};
    OK(uptempo_notifier_create(&one, &notifier));
    int32_t fd = -1;
    OK(uptempo_notifier_fd(notifier, &fd));
    append_gate(batch, gate);
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
    OK(uptempo_notifier_watch(notifier, done, 99));
    CHECK(uptempo_notifier_watch(notifier, done, 100) == UPTEMPO_NOT_READY);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    CHECK(poll(&readable, 1, 0) == 0);
    uptempo_notice notice;
    CHECK(uptempo_notifier_take(notifier, &notice) == UPTEMPO_NOT_READY);
    hsa_signal_store_screlease(gate, 0);
    CHECK(poll(&readable, 1, 60000) == 1);
    uint64_t count = 0;
    CHECK(read(fd, &count, sizeof count) == sizeof count && count == 1);
    OK(uptempo_notifier_take(notifier, &notice));
    CHECK(notice.tag == 99 && notice.failed == 0 && notice.completion.value == done.value);
    CHECK(uptempo_notifier_take(notifier, &notice) == UPTEMPO_NOT_READY);
    OK(uptempo_notifier_destroy(notifier));

    // The caller's descriptor.
    const int own = eventfd(0, EFD_NONBLOCK);
    const uptempo_notifier_options given = {.size = sizeof given, .has_eventfd = 1, .eventfd = own};
    OK(uptempo_notifier_create(&given, &notifier));
    OK(uptempo_notifier_fd(notifier, &fd));
    CHECK(fd == own);
    OK(uptempo_notifier_watch(notifier, done, 1));
    readable.fd = own;
    CHECK(poll(&readable, 1, 60000) == 1);
    OK(uptempo_notifier_destroy(notifier));
    CHECK(close(own) == 0);
    FAILS(uptempo_notifier_take(NULL, &notice), ARGUMENT, "'notifier'");
  }
  CHECK(hsa_signal_destroy(gate) == HSA_STATUS_SUCCESS);
  OK(uptempo_batch_destroy(batch));
  OK(uptempo_queue_destroy(queue));
  OK(uptempo_kernel_destroy(fill));
  OK(uptempo_buffer_destroy(words));
}
