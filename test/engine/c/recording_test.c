#include <hsa/hsa.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { kLength = 256 };

// A recording of iota and chain_increment over the same words, and what they shall hold.
static uptempo_recording* recorded(uptempo_queue* queue, const uptempo_kernel* iota,
                                   const uptempo_kernel* chain, uint32_t* out) {
  uptempo_recording* recording = NULL;
  const uptempo_grid grid = uptempo_grid_of(kLength, 64);
  const iota_arguments first = {out, 5, 3};
  const chain_arguments step = {out, 7};
  OK(uptempo_recording_create(queue, NULL, &recording));
  size_t node = 99;
  OK(uptempo_recording_dispatch(recording, iota, &grid, uptempo_packed(&first, sizeof first),
                                &node));
  CHECK(node == 0);
  OK(uptempo_recording_dispatch(recording, chain, &grid, uptempo_packed(&step, sizeof step),
                                &node));
  CHECK(node == 1);
  OK(uptempo_recording_dispatch(recording, chain, &grid, uptempo_packed(&step, sizeof step), NULL));
  size_t size = 0;
  OK(uptempo_recording_size(recording, &size));
  CHECK(size == 3);
  return recording;
}

// Replays, and compares each word with ((a + b i) 3 + c) 3 + d.
static void replays_to(uptempo_recording* recording, uptempo_queue* queue, const uint32_t* out,
                       uint32_t a, uint32_t b, uint32_t c, uint32_t d, const char* what) {
  uptempo_completion done;
  OK(uptempo_recording_replay(recording, queue, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
  OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
  bool right = true;
  for (uint32_t i = 0; i < kLength; ++i) right = right && out[i] == ((a + b * i) * 3 + c) * 3 + d;
  if (!CHECK(right)) printf("  %s\n", what);
}

void recording_cases(void) {
  uptempo_kernel* const iota = kernel_of(basics, "iota");
  uptempo_kernel* const chain = kernel_of(basics, "chain_increment");
  uptempo_kernel* const fill = kernel_of(basics, "fill");
  uptempo_buffer* const words = pinned_buffer(kLength * 4);
  uint32_t* const out = uptempo_buffer_data(words);
  const uptempo_grid grid = uptempo_grid_of(kLength, 64);
  uptempo_queue *queue = NULL, *second = NULL;
  OK(uptempo_queue_create(gpu, NULL, &queue));
  OK(uptempo_queue_create(gpu, NULL, &second));
  const uptempo_binding bindings[] = {{"words", out, kLength * 4}};

  if (begins("a finished packet has a number, after which dispatches are declared")) {
    uptempo_recording* recording = NULL;
    OK(uptempo_recording_create(queue, NULL, &recording));
    const fill_arguments filled = {out, 4};
    const uptempo_arguments packed = uptempo_packed(&filled, sizeof filled);
    const hsa_barrier_and_packet_t barrier = {.header = HSA_PACKET_TYPE_BARRIER_AND};
    size_t dispatched = 99, raw = 99;
    OK(uptempo_recording_dispatch(recording, fill, &grid, packed, &dispatched));
    OK(uptempo_recording_raw(recording, &barrier, &raw));
    CHECK(dispatched == 0 && raw == 1);
    OK(uptempo_recording_dispatch(recording, fill, &grid, packed, &dispatched));
    CHECK(dispatched == 2);
    const uptempo_declaration after = {
        .size = sizeof after, .parts = UPTEMPO_DECLARES_AFTER, .after = &raw, .after_count = 1};
    OK(uptempo_recording_declare(recording, dispatched, &after));
    OK(uptempo_recording_raw(recording, &barrier, NULL));
    memset(out, 0, kLength * 4);
    replays_to(recording, queue, out, 0, 0, 0, 4, "a fill");
    const unsigned char invalid[64] = {1};  // a header of type INVALID
    raw = 99;
    FAILS(uptempo_recording_raw(recording, invalid, &raw), ARGUMENT, "");
    FAILS(uptempo_recording_raw(recording, NULL, &raw), ARGUMENT, "'packet'");
    CHECK(raw == 99);
    OK(uptempo_recording_destroy(recording));
  }
  if (begins("a recording is replayed, patched and replayed on another queue")) {
    uptempo_recording* const recording = recorded(queue, iota, chain, out);
    replays_to(recording, queue, out, 5, 3, 7, 7, "as recorded");
    const uint32_t value = 100;
    OK(uptempo_recording_set(recording, 1, 1, &value, sizeof value));
    replays_to(recording, second, out, 5, 3, 100, 7, "one argument");
    const iota_arguments all = {out, 50, 2};
    OK(uptempo_recording_set_all(recording, 0, uptempo_packed(&all, sizeof all)));
    replays_to(recording, queue, out, 50, 2, 100, 7, "all arguments");
    const fill_arguments filled = {out, 4};
    OK(uptempo_recording_replace(recording, 0, fill, &grid,
                                 uptempo_packed(&filled, sizeof filled)));
    replays_to(recording, queue, out, 4, 0, 100, 7, "another kernel");
    const uptempo_grid half = uptempo_grid_of(kLength / 2, 64);
    OK(uptempo_recording_set_grid(recording, 2, &half));
    uptempo_completion done;
    OK(uptempo_recording_replay(recording, queue, 0, NULL, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(out[0] == (4 * 3 + 100) * 3 + 7 && out[kLength - 1] == 4 * 3 + 100);
    OK(uptempo_recording_abandon(recording));

    FAILS(uptempo_recording_set(recording, 3, 0, &value, sizeof value), ARGUMENT, "");
    FAILS(uptempo_recording_set(recording, 1, 2, &value, sizeof value), ARGUMENT, "");
    FAILS(uptempo_recording_set(recording, 1, 1, &value, 2), ARGUMENT, "");
    FAILS(uptempo_recording_set(recording, 1, 1, NULL, 4), ARGUMENT, "parameter 'value'");
    FAILS(uptempo_recording_set_all(recording, 1, uptempo_packed(&value, 4)), ARGUMENT, "chain");
    FAILS(uptempo_recording_set_grid(recording, 1, NULL), ARGUMENT, "'grid'");
    FAILS(
        uptempo_recording_dispatch(recording, NULL, &grid, uptempo_packed(&all, sizeof all), NULL),
        ARGUMENT, "'kernel'");
    FAILS(uptempo_recording_replay(recording, NULL, 0, NULL, &done), ARGUMENT, "'queue'");
    FAILS(uptempo_recording_replay(recording, queue, 0, NULL, NULL), ARGUMENT, "'completion'");
    size_t size = 0;
    OK(uptempo_recording_size(recording, &size));
    CHECK(size == 3);
    OK(uptempo_recording_destroy(recording));
  }
  if (begins("declarations of nodes decide about the plan")) {
    uptempo_recording* const recording = recorded(queue, iota, chain, out);
    const size_t after[] = {0};
    const uptempo_declaration on_none = {.size = sizeof on_none, .parts = UPTEMPO_DECLARES_AFTER};
    const uptempo_declaration on_first = {
        .size = sizeof on_first, .parts = UPTEMPO_DECLARES_AFTER, .after = after, .after_count = 1};
    OK(uptempo_recording_declare(recording, 0, &on_none));
    OK(uptempo_recording_declare(recording, 1, &on_first));
    // Only fences are asked for: the words are ordered by the barrier bit of packet 2.
    replays_to(recording, queue, out, 5, 3, 7, 7, "with dependencies");
    char* text = NULL;
    OK(uptempo_recording_explain(recording, &text));
    CHECK(strstr(text, "packet 1: barrier bit: ") != NULL);
    uptempo_free(text);
    FAILS(uptempo_recording_declare(recording, 0, &on_first), ARGUMENT, "");
    FAILS(uptempo_recording_declare(recording, 9, &on_none), ARGUMENT, "");
    const uptempo_access accesses[] = {{out, kLength * 4, 1}};
    const uptempo_declaration writes = {.size = sizeof writes,
                                        .parts = UPTEMPO_DECLARES_ACCESSES,
                                        .accesses = accesses,
                                        .access_count = 1};
    OK(uptempo_recording_declare(recording, 2, &writes));
    // Its declared range moves with its address.
    uptempo_buffer* const more_words = pinned_buffer(kLength * 4);
    uint32_t* const other = uptempo_buffer_data(more_words);
    memset(other, 0, kLength * 4);
    OK(uptempo_recording_set(recording, 2, 0, &other, sizeof other));
    uptempo_completion done;
    OK(uptempo_recording_replay(recording, queue, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(out[10] == (5 + 3 * 10) * 3 + 7 && other[10] == 7);
    const uptempo_access within[] = {{other + 1, 4, 1}};
    const uptempo_declaration writes_within = {.size = sizeof writes_within,
                                               .parts = UPTEMPO_DECLARES_ACCESSES,
                                               .accesses = within,
                                               .access_count = 1};
    OK(uptempo_recording_declare(recording, 2, &writes_within));
    FAILS(uptempo_recording_set(recording, 2, 0, &out, sizeof out), ARGUMENT,
          "starts at none of its address arguments");
    OK(uptempo_recording_destroy(recording));
    OK(uptempo_buffer_destroy(more_words));
  }
  if (begins("a saved recording runs in other memory")) {
    uptempo_recording* const recording = recorded(queue, iota, chain, out);
    uptempo_buffer* const elsewhere = pinned_buffer(kLength * 4);
    uint32_t* const other = uptempo_buffer_data(elsewhere);
    const uptempo_binding moved[] = {{"words", other, kLength * 4}};
    const uptempo_program* const programs[] = {basics};
    const uptempo_kernel* const kernels[] = {iota, chain};
    char path[64];
    snprintf(path, sizeof path, "test_c.%d.recording", (int)getpid());
    void* bytes = NULL;
    size_t count = 0;
    OK(uptempo_recording_save(recording, path, bindings, 1));
    OK(uptempo_recording_save_bytes(recording, bindings, 1, &bytes, &count));
    CHECK(count > 18 && memcmp(bytes, "uptempo-recording ", 18) == 0);
    OK(uptempo_recording_destroy(recording));
    uptempo_recording* loaded = NULL;
    uptempo_recording_source source = {.size = sizeof source,
                                       .path = path,
                                       .programs = programs,
                                       .program_count = 1,
                                       .bindings = moved,
                                       .binding_count = 1};
    OK(uptempo_recording_load(queue, &source, NULL, &loaded));
    replays_to(loaded, queue, other, 5, 3, 7, 7, "from the file");
    OK(uptempo_recording_destroy(loaded));
    source = (uptempo_recording_source){.size = sizeof source,
                                        .bytes = bytes,
                                        .byte_count = count,
                                        .kernels = kernels,
                                        .kernel_count = 2,
                                        .bindings = moved,
                                        .binding_count = 1};
    memset(other, 0, kLength * 4);
    OK(uptempo_recording_load(queue, &source, NULL, &loaded));
    const uint32_t value = 100;
    OK(uptempo_recording_set(loaded, 2, 1, &value, sizeof value));
    replays_to(loaded, queue, other, 5, 3, 7, 100, "from bytes, patched");
    OK(uptempo_recording_destroy(loaded));

    source.byte_count = count - 1;
    FAILS(uptempo_recording_load(queue, &source, NULL, &loaded), FILE, "");
    CHECK(loaded == NULL);
    source.byte_count = count + 1;  // the terminating zero
    FAILS(uptempo_recording_load(queue, &source, NULL, &loaded), ARGUMENT, "bytes follow the end");
    source.byte_count = count;
    source.kernel_count = 1;
    FAILS(uptempo_recording_load(queue, &source, NULL, &loaded), PROGRAM, "chain_increment");
    source.kernel_count = 2;
    source.binding_count = 0;
    FAILS(uptempo_recording_load(queue, &source, NULL, &loaded), ARGUMENT, "words");
    source.path = path;
    FAILS(uptempo_recording_load(queue, &source, NULL, &loaded), ARGUMENT, "it has a path and");
    remove(path);
    uptempo_free(bytes);
    OK(uptempo_buffer_destroy(elsewhere));
  }
  if (begins("a recording that cannot be saved says why")) {
    uptempo_recording* const recording = recorded(queue, iota, chain, out);
    void* bytes = NULL;
    size_t count = 0;
    FAILS(uptempo_recording_save_bytes(recording, NULL, 0, &bytes, &count), ARGUMENT, "iota");
    CHECK(bytes == NULL);
    FAILS(uptempo_recording_save_bytes(recording, NULL, 1, &bytes, &count), ARGUMENT, "'bindings'");
    FAILS(uptempo_recording_save(recording, "/nowhere/x", bindings, 1), FILE, "/nowhere/x");
    FAILS(uptempo_recording_save(recording, NULL, bindings, 1), ARGUMENT, "'path'");
    FAILS(uptempo_recording_create(NULL, NULL, NULL), ARGUMENT, "'the result'");
    OK(uptempo_recording_destroy(recording));
  }
  OK(uptempo_queue_destroy(queue));
  OK(uptempo_queue_destroy(second));
  OK(uptempo_kernel_destroy(iota));
  OK(uptempo_kernel_destroy(chain));
  OK(uptempo_kernel_destroy(fill));
  OK(uptempo_buffer_destroy(words));
}
