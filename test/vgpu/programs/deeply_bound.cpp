// A library under test, which uses ROCr and handles SIGSEGV.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "round_trip.hpp"

namespace {

char* volatile page = nullptr;
volatile std::sig_atomic_t faults = 0;

void open_page(int, siginfo_t* info, void*) {
  if (info->si_addr != page) _exit(3);  // the device's
  faults = faults + 1;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

}  // namespace

extern "C" int run() {
  hsa_queue_t* const queue = uptempo::vgpu::test::queue_on_sleeping_device();
  if (queue == nullptr) {
    std::printf("no GPU\n");
    return 1;
  }
  struct sigaction action {};
  action.sa_sigaction = open_page;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  if (!uptempo::vgpu::test::round_trip(queue)) return 1;
  page = static_cast<char*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  *static_cast<volatile char*>(page) = 1;
  std::printf("round trip, and %d fault of the library\n", static_cast<int>(faults));
  return 0;
}
