#include "tools/support/output.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::support;
using uptempo::test::contains;
using uptempo::test::contents_of;

namespace {

struct Place {
  TemporaryDirectory directory;
  std::string file = directory.file("out");
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }
};

struct stat status_of(const std::string& file) {
  struct stat status {};
  REQUIRE(stat(file.c_str(), &status) == 0);
  return status;
}

}  // namespace

TEST_CASE("a file is replaced, and keeps its mode; nothing else is left in its folder") {
  const Place place;
  std::ofstream(place.file) << "a longer text of before";
  REQUIRE(chmod(place.file.c_str(), 0640) == 0);
  const ino_t before = status_of(place.file).st_ino;
  write_output(place.file, "new");
  CHECK(contents_of(place.file) == "new");
  CHECK((status_of(place.file).st_mode & 07777) == 0640);
  CHECK(status_of(place.file).st_ino != before);
  CHECK(place.files() == 1);
}

TEST_CASE("a new file has the mode that the process's mask leaves") {
  const Place place;
  const mode_t mask = umask(027);
  write_output(place.file, "new");
  umask(mask);
  CHECK((status_of(place.file).st_mode & 07777) == 0640);
}

TEST_CASE("a link stays a link, and the file that it names is written") {
  const Place place;
  const std::string link = place.directory.file("link");
  std::ofstream(place.file) << "before";
  std::filesystem::create_symlink(place.file, link);
  write_output(link, "new");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(contents_of(place.file) == "new");
  std::filesystem::remove(place.file);
  write_output(link, "made");  // a link that names nothing yet
  CHECK(contents_of(place.file) == "made");
}

TEST_CASE("a text that does not fit leaves what was there, and no temporary file") {
  const Place place;
  std::ofstream(place.file) << "before";
  const pid_t process = fork();
  REQUIRE(process >= 0);
  if (process == 0) {
    std::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_output(place.file, std::string(1000, 'x'));
    } catch (const std::runtime_error& error) {
      _exit(contains(error.what(),
                     "'" + place.file +
                         "': File too large: the file size limit (ulimit -f) is 100 bytes")
                ? 0
                : 1);
    }
    _exit(2);
  }
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  CHECK(status == 0);
  CHECK(contents_of(place.file) == "before");
  CHECK(place.files() == 1);
}

TEST_CASE("a device is written to, and is no file afterwards") {
  const Place place;
  const std::string link = place.directory.file("null");
  std::filesystem::create_symlink("/dev/null", link);
  write_output(link, "nothing");
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK_THROWS_AS(write_output("/dev/full", "text"), std::runtime_error);
}

TEST_CASE("a named pipe is written to if a process reads it, else an error") {
  const Place place;
  REQUIRE(mkfifo(place.file.c_str(), 0600) == 0);
  CHECK(output_problem(place.file).empty());
  CHECK(contains(uptempo::test::error_of([&] { write_output(place.file, "text"); }),
                 "'" + place.file + "': No such device or address: no process reads it"));
  const int reader = open(place.file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  write_output(place.file, "text");
  char text[10];
  CHECK(read(reader, text, sizeof text) == 4);
  close(reader);
}

TEST_CASE("two writers of one file leave one whole text") {
  const Place place;
  const std::string a(1 << 20, 'a'), b(1 << 20, 'b');
  const pid_t process = fork();
  REQUIRE(process >= 0);
  for (int i = 0; i < 20; ++i) write_output(place.file, process == 0 ? a : b);
  if (process == 0) _exit(0);
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  CHECK(status == 0);
  const std::string found = contents_of(place.file);
  CHECK((found == a || found == b));
  CHECK(place.files() == 1);
}

TEST_CASE("JSON with bytes that are not UTF-8 is written, with U+FFFD in their place") {
  const Place place;
  write_json(place.file, {{"name", "a\xff"}}, -1);
  CHECK(contents_of(place.file) == "{\"name\":\"a\xef\xbf\xbd\"}\n");
}
