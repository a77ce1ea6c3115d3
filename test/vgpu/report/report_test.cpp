// Hang reports of a program over unmodified ROCr: by uptempo_vgpu_report(), by SIGQUIT and, run with
// --watchdog 1 and [.watchdog], by the watchdog. Kernels spin until the host releases them, so each
// test also checks that the program goes on after the report.
#include <dlfcn.h>
#include <fcntl.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uptempo/kernels/report.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <regex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <uptempo/vgpu/query.h>
#include "incoherent/device.hpp"
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/text.hpp"

namespace uptempo::vgpu::test {
namespace {

using uptempo::test::contains;
using uptempo::test::count;
using uptempo::test::eventually;

// A pipe whose end is read without blocking. Its room is that of several reports.
class Pipe {
 public:
  Pipe() {
    REQUIRE(pipe2(ends_, O_CLOEXEC) == 0);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int end() const { return ends_[1]; }
  // Everything that has been written so far.
  const std::string& text() {
    char part[4096];
    for (ssize_t size; (size = read(ends_[0], part, sizeof part)) > 0;)
      text_.append(part, static_cast<size_t>(size));
    return text_;
  }

 private:
  int ends_[2];
  std::string text_;
};

// While it exists, stderr is a pipe.
class Stderr {
 public:
  Stderr() : before_(dup(STDERR_FILENO)) { dup2(pipe_.end(), STDERR_FILENO); }
  ~Stderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  Stderr(const Stderr&) = delete;
  Stderr& operator=(const Stderr&) = delete;

  bool receives(const std::string& part) {
    return eventually([&] { return contains(pipe_.text(), part); });
  }
  const std::string& text() { return pipe_.text(); }

 private:
  Pipe pipe_;
  const int before_;
};

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<uint64_t>(address)));
  return text;
}

std::string report() {
  const auto write_report =
      reinterpret_cast<uptempo_vgpu_report_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_report"));
  REQUIRE(write_report != nullptr);
  Pipe pipe;
  REQUIRE(write_report(pipe.end()) == 0);
  return pipe.text();
}

// The report's words, with single spaces.
std::string words_of(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

// Returns the words of the first report that holds a match, or of the last one.
std::string report_with(const std::string& pattern) {
  std::string words;
  const std::regex wanted(pattern);
  eventually([&] { return std::regex_search(words = words_of(report()), wanted); });
  INFO(words);
  CHECK(std::regex_search(words, wanted));
  return words;
}

// A kernel that runs until finish().
class Running {
 public:
  // `polls_signal`: the word is the value of signal().
  Running(const char* kernel, uint32_t groups, uint16_t group_size, bool polls_signal = false)
      : device_(kernels::report()),
        release_(device_.allocate(Memory::host_fine, 2)),
        out_(device_.allocate(Memory::host_fine, groups * group_size)) {
    check(hsa_signal_create(0, 0, nullptr, &signal_), "hsa_signal_create");
    word_ = polls_signal ? signal_.handle + offsetof(amd_signal_t, value)
                         : reinterpret_cast<uint64_t>(release_.data());
    auto arguments = device_.arguments();
    arguments.add(word_).add(out_.data()).add(uint64_t{0}).add(uint64_t{0}).add(uint64_t{0});
    check(hsa_signal_create(1, 0, nullptr, &done_), "hsa_signal_create");
    hsa_queue_t* const queue = device_.queue();
    const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    auto& packet =
        static_cast<hsa_kernel_dispatch_packet_t*>(queue->base_address)[index % queue->size];
    std::memset(reinterpret_cast<std::byte*>(&packet) + 4, 0, sizeof packet - 4);
    packet.workgroup_size_x = group_size;
    packet.grid_size_x = groups * group_size;
    packet.workgroup_size_y = packet.workgroup_size_z = 1;
    packet.grid_size_y = packet.grid_size_z = 1;
    packet.kernel_object = device_.kernel(kernel).object;
    packet.kernarg_address = arguments.address();
    packet.completion_signal = done_;
    const uint32_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                            HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                            HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    __atomic_store_n(reinterpret_cast<uint32_t*>(&packet), header | 1u << 16, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }
  ~Running() {
    check(hsa_signal_destroy(done_), "hsa_signal_destroy");
    check(hsa_signal_destroy(signal_), "hsa_signal_destroy");
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // The word that the kernel polls.
  const void* word() const { return reinterpret_cast<const void*>(word_); }
  hsa_signal_t signal() const { return signal_; }

  // Releases the kernel by that value, waits for it and checks its results.
  void finish(uint64_t value = 1) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(release_.data()), value, __ATOMIC_RELEASE);
    wait();
  }
  void wait() const {
    REQUIRE(hsa_signal_wait_scacquire(done_, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                      HSA_WAIT_STATE_BLOCKED) == 0);
    for (uint32_t item = 0; item < out_.size(); ++item) REQUIRE(out_[item] == item + 1);
  }

 private:
  TestDevice device_;
  const std::span<uint32_t> release_, out_;
  hsa_signal_t done_{}, signal_{};
  uint64_t word_ = 0;
};

std::atomic<int> own_handler_calls{0};

}  // namespace

TEST_CASE("a report shows a spinning kernel: its waves, their loop and EXEC") {
  Running spin("spin", 5, 96);
  // The loop is in line 5. It may take seconds to load libdw.
  const std::string text = report_with(
      "workgroups: 0 done, 5 running, 0 not started.*(\\(report\\.cl:5\\)|no source "
      "lines: libdw\\.so\\.1)");
  CHECK(text.starts_with("uptempo-vgpu: report, asked for by the program (process " +
                         std::to_string(getpid()) + ")"));
  CHECK(contains(text,
                 "kernel_dispatch spin, grid 480x1x1, workgroup 96x1x1 no barrier bit, acquire "
                 "system, release system, kernarg 0x"));
  // The second wave of each workgroup has 32 lanes.
  for (const auto& [wave, exec] : {std::pair("0", "ffffffffffffffff"), std::pair("1", "ffffffff")})
    CHECK(std::regex_search(
        text, std::regex("wave " + std::string(wave) +
                         " of 5 workgroups, first \\(0,0,0\\): spin\\+0x[0-9a-f]+ to "
                         "\\+0x[0-9a-f]+( \\([^)]*\\))? EXEC 0x" +
                         exec +
                         "; in a loop of [0-9]+ instructions with s_sleep and global_load_dword "
                         "\\(\\+0x[0-9a-f]+\\) the first lane accesses " +
                         hex(spin.word()) + ", where 0x0 is now, ")));
  CHECK(!contains(text, "deadlock"));
  spin.finish();
  CHECK(!contains(report(), "kernel_dispatch"));
}

// The conditions are those of the kernels' sources. The first lane of a wave is lane 0.
TEST_CASE("a report names the value that a loop waits for") {
  struct Awaited {
    const char* kernel;
    std::string condition;
    uint64_t value;  // ends the loop
  };
  const std::vector<Awaited> cases{{"spin", "is not 0x0", 1},
                                   {"until_7", "is 0x7", 7},
                                   {"until_size", "is >= 0x60", 96},
                                   {"until_lane", "is > 0x64", 1000},
                                   {"until_negative", "is (< -4|<= -5)", 0x80000000},
                                   {"until_bit", "& 0x40 is (not 0x0|0x40)", 0x40},
                                   {"until_wide", "is (> 0x8ffffffff|>= 0x900000000)", 0x900000000},
                                   {"until_taken", "is 0x3", 3}};
  for (const Awaited& each : cases) {
    CAPTURE(each.kernel);
    Running running(each.kernel, 2, 96);
    report_with("the first lane accesses " + hex(running.word()) +
                ", where 0x0 is now, and waits until it " + each.condition + " ");
    running.finish(each.value);
  }
}

TEST_CASE("a report names a packet that has not run and would end a kernel's loop") {
  Running spin("spin", 1, 64, true);
  TestDevice device(kernels::report());
  hsa_signal_t never{};
  check(hsa_signal_create(1, 0, nullptr, &never), "hsa_signal_create");
  hsa_queue_t* const queue = device.queue();
  const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
  auto& packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address)[index % queue->size];
  std::memset(reinterpret_cast<std::byte*>(&packet) + 4, 0, sizeof packet - 4);
  packet.dep_signal[0] = never;
  packet.completion_signal = spin.signal();
  __atomic_store_n(reinterpret_cast<uint32_t*>(&packet),
                   uint32_t{HSA_PACKET_TYPE_BARRIER_AND} << HSA_PACKET_HEADER_TYPE,
                   __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  report_with("the first lane accesses " + hex(spin.word()) +
              ", where 0x0 is now, and waits until it is not 0x0 queue [0-9]+ packet " +
              std::to_string(index) + " completes it: barrier_and, not launched ");
  hsa_signal_store_screlease(never, 0);
  spin.wait();
  check(hsa_signal_destroy(never), "hsa_signal_destroy");
}

TEST_CASE("a report shows which wave of a workgroup has not arrived at a barrier") {
  Running late("late_wave", 3, 256);
  const std::string text = report_with(
      "waves 0, 2-3 of 3 workgroups, first \\(0,0,0\\): late_wave\\+0x[0-9a-f]+( \\([^)]*\\))? "
      "EXEC 0xffffffffffffffff; at s_barrier; wave 1 has not arrived");
  CHECK(contains(text, "wave 1 of 3 workgroups, first (0,0,0): late_wave+0x"));
  late.finish();
}

TEST_CASE("SIGQUIT writes a report to stderr, and the program goes on") {
  Running spin("spin", 1, 64);
  {
    Stderr errors;
    struct sigaction action {};
    CHECK(sigaction(SIGQUIT, nullptr, &action) == 0);
    CHECK(action.sa_handler == SIG_DFL);
    // A report is without the queues if the device's thread had no core for three seconds.
    CHECK(eventually([&] {
      return kill(getpid(), SIGQUIT) == 0 &&
             errors.receives("end of the report; the program continues") &&
             contains(errors.text(), "kernel_dispatch spin");
    }));
    CHECK(contains(errors.text(), "report because of SIGQUIT"));
  }
  spin.finish();
}

TEST_CASE("a child without a device ends at SIGQUIT, as without the virtual GPU") {
  Running spin("spin", 1, 64);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    raise(SIGQUIT);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGQUIT);
  spin.finish();
}

// The last one, because it changes the process for good.
TEST_CASE("a program's own action for SIGQUIT counts, whatever it is") {
  Running spin("spin", 1, 64);
  {
    Stderr errors;
    struct sigaction own {};
    struct sigaction before {};
    own.sa_handler = [](int) { ++own_handler_calls; };
    REQUIRE(sigaction(SIGQUIT, &own, &before) == 0);
    CHECK(before.sa_handler == SIG_DFL);
    CHECK(raise(SIGQUIT) == 0);
    CHECK(own_handler_calls == 1);
    CHECK(signal(SIGQUIT, SIG_IGN) == own.sa_handler);
    CHECK(raise(SIGQUIT) == 0);
    CHECK(own_handler_calls == 1);
    CHECK(!contains(errors.text(), "SIGQUIT"));
  }
  spin.finish();
}

// kfd/hang_watch_test.cpp tests when it reports, with times that do not depend on the machine.
TEST_CASE("the watchdog reports a hang, and another one later", "[.watchdog]") {
  // A report is without waves if their worker had no core for a third of a second.
  const auto reports_waves = [] {
    Stderr errors;
    Running spin("spin", 2, 64);
    CHECK(errors.receives("no packet has completed for 1 s"));
    CHECK(errors.receives("end of the report; the program continues"));
    const bool with_waves = contains(errors.text(), "spin+0x");
    spin.finish();
    return with_waves;
  };
  CHECK(eventually(reports_waves));
  CHECK(eventually(reports_waves));
}

}  // namespace uptempo::vgpu::test
