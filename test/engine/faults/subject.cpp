#include "test/engine/faults/subject.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uptempo/kernels/basics.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <uptempo/vgpu/query.h>
#include <uptempo/uptempo.hpp>
#include "test/engine/faults/inherited.hpp"
#include "test/engine/faults/packets.hpp"
#include "test/engine/faults/rocr_events.hpp"
#include "test/support/holdings.hpp"

namespace uptempo::faults {
namespace {

constexpr size_t kWords = 1024, kPart = 256;

// Another agent, with all that its work needs: after the loss of one GPU, ROCr allocates no host
// memory, as it maps host memory to all of them.
struct Peer {
  explicit Peer(const Agent& agent)
      : basics(agent, builtin_kernels::basics()),
        fill(basics.kernel<uint32_t*, uint32_t>("fill")),
        words(agent, kPart),
        queue(agent, {.drain_timeout = std::chrono::seconds(1)}) {}

  Program basics;
  Kernel<uint32_t*, uint32_t> fill;
  PinnedBuffer<uint32_t> words;
  Queue queue;
};

class Round {
 public:
  explicit Round(const Plan& plan) : plan_(plan) {}

  void run() {
    attempt("set-up", [&] {
      runtime_.emplace();
      gpu_.emplace(runtime_->gpu());
      basics_.emplace(*gpu_, builtin_kernels::basics());
      fill_.emplace(basics_->kernel<uint32_t*, uint32_t>("fill"));
      words_.emplace(*gpu_, kWords);
      std::ranges::fill(words_->span(), 0u);
      device_.emplace(*gpu_, kWords);
      victim_.emplace(*gpu_, QueueOptions{.drain_timeout = std::chrono::seconds(1)});
      other_.emplace(*gpu_, QueueOptions{.drain_timeout = std::chrono::seconds(1)});
      start_.emplace(SignalKind::event_less);
      if (plan_.scenario == "peer") peer_.emplace(runtime_->gpu(1));
    });
    if (!start_ || (plan_.scenario == "peer" && !peer_)) return tear_down();
    say("events", std::to_string(test::holdings().events));
    if (plan_.scenario == "fork") fork_child();
    if (plan_.scenario == "neighbour") start_neighbour();
    // Two batches, which begin when both are submitted: the second is unfinished when the first
    // fails.
    std::vector<Completion> submitted;
    std::vector<uint64_t> ends;
    attempt("work", [&] {
      for (uint32_t part = 0; part < 2; ++part) {
        submitted.push_back(fill(*victim_, part, 7 + part, part == 0 ? &*start_ : nullptr));
        ends.push_back(hsa_queue_load_write_index_relaxed(victim_->handle()));
      }
    });
    hsa_signal_store_screlease(start_->handle(), 0);
    bool finished = submitted.size() == 2;
    for (uint32_t part = 0; part < submitted.size(); ++part) {
      const bool done =
          attempt("work", [&] { expect(submitted[part], part, 7 + part); }) && !stuck_;
      if (!done) lost_.add(*victim_->handle(), part == 0 ? 0 : ends[part - 1], ends[part]);
      finished = finished && done;
    }
    say("unfinished", finished ? "done" : "failed");
    if (plan_.scenario == "neighbour") kill_neighbour();
    const bool was_stuck = std::exchange(stuck_, false);
    const bool other = attempt("other queue", [&] { expect(fill(*other_, 2, 9), 2, 9); });
    report("other", other && !stuck_);
    stuck_ = stuck_ || was_stuck;
    attempt("stream", [&] { use_stream(); });
    // A Copier waits without a deadline.
    if (!stuck_) attempt("copy", [&] { use_copier(); });
    if (plan_.scenario == "peer") {
      report("peer", attempt("peer", [&] { use_peer(*peer_); }));
      use_late_peer();
    }
    if (!lost_.empty()) look_for_reuse();
    if (inherited_ && !inherited_->work(Deadline::after(plan_.patience)))
      say("wrong", "what the child of a fork has inherited");
    hsa_signal_t leaked{};
    if (plan_.scenario == "leak" && hsa_signal_create(1, 0, nullptr, &leaked) != HSA_STATUS_SUCCESS)
      say("foreign", "no signal to leak");
    tear_down();
    if (plan_.scenario == "fork") say("child", child_ended_well() ? "done" : "failed");
  }

 private:
  // Returns whether `part` threw nothing. Says the first Error of the round.
  bool attempt(const char* place, const std::function<void()>& part) {
    say("at", place);
    try {
      part();
      return true;
    } catch (const Error& error) {
      if (!failed_) say("error", text_of(error));
      if (error.call().empty() || error.found().empty() || error.remedy().empty())
        say("foreign", fmt::format("an Error without call, finding or remedy: {}", error.what()));
    } catch (const std::exception& error) {
      say("foreign", error.what());
    }
    failed_ = true;
    return false;
  }
  static void report(const char* name, bool done) { say(name, done ? "done" : "failed"); }

  Completion fill(Queue& queue, uint32_t part, uint32_t value, const Signal* after = nullptr) {
    BatchSubmitter batch{queue};
    if (after != nullptr) batch.after(*after);
    batch.dispatch(*fill_, Grid{kPart}, words_->data() + part * kPart, value);
    return batch.submit(Deadline::after(plan_.patience));
  }

  void expect(const Completion& completion, uint32_t part, uint32_t value) {
    if (!completion.wait(Deadline::after(plan_.patience))) return stuck("a completion");
    check(words_->span().subspan(part * kPart, kPart), value, "a kernel's stores");
  }

  void stuck(const char* what) {
    stuck_ = true;
    say("stuck", what);
  }

  static void check(std::span<const uint32_t> words, uint32_t value, const char* what) {
    const auto right = static_cast<size_t>(std::ranges::count(words, value));
    if (right != words.size())
      say("wrong", fmt::format("{}: {} of {} words are {}", what, right, words.size(), value));
  }

  void use_stream() {
    Streams streams{*gpu_, {.queue = {.drain_timeout = std::chrono::seconds(1)}}};
    Stream stream{streams};
    std::vector<uint32_t> host(kWords);
    stream.launch(*fill_, Grid{kWords}, device_->data(), 5u);
    stream.copy(std::span(host), *device_);
    if (!stream.synchronize(Deadline::after(plan_.patience))) return stuck("a stream");
    check(host, 5, "a stream's copy");
  }

  void use_copier() {
    Copier copier{*gpu_};
    std::vector<uint32_t> host(kWords, 3u), back(kWords);
    copier.copy(*device_, host);
    copier.copy(back, *device_);
    check(back, 3, "a copy to the device and back");
  }

  void use_peer(Peer& peer) {
    BatchSubmitter batch{peer.queue};
    batch.dispatch(peer.fill, Grid{kPart}, peer.words.data(), 4u);
    if (!batch.submit().wait(Deadline::after(plan_.patience))) return stuck("the peer");
    check(peer.words.span(), 4, "the peer's stores");
  }

  // The other agent once more, with all of its objects made now, after the fault.
  void use_late_peer() {
    bool done = false;
    attempt("late peer", [&] {
      try {
        Peer late(runtime_->gpu(1));
        use_peer(late);
        done = true;
      } catch (const Error& error) {
        say("late error", text_of(error));
        throw;
      }
    });
    report("late peer", done);
  }

  // The failed queue still exists, so the device may still touch its blocks and signals. No packet
  // that was submitted since has them, also on a queue that replaces the failed one.
  void look_for_reuse() {
    std::optional<Queue> replacement;
    uint64_t begin = 0;  // its HSA queue may have had another owner
    attempt("replacement", [&] {
      replacement.emplace(*gpu_, QueueOptions{.drain_timeout = std::chrono::seconds(1)});
      begin = hsa_queue_load_write_index_relaxed(replacement->handle());
      for (uint32_t each = 0; each < 7; ++each) (void)fill(*replacement, 3, 6);
      expect(fill(*replacement, 3, 6), 3, 6);
    });
    std::string misuse = lost_.misuse(PacketReferences::of(*other_->handle()));
    if (replacement) {
      PacketReferences given;
      given.add(*replacement->handle(), begin,
                hsa_queue_load_write_index_relaxed(replacement->handle()));
      misuse += lost_.misuse(given);
    }
    if (lost_.misuse(PacketReferences::of(*victim_->handle())).empty())
      say("foreign", "the failed queue's ring does not contain what its failed packets used");
    if (misuse.empty())
      say("kept", lost_.text());
    else
      say("reused", misuse);
  }

  // Its descriptors are the parent's. Everything that needs a Runtime is refused by name, and what
  // it has inherited can be destroyed.
  void fork_child() {
    attempt("fork", [&] {
      inherited_.emplace(*gpu_, *other_, *fill_, words_->span().subspan(3 * kPart), *start_);
    });
    if (!inherited_) return;
    child_ = fork();
    if (child_ != 0) return;
    alarm(120);  // ends a child that waits
    const auto refuses = [](const char* what, const auto& use) {
      try {
        use();
      } catch (const Error& error) {
        say("refusal", text_of(error));
        if (!error.call().empty() && error.found().find("child of a fork") != std::string::npos &&
            !error.remedy().empty())
          return true;
      } catch (const std::exception& error) {
        say("foreign", error.what());
      }
      say("foreign", fmt::format("the child of a fork may have {}", what));
      return false;
    };
    bool refused = refuses("a Runtime", [] { const Runtime another; });
    refused = refuses("a queue", [&] { const Queue queue{*gpu_}; }) && refused;
    refused = refuses("memory", [&] { const DeviceBuffer<uint32_t> one{*gpu_, 1}; }) && refused;
    refused = inherited_->are_refused(refuses) && refused;
    // A child may fork, too.
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      alarm(120);
      _exit(refuses("a Runtime", [] { const Runtime another; }) ? 0 : 1);
    }
    int status = 0;
    refused = waitpid(grandchild, &status, 0) == grandchild && WIFEXITED(status) &&
              WEXITSTATUS(status) == 0 && refused;
    tear_down();
    _exit(refused && !failed_ ? 0 : 1);
  }
  bool child_ended_well() const {
    int status = 0;
    return waitpid(child_, &status, 0) == child_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  // A process on the same machine, whose kernels never end. It writes a byte when they run.
  void start_neighbour() {
    int ready[2];
    if (pipe(ready) != 0) return say("foreign", "no pipe");
    child_ = fork();
    if (child_ == 0) {
      dup2(ready[1], STDOUT_FILENO);
      close(ready[0]);
      execl("/proc/self/exe", "fault_matrix", "--neighbour", nullptr);
      _exit(127);
    }
    close(ready[1]);
    char byte = 0;
    say("child", read(ready[0], &byte, 1) == 1 ? "done" : "failed");
    close(ready[0]);
  }
  void kill_neighbour() const {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  void tear_down() {
    attempt("tear-down", [&] {
      inherited_.reset();
      peer_.reset();
      victim_.reset();
      other_.reset();
      start_.reset();
      device_.reset();
      words_.reset();
      fill_.reset();
      basics_.reset();
      gpu_.reset();
      runtime_.reset();
    });
  }

  const Plan& plan_;
  std::optional<Runtime> runtime_;
  std::optional<Agent> gpu_;
  std::optional<Program> basics_;
  std::optional<Kernel<uint32_t*, uint32_t>> fill_;
  std::optional<PinnedBuffer<uint32_t>> words_;
  std::optional<DeviceBuffer<uint32_t>> device_;
  std::optional<Signal> start_;  // of the victim's work
  std::optional<Queue> victim_, other_;
  PacketReferences lost_;  // of unfinished work
  std::optional<Peer> peer_;
  std::optional<Inherited> inherited_;
  bool failed_ = false, stuck_ = false;
  pid_t child_ = -1;
};

}  // namespace

std::string text_of(const Error& error) {
  return fmt::format("{} | {} | {}", status_name(error.status()), error.call(), error.what());
}

void say(const std::string& name, const std::string& value) {
  std::string line = name + '=' + value;
  std::ranges::replace(line, '\n', ' ');
  std::puts(line.c_str());
  std::fflush(stdout);
}

void reuse_heap() {
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  for (size_t size = 64; size <= 8192; size += 16)
    std::memset(blocks.emplace_back(new std::byte[size]).get(), 0xFF, size);
}

void say_device(unsigned round) {
  say("round", std::to_string(round));
  const test::Holdings held = test::holdings();
  uint16_t major = 0;
  const bool has_rocr =
      hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major) == HSA_STATUS_SUCCESS;
  say("spare", !has_rocr             ? "0"
               : round == kLastRound ? std::to_string(count_spare_events())
                                     : "not counted");
  say("library", fmt::format("{} {} {}", held.runtime ? 1 : 0, held.signals, held.timelines));
  say("held", fmt::format("{} {} {} {} {}", held.queues, held.events, held.buffers,
                          held.device_bytes, held.host_bytes));
}

int run_subject(const Plan& plan) {
  for (unsigned round = 1; round <= kLastRound; ++round) {
    if (is_shortage(plan.scenario))
      run_shortage(plan);
    else
      Round(plan).run();
    say_device(round);
  }
  if (const auto ask =
          reinterpret_cast<uptempo_vgpu_injected_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_injected"))) {
    uptempo_vgpu_injection_counts counts{};
    for (uint32_t rule = 0; ask(rule, &counts) == 0; ++rule)
      say("rule", fmt::format("{} {}", counts.matched, counts.injected));
  }
  say("ended", "yes");
  return 0;
}

}  // namespace uptempo::faults
