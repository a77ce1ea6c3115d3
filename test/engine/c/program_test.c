#include <stdlib.h>
#include <unistd.h>

#include <uptempo/kernels/basics.h>
#include <uptempo/kernels/device_globals.h>
#include <uptempo/kernels/probes.h>
#include "check.h"

void program_cases(void) {
  if (begins("a program lists its kernels")) {
    uptempo_program_info info = {.size = sizeof info};
    OK(uptempo_program_get_info(basics, &info));
    CHECK(strncmp(info.target, "gfx", 3) == 0);
    size_t fills = 0;
    for (size_t i = 0; i < info.kernel_count; ++i) {
      const char* name = NULL;
      OK(uptempo_program_kernel_name(basics, i, &name));
      if (strcmp(name, "fill") == 0) ++fills;
    }
    CHECK(fills == 1);
    const char* name = "";
    FAILS(uptempo_program_kernel_name(basics, info.kernel_count, &name), ARGUMENT, "'index'");
    CHECK(name == NULL);
  }
  if (begins("a program is made from bytes, which it copies, and from a file")) {
    size_t bytes = 0;
    const void* const code = kernels_basics(&bytes);
    void* const copy = malloc(bytes);
    memcpy(copy, code, bytes);
    uptempo_program* program = NULL;
    OK(uptempo_program_create(gpu, copy, bytes, NULL, &program));
    memset(copy, 0, bytes);
    uptempo_kernel_destroy(kernel_of(program, "iota"));
    OK(uptempo_program_destroy(program));
    memcpy(copy, code, bytes);
    const uptempo_program_options borrows = {.size = sizeof borrows, .borrows_code = 1};
    OK(uptempo_program_create(gpu, copy, bytes, &borrows, &program));
    uptempo_kernel_destroy(kernel_of(program, "iota"));
    OK(uptempo_program_destroy(program));

    char path[64];
    snprintf(path, sizeof path, "test_c.%d.code", (int)getpid());
    FILE* const file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(code, 1, bytes, file) == bytes && fclose(file) == 0);
    OK(uptempo_program_create_from_file(gpu, path, NULL, &program));
    uptempo_kernel_destroy(kernel_of(program, "iota"));
    OK(uptempo_program_destroy(program));
    remove(path);
    FAILS(uptempo_program_create_from_file(gpu, path, NULL, &program), FILE, "cannot be read");
    CHECK(program == NULL);
    FAILS(uptempo_program_create(gpu, "no code", 7, NULL, &program), PROGRAM, "");
    FAILS(uptempo_program_create(gpu, NULL, 7, NULL, &program), ARGUMENT, "'code'");
    FAILS(uptempo_program_create(NULL, code, bytes, NULL, &program), ARGUMENT, "'agent'");
    FAILS(uptempo_program_create_from_file(gpu, NULL, NULL, &program), ARGUMENT, "'path'");
    free(copy);
  }
  if (begins("a variable of a program is found by its symbol")) {
    // device_globals.hip: __device__ unsigned offsets[4] = {1, 20, 300, 4000}.
    const uint32_t expected[] = {1, 20, 300, 4000};
    size_t bytes = 0;
    const void* const code = kernels_device_globals(&bytes);
    uptempo_program* program = NULL;
    uptempo_copier* copier = NULL;
    void* address = NULL;
    OK(uptempo_program_create(gpu, code, bytes, NULL, &program));
    OK(uptempo_copier_create(gpu, &copier));
    OK(uptempo_program_global(program, "offsets", &address, &bytes));
    CHECK(bytes == sizeof expected);
    uint32_t found[4] = {0};
    OK(uptempo_copier_copy(copier, uptempo_pageable(found, sizeof found),
                           uptempo_device(address, bytes)));
    CHECK(memcmp(found, expected, sizeof expected) == 0);
    FAILS(uptempo_program_global(program, "offset", &address, &bytes), PROGRAM,
          "Program::global: variable 'offset'");
    CHECK(address == NULL && bytes == 0);
    FAILS(uptempo_program_global(program, NULL, &address, &bytes), ARGUMENT, "'name'");
    FAILS(uptempo_program_global(program, "offsets", NULL, &bytes), ARGUMENT, "'the result'");
    FAILS(uptempo_program_global(program, "offsets", &address, NULL), ARGUMENT, "'bytes'");
    FAILS(uptempo_program_global(NULL, "offsets", &address, &bytes), ARGUMENT, "'program'");
    OK(uptempo_copier_destroy(copier));
    OK(uptempo_program_destroy(program));
  }
  if (begins("a kernel has the layout of its metadata")) {
    uptempo_kernel* const iota = kernel_of(basics, "iota");
    uptempo_kernel_info info = {.size = sizeof info};
    OK(uptempo_kernel_get_info(iota, &info));
    CHECK(strcmp(info.name, "iota") == 0 && info.object != 0 && info.argument_count == 3);
    CHECK(info.packed_bytes == sizeof(iota_arguments) && info.kernarg_bytes >= info.packed_bytes);
    const uint32_t offsets[] = {offsetof(iota_arguments, out), offsetof(iota_arguments, first),
                                offsetof(iota_arguments, step)};
    const uint32_t sizes[] = {8, 4, 4};
    for (size_t i = 0; i < 3; ++i) {
      uptempo_argument argument = {.size = sizeof argument};
      OK(uptempo_kernel_argument(iota, i, &argument));
      CHECK(argument.offset == offsets[i] && argument.bytes == sizes[i]);
      CHECK(argument.kind == (i == 0 ? UPTEMPO_ARGUMENT_ADDRESS : UPTEMPO_ARGUMENT_VALUE));
    }
    uptempo_argument none = {.size = sizeof none};
    FAILS(uptempo_kernel_argument(iota, 3, &none), ARGUMENT, "there are 3 arguments");
    OK(uptempo_kernel_destroy(iota));
  }
  if (begins("a kernel compares the arguments that the caller will give")) {
    uptempo_argument arguments[3] = {{.kind = UPTEMPO_ARGUMENT_ADDRESS, .bytes = 8},
                                     {.kind = UPTEMPO_ARGUMENT_VALUE, .bytes = 4},
                                     {.kind = UPTEMPO_ARGUMENT_VALUE, .bytes = 4, .alignment = 4}};
    for (size_t i = 0; i < 3; ++i) arguments[i].size = sizeof arguments[i];
    uptempo_kernel_options options = {
        .size = sizeof options, .arguments = arguments, .argument_count = 3};
    uptempo_kernel* kernel = NULL;
    OK(uptempo_kernel_create(basics, "iota", &options, &kernel));
    OK(uptempo_kernel_destroy(kernel));
    arguments[2].bytes = 8;
    FAILS(uptempo_kernel_create(basics, "iota", &options, &kernel), ARGUMENT, "iota");
    arguments[2].kind = (uptempo_argument_kind)3;
    FAILS(uptempo_kernel_create(basics, "iota", &options, &kernel), ARGUMENT, "it is 3");
    options.arguments = NULL;
    FAILS(uptempo_kernel_create(basics, "iota", &options, &kernel), ARGUMENT,
          "'options.arguments': it is NULL");
    FAILS(uptempo_kernel_create(basics, "no_such", NULL, &kernel), PROGRAM, "chain_increment");
    CHECK(kernel == NULL);
    FAILS(uptempo_kernel_create(basics, NULL, NULL, &kernel), ARGUMENT, "'name'");
    FAILS(uptempo_kernel_create(basics, "iota", NULL, NULL), ARGUMENT, "'the result'");
  }
}
