// The machine that processes share, with fork children as its other processes. A child reports by
// its exit code, because only the parent's checks count.
#include "kfd/machine/machine.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kfd/machine/process_identity.hpp"
#include "test/support/catch.hpp"
#include "test/support/posix.hpp"

namespace uptempo::vgpu::kfd {
namespace {

using uptempo::test::in_child;
using uptempo::test::Pipe;
namespace fs = std::filesystem;

constexpr uint64_t kFilePage = 4096;
constexpr uint64_t kMiB = uint64_t{1} << 20;
const std::vector<Machine::GpuMemory> kTwoGpus{{64 * kMiB, 32 * kMiB}, {16 * kMiB, 32 * kMiB}};
const std::vector<Machine::Property> kProperties{{"--gpus", "gfx90a,gfx908"}, {"--kfd", "1.18"}};

std::string fresh_name(const char* what) { return "test-" + std::to_string(getpid()) + "-" + what; }
std::string file_of(const std::string& name) {
  return "/dev/shm/uptempo-vgpu-" + std::to_string(geteuid()) + "-" + name;
}

// Removes the machine file that killed processes leave.
struct Name {
  explicit Name(const char* what) : text(fresh_name(what)) {}
  ~Name() { unlink(file_of(text).c_str()); }
  const std::string text;
};

std::string refusal(const std::string& name, const std::vector<Machine::Property>& properties) {
  try {
    const Machine machine(name, properties, kTwoGpus);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// A process that joins, executes `work` and then lives until the parent kills it.
class Neighbour {
 public:
  template <class Work>
  Neighbour(const Name& name, Work work) {
    child_ = fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      Machine machine(name.text, kProperties, kTwoGpus);
      const char answer = work(machine) ? 'y' : 'n';
      if (write(pipe_.write_end(), &answer, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char answer = 0;
    REQUIRE(read(pipe_.read_end(), &answer, 1) == 1);
    REQUIRE(answer == 'y');
  }
  ~Neighbour() { kill(); }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  // Leaves a zombie.
  void kill_without_wait() {
    ::kill(child_, SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT);
  }

 private:
  Pipe pipe_;
  pid_t child_ = 0;
};

TEST_CASE("a machine of one process allocates, shares with itself and frees", "[machine]") {
  Machine machine(kTwoGpus);
  CHECK_FALSE(machine.is_shared());
  const auto offset = machine.allocate(0, Heap::vram, 3 * kFilePage, kFilePage);
  REQUIRE(offset);
  CHECK(*offset == Machine::kFirstOffset);
  const auto gtt = machine.allocate(1, Heap::gtt, kFilePage, kFilePage);
  REQUIRE(gtt);
  CHECK(*gtt == machine.vram_end(1));
  CHECK(machine.used_bytes(0, Heap::vram) == 3 * kFilePage);
  CHECK(machine.used_bytes(1, Heap::gtt) == kFilePage);
  CHECK(machine.used_bytes(1, Heap::vram) == 0);
  const auto handle = machine.share(0, *offset, {7, 9});
  REQUIRE(handle);
  CHECK(machine.share(0, *offset, {8, 9}) == handle);
  const auto shared = machine.hold(*handle);
  REQUIRE(shared);
  CHECK(shared->gpu == 0);
  CHECK(shared->offset == *offset);
  CHECK(shared->size_bytes == 3 * kFilePage);
  CHECK(shared->kind.flags == 7);
  CHECK(shared->kind.tag == 9);
  *machine.file(0).at(*offset) = std::byte{5};
  machine.release(0, *offset);
  CHECK(*machine.file(0).at(*offset) == std::byte{5});
  machine.release(0, *offset);
  CHECK(*machine.file(0).at(*offset) == std::byte{0});
  CHECK(machine.used_bytes(0, Heap::vram) == 0);
  CHECK_FALSE(machine.hold(*handle));
  CHECK_FALSE(machine.share(0, *offset, {}));
}

TEST_CASE("a machine of one process frees in any order", "[machine]") {
  Machine machine(kTwoGpus);
  std::minstd_rand random(1);
  std::vector<uint64_t> held;
  for (int step = 0; step < 3000; ++step) {
    if (held.size() < 200 && random() % 2 == 0) {
      const auto offset =
          machine.allocate(0, Heap::vram, kFilePage * (1 + random() % 8), kFilePage);
      REQUIRE(offset);
      held.push_back(*offset);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      machine.release(0, held.back());
      held.pop_back();
    }
  }
  for (const uint64_t offset : held) machine.release(0, offset);
  CHECK(machine.used_bytes(0, Heap::vram) == 0);
  CHECK(machine.allocate(0, Heap::vram, 64 * kMiB, kFilePage));
}

TEST_CASE("processes of a machine have one memory and one account of it", "[machine]") {
  const Name name("memory");
  Machine machine(name.text, kProperties, kTwoGpus);
  CHECK(machine.is_shared());
  const auto own = machine.allocate(1, Heap::vram, kMiB, kFilePage);
  REQUIRE(own);
  *machine.file(1).at(*own) = std::byte{1};
  const Neighbour neighbour(name, [&](Machine& theirs) {
    const auto offset = theirs.allocate(1, Heap::vram, kMiB, kFilePage);
    if (!offset || *offset == *own || *theirs.file(1).at(*own) != std::byte{1}) return false;
    *theirs.file(1).at(*offset) = std::byte{2};
    return theirs.used_bytes(1, Heap::vram) == 2 * kMiB;
  });
  CHECK(machine.used_bytes(1, Heap::vram) == 2 * kMiB);
  CHECK(*machine.file(1).at(*own + kMiB) == std::byte{2});
  CHECK_FALSE(machine.allocate(1, Heap::vram, 15 * kMiB, kFilePage));
  CHECK(machine.allocate(1, Heap::vram, 14 * kMiB, kFilePage));
}

TEST_CASE("the memory of a killed process returns, as zeros", "[machine]") {
  const Name name("killed");
  Machine machine(name.text, kProperties, kTwoGpus);
  const bool reaped = GENERATE(true, false);
  Neighbour neighbour(name, [&](Machine& theirs) {
    const auto offset = theirs.allocate(1, Heap::vram, 16 * kMiB, kFilePage);
    if (offset) std::memset(theirs.file(1).at(*offset), 0x5a, 16 * kMiB);
    return offset.has_value();
  });
  CHECK_FALSE(machine.allocate(1, Heap::vram, kFilePage, kFilePage));
  if (reaped) {
    neighbour.kill();
  } else {
    neighbour.kill_without_wait();
  }
  const auto offset = machine.allocate(1, Heap::vram, 16 * kMiB, kFilePage);
  REQUIRE(offset);
  CHECK(*machine.file(1).at(*offset) == std::byte{0});
  CHECK(*machine.file(1).at(*offset + 16 * kMiB - 1) == std::byte{0});
}

TEST_CASE("an imported extent outlives the process that exported it", "[machine]") {
  const Name name("import");
  Machine machine(name.text, kProperties, kTwoGpus);
  const Pipe pipe;
  Neighbour neighbour(name, [&](Machine& theirs) {
    const auto offset = theirs.allocate(0, Heap::gtt, kFilePage, kFilePage);
    if (!offset) return false;
    std::strcpy(reinterpret_cast<char*>(theirs.file(0).at(*offset)), "from a neighbour");
    const auto handle = theirs.share(0, *offset, {0x80000001, 0});
    return handle && write(pipe.write_end(), handle->data(), sizeof *handle) == sizeof *handle;
  });
  ShareHandle handle{};
  REQUIRE(read(pipe.read_end(), handle.data(), sizeof handle) == sizeof handle);
  const auto shared = machine.hold(handle);
  REQUIRE(shared);
  CHECK(shared->kind.flags == 0x80000001);
  CHECK(shared->offset == machine.vram_end(0));
  neighbour.kill();
  CHECK(machine.used_bytes(0, Heap::gtt) == kFilePage);
  CHECK(std::string(reinterpret_cast<char*>(machine.file(0).at(shared->offset))) ==
        "from a neighbour");
  CHECK(machine.hold(handle));
  machine.release(0, shared->offset);
  machine.release(0, shared->offset);
  CHECK(machine.used_bytes(0, Heap::gtt) == 0);
  CHECK_FALSE(machine.hold(handle));
  ShareHandle unknown = handle;
  unknown[3] ^= 1;
  CHECK_FALSE(machine.hold(unknown));
}

TEST_CASE("a process with other options is refused with the difference", "[machine]") {
  const Name name("options");
  const Neighbour neighbour(name, [](Machine&) { return true; });
  CHECK(refusal(name.text, kProperties).empty());
  CHECK(refusal(name.text, {{"--gpus", "gfx90a,gfx908"}, {"--kfd", "1.8"}}) ==
        "the machine '" + name.text +
            "' has --kfd 1.18, but this process asks for --kfd 1.8: use the same options, or "
            "another name");
  CHECK(refusal(name.text, {{"--gpus", "gfx90a"}, {"--kfd", "1.18"}})
            .find("has --gpus gfx90a,gfx908") != std::string::npos);
}

TEST_CASE("a machine without a live process begins anew", "[machine]") {
  const Name name("stale");
  ShareHandle handle{};
  {
    const Pipe pipe;
    Neighbour neighbour(name, [&](Machine& theirs) {
      const auto offset = theirs.allocate(0, Heap::vram, kMiB, kFilePage);
      const auto shared = theirs.share(0, *offset, {});
      return write(pipe.write_end(), shared->data(), sizeof *shared) == sizeof *shared;
    });
    REQUIRE(read(pipe.read_end(), handle.data(), sizeof handle) == sizeof handle);
  }
  REQUIRE(fs::exists(file_of(name.text)));
  Machine machine(name.text, {{"--gpus", "gfx906"}}, std::vector<Machine::GpuMemory>{{kMiB, kMiB}});
  CHECK(machine.used_bytes(0, Heap::vram) == 0);
  CHECK_FALSE(machine.hold(handle));
}

TEST_CASE("the last process removes the machine's file", "[machine]") {
  const Name name("last");
  {
    const Machine machine(name.text, kProperties, kTwoGpus);
    CHECK(in_child([&] {
            { const Machine theirs(name.text, kProperties, kTwoGpus); }
            return fs::exists(file_of(name.text)) ? 0 : 1;
          }) == 0);
    CHECK(fs::exists(file_of(name.text)));
  }
  CHECK_FALSE(fs::exists(file_of(name.text)));
}

TEST_CASE("processes that end together remove the machine's file", "[machine]") {
  const Name name("together");
  // Both leave before either of them has ended.
  Machine machine(name.text, kProperties, kTwoGpus);
  {
    const Neighbour neighbour(name, [](Machine& theirs) {
      theirs.leave();
      return true;
    });
    CHECK(fs::exists(file_of(name.text)));
    machine.leave();
    CHECK_FALSE(fs::exists(file_of(name.text)));
  }
}

TEST_CASE("a process without a free descriptor takes no neighbour for dead", "[machine]") {
  const Name name("descriptors");
  Machine machine(name.text, kProperties, kTwoGpus);
  const auto own = machine.allocate(0, Heap::vram, kFilePage, kFilePage);
  REQUIRE(own);
  {
    const Neighbour neighbour(name, [](Machine& theirs) {
      const auto offset = theirs.allocate(0, Heap::vram, kMiB, kFilePage);
      if (offset) *theirs.file(0).at(*offset) = std::byte{7};
      return offset.has_value();
    });
    const uint64_t used = machine.used_bytes(0, Heap::vram);
    CHECK(used == kMiB + kFilePage);
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    // First none is free, then one: that for the machine file.
    const int next = dup(0);
    REQUIRE(next >= 0);
    close(next);
    for (const rlim_t more : {rlim_t{0}, rlim_t{1}}) {
      const rlimit few{static_cast<rlim_t>(next) + more, before.rlim_max};
      REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
      const auto offset = machine.allocate(0, Heap::vram, kFilePage, kFilePage);
      if (offset) machine.release(0, *offset);
      if (more == 0) machine.release(0, *own);
      REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
      CHECK(offset.has_value() == (more != 0));
    }
    CHECK(machine.used_bytes(0, Heap::vram) == kMiB);
  }
}

TEST_CASE("a machine whose file was removed gives no memory and frees none", "[machine]") {
  const Name name("removed");
  Machine machine(name.text, kProperties, kTwoGpus);
  const auto offset = machine.allocate(0, Heap::vram, kFilePage, kFilePage);
  REQUIRE(offset);
  REQUIRE(unlink(file_of(name.text).c_str()) == 0);
  CHECK_FALSE(machine.allocate(0, Heap::vram, kFilePage, kFilePage));
  *machine.file(0).at(*offset) = std::byte{9};
  machine.release(0, *offset);
  CHECK(*machine.file(0).at(*offset) == std::byte{9});
  CHECK_FALSE(machine.reset(0));
  // Another machine under its name is no substitute.
  const Neighbour other(name, [](Machine&) { return true; });
  CHECK_FALSE(machine.share(0, *offset, {}));
}

TEST_CASE("a machine whose file was truncated or overwritten gives no memory and frees none",
          "[machine]") {
  const Name name("truncated");
  // Not 4 bytes less: whatever is left must not do.
  const off_t left = GENERATE(off_t{0}, off_t{3000});
  Machine machine(name.text, kProperties, kTwoGpus);
  const auto offset = machine.allocate(0, Heap::vram, kFilePage, kFilePage);
  REQUIRE(offset);
  *machine.file(0).at(*offset) = std::byte{9};
  REQUIRE(truncate(file_of(name.text).c_str(), left) == 0);
  CHECK(machine.resets(0) == 0);
  CHECK(machine.gtt_bytes(1) == 32 * kMiB);
  CHECK_FALSE(machine.allocate(0, Heap::vram, kFilePage, kFilePage));
  machine.release(0, *offset);
  CHECK(*machine.file(0).at(*offset) == std::byte{9});
  CHECK_FALSE(machine.reset(0));
  // Another machine in the same file is no substitute.
  if (left == 0) {
    const Neighbour other(name, [](Machine& theirs) {
      return theirs.allocate(0, Heap::vram, kFilePage, kFilePage).has_value();
    });
    CHECK_FALSE(machine.share(0, *offset, {}));
  }
}

TEST_CASE("no process can change the size of a memory file", "[machine]") {
  const Machine machine(kTwoGpus);
  const int descriptor = machine.file(0).descriptor();
  CHECK(ftruncate(descriptor, 0) == -1);
  CHECK(errno == EPERM);
  CHECK(ftruncate(descriptor, 1 << 30) == -1);
  CHECK(errno == EPERM);
}

TEST_CASE("a neighbour that is stopped with the lock blocks nobody for ever", "[machine]") {
  const Name name("stopped");
  Machine machine(name.text, kProperties, kTwoGpus);
  const Pipe pipe;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int file = open(file_of(name.text).c_str(), O_RDWR);
    struct flock all {};
    all.l_type = F_WRLCK;
    if (fcntl(file, F_SETLK, &all) != 0 || write(pipe.write_end(), "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char locked = 0;
  REQUIRE(read(pipe.read_end(), &locked, 1) == 1);
  REQUIRE(kill(child, SIGSTOP) == 0);
  REQUIRE(waitpid(child, nullptr, WUNTRACED) == child);
  // At once, because each waits for seconds.
  const pid_t other = fork();
  if (other == 0)
    _exit(refusal(name.text, kProperties)
                      .find("is held by process " + std::to_string(child) + ", which is stopped") !=
                  std::string::npos
              ? 0
              : 1);
  CHECK_FALSE(machine.allocate(0, Heap::vram, kFilePage, kFilePage));
  int status = -1;
  REQUIRE(waitpid(other, &status, 0) == other);
  CHECK(status == 0);
  REQUIRE(kill(child, SIGCONT) == 0);
  REQUIRE(kill(child, SIGKILL) == 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(machine.allocate(0, Heap::vram, kFilePage, kFilePage));
}

TEST_CASE("a limit that excludes the memory files is named", "[machine]") {
  const auto refused_under = [](auto resource, rlim_t limit, const std::string& words) {
    return in_child([&] {
      const rlimit low{limit, limit};
      if (setrlimit(resource, &low) != 0) return 2;
      try {
        const Machine machine(kTwoGpus);
      } catch (const std::runtime_error& error) {
        return std::string(error.what()).find(words) != std::string::npos ? 0 : 3;
      }
      return 1;
    });
  };
  for (const rlim_t limit : {rlim_t{0}, rlim_t{96 * kMiB}})
    CHECK(refused_under(RLIMIT_FSIZE, limit,
                        "the file size limit (ulimit -f) allows " + std::to_string(limit)) == 0);
  CHECK(refused_under(RLIMIT_AS, 64 * kMiB, "RLIMIT_AS (ulimit -v) allows 67108864") == 0);
}

TEST_CASE("files that are no machine of this user are refused", "[machine]") {
  const Name name("foreign");
  const std::string path = file_of(name.text);
  SECTION("a link") {
    REQUIRE(symlink("/etc/passwd", path.c_str()) == 0);
    CHECK(refusal(name.text, kProperties).find("cannot be opened") != std::string::npos);
  }
  SECTION("a file that others can write") {
    std::ofstream(path) << "x";
    REQUIRE(chmod(path.c_str(), 0666) == 0);
    CHECK(refusal(name.text, kProperties).find("not a private file") != std::string::npos);
  }
  SECTION("a file of a creator that was killed begins anew") {
    std::ofstream(path) << "short";
    REQUIRE(chmod(path.c_str(), 0600) == 0);
    CHECK(refusal(name.text, kProperties).empty());
  }
}

TEST_CASE("a machine has room for 64 processes", "[machine]") {
  const Name name("many");
  std::vector<std::unique_ptr<Neighbour>> neighbours;
  for (uint32_t i = 0; i < Machine::kMostProcesses; ++i)
    neighbours.push_back(std::make_unique<Neighbour>(name, [](Machine& theirs) {
      return theirs.allocate(0, Heap::vram, kFilePage, kFilePage).has_value();
    }));
  CHECK(refusal(name.text, kProperties).find("has 64 processes already") != std::string::npos);
  neighbours[17]->kill();
  Machine machine(name.text, kProperties, kTwoGpus);
  CHECK(machine.used_bytes(0, Heap::vram) == 63 * kFilePage);
}

TEST_CASE("processes that are killed at any moment leave a machine without overlap", "[machine]") {
  const Name name("stress");
  Machine machine(name.text, kProperties, kTwoGpus);
  // Each process fills what it gets with its number and finds it so until it frees it.
  const auto work = [&](unsigned seed) {
    Machine theirs(name.text, kProperties, kTwoGpus);
    std::minstd_rand random(seed);
    std::vector<std::pair<uint64_t, uint64_t>> held;
    const auto mark = std::byte(seed % 251 + 1);
    for (;;) {
      if (held.size() < 12 && random() % 3 != 0) {
        const uint64_t bytes = kFilePage * (1 + random() % 4);
        const auto offset = theirs.allocate(0, Heap::vram, bytes, kFilePage);
        if (!offset) return 3;
        for (uint64_t at = 0; at < bytes; at += 512) {
          if (*theirs.file(0).at(*offset + at) != std::byte{0}) return 4;
          *theirs.file(0).at(*offset + at) = mark;
        }
        held.emplace_back(*offset, bytes);
      } else if (!held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        const auto [offset, bytes] = held.back();
        for (uint64_t at = 0; at < bytes; at += 512)
          if (*theirs.file(0).at(offset + at) != mark) return 5;
        theirs.release(0, offset);
        held.pop_back();
      }
    }
  };
  std::minstd_rand random(7);
  std::vector<pid_t> children;
  const auto start = [&](unsigned seed) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(work(seed));
    children.push_back(child);
  };
  unsigned seed = 0;
  while (seed < 4) start(++seed);
  for (int round = 0; round < 40; ++round) {
    usleep(static_cast<useconds_t>(random() % 4000));
    const size_t victim = random() % children.size();
    kill(children[victim], SIGKILL);
    int status = 0;
    REQUIRE(waitpid(children[victim], &status, 0) == children[victim]);
    CHECK(WIFSIGNALED(status));
    children.erase(children.begin() + static_cast<ptrdiff_t>(victim));
    start(++seed);
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
  }
  CHECK(machine.used_bytes(0, Heap::vram) == 0);
  CHECK(machine.allocate(0, Heap::vram, 64 * kMiB, kFilePage));
}

TEST_CASE("processes begin, join and end in any order", "[machine]") {
  const Name name("churn");
  std::vector<pid_t> children;
  for (int child = 0; child < 6; ++child) {
    children.push_back(fork());
    REQUIRE(children.back() >= 0);
    if (children.back() != 0) continue;
    // Each round is a process: it ends while others join.
    for (int round = 0; round < 25; ++round) {
      const pid_t inner = fork();
      if (inner == 0) {
        try {
          Machine machine(name.text, kProperties, kTwoGpus);
          _exit(machine.allocate(0, Heap::vram, kFilePage, kFilePage) ? 0 : 1);
        } catch (...) {
          _exit(2);
        }
      }
      int status = 0;
      if (waitpid(inner, &status, 0) != inner || status != 0) _exit(1);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("a reset wakes every process of the machine", "[machine]") {
  const Name name("reset");
  Machine machine(name.text, kProperties, kTwoGpus);
  CHECK(in_child([&] {
          try {
            Machine::reset(name.text, 2);
          } catch (const std::runtime_error&) {
            Machine::reset(name.text, 1);
            return 0;
          }
          return 1;
        }) == 0);
  CHECK(machine.wait_for_reset(0) == 1);
  CHECK(machine.resets(0) == 0);
  CHECK(machine.resets(1) == 1);
  std::atomic<uint32_t> woken{0};
  std::thread waiter([&] { woken = machine.wait_for_reset(1); });
  CHECK(machine.reset(0));
  waiter.join();
  CHECK(woken == 2);
  CHECK(machine.resets(0) == 1);
}

TEST_CASE("the reset of a machine without a process is refused", "[machine]") {
  const Name name("nobody");
  CHECK_THROWS_AS(Machine::reset(name.text, 0), std::runtime_error);
  CHECK_FALSE(fs::exists(file_of(name.text)));
}

TEST_CASE("a pid stands for one program", "[machine]") {
  const auto own = ProcessIdentity::of_this_process();
  REQUIRE(own);
  CHECK(own->pid == static_cast<uint64_t>(getpid()));
  CHECK(own->is_alive());
  ProcessIdentity other = *own;
  other.start_ticks += 1;
  CHECK_FALSE(other.is_alive());
  other = *own;
  other.stack_address += 4096;  // the pid has executed another program
  CHECK_FALSE(other.is_alive());
  other.stack_address = 0;
  CHECK(other.is_alive());
  CHECK(pid_namespace() != 0);
}

TEST_CASE("a process whose first thread has ended is alive", "[machine]") {
  const Pipe ready, done;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::thread([&] {
      const auto own = ProcessIdentity::of_this_process();
      usleep(20000);
      if (write(ready.write_end(), &*own, sizeof *own) != sizeof *own) _exit(1);
      char go;
      if (read(done.read_end(), &go, 1) != 1) _exit(1);
      _exit(0);
    }).detach();
    syscall(SYS_exit, 0);  // this thread only
  }
  ProcessIdentity identity;
  REQUIRE(read(ready.read_end(), &identity, sizeof identity) == sizeof identity);
  CHECK(identity.is_alive());
  REQUIRE(write(done.write_end(), "x", 1) == 1);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(identity.is_alive());
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
