#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "../device/watched_pages.hpp"
#include "test/support/posix.hpp"

extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
size_t __fread_chk(void*, size_t, size_t, size_t, std::FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, std::FILE*);
}

namespace uptempo::vgpu::test {
namespace {

using uptempo::test::Pipe;

using Kind = HostEvent::Kind;
const std::string kText = "what the other side sent";

// A file and a socket that contain the text; both ends of each.
struct Ends {
  Ends() {
    file = memfd_create("ends", MFD_CLOEXEC);
    REQUIRE(::write(file, kText.data(), kText.size()) == static_cast<ssize_t>(kText.size()));
    lseek(file, 0, SEEK_SET);
    stream = fdopen(dup(file), "r+");
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    REQUIRE(::write(sockets[1], kText.data(), kText.size()) == static_cast<ssize_t>(kText.size()));
  }
  ~Ends() {
    std::fclose(stream);
    for (const int each : {file, sockets[0], sockets[1]}) close(each);
  }
  int file = -1;
  int sockets[2] = {-1, -1};
  std::FILE* stream = nullptr;
};

constexpr size_t kAt = kPage - 10;  // the text spans two pages

struct Input {
  const char* name;
  std::function<size_t(Ends&, std::byte* to, size_t bytes)> call;
};

TEST_CASE("every call that fills a buffer fills closed pages, and is recorded", "[transfers]") {
  const auto vector_of = [](std::byte* to, size_t bytes) {
    return std::array<iovec, 2>{iovec{to, 3}, iovec{to + 3, bytes - 3}};
  };
  const std::vector<Input> inputs{
      {"read", [](Ends& e, std::byte* to, size_t n) { return ::read(e.file, to, n); }},
      {"__read_chk", [](Ends& e, std::byte* to, size_t n) { return __read_chk(e.file, to, n, n); }},
      {"pread", [](Ends& e, std::byte* to, size_t n) { return pread(e.file, to, n, 0); }},
      {"pread64", [](Ends& e, std::byte* to, size_t n) { return pread64(e.file, to, n, 0); }},
      {"__pread_chk",
       [](Ends& e, std::byte* to, size_t n) { return __pread_chk(e.file, to, n, 0, n); }},
      {"__pread64_chk",
       [](Ends& e, std::byte* to, size_t n) { return __pread64_chk(e.file, to, n, 0, n); }},
      {"readv",
       [&](Ends& e, std::byte* to, size_t n) { return readv(e.file, vector_of(to, n).data(), 2); }},
      {"preadv", [&](Ends& e, std::byte* to,
                     size_t n) { return preadv(e.file, vector_of(to, n).data(), 2, 0); }},
      {"preadv64", [&](Ends& e, std::byte* to,
                       size_t n) { return preadv64(e.file, vector_of(to, n).data(), 2, 0); }},
      {"preadv2", [&](Ends& e, std::byte* to,
                      size_t n) { return preadv2(e.file, vector_of(to, n).data(), 2, 0, 0); }},
      {"preadv64v2",
       [&](Ends& e, std::byte* to, size_t n) {
         return preadv64v2(e.file, vector_of(to, n).data(), 2, 0, 0);
       }},
      {"recv", [](Ends& e, std::byte* to, size_t n) { return recv(e.sockets[0], to, n, 0); }},
      {"__recv_chk",
       [](Ends& e, std::byte* to, size_t n) { return __recv_chk(e.sockets[0], to, n, n, 0); }},
      {"recvfrom", [](Ends& e, std::byte* to,
                      size_t n) { return recvfrom(e.sockets[0], to, n, 0, nullptr, nullptr); }},
      {"__recvfrom_chk",
       [](Ends& e, std::byte* to, size_t n) {
         return __recvfrom_chk(e.sockets[0], to, n, n, 0, nullptr, nullptr);
       }},
      {"recvmsg",
       [&](Ends& e, std::byte* to, size_t n) {
         auto buffers = vector_of(to, n);
         msghdr message{};
         message.msg_iov = buffers.data();
         message.msg_iovlen = 2;
         return recvmsg(e.sockets[0], &message, 0);
       }},
      {"fread", [](Ends& e, std::byte* to, size_t n) { return std::fread(to, 1, n, e.stream); }},
      {"fread_unlocked",
       [](Ends& e, std::byte* to, size_t n) { return fread_unlocked(to, n, 1, e.stream) * n; }},
      {"__fread_chk",
       [](Ends& e, std::byte* to, size_t n) { return __fread_chk(to, n, 1, n, e.stream); }},
      {"__fread_unlocked_chk", [](Ends& e, std::byte* to, size_t n) {
         return __fread_unlocked_chk(to, n, 1, n, e.stream);
       }}};
  for (const Input& input : inputs) {
    CAPTURE(input.name);
    Ends ends;
    // the C library passes the caller's buffer to the kernel
    std::setvbuf(ends.stream, nullptr, _IONBF, 0);
    Watched watched;
    for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
    REQUIRE(input.call(ends, watched.memory.program + kAt, kText.size()) == kText.size());
    auto events = watched.events();
    REQUIRE(events.size() == 2);
    is(events[0], Kind::opened, kGpu + kAt);
    is(events[1], Kind::opened, kGpu + kPage);
    CHECK(std::memcmp(watched.memory.device + kAt, kText.data(), kText.size()) == 0);
    REQUIRE(watched.use(0));
    REQUIRE(watched.use(1));
    events = watched.events();
    REQUIRE(events.size() == 2);
    is(events[0], Kind::wrote, kGpu + kAt, 10);
    is(events[1], Kind::wrote, kGpu + kPage, static_cast<uint32_t>(kText.size() - 10));
  }
}

struct Output {
  const char* name;
  bool to_socket;
  std::function<size_t(Ends&, const std::byte* from, size_t bytes)> call;
};

TEST_CASE(
    "every call that sends a buffer sends the content of closed pages, and is recorded as a read",
    "[transfers]") {
  const auto vector_of = [](const std::byte* from, size_t bytes) {
    auto* const begin = const_cast<std::byte*>(from);
    return std::array<iovec, 2>{iovec{begin, 3}, iovec{begin + 3, bytes - 3}};
  };
  using From = const std::byte*;
  const std::vector<Output> outputs{
      {"write", false, [](Ends& e, From from, size_t n) { return ::write(e.file, from, n); }},
      {"pwrite", false, [](Ends& e, From from, size_t n) { return pwrite(e.file, from, n, 0); }},
      {"pwrite64", false,
       [](Ends& e, From from, size_t n) { return pwrite64(e.file, from, n, 0); }},
      {"writev", false,
       [&](Ends& e, From from, size_t n) { return writev(e.file, vector_of(from, n).data(), 2); }},
      {"pwritev", false,
       [&](Ends& e, From from, size_t n) {
         return pwritev(e.file, vector_of(from, n).data(), 2, 0);
       }},
      {"pwritev64", false,
       [&](Ends& e, From from, size_t n) {
         return pwritev64(e.file, vector_of(from, n).data(), 2, 0);
       }},
      {"pwritev2", false,
       [&](Ends& e, From from, size_t n) {
         return pwritev2(e.file, vector_of(from, n).data(), 2, 0, 0);
       }},
      {"pwritev64v2", false,
       [&](Ends& e, From from, size_t n) {
         return pwritev64v2(e.file, vector_of(from, n).data(), 2, 0, 0);
       }},
      {"send", true, [](Ends& e, From from, size_t n) { return send(e.sockets[0], from, n, 0); }},
      {"sendto", true,
       [](Ends& e, From from, size_t n) { return sendto(e.sockets[0], from, n, 0, nullptr, 0); }},
      {"sendmsg", true,
       [&](Ends& e, From from, size_t n) {
         auto buffers = vector_of(from, n);
         msghdr message{};
         message.msg_iov = buffers.data();
         message.msg_iovlen = 2;
         return sendmsg(e.sockets[0], &message, 0);
       }},
      {"fwrite", false,
       [](Ends& e, From from, size_t n) { return std::fwrite(from, 1, n, e.stream); }},
      {"fwrite_unlocked", false,
       [](Ends& e, From from, size_t n) { return fwrite_unlocked(from, n, 1, e.stream) * n; }}};
  const std::string results = "RESULTS OF A KERNEL here";
  for (const Output& output : outputs) {
    CAPTURE(output.name);
    Ends ends;
    std::setvbuf(ends.stream, nullptr, _IONBF, 0);
    Watched watched;
    std::memcpy(watched.memory.device + kAt, results.data(), results.size());
    for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
    watched.events();
    REQUIRE(output.call(ends, watched.memory.program + kAt, results.size()) == results.size());
    const auto events = watched.events();
    REQUIRE(events.size() == 2);
    is(events[0], Kind::read, kGpu + kAt);
    is(events[1], Kind::read, kGpu + kPage);
    std::string arrived(results.size(), ' ');
    const ssize_t got = output.to_socket ? recv(ends.sockets[1], arrived.data(), arrived.size(), 0)
                                         : pread(ends.file, arrived.data(), arrived.size(), 0);
    CHECK(got == static_cast<ssize_t>(results.size()));
    CHECK(arrived == results);
  }
}

TEST_CASE("descriptions of buffers may be in closed pages too", "[transfers]") {
  Ends ends;
  Watched watched;
  std::byte* const program = watched.memory.program;
  auto* const message = reinterpret_cast<msghdr*>(program);
  auto* const buffers = reinterpret_cast<iovec*>(program + kPage);
  *buffers = {program + 2 * kPage, kText.size()};
  message->msg_iov = buffers;
  message->msg_iovlen = 1;
  for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
  CHECK(readv(ends.file, buffers, 1) == static_cast<ssize_t>(kText.size()));
  for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
  CHECK(recvmsg(ends.sockets[0], message, 0) == static_cast<ssize_t>(kText.size()));
  CHECK(std::memcmp(watched.memory.device + 2 * kPage, kText.data(), kText.size()) == 0);
}

TEST_CASE("invalid pointers give EFAULT, with and without watched pages", "[transfers]") {
  Ends ends;
  void* const hole = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto refused = [&] {
    const auto is_fault = [](ssize_t result) { return result == -1 && errno == EFAULT; };
    auto* const nowhere = static_cast<iovec*>(hole);
    const iovec bad{hole, 10};
    volatile int minus_one = -1;
    msghdr message{};
    message.msg_iov = nowhere;
    message.msg_iovlen = 1;
    CHECK(is_fault(::read(ends.file, hole, 10)));
    CHECK(is_fault(::write(ends.file, hole, 10)));
    CHECK(is_fault(readv(ends.file, nowhere, 1)));
    CHECK(is_fault(writev(ends.file, &bad, 1)));
    CHECK(is_fault(sendmsg(ends.sockets[0], &message, 0)));
    CHECK(is_fault(recvmsg(ends.sockets[0], static_cast<msghdr*>(hole), 0)));
    CHECK(::read(ends.file, nullptr, 0) == 0);
    CHECK((readv(ends.file, &bad, minus_one) == -1 && errno == EINVAL));
    CHECK((::read(-1, hole, 1) == -1 && errno == EBADF));
  };
  refused();
  const Watched watched;
  refused();
  munmap(hole, kPage);
}

TEST_CASE("a thread that is cancelled in a call leaves the pages as a completed call does",
          "[transfers]") {
  Ends ends;
  Watched watched;
  REQUIRE(watched.use(0, true));
  const Pipe pipe;
  struct Reading {
    int from;
    std::byte* to;
    std::atomic<bool> begun{false};
  } reading{pipe.read_end(), watched.memory.program};
  pthread_t thread;
  REQUIRE(pthread_create(
              &thread, nullptr,
              [](void* argument) -> void* {
                auto& mine = *static_cast<Reading*>(argument);
                mine.begun = true;
                return ::read(mine.from, mine.to, 100) == 0 ? argument : nullptr;
              },
              &reading) == 0);
  while (watched.events().empty()) std::this_thread::yield();
  pthread_cancel(thread);
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
  REQUIRE(watched.use(0, true));
  watched.events();
  store(watched.memory.program, 1);  // closed again: no call holds it
  CHECK(watched.events().size() == 1);
}

}  // namespace
}  // namespace uptempo::vgpu::test
