// A program's own faults, masks and limits behave the same with and without a sleeping GPU in the
// process.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>
#include <string>

#include "run_without_userfaultfd.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

std::string outcome(const CommandResult& finished) {
  return "status " + std::to_string(finished.exit_code) + ": " + finished.out;
}

bool kernel_allows_userfaultfd() {
  const long descriptor = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  if (descriptor >= 0) close(static_cast<int>(descriptor));
  return descriptor >= 0;
}

TEST_CASE("a program's SIGSEGV action behaves the same with and without the launcher", "[faults]") {
  for (const char* what : {"reset", "nested", "nested-deferred", "jump", "jump-nodefer", "masks",
                           "reentered", "vfork", "fork", "bus"}) {
    const std::string plain = outcome(run_command({"timeout", "120", UPTEMPO_VGPU_FAULTS, what}));
    CAPTURE(what, plain);
    CHECK(outcome(launch({"--", "timeout", "120", UPTEMPO_VGPU_FAULTS, what})) == plain);
    CHECK(outcome(launch({"--", "timeout", "120", UPTEMPO_VGPU_FAULTS, what, "device"})) == plain);
    CHECK(outcome(launch_without_userfaultfd(
              {"--", "timeout", "120", UPTEMPO_VGPU_FAULTS, what, "device"})) == plain);
  }
}

TEST_CASE(
    "a program that sets the action or the mask of SIGSEGV by a system call rings a sleeping "
    "device",
    "[faults]") {
  if (!kernel_allows_userfaultfd()) return;  // the next case says what happens then
  CHECK(outcome(launch({"--", UPTEMPO_VGPU_FAULTS, "action-by-system-call", "device"})) ==
        "status 0: round trips, and 1 fault of the program\n");
  CHECK(outcome(launch({"--", UPTEMPO_VGPU_FAULTS, "mask-by-system-call", "device"})) ==
        "status 0: round trip\n");
  CHECK(outcome(launch({"--", UPTEMPO_VGPU_FAULTS, "ring-in-segv-handler", "device"})) ==
        "status 0: round trip\n");
}

TEST_CASE("where the kernel refuses userfaultfd, doorbells are faults of the thread that rings",
          "[faults]") {
  for (const char* what : {"round-trip", "ring-in-handler"})
    CHECK(outcome(launch_without_userfaultfd({"--", UPTEMPO_VGPU_FAULTS, what, "device"})) ==
          "status 0: round trip\n");
  CHECK(outcome(launch_without_userfaultfd({"--", UPTEMPO_VGPU_FAULTS, "action-by-system-call",
                                            "device"})) == "status 1: a fault of the device\n");
}

TEST_CASE("a process started with SIGSEGV blocked can ring a sleeping device", "[faults]") {
  sigset_t segv;
  sigset_t before;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  pthread_sigmask(SIG_BLOCK, &segv, &before);
  const CommandResult finished = launch({"--", UPTEMPO_VGPU_FAULTS, "round-trip", "device"});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(outcome(finished) == "status 0: round trip\n");
}

TEST_CASE("a handler that blocks every signal can ring a sleeping device", "[faults]") {
  CHECK(outcome(launch({"--", UPTEMPO_VGPU_FAULTS, "ring-in-handler", "device"})) ==
        "status 0: round trip\n");
}

TEST_CASE(
    "the device uses the process's cores, not those of the thread that creates the first queue",
    "[faults]") {
  CHECK(outcome(launch({"--", UPTEMPO_VGPU_FAULTS, "cores"})) == "status 0: as many as cores\n");
}

TEST_CASE(
    "the device runs with fewer threads if more are refused; without any, no queue is created",
    "[faults]") {
  CHECK(outcome(launch({"--workers", "4", "--", UPTEMPO_VGPU_FAULTS, "threads", "1"})) ==
        "status 0: Cannot allocate memory, blocked: \n");
  CHECK(outcome(launch({"--workers", "4", "--", UPTEMPO_VGPU_FAULTS, "threads", "2"})) ==
        "status 0: created, blocked: \n");
  CHECK(outcome(launch({"--workers", "4", "--", UPTEMPO_VGPU_FAULTS, "threads", "3"})) ==
        "status 0: created, blocked: \n");
}

}  // namespace
}  // namespace uptempo::vgpu
