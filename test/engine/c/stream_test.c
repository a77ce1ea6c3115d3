#include <hsa/hsa.h>
#include <stdlib.h>

#include "check.h"

enum { kLength = 256 };

struct own_packet {
  hsa_queue_t* queue;
  hsa_signal_t done;
  uint64_t room;
};

// Publishes a barrier packet, as a program without this library does.
static void publish_barrier(void* data, uint64_t room) {
  struct own_packet* const own = data;
  own->room = room;
  const uint64_t index = hsa_queue_load_write_index_relaxed(own->queue);
  hsa_barrier_and_packet_t* const packet =
      (hsa_barrier_and_packet_t*)own->queue->base_address + index % own->queue->size;
  memset((char*)packet + 4, 0, sizeof *packet - 4);
  packet->completion_signal = own->done;
  __atomic_store_n(
      (uint32_t*)packet,
      HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER,
      __ATOMIC_RELEASE);
  hsa_queue_store_write_index_screlease(own->queue, index + 1);
  hsa_signal_store_screlease(own->queue->doorbell_signal, (hsa_signal_value_t)index);
}

void stream_cases(void) {
  const size_t bytes = kLength * 4;
  uptempo_kernel* const iota = kernel_of(basics, "iota");
  uptempo_kernel* const chain = kernel_of(basics, "chain_increment");
  uptempo_buffer* const words = pinned_buffer(bytes);
  uint32_t* const out = uptempo_buffer_data(words);
  const uptempo_grid grid = uptempo_grid_of(kLength, 64);
  const iota_arguments first = {out, 5, 3};
  const chain_arguments step = {out, 7};
  uptempo_streams* streams = NULL;
  uptempo_stream *stream = NULL, *other = NULL;
  OK(uptempo_streams_create(gpu, NULL, &streams));
  OK(uptempo_stream_create(streams, NULL, &stream));
  OK(uptempo_stream_create(streams, NULL, &other));

  if (begins("launches of a stream run in order")) {
    OK(uptempo_stream_launch(stream, iota, &grid, uptempo_packed(&first, sizeof first),
                             UPTEMPO_HERE));
    uint32_t* address = out;
    uint32_t addend = 7;
    void* params[] = {&address, &addend};
    OK(uptempo_stream_launch(stream, chain, &grid, uptempo_params(params, 2), NULL));
    OK(uptempo_stream_synchronize(stream, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    OK(uptempo_stream_poll(stream));
    for (uint32_t i = 0; i < kLength; ++i)
      if (!CHECK(out[i] == (5 + 3 * i) * 3 + 7)) break;
    char* text = NULL;
    OK(uptempo_streams_report(streams, &text));
    CHECK(strstr(text, "stream_test.c:") != NULL && strstr(text, "iota") != NULL);
    uptempo_free(text);
    OK(uptempo_streams_describe(streams, &text));
    CHECK(strstr(text, "hardware queue") != NULL);
    uptempo_free(text);
    FAILS(uptempo_stream_launch(NULL, iota, &grid, uptempo_packed(&first, sizeof first), NULL),
          ARGUMENT, "uptempo_stream_launch: parameter 'stream': it is NULL");
    FAILS(uptempo_stream_launch(stream, NULL, &grid, uptempo_packed(&first, sizeof first), NULL),
          ARGUMENT, "'kernel'");
    FAILS(uptempo_stream_launch(stream, iota, NULL, uptempo_packed(&first, sizeof first), NULL),
          ARGUMENT, "'grid'");
    FAILS(uptempo_stream_launch(stream, iota, &grid, uptempo_packed(&first, 4), NULL), ARGUMENT,
          "iota");
  }
  if (begins("streams share a queue of the caller's, who publishes to it in turns")) {
    uptempo_agent_info info = {.size = sizeof info};
    OK(uptempo_agent_get_info(gpu, &info));
    hsa_queue_t* owned = NULL;
    CHECK(hsa_queue_create((hsa_agent_t){info.hsa_agent}, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL,
                           UINT32_MAX, UINT32_MAX, &owned) == HSA_STATUS_SUCCESS);
    int32_t error = HSA_STATUS_SUCCESS;
    const uptempo_streams_queue queues[] = {{owned, &error}, {owned, NULL}};
    uptempo_streams_options options = {
        .size = sizeof options, .hsa_queues = queues, .hsa_queue_count = 1};
    uptempo_streams* over = NULL;
    uptempo_stream* on = NULL;
    OK(uptempo_streams_create(gpu, &options, &over));
    OK(uptempo_stream_create(over, NULL, &on));
    struct own_packet own = {.queue = owned};
    CHECK(hsa_signal_create(1, 0, NULL, &own.done) == HSA_STATUS_SUCCESS);
    memset(out, 0, bytes);
    OK(uptempo_stream_launch(on, iota, &grid, uptempo_packed(&first, sizeof first), NULL));
    OK(uptempo_streams_publish_own(over, owned, publish_barrier, &own));
    OK(uptempo_stream_launch(on, chain, &grid, uptempo_packed(&step, sizeof step), NULL));
    OK(uptempo_stream_synchronize(on, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(hsa_signal_load_scacquire(own.done) == 0);
    CHECK(own.room >= 56 && own.room <= 64);
    for (uint32_t i = 0; i < kLength; ++i)
      if (!CHECK(out[i] == (5 + 3 * i) * 3 + 7)) break;
    FAILS(uptempo_streams_publish_own(over, owned, NULL, NULL), ARGUMENT, "parameter 'publish'");
    FAILS(uptempo_streams_publish_own(streams, owned, publish_barrier, &own), ARGUMENT,
          "none of StreamsOptions::queues");
    // A stream outlives its Streams, and learns of errors until it ends.
    OK(uptempo_streams_destroy(over));
    OK(uptempo_stream_launch(on, chain, &grid, uptempo_packed(&step, sizeof step), NULL));
    OK(uptempo_stream_synchronize(on, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    __atomic_store_n(&error, HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, __ATOMIC_RELEASE);
    FAILS(uptempo_stream_launch(on, chain, &grid, uptempo_packed(&step, sizeof step), NULL), FAILED,
          "the owner of the borrowed queue reported an error");
    OK(uptempo_stream_destroy(on));
    options.hsa_queue_count = 2;
    FAILS(uptempo_streams_create(gpu, &options, &over), ARGUMENT, "twice");
    options.hsa_queues = NULL;
    FAILS(uptempo_streams_create(gpu, &options, &over), ARGUMENT, "'options.hsa_queues'");
    CHECK(hsa_queue_destroy(owned) == HSA_STATUS_SUCCESS);
    CHECK(hsa_signal_destroy(own.done) == HSA_STATUS_SUCCESS);
  }
  if (begins("streams wait for events and for the host's signals")) {
    hsa_signal_t gate;
    CHECK(hsa_signal_create(1, 0, NULL, &gate) == HSA_STATUS_SUCCESS);
    const uptempo_event_options timed = {.size = sizeof timed, .timed = 1};
    uptempo_event *begin = NULL, *end = NULL, *plain = NULL;
    OK(uptempo_event_create(&timed, &begin));
    OK(uptempo_event_create(&timed, &end));
    OK(uptempo_event_create(NULL, &plain));
    OK(uptempo_event_poll(plain));
    uint64_t begin_ns = 0, end_ns = 0;
    FAILS(uptempo_event_time(plain, &begin_ns), ARGUMENT, "it is not timed");
    FAILS(uptempo_event_time(begin, &begin_ns), MISUSE, "");
    memset(out, 0, bytes);

    OK(uptempo_stream_after_signal(stream, gate.handle, 0));
    OK(uptempo_stream_record(stream, begin));
    OK(uptempo_stream_launch(stream, iota, &grid, uptempo_packed(&first, sizeof first), NULL));
    OK(uptempo_stream_record(stream, plain));
    OK(uptempo_stream_after(other, plain));
    OK(uptempo_stream_launch(other, chain, &grid, uptempo_packed(&step, sizeof step), NULL));
    OK(uptempo_stream_record(other, end));
    CHECK(uptempo_event_poll(plain) == UPTEMPO_NOT_READY);
    CHECK(uptempo_event_wait(end, 1000000, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_NOT_READY);
    CHECK(uptempo_stream_synchronize(other, 0, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_NOT_READY);
    CHECK(uptempo_stream_poll(other) == UPTEMPO_NOT_READY);
    CHECK(out[1] == 0);
    uptempo_completion completion;
    OK(uptempo_event_completion(end, &completion));
    CHECK(uptempo_completion_poll(completion) == UPTEMPO_NOT_READY);
    hsa_signal_store_screlease(gate, 0);
    OK(uptempo_event_wait(end, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_BLOCKED));
    OK(uptempo_completion_poll(completion));
    CHECK(out[1] == (5 + 3) * 3 + 7);
    OK(uptempo_event_wait(begin, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    OK(uptempo_event_time(begin, &begin_ns));
    OK(uptempo_event_time(end, &end_ns));
    CHECK(begin_ns != 0 && begin_ns <= end_ns);

    // A signal that submitted work decrements.
    hsa_signal_store_screlease(gate, 1);
    OK(uptempo_stream_launch(stream, iota, &grid, uptempo_packed(&first, sizeof first), NULL));
    OK(uptempo_stream_signal(stream, gate.handle));
    OK(uptempo_stream_after_signal(other, gate.handle, 1));
    OK(uptempo_stream_launch(other, chain, &grid, uptempo_packed(&step, sizeof step), NULL));
    OK(uptempo_streams_synchronize(streams, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(hsa_signal_load_scacquire(gate) == 0 && out[2] == (5 + 6) * 3 + 7);
    // Work that waits for the host ends no wait before its time limit.
    hsa_signal_store_screlease(gate, 1);
    OK(uptempo_stream_after_signal(other, gate.handle, 0));
    OK(uptempo_stream_launch(other, iota, &grid, uptempo_packed(&first, sizeof first), NULL));
    CHECK(uptempo_streams_synchronize(streams, 0, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_NOT_READY);
    CHECK(uptempo_streams_synchronize(streams, 1000000, UPTEMPO_WAIT_BLOCKED) == UPTEMPO_NOT_READY);
    hsa_signal_store_screlease(gate, 0);
    OK(uptempo_streams_synchronize(streams, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    FAILS(uptempo_streams_synchronize(NULL, 0, UPTEMPO_WAIT_DEFAULT), ARGUMENT, "'streams'");
    FAILS(uptempo_stream_record(stream, NULL), ARGUMENT, "'event'");
    FAILS(uptempo_stream_after(NULL, plain), ARGUMENT, "'stream'");
    OK(uptempo_event_destroy(begin));
    OK(uptempo_event_destroy(end));
    OK(uptempo_event_destroy(plain));
    CHECK(hsa_signal_destroy(gate) == HSA_STATUS_SUCCESS);
  }
  if (begins("copies and fills run in the order of their stream, on the path that is asked for")) {
    uptempo_buffer* device = NULL;
    OK(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_DEVICE, bytes, NULL, &device));
    uint32_t* const on_device = uptempo_buffer_data(device);
    uint32_t* const host = malloc(bytes);
    for (uint32_t i = 0; i < kLength; ++i) host[i] = i;
    uptempo_path taken = UPTEMPO_PATH_AUTOMATIC;
    const uint32_t seven = 7;
    OK(uptempo_stream_fill(stream, uptempo_device(on_device, bytes), &seven, sizeof seven,
                           UPTEMPO_PATH_KERNEL, &taken));
    CHECK(taken == UPTEMPO_PATH_KERNEL);
    OK(uptempo_stream_copy(stream, uptempo_pinned(out, bytes), uptempo_device(on_device, bytes),
                           UPTEMPO_PATH_ENGINE, &taken));
    CHECK(taken == UPTEMPO_PATH_ENGINE);
    OK(uptempo_stream_synchronize(stream, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(out[0] == 7 && out[kLength - 1] == 7);
    OK(uptempo_stream_copy(stream, uptempo_device(on_device, bytes), uptempo_pageable(host, bytes),
                           UPTEMPO_PATH_AUTOMATIC, NULL));
    // 4 rows of 8 words, from the left of 64 words to the right.
    const uptempo_rows rows = {32, 4, 256, 256};
    OK(uptempo_stream_copy_2d(stream, uptempo_device(on_device + 32, bytes - 128),
                              uptempo_device(on_device, bytes), &rows, UPTEMPO_PATH_KERNEL,
                              &taken));
    const uint16_t half = 0x1234;
    const uptempo_rows filled = {4, 4, 256, 0};
    OK(uptempo_stream_fill_2d(stream, uptempo_device(on_device + 63, bytes - 252), &filled, &half,
                              sizeof half, UPTEMPO_PATH_AUTOMATIC, NULL));
    OK(uptempo_stream_copy(stream, uptempo_pageable(host, bytes), uptempo_device(on_device, bytes),
                           UPTEMPO_PATH_AUTOMATIC, NULL));
    OK(uptempo_stream_synchronize(stream, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    for (uint32_t i = 0; i < kLength; ++i) {
      const uint32_t column = i % 64;
      const uint32_t expected = column == 63                  ? 0x12341234
                                : column >= 32 && column < 40 ? i - 32
                                                              : i;
      if (!CHECK(host[i] == expected)) break;
    }
    OK(uptempo_stream_host_wrote(stream));
    FAILS(uptempo_stream_copy(stream, uptempo_pinned(out, 8), uptempo_device(on_device, 4),
                              UPTEMPO_PATH_AUTOMATIC, NULL),
          ARGUMENT, "");
    FAILS(uptempo_stream_copy(stream, uptempo_pinned(out, 4), uptempo_device(on_device, 4),
                              (uptempo_path)4, NULL),
          ARGUMENT, "parameter 'path': it is 4");
    FAILS(uptempo_stream_copy_2d(stream, uptempo_pinned(out, 4), uptempo_device(on_device, 4), NULL,
                                 UPTEMPO_PATH_AUTOMATIC, NULL),
          ARGUMENT, "'rows'");
    FAILS(uptempo_stream_free_after_work(NULL, device), ARGUMENT, "'stream'");
    OK(uptempo_stream_free_after_work(stream, device));
    free(host);
  }
  if (begins("streams have a priority and a mask of compute units")) {
    const uint32_t mask[] = {3};
    const uptempo_queue_options queue = {.size = sizeof queue, .packets = 512};
    const uptempo_streams_options few = {.size = sizeof few,
                                         .queue = &queue,
                                         .stage_bytes = UPTEMPO_ZERO_BYTES,
                                         .hardware_queues = 1};
    const uptempo_stream_options options = {.size = sizeof options,
                                            .cu_mask = mask,
                                            .cu_mask_words = 1,
                                            .priority = UPTEMPO_PRIORITY_HIGH};
    uptempo_streams* own = NULL;
    uptempo_stream* masked = NULL;
    OK(uptempo_streams_create(gpu, &few, &own));
    OK(uptempo_stream_create(own, &options, &masked));
    OK(uptempo_stream_launch(masked, iota, &grid, uptempo_packed(&first, sizeof first), NULL));
    char* text = NULL;
    OK(uptempo_streams_describe(own, &text));
    CHECK(strstr(text, "512") != NULL && strstr(text, "high") != NULL);
    uptempo_free(text);
    // A stream outlives its Streams.
    OK(uptempo_streams_destroy(own));
    OK(uptempo_stream_synchronize(masked, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    OK(uptempo_stream_destroy(masked));
    uptempo_stream_options wrong = options;
    wrong.priority = (uptempo_priority)2;
    FAILS(uptempo_stream_create(streams, &wrong, &masked), ARGUMENT, "'options.priority': it is 2");
    wrong = options;
    wrong.cu_mask = NULL;
    FAILS(uptempo_stream_create(streams, &wrong, &masked), ARGUMENT, "'options.cu_mask'");
    FAILS(uptempo_streams_create(NULL, NULL, &own), ARGUMENT, "'agent'");
  }
  OK(uptempo_stream_destroy(stream));
  OK(uptempo_stream_destroy(other));
  OK(uptempo_streams_destroy(streams));
  OK(uptempo_kernel_destroy(iota));
  OK(uptempo_kernel_destroy(chain));
  OK(uptempo_buffer_destroy(words));
}
