#include <hsa/hsa.h>
#include <stdlib.h>

#include "check.h"

static void on_queue_error(hsa_status_t status, hsa_queue_t* queue, void* data) {
  (void)queue;
  uptempo_queue_fail(data, (int32_t)status);
}

void queue_cases(void) {
  uptempo_kernel* const fill = kernel_of(basics, "fill");
  uptempo_buffer* const words = pinned_buffer(64 * 4);
  uint32_t* const out = uptempo_buffer_data(words);
  const fill_arguments arguments = {out, 7};
  const uptempo_grid grid = uptempo_grid_of(64, 64);
  uptempo_completion done;

  if (begins("a queue has the options of its creator")) {
    const uptempo_queue_options options = {.size = sizeof options,
                                           .packets = 512,
                                           .publications = 3,
                                           .kernarg_bytes = 64 << 10,
                                           .access = UPTEMPO_RING_HSA_CALLS};
    uptempo_queue* queue = NULL;
    OK(uptempo_queue_create(gpu, &options, &queue));
    uptempo_queue_info info = {.size = sizeof info};
    OK(uptempo_queue_get_info(queue, &info));
    CHECK(info.ring_packets == 512 && info.hsa_queue != NULL && info.kernargs_on_device == 0);
    uptempo_pressure pressure = {.size = sizeof pressure};
    OK(uptempo_queue_pressure(queue, &pressure));
    CHECK(pressure.publications.capacity == 3 && pressure.ring.capacity == 512);
    char* text = NULL;
    OK(uptempo_queue_describe(queue, &text));
    CHECK(strstr(text, "512") != NULL);
    uptempo_free(text);
    OK(uptempo_queue_destroy(queue));
    const uptempo_queue_options wrong = {.size = sizeof wrong, .packets = 1000};
    FAILS(uptempo_queue_create(gpu, &wrong, &queue), ARGUMENT, "1000");
    CHECK(queue == NULL);
    FAILS(uptempo_queue_create(NULL, NULL, &queue), ARGUMENT, "parameter 'agent'");
  }
  if (begins("a queue reports its submissions, drains and reclaims")) {
    uptempo_queue* queue = NULL;
    uptempo_batch* batch = NULL;
    OK(uptempo_queue_create(gpu, NULL, &queue));
    OK(uptempo_batch_create(queue, NULL, &batch));
    out[63] = 0;
    OK(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)));
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, "here.c:42", &done));
    OK(uptempo_queue_drain(queue, UPTEMPO_NO_LIMIT));
    CHECK(out[63] == 7);
    OK(uptempo_queue_reclaim(queue));
    uptempo_completion last;
    OK(uptempo_queue_last_submitted(queue, &last));
    CHECK(last.timeline == done.timeline && last.value == done.value);
    char* text = NULL;
    OK(uptempo_queue_report(queue, &text));
    CHECK(strstr(text, "here.c:42:") != NULL && strstr(text, "fill") != NULL);
    CHECK(strstr(text, "here.c:42:0") == NULL);
    uptempo_free(text);
    FAILS(uptempo_queue_fail(queue, 1), ARGUMENT, "for a borrowed queue");
    // The batch outlives its queue.
    OK(uptempo_queue_destroy(queue));
    FAILS(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)),
          MISUSE, "");
    OK(uptempo_batch_destroy(batch));
  }
  if (begins("a borrowed queue ends with its owner's error")) {
    uptempo_agent_info info = {.size = sizeof info};
    OK(uptempo_agent_get_info(gpu, &info));
    hsa_queue_t* owned = NULL;
    uptempo_queue* queue = NULL;
    uptempo_batch* batch = NULL;
    CHECK(hsa_queue_create((hsa_agent_t){info.hsa_agent}, 1024, HSA_QUEUE_TYPE_MULTI,
                           on_queue_error, NULL, UINT32_MAX, UINT32_MAX,
                           &owned) == HSA_STATUS_SUCCESS);
    OK(uptempo_queue_borrow(gpu, owned, NULL, &queue));
    uptempo_queue_info facts = {.size = sizeof facts};
    OK(uptempo_queue_get_info(queue, &facts));
    CHECK(facts.hsa_queue == owned && facts.ring_packets == 1024);
    OK(uptempo_batch_create(queue, NULL, &batch));
    out[0] = 0;
    OK(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)));
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, NULL, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(out[0] == 7);
    FAILS(uptempo_queue_fail(queue, 0), ARGUMENT, "which is no error");
    on_queue_error(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, owned, queue);
    OK(uptempo_batch_dispatch(batch, fill, &grid, uptempo_packed(&arguments, sizeof arguments)));
    FAILS(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, NULL, &done), FAILED, "");
    CHECK(uptempo_error()->hsa_status == HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
    OK(uptempo_batch_destroy(batch));
    OK(uptempo_queue_destroy(queue));
    CHECK(hsa_queue_destroy(owned) == HSA_STATUS_SUCCESS);
    FAILS(uptempo_queue_borrow(gpu, NULL, NULL, &queue), ARGUMENT, "parameter 'hsa_queue'");
  }
  OK(uptempo_kernel_destroy(fill));
  OK(uptempo_buffer_destroy(words));
}
