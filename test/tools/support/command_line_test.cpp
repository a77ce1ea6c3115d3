#include "tools/support/command_line.hpp"

#include <filesystem>
#include <fstream>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"
#include "tools/support/program.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo::support;
using uptempo::test::contains;
using uptempo::test::error_of;

namespace {

enum class Colour { red, green };
const std::map<std::string, Colour> kColours{{"red", Colour::red}, {"green", Colour::green}};

}  // namespace

TEST_CASE("options that are not given keep the values of their variables") {
  CommandLine line("tried", "");
  uint32_t count = 5;
  std::vector<double> ratios{0.5};
  Colour colour = Colour::green;
  line.option("--count", count, "");
  line.option("--ratios", ratios, "");
  line.option("--colour", colour, kColours, "");
  CHECK_FALSE(line.parse({}));
  CHECK(count == 5);
  CHECK(ratios == std::vector<double>{0.5});
  CHECK(colour == Colour::green);
}

TEST_CASE("a value that the user names is one of the names, and the error lists them") {
  CommandLine line("tried", "");
  Colour colour = Colour::red;
  std::vector<Colour> colours{Colour::red};
  line.option("--colour", colour, kColours, "");
  line.option("--colours", colours, kColours, "").separator(',');
  line.parse({"--colour", "green", "--colours", "green,red"});
  CHECK(colour == Colour::green);
  CHECK(colours == std::vector{Colour::green, Colour::red});
  for (const char* option : {"--colour", "--colours"}) {
    const std::string error = error_of<UsageError>([&] { line.parse({option, "blue"}); });
    CHECK(contains(error, option));
    CHECK(contains(error, "blue not in {green,red}"));
  }
  CHECK_THROWS_AS(line.parse({"--colour", "red", "green"}), UsageError);
  CHECK(colour == Colour::green);
}

TEST_CASE("an empty value is an error that names the option, whatever its type") {
  CommandLine line("tried", "");
  std::string text = "text", file;
  uint32_t count = 5;
  double ratio = 0.5;
  std::vector<uint64_t> bytes{7};
  std::vector<std::string> names{"a"};
  line.option("--text", text, "");
  line.option("--file", file, "").output_file();
  line.option("--count", count, "");
  line.option("--ratio", ratio, "");
  line.option("--bytes", bytes, "").separator(',').sizes();
  line.option("--names", names, "").separator(',');
  line.option("argument", text, "");
  for (const std::string option :
       {"--text", "--file", "--count", "--ratio", "--bytes", "--names"}) {
    CAPTURE(option);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{option, ""}, {option + '='}}) {
      const std::string error = error_of<UsageError>([&] { line.parse(words); });
      CHECK(contains(error, option + ":"));
    }
  }
  CHECK(contains(error_of<UsageError>([&] { line.parse({""}); }), "argument: the value is empty"));
}

TEST_CASE("sizes have units of 1,024, and lists are checked value by value") {
  CommandLine line("tried", "");
  std::vector<uint64_t> bytes;
  std::set<uint32_t> threads;
  line.option("--bytes", bytes, "").separator(',').sizes().positive();
  line.option("--threads", threads, "").one_of(std::vector<uint32_t>{1, 2, 4});
  line.parse({"--bytes", "100,64K,1M", "--threads", "4", "1"});
  CHECK(bytes == std::vector<uint64_t>{100, 65536, 1048576});
  CHECK(threads == std::set<uint32_t>{1, 4});
  CHECK_THROWS_AS(line.parse({"--bytes", "64K,0"}), UsageError);
  CHECK_THROWS_AS(line.parse({"--threads", "2", "3"}), UsageError);
}

TEST_CASE("a number is one, of its type, and the whole word") {
  CommandLine line("tried", "");
  int64_t offset = 0;
  uint32_t count = 0;
  uint64_t seed = 0, bytes = 0;
  double seconds = 0, percent = 0;
  std::vector<uint32_t> kernels;
  line.option("--offset", offset, "");
  line.option("--count", count, "");
  line.option("--seed", seed, "");
  line.option("--bytes", bytes, "").sizes();
  line.option("--seconds", seconds, "").range(0.0, 1e6);
  line.option(
      "--percent", [&](double value) { percent = value; }, "");
  line.option("--kernels", kernels, "").separator(',').positive();
  const std::vector<std::string> options{"--offset",  "--count",   "--seed",   "--bytes",
                                         "--seconds", "--percent", "--kernels"};
  for (const std::string& option : options)
    for (const std::string value : {"", "12abc", "nan", "inf", "1e999", "one"}) {
      CAPTURE(option, value);
      CHECK_THROWS_AS(line.parse({option + "=" + value}), UsageError);
      CHECK_THROWS_AS(line.parse({option, value}), UsageError);
    }
  for (const std::string option : {"--count", "--seed", "--bytes", "--kernels"})
    for (const std::string value : {"-1", "18446744073709551616", "1.5", "1e30"}) {
      CAPTURE(option, value);
      CHECK_THROWS_AS(line.parse({option + "=" + value}), UsageError);
    }
  CHECK(error_of([&] {
          line.parse({"--count", "4294967296"});
        }) == "--count: '4294967296' is not a whole number from 0 to 4294967295");
  CHECK(error_of([&] { line.parse({"--bytes", "17179869184G"}); }) != "no error");
  CHECK(error_of([&] { line.parse({"--kernels", "1,0"}); }) == "--kernels: 0 is not above 0");
  line.parse({"--offset", "-9223372036854775808", "--count", "0x10", "--seed",
              "18446744073709551615", "--bytes", "16777215T", "--seconds", "1e3", "--percent",
              "-2.5", "--kernels", "1,4294967295"});
  CHECK(offset == INT64_MIN);
  CHECK(count == 16);
  CHECK(seed == UINT64_MAX);
  CHECK(bytes == uint64_t{16777215} << 40);
  CHECK(seconds == 1000);
  CHECK(percent == -2.5);
  CHECK(kernels == std::vector{1u, UINT32_MAX});
}

TEST_CASE("a range names its limits when a value is outside") {
  CommandLine line("tried", "");
  uint32_t count = 0;
  double percent = 0;
  line.option("--count", count, "").range(2u, 10u);
  line.option(
          "--percent", [&](double value) { percent = value / 100; }, "")
      .range(0.5, 100.0);
  line.parse({"--count", "10", "--percent", "50"});
  CHECK(count == 10);
  CHECK(percent == 0.5);
  const std::string error = error_of<UsageError>([&] { line.parse({"--count", "11"}); });
  for (const char* part : {"--count", "11", "2", "10"}) CHECK(contains(error, part));
  CHECK_THROWS_AS(line.parse({"--percent", "0.4"}), UsageError);
}

TEST_CASE("options that need or exclude each other are refused together or alone") {
  CommandLine line("tried", "");
  std::string file, report, workload;
  const Option first = line.option("--workload", workload, "");
  line.option("--program", file, "").excludes(first);
  line.option("--json", report, "").needs(first);
  CHECK_FALSE(line.parse({"--workload", "chain", "--json", "-"}));
  CHECK_THROWS_AS(line.parse({"--workload", "chain", "--program", "a"}), UsageError);
  CHECK_THROWS_AS(line.parse({"--json", "-"}), UsageError);
}

TEST_CASE("a command has its own options and may be followed by the program's") {
  CommandLine line("tried", "");
  line.require_commands(1, 1);
  line.allow_options_after_command();
  std::string json, file;
  line.option("--json", json, "");
  CommandLine& ring = line.command("ring", "Prints a ring");
  ring.option("file", file, "").required();
  CommandLine& trace = line.command("trace", "Prints a trace");
  CHECK_THROWS_AS(line.parse({}), UsageError);
  CHECK_THROWS_AS(line.parse({"ring"}), UsageError);
  CHECK_FALSE(line.parse({"ring", "a.bin", "--json", "-"}));
  CHECK(ring.parsed());
  CHECK_FALSE(trace.parsed());
  CHECK(file == "a.bin");
  CHECK(json == "-");
  CHECK(ring.name() == "ring");
  CHECK(ring.description() == "Prints a ring");
}

TEST_CASE("the usage line of a command that runs a program names it") {
  CommandLine line("runner", "Runs a program.");
  bool flag = false;
  line.flag("--flag", flag, "");
  line.runs_a_program();
  CHECK(
      contains(line.parse({"--help"}).value(), "Usage: runner [OPTIONS] -- program [arguments]\n"));
}

TEST_CASE("--help and --version return their text and read no other option") {
  CommandLine line("tried", "Tries things.");
  bool fast = false;
  std::string secret;
  line.flag("--fast", fast, "Skips the slow part");
  line.option("--secret", secret, "Nobody reads this").hidden();
  line.footer("Exit code: 0.");
  const auto help = line.parse({"--help"});
  REQUIRE(help);
  for (const char* part : {"Tries things.", "--fast", "Exit code: 0."})
    CHECK(contains(*help, part));
  CHECK_FALSE(contains(*help, "--secret"));
  CHECK(line.parse({"--version"}) == std::string("tried (uptempo) ") + version() + "\n");
}

TEST_CASE("a declared option is found by its name") {
  CommandLine line("tried", "");
  bool fast = false;
  line.flag("--fast", fast, "Skips the slow part");
  line.declared("--fast").hidden();
  CHECK_FALSE(contains(line.parse({"--help"}).value(), "--fast"));
  CHECK_THROWS_AS(line.declared("--slow"), std::logic_error);
}

TEST_CASE("an unknown option or command is named with the nearest known one") {
  CommandLine line("tried", "");
  line.require_commands(1, 1);
  uint32_t rounds = 0;
  std::string file, secret;
  CommandLine& sweep = line.command("sweep", "");
  sweep.option("--rounds", rounds, "");
  sweep.option("--working-set", file, "");
  sweep.option("--secret", secret, "").hidden();
  line.command("scopes", "").option("--position", file, "");
  const auto error = [&](std::vector<std::string> arguments) {
    return error_of<UsageError>([&] { line.parse(std::move(arguments)); });
  };
  CHECK(error({"sweep", "--rouds", "5"}) == "unknown option '--rouds'; did you mean '--rounds'?");
  CHECK(error({"sweep", "--rouds=5"}) == "unknown option '--rouds'; did you mean '--rounds'?");
  CHECK(error({"sweep", "--work"}) == "unknown option '--work'; did you mean '--working-set'?");
  CHECK(error({"sweep", "--wrking_set"}) ==
        "unknown option '--wrking_set'; did you mean '--working-set'?");
  CHECK(error({"sweep", "--xyz"}) == "unknown option '--xyz' (see --help)");
  CHECK(error({"sweep", "-r"}) == "unknown option '-r' (see --help)");
  // Of another command, and hidden.
  CHECK(error({"sweep", "--positio"}) == "unknown option '--positio' (see --help)");
  CHECK(error({"sweep", "--secrt"}) == "unknown option '--secrt' (see --help)");
  CHECK(error({"swep"}) == "unknown command 'swep'; did you mean 'sweep'?");
  CHECK(error({"swep", "--rounds", "5"}).starts_with("unknown option"));
  CHECK(error({"sweep", "extra"}) == "unexpected argument 'extra' (see --help)");
}

TEST_CASE("an output file that cannot be written is refused by its option") {
  CommandLine line("tried", "");
  std::string file;
  line.option("--json", file, "").output_file();
  CHECK(error_of<UsageError>([&] {
          line.parse({"--json", "/no/such/folder/x"});
        }) == "--json: cannot write '/no/such/folder/x': No such file or directory");
  CHECK_FALSE(line.parse({"--json", "-"}));
}

TEST_CASE("a stranger's arguments reach repeatable options only, and outputs never") {
  uint32_t rounds = 1;
  bool fast = false;
  std::vector<uint32_t> sizes;
  std::string file, note;
  const auto declare = [&](CommandLine& line) -> const CommandLine& {
    CommandLine& command = line.command("measure", "");
    command.option("--rounds", rounds, "").repeatable();
    command.option("--sizes", sizes, "").separator(',').repeatable();
    command.flag("--fast", fast, "").repeatable();
    command.option("--note", note, "");
    // Whatever the order, an output is not repeatable.
    command.option("--out", file, "").output_file().repeatable();
    command.option("--also", file, "").repeatable().output_file();
    return command;
  };
  CommandLine own("tried", "");
  const CommandLine& command = declare(own);
  own.parse({"measure", "--out", "-", "--fast", "--note", "n", "--sizes", "1,2", "--rounds=3"});
  CommandLine theirs("tried", "");
  declare(theirs);
  std::vector<std::string> words{"measure"};
  for (const std::vector<std::string>& each : command.repeatable_arguments())
    words.insert(words.end(), each.begin(), each.end());
  CHECK(words == std::vector<std::string>{"measure", "--rounds", "3", "--sizes", "1,2", "--fast"});

  rounds = 1, fast = false, sizes.clear();
  theirs.repeat(words);
  CHECK(rounds == 3);
  CHECK(fast);
  CHECK(sizes == std::vector<uint32_t>{1, 2});

  const uptempo::support::TemporaryDirectory directory;
  const std::string victim = directory.file("victim");
  for (const std::vector<std::string>& tried :
       {std::vector<std::string>{"measure", "--out", victim},
        {"measure", "--also=" + victim},
        {"measure", "--note", "n"},
        {"measure", "--rounds", "3", "--out", victim},
        {"measure", "--help"},
        {"--version"}}) {
    CAPTURE(tried);
    CommandLine line("tried", "");
    declare(line);
    file.clear();
    CHECK_THROWS_AS(line.repeat(tried), UsageError);
    CHECK(file.empty());
    CHECK_FALSE(std::filesystem::exists(victim));
  }
}

TEST_CASE("two outputs are not the same file, whatever its names") {
  const uptempo::support::TemporaryDirectory directory;
  const std::string file = directory.file("file"), link = directory.file("link"),
                    existing = directory.file("existing");
  std::ofstream(existing) << "kept";
  std::filesystem::create_hard_link(existing, link);
  std::string json, csv;
  const auto parse = [&](const std::string& one, const std::string& other) {
    CommandLine line("tried", "");
    line.option("--json", json, "").output_file();
    line.command("measure", "").option("--csv", csv, "").output_file();
    return line.parse({"--json", one, "measure", "--csv", other});
  };
  for (const auto& [one, other] :
       {std::pair{file, file}, {file, directory.file("./file")}, {existing, link}}) {
    CAPTURE(one, other);
    CHECK(contains(error_of<UsageError>([&, one = one, other = other] { parse(one, other); }),
                   "--json and --csv name the same file"));
    CHECK(uptempo::test::contents_of(existing) == "kept");
    CHECK_FALSE(std::filesystem::exists(file));
  }
  CHECK_FALSE(parse(file, existing));
  CHECK_FALSE(parse("/dev/null", "/dev/null"));
}
