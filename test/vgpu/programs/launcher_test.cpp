#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

TEST_CASE("the launcher's exit status is the program's", "[launcher]") {
  for (const int status : {0, 1, 42, 255})
    CHECK(launch({"--", UPTEMPO_VGPU_PROBE, "exit", std::to_string(status)}).exit_code == status);
}

TEST_CASE("a signal that ends the program ends the launched process", "[launcher]") {
  CHECK(launch({UPTEMPO_VGPU_PROBE, "signal", "15"}).exit_code == 128 + 15);
}

TEST_CASE("the program receives its arguments unchanged, also those that look like options",
          "[launcher]") {
  const CommandResult finished =
      launch({"--seed", "3", "--", UPTEMPO_VGPU_PROBE, "arguments", "--help", "", "a b", "--"});
  CHECK(finished.exit_code == 0);
  CHECK(finished.out == "--help\n\na b\n--\n");
}

TEST_CASE("without the separator the first word that is not an option is the program",
          "[launcher]") {
  CHECK(launch({"--null-kernels", UPTEMPO_VGPU_PROBE, "arguments", "--verbose"}).out ==
        "--verbose\n");
}

TEST_CASE("--help and --version print text and succeed", "[launcher]") {
  const CommandResult help = launch({"--help"});
  CHECK(help.exit_code == 0);
  for (const char* option :
       {"--device",        "--trace",          "--null-kernels",  "--early-read-index",
        "--deterministic", "--incoherent",     "--bar",           "--delay",
        "--seed",          "--workers",        "--verbose",       "--check",
        "--report",        "--error-exitcode", "--suppressions",  "--watchdog",
        "--sockets",       "--gpus",           "--partitions",    "--gpu-socket",
        "gfx90a",          "gfx900",           "--eager-packets", "--grouped-read-index"}) {
    CAPTURE(option);
    CHECK(holds(help.out, option));
  }
  const CommandResult version = launch({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(holds(version.out, "uptempo-vgpu (uptempo) 0."));
}

TEST_CASE("a usage error gives one line and status 2", "[launcher]") {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const uptempo::test::TemporaryDirectory directory;
  const std::string no_rules = directory.file("rules");
  std::ofstream{no_rules};
  for (const Case& each :
       {Case{{}, "no program"},
        Case{{"--frobnicate", "true"}, "--frobnicate"},
        Case{{"--device", "gfx1100", "true"}, "gfx90a, gfx908, gfx906, gfx900"},
        Case{{"--seed", "x", "true"}, "'x'"},
        Case{{"--seed"}, "needs a value"},
        Case{{"--incoherent", "x", "true"}, "'x'"},
        Case{{"--incoherent"}, "needs a value"},
        Case{{"--incoherent", "18446744073709551616", "true"}, "--incoherent"},
        Case{{"--incoherent=-1", "true"}, "'-1'"},
        Case{{"--delay", "soon", "true"}, "'soon'"},
        Case{{"--delay"}, "needs a value"},
        Case{{"--delay=1ms", "true"}, "--delay"},
        Case{{"--bar"}, "needs a value"},
        Case{{"--bar", "slow", "true"}, "neither lazy nor small"},
        Case{{"--bar", "lazy"}, "needs a seed"},
        Case{{"--bar", "lazy", "x", "true"}, "'x'"},
        Case{{"--check", "fences", "--bar", "lazy", "1", "true"}, "exclude each other"},
        Case{{"--completion", "fish"}, "'fish' is neither bash nor zsh"},
        Case{{"--completion"}, "needs a value"},
        Case{{"--kfd", "1.7", "true"}, "'1.7'"},
        Case{{"--kfd", "1.19", "true"}, "from 1.8 to 1.18"},
        Case{{"--kfd", "1.08", "true"}, "'1.08'"},
        Case{{"--kfd", "2.0", "true"}, "'2.0'"},
        Case{{"--kfd"}, "needs a value"},
        Case{{"--sockets", "0", "true"}, "'0': use a number of sockets from 1 to 8"},
        Case{{"--sockets", "9", "true"}, "'9'"},
        Case{{"--sockets=", "true"}, "--sockets needs"},
        Case{{"--sockets"}, "needs a value"},
        Case{{"--gpu-socket", "2", "--sockets", "2", "true"}, "below 2, the number of sockets"},
        Case{{"--gpu-socket", "1", "true"}, "below 1"},
        Case{{"--watchdog", "0", "true"}, "'0' is not a number of seconds from 1 to 1000000"},
        Case{{"--watchdog", "5s", "true"}, "'5s'"},
        Case{{"--watchdog=", "true"}, "''"},
        Case{{"--watchdog"}, "needs a value"},
        Case{{"--gpus", "0", "true"}, "'0': use a number from 1 to 8"},
        Case{{"--gpus", "9", "true"}, "'9'"},
        Case{{"--gpus", "gfx90a,mi100", "true"}, "'gfx90a,mi100'"},
        Case{{"--gpus=gfx90a,", "true"}, "'gfx90a,'"},
        Case{{"--gpus"}, "needs a value"},
        Case{{"--gpus", "gfx90a,gfx908", "--device", "gfx90a", "true"}, "leave out --device"},
        Case{{"--gpus", "2", "--check", "fences,advice", "true"},
             "--check fences,advice works with one GPU"},
        Case{{"--gpus", "2", "--bar", "lazy", "1", "true"}, "--bar lazy works with one GPU"},
        Case{{"--inject", "packet stale", "true"}, "'packet stale' needs --incoherent SEED"},
        Case{{"--inject", "hdp lost", "true"}, "'hdp lost' needs --bar lazy SEED"},
        Case{{"--gpus", "2", "--partitions", "true"}, "'true' is neither same-id nor own-id"},
        Case{{"--gpus", "gfx90a,gfx908", "--partitions", "same-id", "true"},
             "--partitions needs GPUs of one target"},
        Case{{"--join", "a/b", "true"}, "'a/b'"},
        Case{{"--join=", "true"}, "''"},
        Case{{"--join"}, "needs a value"},
        Case{{"--join", "m", "--check", "fences", "true"}, "--check fences and --join exclude"},
        Case{{"--join", "m", "--incoherent", "1", "true"}, "--incoherent and --join exclude"},
        Case{{"--bar", "lazy", "1", "--join", "m", "true"}, "--bar lazy and --join exclude"},
        Case{{"--join", "m", "--deterministic", "true"}, "--deterministic and --join exclude"},
        Case{{"--reset-gpu", "0"}, "--reset-gpu needs --join"},
        Case{{"--join", "m", "--reset-gpu", "x"}, "'x'"},
        Case{{"--join", "m", "--reset-gpu", "0", "true"}, "--reset-gpu runs no program"},
        Case{{"--verbose=yes", "true"}, "--verbose"},
        Case{{"--trace", "/nonexistent/t.json", "true"}, "/nonexistent/t.json"},
        Case{{"--check", "raced", "true"}, "'raced'"},
        Case{{"--check", "atomics,hsa", "true"}, "or fences with any of"},
        Case{{"--check", "atomics", "--null-kernels", "true"}, "--null-kernels"},
        Case{{"--report", "/tmp/r", "true"}, "without --check"},
        Case{{"--check", "fences", "--report", "/nonexistent/r", "true"}, "--report: cannot"},
        Case{{"--error-exitcode", "1", "true"}, "--error-exitcode depends on findings"},
        Case{{"--check", "fences", "--error-exitcode", "0", "true"},
             "'0' is not an exit status from 1 to 255"},
        Case{{"--check", "fences", "--error-exitcode=256", "true"}, "'256'"},
        Case{{"--check", "fences", "--error-exitcode=1x", "true"}, "'1x'"},
        Case{{"--check", "fences", "--error-exitcode=-1", "true"}, "'-1'"},
        Case{{"--check", "fences", "--error-exitcode=", "true"}, "''"},
        Case{{"--check", "fences", "--error-exitcode"}, "needs a value"},
        Case{{"--suppressions", no_rules, "true"}, "without --check fences"},
        Case{{"--check", "atomics", "--suppressions", no_rules, "true"}, "without --check fences"},
        Case{{"--check", "fences", "--suppressions", "/tmp", "true"},
             "'/tmp': it is not a regular"},
        Case{{"--check", "fences", "--suppressions", "/dev/zero", "true"}, "not a regular file"},
        Case{{"--check", "races", "--incoherent", "1", "true"}, "--check races and --incoherent"},
        Case{{"--check", "fences", "--suppressions", "/nonexistent/s", "true"}, "/nonexistent/s"},
        Case{{"--check", "fences", "--suppressions"}, "needs a value"},
        Case{{"--check", "fences", "--null-kernels", "true"}, "--null-kernels"},
        Case{{"--check", "fences", "--incoherent=1", "true"}, "exclude each other"}}) {
    const CommandResult finished = launch(each.arguments);
    CAPTURE(each.says, finished.err);
    CHECK(finished.exit_code == 2);
    CHECK(holds(finished.err, each.says));
    CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  }
}

TEST_CASE("the message names a program that cannot be run", "[launcher]") {
  const CommandResult missing = launch({"--", "no-such-program-anywhere"});
  CHECK(missing.exit_code == 127);
  CHECK(holds(missing.err, "no-such-program-anywhere"));
  CHECK(launch({"--", "/no/such/program"}).exit_code == 127);
  CHECK(launch({"--", "/etc/passwd"}).exit_code == 126);
  CHECK(launch({"--", "/tmp"}).exit_code == 126);
}

TEST_CASE("a path that LD_PRELOAD cannot express is refused", "[launcher]") {
  namespace fs = std::filesystem;
  const uptempo::test::TemporaryDirectory directory;
  const fs::path name = directory.file("with space");
  REQUIRE(fs::create_directory(name));
  const fs::path built = fs::path(UPTEMPO_VGPU_LAUNCHER).parent_path();
  for (const char* file : {"uptempo-vgpu", "libuptempo-vgpu.so"})
    fs::copy_file(built / file, name / file);
  const CommandResult finished = run_command({name / "uptempo-vgpu", "--", "true"});
  CHECK(finished.exit_code == 126);
  CHECK(holds(finished.err, "space or colon"));
}

TEST_CASE("a script runs, and the programs that it starts use the device too", "[launcher]") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string name = directory.file("script");
  std::ofstream(name) << "#!/bin/sh\ncat /sys/class/kfd/kfd/topology/nodes/1/name\nexec "
                      << UPTEMPO_VGPU_PROBE << " kfd\n";
  REQUIRE(chmod(name.c_str(), 0755) == 0);
  const CommandResult finished = launch({"--device", "gfx906", "--", name});
  CHECK(finished.exit_code == 0);
  CHECK(finished.out == "gfx906\n");
}

TEST_CASE("a launcher inside a launched program changes only the options it is given",
          "[launcher]") {
  const CommandResult finished =
      launch({"--device", "gfx908", "--", UPTEMPO_VGPU_LAUNCHER, "--seed", "2", "--", "sh", "-c",
              "cat /sys/class/kfd/kfd/topology/nodes/1/name; echo $LD_PRELOAD | tr ':' '\\n' | "
              "grep -c uptempo"});
  CHECK(finished.exit_code == 0);
  CHECK(finished.out == "gfx908\n1\n");
}

TEST_CASE("invalid options in the environment end the program before it can use a real device",
          "[launcher]") {
  const CommandResult finished =
      launch({"--", UPTEMPO_VGPU_PROBE, "kfd"}, {"UPTEMPO_VGPU_SEED=twelve"});
  CHECK(finished.exit_code == 2);
  CHECK(holds(finished.err, "UPTEMPO_VGPU_SEED"));
}

TEST_CASE("--device auto and virtual re-execute the program on the virtual GPU", "[launch.hpp]") {
  for (const char* choice : {"auto", "virtual"}) {
    const CommandResult finished = run_command({UPTEMPO_VGPU_PROBE, "choose", choice});
    CAPTURE(choice, finished.err);
    CHECK(finished.exit_code == 0);
    CHECK(finished.out == (access("/dev/kfd", R_OK | W_OK) == 0 && std::string(choice) == "auto"
                               ? "hardware\n"
                               : "virtual GPU\n"));
  }
}

TEST_CASE("the message for a choice that cannot be met gives the reason", "[launch.hpp]") {
  const CommandResult inside = launch({"--", UPTEMPO_VGPU_PROBE, "choose", "hardware"});
  CHECK(inside.exit_code == 1);
  CHECK(holds(inside.err, "runs under uptempo-vgpu"));
  const CommandResult unknown = run_command({UPTEMPO_VGPU_PROBE, "choose", "cloud"});
  CHECK(unknown.exit_code == 1);
  CHECK(holds(unknown.err, "auto, hardware or virtual"));
  const CommandResult nowhere =
      run_command({UPTEMPO_VGPU_PROBE, "choose", "virtual"},
                  {.environment = {"UPTEMPO_VGPU=/nonexistent/uptempo-vgpu"}});
  CHECK(nowhere.exit_code == 1);
  CHECK(holds(nowhere.err, "/nonexistent/uptempo-vgpu"));
}

}  // namespace
}  // namespace uptempo::vgpu
