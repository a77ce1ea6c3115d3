#include "device/trace.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/posix.hpp"
#include "tools/support/command.hpp"

namespace uptempo::vgpu {
namespace {

struct TemporaryFile {
  uptempo::test::TemporaryDirectory directory;
  std::string path = directory.file("trace");
};

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("without a file the trace is off and writing does nothing", "[trace]") {
  Trace trace("");
  CHECK_FALSE(trace.enabled());
  trace.write("{}");
}

TEST_CASE("each object becomes one line, appended to what the file holds", "[trace]") {
  const TemporaryFile file;
  std::ofstream(file.path) << "earlier\n";
  {
    Trace trace(file.path);
    CHECK(trace.enabled());
    trace.write("{\"a\":1}");
    trace.write("{\"b\":2}");
    CHECK(lines_of(file.path) == std::vector<std::string>{"earlier", "{\"a\":1}", "{\"b\":2}"});
  }
}

TEST_CASE("%p in the file's name is the process id", "[trace]") {
  const TemporaryFile file;
  const std::string expected = file.path + "." + std::to_string(getpid());
  {
    Trace trace(file.path + ".%p");
    trace.write("{}");
  }
  CHECK(lines_of(expected).size() == 1);
  std::remove(expected.c_str());
}

TEST_CASE("a file that cannot be written is refused with its name and the reason", "[trace]") {
  try {
    Trace trace("/nonexistent/folder/t.json");
    FAIL("the file was accepted");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find("/nonexistent/folder/t.json") != std::string::npos);
    CHECK(std::string(error.what()).find("No such file") != std::string::npos);
  }
}

TEST_CASE("lines of many threads never mix", "[trace][threads]") {
  const TemporaryFile file;
  {
    Trace trace(file.path);
    std::vector<std::thread> threads;
    for (char letter = 'a'; letter < 'e'; ++letter)
      threads.emplace_back([&trace, letter] {
        const std::string line(200, letter);
        for (int i = 0; i < 200; ++i) trace.write(line);
      });
    for (std::thread& thread : threads) thread.join();
  }
  const auto lines = lines_of(file.path);
  CHECK(lines.size() == 800);
  CHECK(std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.size() == 200 &&
           std::all_of(line.begin(), line.end(), [&](char c) { return c == line[0]; });
  }));
}

TEST_CASE("the file holds every line however the process ends", "[trace]") {
  for (const int ending : {0, 1}) {
    const TemporaryFile file;
    const int exit_code = uptempo::test::in_child([&] {
      Trace trace(file.path);
      for (int i = 0; i < 100; ++i) trace.write("{\"line\":" + std::to_string(i) + "}");
      if (ending == 1) raise(SIGKILL);
      _exit(0);  // without trace's destructor
      return 0;
    });
    CAPTURE(ending);
    CHECK(exit_code == (ending == 1 ? 128 + SIGKILL : 0));
    CHECK(lines_of(file.path).size() == 100);
  }
}

TEST_CASE("a program that closes the trace's descriptor loses no line", "[trace]") {
  const TemporaryFile file;
  Trace trace(file.path);
  trace.write("first");
  for (int descriptor = 700; descriptor < 720; ++descriptor) close(descriptor);
  trace.write("second");
  CHECK(lines_of(file.path) == std::vector<std::string>{"first", "second"});
}

TEST_CASE("a file that the program opens with the trace's number gets no line", "[trace]") {
  const TemporaryFile file, own;
  std::ofstream(own.path) << "the program's\n";
  Trace trace(file.path);
  trace.write("first");
  const int other = open(own.path.c_str(), O_WRONLY | O_APPEND);
  REQUIRE(other >= 0);
  for (int descriptor = 700; descriptor < 720; ++descriptor) dup2(other, descriptor);
  trace.write("second");
  trace.write("third");
  CHECK(lines_of(file.path) == std::vector<std::string>{"first", "second", "third"});
  CHECK(lines_of(own.path) == std::vector<std::string>{"the program's"});
  for (int descriptor = 700; descriptor < 720; ++descriptor) close(descriptor);
  close(other);
}

TEST_CASE("a file size limit and a pipe that loses its reader end no program", "[trace]") {
  const TemporaryFile file, pipe;
  REQUIRE(mkfifo(pipe.path.c_str(), 0600) == 0);
  const int exit_code = uptempo::test::in_child([&] {
    for (const int signal : {SIGXFSZ, SIGPIPE}) std::signal(signal, SIG_DFL);
    const int reader = open(pipe.path.c_str(), O_RDONLY | O_NONBLOCK);
    Trace limited(file.path), unread(pipe.path);
    unread.write("{}");
    char text[10];
    if (read(reader, text, sizeof text) != 3) return 3;
    close(reader);
    const rlimit limit{.rlim_cur = 5, .rlim_max = 5};
    setrlimit(RLIMIT_FSIZE, &limit);
    limited.write(R"({"line":1})");
    unread.write("{}");
    return limited.is_incomplete() && unread.is_incomplete() ? 0 : 2;
  });
  CHECK(exit_code == 0);
}

TEST_CASE("a trace into a pipe without a reader is refused", "[trace]") {
  const TemporaryFile pipe;
  REQUIRE(mkfifo(pipe.path.c_str(), 0600) == 0);
  CHECK(uptempo::test::error_of([&] { Trace trace(pipe.path); }) ==
        "cannot write the trace file '" + pipe.path +
            "': No such device or address: no process reads it");
}

TEST_CASE("a trace that lacks a line says so", "[trace]") {
  const TemporaryFile file;
  Trace complete(file.path), full("/dev/full");
  complete.write("{}");
  CHECK_FALSE(complete.is_incomplete());
  CHECK_FALSE(full.is_incomplete());
  full.write("{}");
  CHECK(full.is_incomplete());
}

}  // namespace
}  // namespace uptempo::vgpu
