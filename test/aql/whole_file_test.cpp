#include <uptempo/aql/whole_file.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <uptempo/aql/write_all.hpp>
#include "test/support/catch.hpp"
#include "test/support/posix.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::aql;
using uptempo::test::contains;
using uptempo::test::contents_of;
using uptempo::test::in_child;
using uptempo::test::Pipe;

namespace {

namespace fs = std::filesystem;

struct Place {
  uptempo::test::TemporaryDirectory directory;
  std::string file = directory.file("out");
  long files() const { return std::distance(fs::directory_iterator(directory.file("")), {}); }
};

struct stat status_of(const std::string& file) {
  struct stat status {};
  REQUIRE(stat(file.c_str(), &status) == 0);
  return status;
}

bool is_pending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

// The reason that `write` returns where files may have 100 bytes and SIGXFSZ ends the process.
template <class Write>
std::string reason_with_limit(Write&& write) {
  const Pipe pipe;
  const int code = in_child([&] {
    std::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{.rlim_cur = 100, .rlim_max = 100};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const std::string reason = write();
    return write_all(pipe.write_end(), reason + '\n');
  });
  CHECK(code == 0);
  if (code != 0) return {};
  char text[500];
  const ssize_t size = read(pipe.read_end(), text, sizeof text);
  REQUIRE(size > 0);
  return {text, static_cast<size_t>(size) - 1};
}

constexpr const char* kTooLarge = "File too large: the file size limit (ulimit -f) is 100 bytes";

}  // namespace

TEST_CASE("bytes that cannot be written are an error number, and no signal") {
  std::signal(SIGPIPE, SIG_DFL);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  CHECK(write_all(full, "bytes") == ENOSPC);
  close(full);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  CHECK(write_all(ends[1], "bytes") == 0);
  close(ends[0]);
  CHECK(write_all(ends[1], "bytes") == EPIPE);
  CHECK_FALSE(is_pending(SIGPIPE));
  close(ends[1]);
}

TEST_CASE("a signal that was sent before stays") {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &pipe, &before) == 0);
  raise(SIGPIPE);
  CHECK(without_signals([] { return EPIPE; }) == EPIPE);
  CHECK(is_pending(SIGPIPE));
  int taken = 0;
  CHECK(sigwait(&pipe, &taken) == 0);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("a full pipe that does not block is an error once nothing reads it") {
  const Pipe pipe;
  REQUIRE(fcntl(pipe.write_end(), F_SETFL, O_NONBLOCK) == 0);
  CHECK(write_all(pipe.write_end(), std::string(1 << 20, 'x')) == EAGAIN);
}

TEST_CASE("a named pipe without a reader is an error, also one that loses its reader") {
  const Place place;
  REQUIRE(mkfifo(place.file.c_str(), 0600) == 0);
  const std::string nothing_reads = "No such device or address: no process reads it";
  CHECK(write_whole_file(place.file, "bytes", InPlace::written) == nothing_reads);
  CHECK(append_to_file(place.file, "bytes") == nothing_reads);
  CHECK(write_whole_file(place.file, "bytes", InPlace::refused) == "it is not a regular file");

  const int reader = open(place.file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  CHECK(why_not_writable(place.file).empty());
  CHECK(write_whole_file(place.file, "whole,", InPlace::written).empty());
  CHECK(append_to_file(place.file, "appended").empty());
  char text[100];
  CHECK(read(reader, text, sizeof text) == 14);
  CHECK(std::string_view(text, 14) == "whole,appended");

  const int writer = open_output(place.file.c_str(), 0);
  REQUIRE(writer >= 0);
  CHECK((fcntl(writer, F_GETFL) & O_NONBLOCK) == 0);
  close(reader);
  CHECK(write_all(writer, "bytes") == EPIPE);
  close(writer);
  CHECK(fs::is_fifo(place.file));
  CHECK(place.files() == 1);
}

TEST_CASE("a file size limit is an error that names it, and what was there stays") {
  const Place place;
  const std::string much(1000, 'x'), before(40, 'b');
  std::ofstream(place.file) << before;
  for (const InPlace in_place : {InPlace::written, InPlace::refused})
    CHECK(reason_with_limit([&] { return write_whole_file(place.file, much, in_place); }) ==
          kTooLarge);
  CHECK(reason_with_limit([&] { return append_to_file(place.file, much); }) == kTooLarge);
  CHECK(contents_of(place.file) == before);
  CHECK(place.files() == 1);
}

TEST_CASE("a replaced file keeps mode, owner and group") {
  const Place place;
  // Another owner, where the process may set it.
  const bool is_root = geteuid() == 0;
  const uid_t owner = is_root ? 1 : geteuid();
  const gid_t group = is_root ? 2 : getegid();
  for (const InPlace in_place : {InPlace::written, InPlace::refused}) {
    std::ofstream(place.file) << "before";
    REQUIRE(chown(place.file.c_str(), owner, group) == 0);
    REQUIRE(chmod(place.file.c_str(), 0640) == 0);
    const ino_t number = status_of(place.file).st_ino;
    CHECK(write_whole_file(place.file, "new", in_place).empty());
    CHECK(contents_of(place.file) == "new");
    const struct stat after = status_of(place.file);
    CHECK(after.st_ino != number);
    CHECK((after.st_mode & 07777) == 0640);
    CHECK(after.st_uid == owner);
    CHECK(after.st_gid == group);
    fs::remove(place.file);
  }
}

TEST_CASE("a link of links stays, and the file that it names is replaced or made") {
  const Place place;
  fs::create_directory(place.directory.file("folder"));
  fs::create_symlink("../out", place.directory.file("folder/inner"));
  fs::create_symlink(place.directory.file("folder/inner"), place.directory.file("outer"));
  for (const char* bytes : {"made", "replaced"}) {
    CHECK(why_not_writable(place.directory.file("outer")).empty());
    CHECK(write_whole_file(place.directory.file("outer"), bytes, InPlace::refused).empty());
    CHECK(fs::is_symlink(place.directory.file("outer")));
    CHECK(fs::is_symlink(place.directory.file("folder/inner")));
    CHECK(contents_of(place.file) == bytes);
  }
  fs::create_symlink("loop", place.directory.file("loop"));
  CHECK(write_whole_file(place.directory.file("loop"), "bytes", InPlace::refused) != "");
}

TEST_CASE("a descriptor's file in /proc is written to, though it has no name") {
  const Pipe pipe;
  const std::string name = "/dev/fd/" + std::to_string(pipe.write_end());
  CHECK(why_not_writable(name).empty());
  CHECK(write_whole_file(name, "bytes", InPlace::written).empty());
  char text[100];
  CHECK(read(pipe.read_end(), text, sizeof text) == 5);
  CHECK(write_whole_file(name, "bytes", InPlace::refused) == "it is not a regular file");

  const Place place;
  const int file = open(place.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(file >= 0);
  fs::remove(place.file);
  CHECK(write_whole_file("/dev/fd/" + std::to_string(file), "bytes", InPlace::written).empty());
  CHECK(read(file, text, sizeof text) == 5);
  CHECK(place.files() == 0);
  close(file);
}

TEST_CASE("a file that cannot be made or written is known before, and nothing is left") {
  const Place place;
  CHECK(why_not_writable(place.file).empty());
  CHECK(place.files() == 0);
  std::ofstream(place.file) << "kept";
  CHECK(why_not_writable(place.file).empty());
  CHECK(contents_of(place.file) == "kept");
  CHECK(why_not_writable(place.directory.file("no/folder")) == "No such file or directory");
  CHECK(why_not_writable(place.file + "/below") == "Not a directory");
  CHECK(why_not_writable(place.directory.file("")) == "Is a directory");
  CHECK(why_not_writable("") == "No such file or directory");
  // The longest name there is, which leaves no room for that of the file beside it.
  const std::string longest(255, 'n');
  CHECK(why_not_writable(place.directory.file(longest)).empty());
  CHECK(write_whole_file(place.directory.file(longest), "new", InPlace::written).empty());
  CHECK(contents_of(place.directory.file(longest)) == "new");
  CHECK(why_not_writable(place.directory.file(longest + 'n')) == "File name too long");
  CHECK(place.files() == 2);
}

TEST_CASE("texts that processes append to one file stay whole") {
  const Place place;
  constexpr int kProcesses = 4, kTexts = 50;
  constexpr size_t kSize = 100'000;
  std::ofstream(place.file) << "before\n";
  const int code = in_child([&] {
    for (int i = 0; i < kProcesses; ++i) {
      if (fork() != 0) continue;
      const std::string text = std::string(kSize, static_cast<char>('a' + i)) + '\n';
      for (int each = 0; each < kTexts; ++each)
        if (!append_to_file(place.file, text).empty()) _exit(1);
      _exit(0);
    }
    int failed = 0, status = 0;
    while (wait(&status) > 0) failed += status != 0;
    return failed;
  });
  CHECK(code == 0);
  std::ifstream in(place.file);
  std::string line;
  std::getline(in, line);
  CHECK(line == "before");
  int whole = 0;
  while (std::getline(in, line))
    whole += line.size() == kSize && line.find_first_not_of(line[0]) == std::string::npos;
  CHECK(whole == kProcesses * kTexts);
}
