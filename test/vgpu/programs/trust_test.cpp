// Programs that cannot be preloaded, and launchers and libraries that others may have put beside a
// program.
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

#include "run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

namespace fs = std::filesystem;
using uptempo::test::TemporaryDirectory;

fs::path write_script(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
  REQUIRE(chmod(file.c_str(), 0755) == 0);
  return file;
}

// Readable by all users, as a program's folder is.
fs::path open_folder(const TemporaryDirectory& directory) {
  const fs::path folder = fs::path(directory.file("x")).parent_path();
  REQUIRE(chmod(folder.c_str(), 0755) == 0);
  return folder;
}

// A set-uid program of another user. Only root can make one; for others each system has some.
fs::path set_uid_program(const fs::path& folder) {
  if (geteuid() != 0) return "/usr/bin/su";
  const fs::path file = folder / "set-uid";
  fs::copy_file(UPTEMPO_VGPU_PROBE, file);
  REQUIRE(chown(file.c_str(), 1, 1) == 0);
  REQUIRE(chmod(file.c_str(), 04755) == 0);
  return file;
}

TEST_CASE("a program that runs without the preloaded library is refused", "[launcher]") {
  const TemporaryDirectory directory;
  const fs::path folder = open_folder(directory), program = set_uid_program(folder),
                 script = write_script(folder / "script", "#!" + program.string() + "\n");
  const std::string report = directory.file("report");
  std::ofstream(report) << "kept";
  for (const fs::path& refused : {program, script}) {
    const CommandResult result =
        launch({"--check", "fences", "--report", report, "--", refused.string(), "exit", "0"});
    CAPTURE(refused, result.err);
    CHECK(result.exit_code == 126);
    CHECK(holds(result.err, "uptempo-vgpu: the virtual GPU cannot be preloaded: '" +
                                refused.string() + "' is a "));
    CHECK(holds(result.err, "set-uid"));
    CHECK(uptempo::test::contents_of(report) == "kept");
  }
}

TEST_CASE("a launcher beside a program is executed only where no other user can write",
          "[launch.hpp]") {
  const TemporaryDirectory directory;
  const fs::path folder = open_folder(directory), inner = folder / "a/b", bin = folder / "bin";
  fs::create_directories(inner);
  fs::create_directory(bin);
  fs::copy_file(UPTEMPO_VGPU_PROBE, inner / "probe");
  const fs::path planted = write_script(bin / "uptempo-vgpu", "#!/bin/sh\necho planted\n");
  const std::string known =
      "PATH=" + fs::path(UPTEMPO_VGPU_LAUNCHER).parent_path().string() + ":/usr/bin:/bin";
  const auto chosen = [&](const std::string& path) {
    return run_command({inner / "probe", "choose", "virtual"}, {.environment = {path}});
  };
  CHECK(chosen(known).out == "planted\n");  // every folder is the user's
  for (const fs::path& place : {bin, folder}) {
    CAPTURE(place);
    for (const mode_t mode : {0757u, 0777u}) {
      REQUIRE(chmod(place.c_str(), mode) == 0);
      CHECK(chosen(known).out == "virtual GPU\n");
      const CommandResult nowhere = chosen("PATH=/usr/bin:/bin");
      CHECK(nowhere.exit_code == 1);
      CHECK(nowhere.out.empty());
      CHECK(holds(nowhere.err, "others may write '" + place.string() + "'"));
    }
    REQUIRE(chmod(place.c_str(), 0755) == 0);
  }
  REQUIRE(chmod(planted.c_str(), 0757) == 0);
  CHECK(chosen(known).out == "virtual GPU\n");
  REQUIRE(chmod(planted.c_str(), 0755) == 0);
  REQUIRE(chmod(folder.c_str(), 01777) == 0);  // others cannot rename `bin` in a sticky folder
  CHECK(chosen(known).out == "planted\n");
  REQUIRE(chmod(bin.c_str(), 01777) == 0);
  CHECK(chosen(known).out == "virtual GPU\n");
}

TEST_CASE("a program with other rights than its caller's takes no launcher from the environment",
          "[launch.hpp]") {
  const TemporaryDirectory directory;
  const fs::path folder = open_folder(directory), program = folder / "probe";
  fs::copy_file(UPTEMPO_VGPU_PROBE, program);
  const fs::path bin = folder / "bin";
  fs::create_directory(bin);
  const fs::path planted = write_script(bin / "uptempo-vgpu", "#!/bin/sh\necho planted\n");
  const bool is_root = geteuid() == 0;
  // Others can only give a program their own rights, which are not other rights.
  if (is_root) REQUIRE(chown(program.c_str(), 1, 1) == 0);
  REQUIRE(chmod(program.c_str(), 04755) == 0);
  for (const std::string& variable :
       {"UPTEMPO_VGPU=" + planted.string(), "PATH=" + bin.string() + ":/usr/bin:/bin"}) {
    const CommandResult result =
        run_command({program, "choose", "virtual"}, {.environment = {variable}});
    CAPTURE(variable, result.err);
    CHECK(result.out == (is_root ? "" : "planted\n"));
    CHECK(holds(result.err, "set-uid") == is_root);
  }
}

TEST_CASE("the launcher preloads no library that others may have put beside it", "[launcher]") {
  const TemporaryDirectory directory;
  const fs::path folder = open_folder(directory);
  const fs::path built = fs::path(UPTEMPO_VGPU_LAUNCHER).parent_path();
  for (const char* file : {"uptempo-vgpu", "libuptempo-vgpu.so"})
    fs::copy_file(built / file, folder / file);
  CHECK(run_command({folder / "uptempo-vgpu", "--", "true"}).exit_code == 0);
  REQUIRE(chmod(folder.c_str(), 01777) == 0);
  const CommandResult result = run_command({folder / "uptempo-vgpu", "--", "true"});
  CHECK(result.exit_code == 126);
  CHECK(holds(result.err, "others may write '" + folder.string() + "'"));
}

}  // namespace
}  // namespace uptempo::vgpu
