#include <stdlib.h>

#include "check.h"

enum { kLength = 256 };

// Runs what the batch holds.
static void run(uptempo_batch* batch) {
  uptempo_completion done;
  OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
  OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
}

void batch_cases(void) {
  uptempo_kernel* const iota = kernel_of(basics, "iota");
  uptempo_kernel* const chain = kernel_of(basics, "chain_increment");
  uptempo_buffer* const words = pinned_buffer(2 * kLength * 4);
  uint32_t* const out = uptempo_buffer_data(words);
  const uptempo_grid grid = uptempo_grid_of(kLength, 64);
  uptempo_queue* queue = NULL;
  uptempo_batch* batch = NULL;
  OK(uptempo_queue_create(gpu, NULL, &queue));
  OK(uptempo_batch_create(queue, NULL, &batch));
  iota_arguments first = {out, 5, 3};
  chain_arguments step = {out, 7};
  const uptempo_arguments first_packed = uptempo_packed(&first, sizeof first);
  const uptempo_arguments step_packed = uptempo_packed(&step, sizeof step);

  if (begins("dispatches run in order, with packed arguments and with pointers")) {
    uint32_t expected[kLength];
    for (uint32_t i = 0; i < kLength; ++i) expected[i] = ((5 + 3 * i) * 3 + 7) * 3 + 9;
    uint32_t addend = 9;
    void* params[] = {&step.values, &addend};
    for (int round = 0; round < 3; ++round) {
      memset(out, 0, kLength * 4);
      OK(uptempo_batch_dispatch(batch, iota, &grid, first_packed));
      OK(uptempo_batch_try_dispatch(batch, chain, &grid,
                                    uptempo_packed(&step, round == 0 ? 12 : sizeof step)));
      OK(uptempo_batch_dispatch(batch, chain, &grid,
                                uptempo_params(params, round == 1 ? UPTEMPO_AS_DECLARED : 2)));
      size_t size = 0;
      OK(uptempo_batch_size(batch, &size));
      CHECK(size == 3);
      run(batch);
      OK(uptempo_batch_size(batch, &size));
      CHECK(size == 0);
      CHECK(memcmp(out, expected, sizeof expected) == 0);
    }
  }
  if (begins("grids of three dimensions, blocks and defaults")) {
    const uptempo_grid grids[] = {
        uptempo_grid_of_blocks(4, 1, 1, 64, 1, 1),
        {.size = sizeof(uptempo_grid), .items = {kLength}, .workgroup = {64}},
        {.size = sizeof(uptempo_grid),
         .items = {kLength, 1, 1},
         .workgroup = {64, 1, 1},
         .dimensions = 3},
    };
    for (size_t i = 0; i < sizeof grids / sizeof *grids; ++i) {
      memset(out, 0, 2 * kLength * 4);
      OK(uptempo_batch_dispatch(batch, iota, &grids[i], first_packed));
      run(batch);
      CHECK(out[kLength - 1] == 5 + 3 * (kLength - 1) && out[kLength] == 0);
    }
    const uptempo_grid huge = uptempo_grid_of_blocks(1u << 30, 1, 1, 64, 1, 1);
    CHECK(huge.items[0] == 0);
    FAILS(uptempo_batch_dispatch(batch, iota, &huge, first_packed), ARGUMENT, "size of zero");
    const uptempo_grid empty = uptempo_grid_of_blocks(4, 0, 1, 64, 1, 1);
    FAILS(uptempo_batch_dispatch(batch, iota, &empty, first_packed), ARGUMENT, "size of zero");
    uptempo_grid wrong = grid;
    wrong.dimensions = 4;
    FAILS(uptempo_batch_dispatch(batch, iota, &wrong, first_packed), ARGUMENT, "4 dimensions");
    wrong = grid;
    wrong.lds_bytes = 1 << 20;
    FAILS(uptempo_batch_dispatch(batch, iota, &wrong, first_packed), ARGUMENT, "group memory");
    wrong.size = 0;
    FAILS(uptempo_batch_dispatch(batch, iota, &wrong, first_packed), ARGUMENT,
          "parameter 'grid': its size is 0");
  }
  if (begins("a refused dispatch leaves the batch unchanged")) {
    OK(uptempo_batch_dispatch(batch, iota, &grid, first_packed));
    FAILS(uptempo_batch_dispatch(NULL, iota, &grid, first_packed), ARGUMENT,
          "uptempo_batch_dispatch: parameter 'batch': it is NULL");
    FAILS(uptempo_batch_dispatch((uptempo_batch*)queue, iota, &grid, first_packed), ARGUMENT,
          "parameter 'batch': it is no uptempo_batch");
    FAILS(uptempo_batch_dispatch(batch, NULL, &grid, first_packed), ARGUMENT, "'kernel'");
    FAILS(uptempo_batch_try_dispatch(batch, iota, NULL, first_packed), ARGUMENT,
          "uptempo_batch_try_dispatch: parameter 'grid': it is NULL");
    FAILS(uptempo_batch_dispatch(batch, iota, &grid, uptempo_packed(&first, 8)), ARGUMENT, "iota");
    FAILS(uptempo_batch_dispatch(batch, iota, &grid, uptempo_packed(NULL, 16)), ARGUMENT,
          "parameter 'arguments': its data is NULL");
    void* params[] = {&first.out, NULL, &first.step};
    FAILS(uptempo_batch_dispatch(batch, iota, &grid, uptempo_params(params, 3)), ARGUMENT, "iota");
    FAILS(uptempo_batch_dispatch(batch, iota, &grid, uptempo_params(params, 2)), ARGUMENT, "iota");
    // Too large a number is not "as declared".
    FAILS(uptempo_batch_dispatch(batch, iota, &grid,
                                 uptempo_params(params, (size_t)UPTEMPO_AS_DECLARED + 1)),
          ARGUMENT, "iota");
    FAILS(uptempo_batch_dispatch(batch, iota, &grid, uptempo_params(params, SIZE_MAX)), ARGUMENT,
          "iota");
    FAILS(uptempo_batch_dispatch(batch, iota, &grid, uptempo_params(NULL, 3)), ARGUMENT, "iota");
    const unsigned char invalid[64] = {1};  // a header of type INVALID
    FAILS(uptempo_batch_raw(batch, invalid), ARGUMENT, "");
    FAILS(uptempo_batch_raw(batch, NULL), ARGUMENT, "'packet'");
    size_t size = 0;
    OK(uptempo_batch_size(batch, &size));
    CHECK(size == 1);
    OK(uptempo_batch_clear(batch));
    OK(uptempo_batch_size(batch, &size));
    CHECK(size == 0);
  }
  if (begins("declared accesses decide about barrier bits, and the plan says why")) {
    uint32_t* const other = out + kLength;
    iota_arguments second = {other, 1, 1};
    const uptempo_access writes_out[] = {{out, kLength * 4, 1}};
    const uptempo_access writes_other[] = {{other, kLength * 4, 1}};
    const uptempo_access changes_out[] = {{out, kLength * 4, 0}, {out, kLength * 4, 1}};
    uptempo_declaration declaration = {.size = sizeof declaration,
                                       .parts = UPTEMPO_DECLARES_ACCESSES,
                                       .accesses = writes_out,
                                       .access_count = 1};
    OK(uptempo_batch_dispatch(batch, iota, &grid, first_packed));
    OK(uptempo_batch_declare(batch, &declaration));
    declaration.accesses = writes_other;
    OK(uptempo_batch_dispatch(batch, iota, &grid, uptempo_packed(&second, sizeof second)));
    OK(uptempo_batch_declare(batch, &declaration));
    declaration.accesses = changes_out;
    declaration.access_count = 2;
    OK(uptempo_batch_dispatch(batch, chain, &grid, step_packed));
    OK(uptempo_batch_declare(batch, &declaration));
    // A fourth, so that the third is not the last, whose barrier bit is always set.
    OK(uptempo_batch_dispatch(batch, chain, &grid, step_packed));
    OK(uptempo_batch_declare(batch, &declaration));
    run(batch);
    CHECK(out[9] == ((5 + 27) * 3 + 7) * 3 + 7 && other[9] == 10);
    char* text = NULL;
    OK(uptempo_batch_explain(batch, &text));
    CHECK(strstr(text, "packet 1: no barrier bit") != NULL);
    CHECK(strstr(text, "packet 2: barrier bit") != NULL);
    uptempo_free(text);

    // Order instead of memory.
    const size_t after[] = {0};
    const uptempo_declaration on_none = {.size = sizeof on_none, .parts = UPTEMPO_DECLARES_AFTER};
    uptempo_declaration on_first = {
        .size = sizeof on_first, .parts = UPTEMPO_DECLARES_AFTER, .after = after, .after_count = 1};
    OK(uptempo_batch_dispatch(batch, iota, &grid, first_packed));
    FAILS(uptempo_batch_declare(batch, &on_first), ARGUMENT, "");
    OK(uptempo_batch_declare(batch, &on_none));
    OK(uptempo_batch_dispatch(batch, iota, &grid, uptempo_packed(&second, sizeof second)));
    OK(uptempo_batch_declare(batch, &on_none));
    OK(uptempo_batch_dispatch(batch, chain, &grid, step_packed));
    OK(uptempo_batch_declare(batch, &on_first));
    run(batch);
    CHECK(out[9] == (5 + 27) * 3 + 7);
    OK(uptempo_batch_explain(batch, &text));
    CHECK(strstr(text, "packet 1: no barrier bit") != NULL);
    uptempo_free(text);

    // The caller's own fences.
    const uptempo_declaration own = {.size = sizeof own,
                                     .parts = UPTEMPO_DECLARES_SCOPES | UPTEMPO_DECLARES_NO_BARRIER,
                                     .acquire = UPTEMPO_SCOPE_SYSTEM,
                                     .release = UPTEMPO_SCOPE_NONE};
    for (int i = 0; i < 3; ++i) {
      OK(uptempo_batch_dispatch(batch, iota, &grid, first_packed));
      if (i == 1) OK(uptempo_batch_declare(batch, &own));
    }
    run(batch);
    OK(uptempo_batch_explain(batch, &text));
    CHECK(strstr(text, "packet 1: no barrier bit") != NULL);
    CHECK(strstr(text, "acquire system") != NULL && strstr(text, "release none") != NULL);
    uptempo_free(text);

    // An observer gets a release before the last packet.
    declaration = (uptempo_declaration){.size = sizeof declaration,
                                        .parts = UPTEMPO_DECLARES_ACCESSES,
                                        .accesses = writes_out,
                                        .access_count = 1,
                                        .observer = UPTEMPO_OBSERVER_SYSTEM};
    OK(uptempo_batch_dispatch(batch, iota, &grid, first_packed));
    OK(uptempo_batch_declare(batch, &declaration));
    const uptempo_declaration nothing = {.size = sizeof nothing,
                                         .parts = UPTEMPO_DECLARES_ACCESSES};
    OK(uptempo_batch_dispatch(batch, iota, &grid, first_packed));
    OK(uptempo_batch_declare(batch, &nothing));
    run(batch);
    OK(uptempo_batch_explain(batch, &text));
    CHECK(strncmp(text, "packet 0:", 9) == 0 && strstr(text, "release system") != NULL);
    uptempo_free(text);
  }
  if (begins("a declaration that cannot be is refused")) {
    uptempo_batch* other = NULL;
    OK(uptempo_batch_create(queue, NULL, &other));
    uptempo_declaration declaration = {.size = sizeof declaration};
    FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, "no dispatch has been appended");
    OK(uptempo_batch_dispatch(other, iota, &grid, first_packed));
    FAILS(uptempo_batch_declare(other, NULL), ARGUMENT, "'declaration'");
    declaration.parts = 16;
    FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, "it is 0x10");
    // What is given, but forgotten in `parts`.
    const uptempo_access given[] = {{out, 4, 1}};
    const size_t earlier[] = {0};
    declaration =
        (uptempo_declaration){.size = sizeof declaration, .accesses = given, .access_count = 1};
    FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, "accesses are given, and not part");
    declaration = (uptempo_declaration){.size = sizeof declaration,
                                        .parts = UPTEMPO_DECLARES_ACCESSES,
                                        .after = earlier,
                                        .after_count = 1};
    FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, "packets `after` are given");
    declaration = (uptempo_declaration){.size = sizeof declaration, .release = UPTEMPO_SCOPE_AGENT};
    FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, "scopes are given");
    declaration = (uptempo_declaration){.size = sizeof declaration};
    declaration.parts = UPTEMPO_DECLARES_ACCESSES;
    declaration.access_count = 1;
    FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, "'declaration.accesses'");
    // Ranges whose ends wrap to 0 and beyond, of which a plan would see nothing.
    const uptempo_access wrong[] = {{out, SIZE_MAX, 1},
                                    {(void*)UINTPTR_MAX, 1, 1},
                                    {out, SIZE_MAX - (uintptr_t)out + 1, 0},
                                    {NULL, 4, 1},
                                    {out, 4, 2}};
    const char* const texts[] = {"accesses[0]': it has 18446744073709551615 bytes at", "bytes at",
                                 "bytes at", "it has 4 bytes at 0x0", "writes': it is 2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
      declaration.accesses = &wrong[i];
      FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, texts[i]);
    }
    const uptempo_access right[] = {{out, SIZE_MAX - (uintptr_t)out, 1}, {NULL, 0, 0}};
    declaration.accesses = right;
    declaration.access_count = 2;
    OK(uptempo_batch_declare(other, &declaration));
    declaration.access_count = 0;
    declaration.observer = (uptempo_observer)3;
    FAILS(uptempo_batch_declare(other, &declaration), ARGUMENT, "'declaration.observer'");
    declaration.observer = UPTEMPO_OBSERVER_NONE;
    OK(uptempo_batch_clear(other));
    FAILS(uptempo_batch_declare(other, &declaration), MISUSE, "");
    OK(uptempo_batch_destroy(other));
  }
  if (begins("a call without a wait returns UPTEMPO_NOT_READY where there is no room")) {
    // Kernargs for some thousand dispatches, and a short patience.
    const uptempo_queue_options small = {
        .size = sizeof small, .packets = 512, .kernarg_bytes = 1 << 20};
    const uptempo_batch_options options = {.size = sizeof options, .patience_ns = 1000000};
    uptempo_queue* narrow = NULL;
    uptempo_batch *gated = NULL, *next = NULL;
    OK(uptempo_queue_create(gpu, &small, &narrow));
    OK(uptempo_batch_create(narrow, &options, &gated));
    OK(uptempo_batch_create(narrow, &options, &next));
    uptempo_completion done, second = {0};
    size_t dispatches = 0;
    uptempo_status status = UPTEMPO_OK;
    while ((status = uptempo_batch_try_dispatch(gated, iota, &grid, first_packed)) == UPTEMPO_OK &&
           dispatches < 200000)
      ++dispatches;
    CHECK(status == UPTEMPO_NOT_READY && dispatches > 1000);
    FAILS(uptempo_batch_dispatch(gated, iota, &grid, first_packed), KERNARGS, "kernarg");
    // Longer than the ring: only a submission that may wait publishes it.
    FAILS(uptempo_batch_submit(gated, 0, NULL, &second), TOO_LONG, "");
    OK(uptempo_batch_submit(gated, UPTEMPO_NO_LIMIT, NULL, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_BLOCKED));
    OK(uptempo_batch_submit(next, 0, NULL, &second));  // empty: the last submission
    CHECK(second.timeline == done.timeline && second.value == done.value);
    FAILS(uptempo_batch_submit(next, 0, NULL, NULL), ARGUMENT, "'completion'");
    OK(uptempo_batch_destroy(gated));
    OK(uptempo_batch_destroy(next));
    OK(uptempo_queue_destroy(narrow));
    const uptempo_batch_options wrong = {.size = sizeof wrong, .timing = (uptempo_timing)3};
    FAILS(uptempo_batch_create(queue, &wrong, &next), ARGUMENT, "'options.timing': it is 3");
    FAILS(uptempo_batch_create(NULL, NULL, &next), ARGUMENT, "'queue'");
  }
  OK(uptempo_batch_destroy(batch));
  OK(uptempo_queue_destroy(queue));
  OK(uptempo_kernel_destroy(iota));
  OK(uptempo_kernel_destroy(chain));
  OK(uptempo_buffer_destroy(words));
}
