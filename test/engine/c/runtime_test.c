#include <pthread.h>
#include <stdlib.h>

#include "check.h"

static void* fails_elsewhere(void* unused) {
  (void)unused;
  CHECK(uptempo_error()->status == UPTEMPO_OK);
  FAILS(uptempo_queue_reclaim(NULL), ARGUMENT, "uptempo_queue_reclaim: parameter 'queue'");
  return NULL;
}

// After the C++ objects of the thread.
static void key_ends(void* unused) {
  (void)unused;
  CHECK(strstr(uptempo_error()->message, "uptempo_queue_drain: parameter 'queue'") != NULL);
  FAILS(uptempo_queue_reclaim(NULL), ARGUMENT, "uptempo_queue_reclaim: parameter 'queue'");
}

static void* fails_at_its_end(void* key) {
  CHECK(pthread_setspecific(*(pthread_key_t*)key, key) == 0);
  FAILS(uptempo_queue_drain(NULL, 0), ARGUMENT, "");
  return NULL;
}

void runtime_cases(void) {
  if (begins("agents are found by index, address and UUID")) {
    size_t gpus = 0;
    OK(uptempo_runtime_gpu_count(runtime, &gpus));
    CHECK(gpus >= 1);
    const uptempo_agent* found = NULL;
    FAILS(uptempo_runtime_gpu(runtime, 1000, &found), UNAVAILABLE, "1000");
    CHECK(found == NULL);
    uptempo_agent_info info = {.size = sizeof info};
    OK(uptempo_agent_get_info(gpu, &info));
    CHECK(info.is_gpu == 1 && strncmp(info.name, "gfx", 3) == 0 && info.compute_units > 0);
    CHECK(strstr(info.isa, info.name) != NULL && info.hsa_agent != 0 && info.wavefront_size == 64);
    OK(uptempo_runtime_find_gpu(runtime, info.pci_address, &found));
    CHECK(found == gpu);
    OK(uptempo_runtime_find_gpu(runtime, "0", &found));
    CHECK(found == gpu);
    CHECK(uptempo_runtime_find_gpu(runtime, "nowhere", &found) > 0 && found == NULL);
    CHECK(strstr(uptempo_error()->message, "nowhere") != NULL);
    const uptempo_agent* host = NULL;
    OK(uptempo_runtime_host(runtime, &host));
    OK(uptempo_agent_get_info(host, &info));
    CHECK(info.is_gpu == 0);
  }
  if (begins("a description names each agent")) {
    char* text = NULL;
    OK(uptempo_runtime_describe(runtime, &text));
    uptempo_agent_info info = {.size = sizeof info};
    OK(uptempo_agent_get_info(gpu, &info));
    CHECK(strstr(text, info.name) != NULL && strstr(text, info.pci_address) != NULL);
    uptempo_free(text);
    uptempo_free(NULL);
  }
  if (begins("an error has the facts of the refused call")) {
    const uptempo_agent* found = gpu;
    FAILS(uptempo_runtime_gpu(NULL, 0, &found), ARGUMENT,
          "uptempo_runtime_gpu: parameter 'runtime': it is NULL");
    CHECK(found == NULL);
    const uptempo_error_info* const error = uptempo_error();
    CHECK(error->size == sizeof *error && error->hsa_status != 0);
    CHECK(strcmp(error->function, "uptempo_runtime_gpu") == 0);
    CHECK(strcmp(error->call, "uptempo_runtime_gpu") == 0);
    CHECK(strcmp(error->asked, "parameter 'runtime'") == 0);
    CHECK(strcmp(error->found, "it is NULL") == 0);
    CHECK(strcmp(error->remedy, "pass a live uptempo_runtime") == 0);
    // An error of the engine keeps the name of its own function.
    CHECK(uptempo_runtime_gpu(runtime, 1000, &found) != UPTEMPO_OK);
    CHECK(strcmp(error->function, "uptempo_runtime_gpu") == 0);
    CHECK(strcmp(error->call, "Runtime::gpu") == 0 && strstr(error->found, "gfx") != NULL);
    // It stays until the next failure.
    OK(uptempo_runtime_gpu(runtime, 0, &found));
    CHECK(strcmp(error->call, "Runtime::gpu") == 0);
  }
  if (begins("each thread has its own error")) {
    FAILS(uptempo_runtime_gpu_count(runtime, NULL), ARGUMENT, "parameter 'count': it is NULL");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fails_elsewhere, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(strcmp(uptempo_error()->function, "uptempo_runtime_gpu_count") == 0);
    pthread_key_t key;
    CHECK(pthread_key_create(&key, key_ends) == 0);
    CHECK(pthread_create(&thread, NULL, fails_at_its_end, &key) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_key_delete(key) == 0);
  }
  if (begins("a handle of another kind is refused")) {
    char* text = NULL;
    FAILS(uptempo_runtime_describe((const uptempo_runtime*)(const void*)gpu, &text), ARGUMENT,
          "parameter 'runtime': it is no uptempo_runtime");
    FAILS(uptempo_runtime_destroy((uptempo_runtime*)basics), ARGUMENT, "it is no uptempo_runtime");
    OK(uptempo_runtime_destroy(NULL));
    OK(uptempo_program_destroy(NULL));
    OK(uptempo_kernel_destroy(NULL));
    OK(uptempo_queue_destroy(NULL));
    OK(uptempo_batch_destroy(NULL));
    OK(uptempo_notifier_destroy(NULL));
    OK(uptempo_buffer_destroy(NULL));
    OK(uptempo_copier_destroy(NULL));
    OK(uptempo_stream_destroy(NULL));
    OK(uptempo_streams_destroy(NULL));
    OK(uptempo_event_destroy(NULL));
    OK(uptempo_recording_destroy(NULL));
  }
  if (begins("a Runtime sets the budget of signals, and one that is refused does not")) {
    uptempo_runtime_options options = {
        .size = sizeof options, .interrupt_signals = 3001, .event_less_beyond = 1};
    uptempo_runtime* second = NULL;
    char* text = NULL;
    OK(uptempo_runtime_create(&options, &second));
    OK(uptempo_runtime_describe(second, &text));
    CHECK(strstr(text, "of a budget of 3001") != NULL);
    CHECK(strstr(text, "on which waits poll") != NULL);
    uptempo_free(text);
    OK(uptempo_runtime_destroy(second));
    options.interrupt_signals = 0;
    FAILS(uptempo_runtime_create(&options, &second), ARGUMENT,
          "parameter 'options.event_less_beyond': options.interrupt_signals is 0");
    CHECK(second == NULL);
    options = (uptempo_runtime_options){.size = sizeof options, .interrupt_signals = 3584};
    OK(uptempo_runtime_create(&options, &second));
    OK(uptempo_runtime_describe(second, &text));
    CHECK(strstr(text, "of a budget of 3584") != NULL);
    uptempo_free(text);
    OK(uptempo_runtime_destroy(second));
  }
  if (begins("structs of older and newer headers are accepted")) {
    // A newer one with fields that this library does not know.
    struct {
      uptempo_runtime_options known;
      uint64_t unknown[2];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.known.size = sizeof newer;
    uptempo_runtime* second = NULL;
    OK(uptempo_runtime_create(&newer.known, &second));
    OK(uptempo_runtime_destroy(second));
    newer.unknown[1] = 1;
    second = runtime;
    FAILS(uptempo_runtime_create(&newer.known, &second), ARGUMENT,
          "parameter 'options': it has 32 bytes, and byte 24 is not 0; this library knows 16");
    CHECK(second == NULL);
    newer.known.size = 0;
    FAILS(uptempo_runtime_create(&newer.known, &second), ARGUMENT, "its size is 0");
    // An older one without the last fields: bytes behind it are not read.
    uptempo_queue_options older = {.size = offsetof(uptempo_queue_options, kernargs)};
    older.kernargs = (uptempo_kernargs)77;
    uptempo_queue* queue = NULL;
    OK(uptempo_queue_create(gpu, &older, &queue));
    OK(uptempo_queue_destroy(queue));
    older.size = sizeof older;
    FAILS(uptempo_queue_create(gpu, &older, &queue), ARGUMENT,
          "parameter 'options.kernargs': it is 77; use a number from 0 to 2");
    // Facts: as many as the caller's struct has, and zeros beyond the library's.
    struct {
      uptempo_agent_info known;
      uint64_t unknown;
    } facts;
    memset(&facts, 0xCC, sizeof facts);
    facts.known.size = sizeof facts;
    OK(uptempo_agent_get_info(gpu, &facts.known));
    CHECK(facts.unknown == 0 && facts.known.size == sizeof facts && facts.known.compute_units > 0);
    memset(&facts, 0xCC, sizeof facts);
    facts.known.size = offsetof(uptempo_agent_info, isa);
    OK(uptempo_agent_get_info(gpu, &facts.known));
    CHECK(strncmp(facts.known.name, "gfx", 3) == 0);
    CHECK(facts.unknown == UINT64_C(0xCCCCCCCCCCCCCCCC) &&
          facts.known.hsa_agent == UINT64_C(0xCCCCCCCCCCCCCCCC));
    facts.known.size = 4;
    FAILS(uptempo_agent_get_info(gpu, &facts.known), ARGUMENT, "its size is 4");
    FAILS(uptempo_agent_get_info(gpu, NULL), ARGUMENT, "parameter 'info': it is NULL");
  }
  if (begins("every status has a name")) {
    CHECK(uptempo_version() ==
          UPTEMPO_VERSION_MAJOR * 1000000u + UPTEMPO_VERSION_MINOR * 1000u + UPTEMPO_VERSION_PATCH);
    CHECK(strcmp(uptempo_status_name(UPTEMPO_OK), "UPTEMPO_OK") == 0);
    CHECK(strcmp(uptempo_status_name(UPTEMPO_NOT_READY), "UPTEMPO_NOT_READY") == 0);
    CHECK(strcmp(uptempo_status_name(UPTEMPO_ERROR_TOO_LONG), "UPTEMPO_ERROR_TOO_LONG") == 0);
    CHECK(strcmp(uptempo_status_name((uptempo_status)99), "unknown status") == 0);
  }
}
