// A library with the name of ROCr, whose functions jump through tables as ROCr's do on x86-64. It
// has hsa_amd_queue_create, as ROCr from AMD extension 1.26 on.
#include <algorithm>
#include <iterator>

extern "C" {

__attribute__((visibility("default"))) void rocr_double_function() {}

// As CoreApiTable and AmdExtTable. Their first two words are a version.
__attribute__((visibility("default"))) void (*rocr_double_core[24])();
__attribute__((visibility("default"))) void (*rocr_double_amd[2 + 93])();

// In assembler only.
__attribute__((visibility("hidden"), used)) void (**rocr_double_core_pointer)() = rocr_double_core;
__attribute__((visibility("hidden"), used)) void (**rocr_double_amd_pointer)() = rocr_double_amd;

__attribute__((constructor)) static void fill_tables() {
  std::fill(std::begin(rocr_double_core), std::end(rocr_double_core), &rocr_double_function);
  std::fill(std::begin(rocr_double_amd), std::end(rocr_double_amd), &rocr_double_function);
}
}

#define UPTEMPO_JUMP(name, table, word)                                                    \
  __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n  mov " #table \
          "(%rip), %rax\n  jmp *(8 * " #word ")(%rax)\n.size " #name ", . - " #name "\n")
#define UPTEMPO_CORE(name, word) UPTEMPO_JUMP(name, rocr_double_core_pointer, word)

UPTEMPO_CORE(hsa_queue_create, 2);
UPTEMPO_CORE(hsa_queue_load_read_index_relaxed, 3);
UPTEMPO_CORE(hsa_queue_load_read_index_scacquire, 4);
UPTEMPO_CORE(hsa_queue_load_write_index_relaxed, 5);
UPTEMPO_CORE(hsa_queue_load_write_index_scacquire, 6);
UPTEMPO_CORE(hsa_queue_store_write_index_relaxed, 7);
UPTEMPO_CORE(hsa_queue_store_write_index_screlease, 8);
UPTEMPO_CORE(hsa_queue_cas_write_index_relaxed, 9);
UPTEMPO_CORE(hsa_queue_cas_write_index_scacquire, 10);
UPTEMPO_CORE(hsa_queue_cas_write_index_screlease, 11);
UPTEMPO_CORE(hsa_queue_cas_write_index_scacq_screl, 12);
UPTEMPO_CORE(hsa_queue_add_write_index_relaxed, 13);
UPTEMPO_CORE(hsa_queue_add_write_index_scacquire, 14);
UPTEMPO_CORE(hsa_queue_add_write_index_screlease, 15);
UPTEMPO_CORE(hsa_queue_add_write_index_scacq_screl, 16);
UPTEMPO_CORE(hsa_signal_store_relaxed, 17);
UPTEMPO_CORE(hsa_signal_store_screlease, 18);
UPTEMPO_CORE(hsa_signal_silent_store_relaxed, 19);
UPTEMPO_CORE(hsa_signal_silent_store_screlease, 20);
UPTEMPO_JUMP(hsa_amd_queue_create, rocr_double_amd_pointer, 88);
