#include "check.h"

void last_case(void) {
  if (begins("handles outlive the Runtime: they can be destroyed, and their calls fail")) {
    const uptempo_grid grid = uptempo_grid_of(64, 64);
    uptempo_kernel* const fill = kernel_of(basics, "fill");
    uptempo_buffer* const words = pinned_buffer(64 * 4);
    const fill_arguments arguments = {uptempo_buffer_data(words), 7};
    const uptempo_arguments packed = uptempo_packed(&arguments, sizeof arguments);
    uptempo_queue* queue = NULL;
    uptempo_batch* batch = NULL;
    uptempo_notifier* notifier = NULL;
    uptempo_streams* streams = NULL;
    uptempo_stream* stream = NULL;
    uptempo_event* event = NULL;
    uptempo_copier* copier = NULL;
    uptempo_recording* recording = NULL;
    uptempo_completion done;
    OK(uptempo_queue_create(gpu, NULL, &queue));
    OK(uptempo_batch_create(queue, NULL, &batch));
    OK(uptempo_notifier_create(NULL, &notifier));
    OK(uptempo_streams_create(gpu, NULL, &streams));
    OK(uptempo_stream_create(streams, NULL, &stream));
    OK(uptempo_event_create(NULL, &event));
    OK(uptempo_copier_create(gpu, &copier));
    OK(uptempo_recording_create(queue, NULL, &recording));
    OK(uptempo_batch_dispatch(batch, fill, &grid, packed));
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));

    OK(uptempo_runtime_destroy(runtime));

    OK(uptempo_completion_poll(done));
    FAILS(uptempo_batch_dispatch(batch, fill, &grid, packed), MISUSE, "Runtime");
    FAILS(uptempo_recording_dispatch(recording, fill, &grid, packed, NULL), MISUSE, "Runtime");
    FAILS(uptempo_stream_launch(stream, fill, &grid, packed, NULL), MISUSE, "Runtime");
    char* text = NULL;
    FAILS(uptempo_queue_report(queue, &text), MISUSE, "Runtime");
    CHECK(text == NULL);
    uptempo_queue_info queue_info = {.size = sizeof queue_info};
    FAILS(uptempo_queue_get_info(queue, &queue_info), MISUSE, "Runtime");
    CHECK(queue_info.hsa_queue == NULL);
    uptempo_buffer_info buffer_info = {.size = sizeof buffer_info};
    FAILS(uptempo_buffer_get_info(words, &buffer_info), MISUSE, "Runtime");
    CHECK(uptempo_buffer_data(words) == NULL && uptempo_error()->status == UPTEMPO_ERROR_MISUSE);
    // Facts that handles keep.
    uptempo_kernel_info kernel_info = {.size = sizeof kernel_info};
    OK(uptempo_kernel_get_info(fill, &kernel_info));
    CHECK(strcmp(kernel_info.name, "fill") == 0);
    uptempo_program_info program_info = {.size = sizeof program_info};
    OK(uptempo_program_get_info(basics, &program_info));
    CHECK(program_info.kernel_count > 0);
    uptempo_kernel* other = NULL;
    FAILS(uptempo_kernel_create(basics, "tally", NULL, &other), MISUSE, "Runtime");
    OK(uptempo_recording_destroy(recording));
    OK(uptempo_copier_destroy(copier));
    OK(uptempo_event_destroy(event));
    OK(uptempo_stream_destroy(stream));
    OK(uptempo_streams_destroy(streams));
    OK(uptempo_notifier_destroy(notifier));
    OK(uptempo_batch_destroy(batch));
    OK(uptempo_queue_destroy(queue));
    OK(uptempo_buffer_destroy(words));
    OK(uptempo_kernel_destroy(fill));
  } else {
    OK(uptempo_runtime_destroy(runtime));
  }
  OK(uptempo_program_destroy(basics));
}
