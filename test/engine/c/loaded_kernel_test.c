#include <elf.h>
#include <hsa/hsa.h>
#include <stdlib.h>

#include <uptempo/kernels/basics.h>
#include "check.h"

// The code object for the GPU in the bundle of basics.cl (Clang, "Bundled Code Object Layout").
static const unsigned char* code_object(size_t* bytes) {
  uptempo_program_info info = {.size = sizeof info};
  OK(uptempo_program_get_info(basics, &info));
  size_t all = 0;
  const unsigned char* const bundle = kernels_basics(&all);
  uint64_t count = 0;
  memcpy(&count, bundle + 24, 8);
  const unsigned char* at = bundle + 32;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t entry[3];  // offset, size, length of the ID
    memcpy(entry, at, sizeof entry);
    const size_t target = strlen(info.target);
    const char* const id = (const char*)at + sizeof entry;
    if (entry[2] > target && memcmp(id + entry[2] - target, info.target, target) == 0) {
      *bytes = entry[1];
      return bundle + entry[0];
    }
    at += sizeof entry + entry[2];
  }
  CHECK(!"a code object for this GPU");
  exit(EXIT_FAILURE);
}

// The note NT_AMDGPU_METADATA (32) of an ELF file.
static const unsigned char* metadata_note(const unsigned char* elf, size_t* bytes) {
  Elf64_Ehdr header;
  memcpy(&header, elf, sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    memcpy(&segment, elf + header.e_phoff + (size_t)i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    Elf64_Nhdr note;
    memcpy(&note, elf + segment.p_offset, sizeof note);
    CHECK(note.n_type == 32);
    *bytes = note.n_descsz;
    return elf + segment.p_offset + sizeof note + (note.n_namesz + 3) / 4 * 4;
  }
  CHECK(!"a note");
  exit(EXIT_FAILURE);
}

void loaded_kernel_cases(void) {
  if (!begins("a kernel of another loader runs, by its metadata and by its sizes")) return;
  uptempo_agent_info agent = {.size = sizeof agent};
  OK(uptempo_agent_get_info(gpu, &agent));
  size_t code_bytes = 0, note_bytes = 0;
  const unsigned char* const code = code_object(&code_bytes);
  const unsigned char* const note = metadata_note(code, &note_bytes);
  hsa_code_object_reader_t reader;
  hsa_executable_t executable;
  hsa_executable_symbol_t symbol;
  const hsa_agent_t handle = {agent.hsa_agent};
  uint64_t object = 0;
  CHECK(hsa_code_object_reader_create_from_memory(code, code_bytes, &reader) == HSA_STATUS_SUCCESS);
  CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL,
                                  &executable) == HSA_STATUS_SUCCESS);
  CHECK(hsa_executable_load_agent_code_object(executable, handle, reader, NULL, NULL) ==
        HSA_STATUS_SUCCESS);
  CHECK(hsa_executable_freeze(executable, NULL) == HSA_STATUS_SUCCESS);
  CHECK(hsa_executable_get_symbol_by_name(executable, "iota.kd", &handle, &symbol) ==
        HSA_STATUS_SUCCESS);
  CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object) ==
        HSA_STATUS_SUCCESS);

  // By hand, the sizes are those of the kernel that the library loads itself.
  uptempo_kernel* const own = kernel_of(basics, "iota");
  uptempo_kernel_info info = {.size = sizeof info};
  OK(uptempo_kernel_get_info(own, &info));
  uptempo_argument arguments[3];
  for (size_t i = 0; i < 3; ++i) {
    arguments[i].size = sizeof arguments[i];
    OK(uptempo_kernel_argument(own, i, &arguments[i]));
  }
  const uptempo_loaded_kernel by_note = {.size = sizeof by_note,
                                         .object = object,
                                         .name = "iota",
                                         .metadata = note,
                                         .metadata_bytes = note_bytes,
                                         .calls_no_host = 1};
  uptempo_loaded_kernel by_hand = {.size = sizeof by_hand,
                                   .object = object,
                                   .name = "iota",
                                   .arguments = arguments,
                                   .argument_count = 3,
                                   .kernarg_bytes = info.kernarg_bytes,
                                   .group_bytes = info.group_bytes,
                                   .private_bytes = info.private_bytes};
  uptempo_kernel* kernels[2] = {NULL, NULL};
  OK(uptempo_kernel_from_object(gpu, &by_note, &kernels[0]));
  OK(uptempo_kernel_from_object(gpu, &by_hand, &kernels[1]));

  uptempo_queue* queue = NULL;
  uptempo_batch* batch = NULL;
  OK(uptempo_queue_create(gpu, NULL, &queue));
  OK(uptempo_batch_create(queue, NULL, &batch));
  uptempo_buffer* const words = pinned_buffer(64 * 4);
  uint32_t* const out = uptempo_buffer_data(words);
  const uptempo_grid grid = uptempo_grid_of(64, 64);
  for (size_t i = 0; i < 2; ++i) {
    const iota_arguments first = {out, 5, 3};
    uptempo_completion done;
    memset(out, 0, 64 * 4);
    OK(uptempo_batch_dispatch(batch, kernels[i], &grid, uptempo_packed(&first, sizeof first)));
    OK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
    OK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    CHECK(out[0] == 5 && out[63] == 5 + 3 * 63);
    uptempo_kernel_info loaded = {.size = sizeof loaded};
    OK(uptempo_kernel_get_info(kernels[i], &loaded));
    CHECK(loaded.object == object && loaded.object != info.object);
    CHECK(strcmp(loaded.name, "iota") == 0 && loaded.argument_count == 3);
    OK(uptempo_kernel_destroy(kernels[i]));
  }

  // Limits of geometry, which a dispatch compares with its grid.
  uptempo_loaded_kernel limited = by_hand;
  limited.max_workgroup_size = 32;
  OK(uptempo_kernel_from_object(gpu, &limited, &kernels[0]));
  uptempo_kernel_info limits = {.size = sizeof limits};
  OK(uptempo_kernel_get_info(kernels[0], &limits));
  CHECK(limits.max_workgroup_size == 32 && limits.whole_workgroups == 0);
  const iota_arguments last = {out, 0, 0};
  FAILS(uptempo_batch_dispatch(batch, kernels[0], &grid, uptempo_packed(&last, sizeof last)),
        ARGUMENT, "workgroups of 64 work-items, but the limit is 32");
  OK(uptempo_kernel_destroy(kernels[0]));
  limited = by_hand;
  limited.required_workgroup_size[0] = 16;
  limited.required_workgroup_size[1] = limited.required_workgroup_size[2] = 1;
  limited.whole_workgroups = 1;
  OK(uptempo_kernel_from_object(gpu, &limited, &kernels[0]));
  OK(uptempo_kernel_get_info(kernels[0], &limits));
  CHECK(limits.required_workgroup_size[0] == 16 && limits.whole_workgroups == 1);
  FAILS(uptempo_batch_dispatch(batch, kernels[0], &grid, uptempo_packed(&last, sizeof last)),
        ARGUMENT, "16 x 1 x 1");
  const uptempo_grid partial = uptempo_grid_of(40, 16);
  FAILS(uptempo_batch_dispatch(batch, kernels[0], &partial, uptempo_packed(&last, sizeof last)),
        ARGUMENT, "has 8 of 16 work-items");
  OK(uptempo_kernel_destroy(kernels[0]));

  by_hand.group_bytes += 64;
  FAILS(uptempo_kernel_from_object(gpu, &by_hand, &kernels[0]), PROGRAM, "group memory");
  CHECK(kernels[0] == NULL);
  by_hand.group_bytes -= 64;
  by_hand.object += 4;
  FAILS(uptempo_kernel_from_object(gpu, &by_hand, &kernels[0]), ARGUMENT, "64 bytes");
  by_hand.object = 64;
  FAILS(uptempo_kernel_from_object(gpu, &by_hand, &kernels[0]), ARGUMENT, "0x40");
  by_hand.object = object;
  arguments[2].kind = (uptempo_argument_kind)3;
  FAILS(uptempo_kernel_from_object(gpu, &by_hand, &kernels[0]), ARGUMENT,
        "parameter 'loaded.arguments': it is 3");
  by_hand.name = NULL;
  FAILS(uptempo_kernel_from_object(gpu, &by_hand, &kernels[0]), ARGUMENT, "'loaded.name'");
  FAILS(uptempo_kernel_from_object(gpu, NULL, &kernels[0]), ARGUMENT, "'loaded'");
  uptempo_loaded_kernel unknown = by_note;
  unknown.name = "no_such";
  FAILS(uptempo_kernel_from_object(gpu, &unknown, &kernels[0]), PROGRAM, "chain_increment");
  unknown.metadata = "no metadata";
  unknown.metadata_bytes = 11;
  FAILS(uptempo_kernel_from_object(gpu, &unknown, &kernels[0]), PROGRAM, "");

  OK(uptempo_batch_destroy(batch));
  OK(uptempo_queue_destroy(queue));
  OK(uptempo_buffer_destroy(words));
  OK(uptempo_kernel_destroy(own));
  CHECK(hsa_executable_destroy(executable) == HSA_STATUS_SUCCESS);
  CHECK(hsa_code_object_reader_destroy(reader) == HSA_STATUS_SUCCESS);
}
