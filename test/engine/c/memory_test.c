#include <stdlib.h>

#include "check.h"

enum { kWords = 1000 };

void memory_cases(void) {
  const size_t bytes = kWords * 4;
  uptempo_buffer* device = NULL;
  uptempo_copier* copier = NULL;
  OK(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_DEVICE, bytes, NULL, &device));
  OK(uptempo_copier_create(gpu, &copier));
  uint32_t* const words = uptempo_buffer_data(device);
  uint32_t* const host = malloc(bytes);

  if (begins("a buffer has its address and its size")) {
    uptempo_buffer_info info = {.size = sizeof info};
    OK(uptempo_buffer_get_info(device, &info));
    CHECK(info.data == words && info.bytes == bytes && (uintptr_t)words % 64 == 0);
    for (int kind = UPTEMPO_MEMORY_DEVICE; kind <= UPTEMPO_MEMORY_KERNARG; ++kind) {
      uptempo_buffer* buffer = NULL;
      OK(uptempo_buffer_create(gpu, (uptempo_memory_kind)kind, 4096, NULL, &buffer));
      if (kind != UPTEMPO_MEMORY_DEVICE) memset(uptempo_buffer_data(buffer), 1, 4096);
      OK(uptempo_buffer_destroy(buffer));
    }
    uptempo_buffer* none = device;
    FAILS(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_DEVICE, 0, NULL, &none), ARGUMENT, "0 bytes");
    CHECK(none == NULL);
    FAILS(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_DEVICE, (size_t)1 << 50, NULL, &none), MEMORY,
          "");
    FAILS(uptempo_buffer_create(gpu, (uptempo_memory_kind)4, 64, NULL, &none), ARGUMENT,
          "parameter 'kind': it is 4");
    const uptempo_buffer_options options = {.size = sizeof options, .more_gpu_count = 1};
    FAILS(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_DEVICE, 64, &options, &none), ARGUMENT,
          "'options.more_gpus'");
    CHECK(uptempo_buffer_data(NULL) == NULL && uptempo_error()->status == UPTEMPO_ERROR_ARGUMENT);
    // A second time the same GPU: it may access the memory.
    const uptempo_buffer_options again = {
        .size = sizeof again, .more_gpus = &gpu, .more_gpu_count = 1};
    OK(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, 64, &again, &none));
    OK(uptempo_buffer_destroy(none));
  }
  if (begins("a copier copies and fills")) {
    for (uint32_t i = 0; i < kWords; ++i) host[i] = i * 7;
    OK(uptempo_copier_copy(copier, uptempo_device(words, bytes), uptempo_pageable(host, bytes)));
    memset(host, 0, bytes);
    OK(uptempo_copier_copy(copier, uptempo_pageable(host, bytes), uptempo_device(words, bytes)));
    for (uint32_t i = 0; i < kWords; ++i)
      if (!CHECK(host[i] == i * 7)) break;
    const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (size_t size = 1; size <= 16; size *= 2) {
      OK(uptempo_copier_fill(copier, uptempo_device(words, bytes), pattern, size));
      OK(uptempo_copier_copy(copier, uptempo_pageable(host, bytes), uptempo_device(words, bytes)));
      bool right = true;
      for (size_t i = 0; i < bytes; ++i)
        right = right && ((unsigned char*)host)[i] == pattern[i % size];
      CHECK(right);
    }
    FAILS(uptempo_copier_fill(copier, uptempo_device(words, bytes), pattern, 3), ARGUMENT,
          "parameter 'pattern_bytes': it is 3; use 1, 2, 4, 8 or 16");
    FAILS(uptempo_copier_fill(copier, uptempo_device(words, bytes), NULL, 4), ARGUMENT,
          "'pattern'");
    FAILS(uptempo_copier_copy(copier, uptempo_device(words, 8), uptempo_pageable(host, 4)),
          ARGUMENT, "");
    FAILS(uptempo_copier_copy(copier, uptempo_peer(NULL, words, 4), uptempo_pageable(host, 4)),
          ARGUMENT, "parameter 'to'");
    uptempo_range nowhere = uptempo_pageable(host, 4);
    nowhere.place = (uptempo_place)9;
    FAILS(uptempo_copier_copy(copier, uptempo_device(words, 4), nowhere), ARGUMENT,
          "parameter 'from': its place is 9");
    FAILS(uptempo_copier_copy(NULL, uptempo_device(words, 4), uptempo_pageable(host, 4)), ARGUMENT,
          "'copier'");
  }
  free(host);
  OK(uptempo_copier_destroy(copier));
  OK(uptempo_buffer_destroy(device));
}
