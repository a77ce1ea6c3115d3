// A program under test. It uses SIGSEGV, signal masks and threads as its first argument says and
// prints the result. With "device" as its second argument it does so while it has a queue on a
// sleeping GPU.
#include <dirent.h>
#include <fcntl.h>
#include <hsa/hsa.h>
#include <linux/kfd_ioctl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "round_trip.hpp"

namespace {

using namespace std::chrono_literals;

hsa_queue_t* queue = nullptr;

bool open_device() {
  queue = uptempo::vgpu::test::queue_on_sleeping_device();
  return queue != nullptr;
}

bool round_trip() { return uptempo::vgpu::test::round_trip(queue); }

// Returns a page that faults on the next store.
volatile char* guarded_page() {
  return static_cast<volatile char*>(
      mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
void open_page(volatile char* page) {
  mprotect(const_cast<char*>(page), 4096, PROT_READ | PROT_WRITE);
}

volatile char* page = nullptr;
volatile char* other_page = nullptr;
volatile int entered = 0;
sigjmp_buf way_out;

void install(void (*handler)(int), int flags, int also_blocked = 0, int signal_number = SIGSEGV) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  if (also_blocked != 0) sigaddset(&action.sa_mask, also_blocked);
  sigaction(signal_number, &action, nullptr);
}

std::string mask_now() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return std::string(sigismember(&mask, SIGUSR1) == 1 ? "USR1 " : "") +
         (sigismember(&mask, SIGSEGV) == 1 ? "SEGV " : "") +
         (sigismember(&mask, SIGTERM) == 1 ? "TERM" : "");
}

void print_mask(int) {
  std::printf("in the handler: %s\n", mask_now().c_str());
  open_page(page);
}

void fault() { *guarded_page() = 1; }

// With SA_RESETHAND the second fault has no handler.
void reset() {
  install(
      [](int) {
        entered = entered + 1;
        if (entered > 1) _exit(1);
      },
      SA_RESETHAND);
  fault();
}

void nested() {
  install(
      [](int) {
        entered = entered + 1;
        if (entered == 1) {
          *other_page = 1;
          open_page(page);
        } else {
          open_page(other_page);
        }
      },
      SA_NODEFER);
  other_page = guarded_page();
  *page = 1;
  std::printf("entered %d times\n", entered);
}

// Without SA_NODEFER a fault inside the handler has no handler.
void nested_deferred() {
  install(
      [](int) {
        entered = entered + 1;
        if (entered > 1) _exit(1);
        fault();
      },
      0);
  fault();
}

void jump_out(int flags) {
  install([](int) { siglongjmp(way_out, 1); }, flags);
  for (int i = 0; i < 2; ++i)
    if (sigsetjmp(way_out, 1 - (flags & SA_NODEFER ? 1 : 0)) == 0) fault();
  std::printf("two faults left by a jump, blocked: %s\n", mask_now().c_str());
}

void masks() {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);
  install(print_mask, 0, SIGUSR1);
  *page = 1;
  page = guarded_page();
  install(print_mask, SA_NODEFER, SIGUSR1);
  *page = 1;
  std::printf("afterwards: %s\n", mask_now().c_str());
}

// sigaction() is async-signal-safe: a handler may call it while the interrupted thread is inside
// it.
void reentered() {
  static volatile long calls_in_handler = 0;
  install(
      [](int) {
        struct sigaction action;
        sigaction(SIGSEGV, nullptr, &action);
        calls_in_handler = calls_in_handler + 1;
      },
      0, 0, SIGALRM);
  const itimerval often{{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &often, nullptr);
  constexpr long kCalls = 1000;
  const auto end = std::chrono::steady_clock::now() + 60s;
  struct sigaction action;
  while (calls_in_handler < kCalls && std::chrono::steady_clock::now() < end)
    sigaction(SIGSEGV, nullptr, &action);
  std::printf("%s\n", calls_in_handler >= kCalls ? "done" : "the timer never fired");
}

// Like spawn helpers: the child shares the parent's memory but has its own signal actions.
void vfork_child() {
  install([](int) { open_page(page); }, 0);
  const pid_t child = vfork();
  if (child == 0) {
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGSEGV, &action, &before);
    _exit(before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN ? 7 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  *page = 1;
  std::printf("child %d, the parent's handler is still there\n", WEXITSTATUS(status));
}

void fork_child() {
  install([](int) { open_page(page); }, 0);
  if (fork() == 0) {
    *page = 1;
    install([](int) { _exit(9); }, SA_RESETHAND);
    fault();
  }
  int status = 0;
  wait(&status);
  *page = 1;
  std::printf("child %d\n", WEXITSTATUS(status));
}

void bus_error() {
  install([](int) { siglongjmp(way_out, 1); }, 0, 0, SIGBUS);
  const int file = memfd_create("short", 0);
  auto* const beyond =
      static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
  for (int i = 0; i < 2; ++i)
    if (sigsetjmp(way_out, 1) == 0) std::printf("read %d\n", *beyond);
  std::printf("two bus errors\n");
}

// Rings the sleeping device in a handler that blocks all signals.
void ring_in_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) { std::printf("%s\n", round_trip() ? "round trip" : "lost"); };
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

// The kernel's struct sigaction. The C library's is larger.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
extern "C" void return_from_signal();
__asm__(R"(
.pushsection .text
return_from_signal:
  movl $15, %eax
  syscall
.popsection
)");

// Ends the program at a fault outside of `page`.
void open_own_page(int, siginfo_t* info, void*) {
  if (info->si_addr != page) {
    static constexpr char kText[] = "a fault of the device\n";
    static_cast<void>(!write(STDOUT_FILENO, kText, sizeof kText - 1));
    _exit(1);
  }
  entered = entered + 1;
  open_page(page);
}

// Sets the action of SIGSEGV by the system call, while the device sleeps.
void action_by_system_call() {
  constexpr unsigned long restorer = 0x04000000;  // SA_RESTORER of the kernel
  const KernelAction action{open_own_page, SA_SIGINFO | restorer, return_from_signal, 0};
  if (syscall(SYS_rt_sigaction, SIGSEGV, &action, nullptr, sizeof action.mask) != 0) _exit(2);
  for (int round = 0; round < 10; ++round) {
    if (!round_trip()) _exit(3);
    std::this_thread::sleep_for(5ms);
  }
  *page = 1;
  std::printf("round trips, and %d fault of the program\n", entered);
}

// Blocks SIGSEGV by the system call, while the device sleeps.
void mask_by_system_call() {
  const uint64_t all = ~uint64_t{0};
  if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all) != 0) _exit(2);
  std::printf("%s\n", round_trip() ? "round trip" : "lost");
}

// Rings the sleeping device in a handler of SIGSEGV, which blocks that signal.
void ring_in_segv_handler() {
  install(
      [](int) {
        std::printf("%s\n", round_trip() ? "round trip" : "lost");
        open_page(page);
      },
      0);
  *page = 1;
}

void device_cores() {
  cpu_set_t first;
  CPU_ZERO(&first);
  const auto cores = [](const std::string& directory) {
    std::ifstream status(directory + "/status");
    std::string line;
    while (std::getline(status, line))
      if (line.starts_with("Cpus_allowed_list")) break;
    return line;
  };
  const std::string whole = cores("/proc/self");
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &first);
  sched_setaffinity(0, sizeof first, &first);
  if (!open_device()) _exit(2);
  int threads = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = readdir(tasks)) {
    const std::string directory = std::string("/proc/self/task/") + task->d_name;
    std::ifstream comm(directory + "/comm");
    std::string name;
    std::getline(comm, name);
    if (!name.starts_with("vgpu-")) continue;
    if (name != "vgpu-report") ++threads;  // it executes nothing
    // A thread that has just started has its creator's cores until it runs.
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (cores(directory) != whole && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(1ms);
    if (cores(directory) != whole) std::printf("%s: %s\n", name.c_str(), cores(directory).c_str());
  }
  closedir(tasks);
  // From eight cores on, one is left to the program.
  const int cores_count = CPU_COUNT(&all);
  const int expected = cores_count < 8 ? cores_count : cores_count - 1;
  std::printf("%s\n", threads == expected ? "as many as cores" : "wrong number of threads");
}

// Executes CREATE_QUEUE while the system allows `allowed` threads to this user, including the main
// thread. Then prints the thread's mask.
void limited_threads(rlim_t allowed) {
  const int kfd = open("/dev/kfd", O_RDWR);
  const rlimit limit{allowed, allowed};
  setrlimit(RLIMIT_NPROC, &limit);
  // The limit does not apply to root and counts a user's threads in all processes, so switch to a
  // user without other processes.
  if (geteuid() == 0 &&
      setresuid(61000 + getpid() % 4000, 61000 + getpid() % 4000, 61000 + getpid() % 4000) != 0)
    _exit(2);
  alignas(4096) static uint64_t memory[2048];
  kfd_ioctl_create_queue_args create{};
  create.ring_base_address = reinterpret_cast<uint64_t>(memory);
  create.ring_size = 4096;
  create.read_pointer_address = reinterpret_cast<uint64_t>(memory + 1024);
  create.write_pointer_address = reinterpret_cast<uint64_t>(memory + 1025);
  create.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
  create.queue_percentage = 100;
  std::ifstream("/sys/class/kfd/kfd/topology/nodes/1/gpu_id") >> create.gpu_id;
  const int result = ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &create);
  std::printf("%s, blocked: %s\n", result == 0 ? "created" : std::strerror(errno),
              mask_now().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  if (argc > 2 && std::string(argv[2]) == "device" && !open_device()) return 2;
  page = guarded_page();
  if (what == "reset") reset();
  if (what == "nested") nested();
  if (what == "nested-deferred") nested_deferred();
  if (what == "jump") jump_out(0);
  if (what == "jump-nodefer") jump_out(SA_NODEFER);
  if (what == "masks") masks();
  if (what == "reentered") reentered();
  if (what == "vfork") vfork_child();
  if (what == "fork") fork_child();
  if (what == "bus") bus_error();
  if (what == "ring-in-handler") ring_in_handler();
  if (what == "action-by-system-call") action_by_system_call();
  if (what == "mask-by-system-call") mask_by_system_call();
  if (what == "ring-in-segv-handler") ring_in_segv_handler();
  if (what == "round-trip") std::printf("%s\n", round_trip() ? "round trip" : "lost");
  if (what == "cores") device_cores();
  if (what == "threads") limited_threads(static_cast<rlim_t>(std::atoi(argv[2])));
  _exit(0);
}
