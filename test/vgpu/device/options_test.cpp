#include "device/options.hpp"

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "test/support/catch.hpp"
#include "test/support/environment.hpp"
#include "test/support/errors.hpp"

namespace uptempo::vgpu {
namespace {

constexpr const char* kVariables[] = {
    "UPTEMPO_VGPU_DEVICE",         "UPTEMPO_VGPU_TRACE",
    "UPTEMPO_VGPU_NULL_KERNELS",   "UPTEMPO_VGPU_EARLY_READ_INDEX",
    "UPTEMPO_VGPU_DETERMINISTIC",  "UPTEMPO_VGPU_SEED",
    "UPTEMPO_VGPU_CHECK",          "UPTEMPO_VGPU_REPORT",
    "UPTEMPO_VGPU_WORKERS",        "UPTEMPO_VGPU_VERBOSE",
    "UPTEMPO_VGPU_INCOHERENT",     "UPTEMPO_VGPU_DELAY",
    "UPTEMPO_VGPU_SOCKETS",        "UPTEMPO_VGPU_GPU_SOCKET",
    "UPTEMPO_VGPU_LAZY_BAR",       "UPTEMPO_VGPU_SMALL_BAR",
    "UPTEMPO_VGPU_GPUS",           "UPTEMPO_VGPU_PARTITIONS",
    "UPTEMPO_VGPU_JOIN",           "UPTEMPO_VGPU_WATCHDOG",
    "UPTEMPO_VGPU_ERROR_EXITCODE", "UPTEMPO_VGPU_SUPPRESSIONS",
    "UPTEMPO_VGPU_EAGER_PACKETS",  "UPTEMPO_VGPU_GROUPED_READ_INDEX",
    "UPTEMPO_VGPU_INJECT"};

struct CleanEnvironment : uptempo::test::Environment {
  CleanEnvironment() { clear(); }
  void clear() {
    for (const char* variable : kVariables) unset(variable);
  }
};

TEST_CASE("an empty environment selects the default device without options", "[options]") {
  CleanEnvironment environment;
  const Options options = Options::from_environment();
  REQUIRE(options.device != nullptr);
  CHECK(options.device->target == "gfx90a");
  CHECK(options.trace_file.empty());
  CHECK_FALSE(options.null_kernels);
  CHECK_FALSE(options.early_read_index);
  CHECK_FALSE(options.grouped_read_index);
  CHECK_FALSE(options.eager_packets);
  CHECK_FALSE(options.deterministic);
  CHECK_FALSE(options.incoherent);
  CHECK_FALSE(options.delay);
  CHECK(options.seed == 1);
  CHECK_FALSE(options.checks.fences);
  CHECK_FALSE(options.checks.specification);
  CHECK_FALSE(options.checks.advice);
  CHECK_FALSE(options.checks.atomics);
  CHECK(options.report_file.empty());
  CHECK(options.workers == 0);
  CHECK_FALSE(options.verbose);
}

TEST_CASE("names of machines are letters, digits and . _ -", "[options]") {
  for (const char* good : {"a", "A.b_c-9", "0", "...", "-"}) CHECK(Options::is_machine_name(good));
  for (const char* bad : {"", ".", "..", "a/b", "a b", "\xc3\xa4", "a\n"})
    CHECK_FALSE(Options::is_machine_name(bad));
  CHECK(Options::is_machine_name(std::string(64, 'x')));
  CHECK_FALSE(Options::is_machine_name(std::string(65, 'x')));
}

TEST_CASE("a shared machine excludes modes that know one process", "[options]") {
  for (const auto& [variable, value] :
       {std::pair{"UPTEMPO_VGPU_CHECK", "fences"}, std::pair{"UPTEMPO_VGPU_INCOHERENT", "1"},
        std::pair{"UPTEMPO_VGPU_LAZY_BAR", "1"}, std::pair{"UPTEMPO_VGPU_DETERMINISTIC", "1"}}) {
    CleanEnvironment environment;
    environment.set("UPTEMPO_VGPU_JOIN", "machine");
    CHECK(Options::from_environment().join == "machine");
    environment.set(variable, value);
    CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
  }
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_JOIN", "../machine");
  CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
}

TEST_CASE("every option is read from its variable", "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_DEVICE", "gfx906");
  environment.set("UPTEMPO_VGPU_TRACE", "/tmp/a %p.json");
  environment.set("UPTEMPO_VGPU_NULL_KERNELS", "1");
  environment.set("UPTEMPO_VGPU_EARLY_READ_INDEX", "1");
  environment.set("UPTEMPO_VGPU_GROUPED_READ_INDEX", "1");
  environment.set("UPTEMPO_VGPU_EAGER_PACKETS", "1");
  environment.set("UPTEMPO_VGPU_DETERMINISTIC", "1");
  environment.set("UPTEMPO_VGPU_SEED", "18446744073709551615");
  environment.set("UPTEMPO_VGPU_WORKERS", "3");
  environment.set("UPTEMPO_VGPU_VERBOSE", "1");
  environment.set("UPTEMPO_VGPU_WATCHDOG", "30");
  const Options options = Options::from_environment();
  CHECK(options.device->target == "gfx906");
  CHECK(options.trace_file == "/tmp/a %p.json");
  CHECK(options.watchdog_seconds == 30u);
  CHECK(options.null_kernels);
  CHECK(options.early_read_index);
  CHECK(options.grouped_read_index);
  CHECK(options.eager_packets);
  CHECK(options.deterministic);
  CHECK(options.seed == ~uint64_t{0});
  CHECK(options.workers == 3);
  CHECK(options.verbose);
}

TEST_CASE("the GPU is at the last socket, or at the one that is given", "[options]") {
  CleanEnvironment environment;
  CHECK(Options::from_environment().sockets.count == 1);
  CHECK(Options::from_environment().sockets.of_gpu == 0);
  environment.set("UPTEMPO_VGPU_SOCKETS", "3");
  CHECK(Options::from_environment().sockets.count == 3);
  CHECK(Options::from_environment().sockets.of_gpu == 2);
  environment.set("UPTEMPO_VGPU_GPU_SOCKET", "0");
  CHECK(Options::from_environment().sockets.of_gpu == 0);
  for (const auto& [count, of_gpu] :
       {std::pair("0", ""), std::pair("9", ""), std::pair("two", ""), std::pair("2 ", ""),
        std::pair("-1", ""), std::pair("2", "2"), std::pair("", "1"), std::pair("2", "x")}) {
    CAPTURE(count, of_gpu);
    environment.set("UPTEMPO_VGPU_SOCKETS", count);
    environment.set("UPTEMPO_VGPU_GPU_SOCKET", of_gpu);
    CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
  }
}

TEST_CASE("the exit status of findings is a number from 1 to 255", "[options]") {
  CleanEnvironment environment;
  CHECK_FALSE(Options::from_environment().error_exitcode);
  for (const auto& [text, status] : {std::pair("1", 1u), std::pair("255", 255u)}) {
    environment.set("UPTEMPO_VGPU_ERROR_EXITCODE", text);
    CHECK(Options::from_environment().error_exitcode == status);
  }
  for (const char* text : {"0", "256", "-1", "+1", "1 ", "one", "4294967297"}) {
    CAPTURE(text);
    environment.set("UPTEMPO_VGPU_ERROR_EXITCODE", text);
    CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
  }
}

TEST_CASE("checks are a comma-separated list", "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_CHECK", "fences");
  environment.set("UPTEMPO_VGPU_REPORT", "/tmp/findings");
  CHECK(Options::from_environment().checks.fences);
  CHECK_FALSE(Options::from_environment().checks.specification);
  CHECK(Options::from_environment().report_file == "/tmp/findings");
  environment.set("UPTEMPO_VGPU_CHECK", "fences,hsa");
  CHECK(Options::from_environment().checks.fences);
  CHECK(Options::from_environment().checks.specification);
  CHECK_FALSE(Options::from_environment().checks.advice);
  CHECK_FALSE(Options::from_environment().checks.repeated);
  environment.set("UPTEMPO_VGPU_CHECK", "fences,repeated");
  CHECK(Options::from_environment().checks.repeated);
  CHECK_FALSE(Options::from_environment().checks.specification);
  CHECK_FALSE(Options::from_environment().checks.waits);
  environment.set("UPTEMPO_VGPU_CHECK", "fences,waits");
  CHECK(Options::from_environment().checks.waits);
  for (const char* both : {"fences,advice,hsa", "hsa,fences,advice"}) {
    environment.set("UPTEMPO_VGPU_CHECK", both);
    CHECK(Options::from_environment().checks.fences);
    CHECK(Options::from_environment().checks.specification);
    CHECK(Options::from_environment().checks.advice);
  }
  CHECK(Options::from_environment().checks.atomics);
  for (const char* with_atomics : {"atomics", "fences,atomics", "atomics,fences,hsa"}) {
    CAPTURE(with_atomics);
    environment.set("UPTEMPO_VGPU_CHECK", with_atomics);
    CHECK(Options::from_environment().checks.atomics);
    CHECK(Options::from_environment().checks.fences == (std::string(with_atomics) != "atomics"));
  }
  environment.set("UPTEMPO_VGPU_CHECK", "races");
  CHECK(Options::from_environment().checks.races);
  CHECK(Options::from_environment().checks.atomics);
  CHECK_FALSE(Options::from_environment().checks.fences);
  environment.set("UPTEMPO_VGPU_CHECK", "races,repeated");
  CHECK(Options::from_environment().checks.repeated);
  environment.set("UPTEMPO_VGPU_CHECK", "fences,races,hsa");
  CHECK(Options::from_environment().checks.races);
  CHECK(Options::from_environment().checks.fences);
  environment.set("UPTEMPO_VGPU_CHECK", "memory,races");
  CHECK(Options::from_environment().checks.races);
  CHECK(Options::from_environment().checks.memory);
  environment.set("UPTEMPO_VGPU_CHECK", "races,same-values,repeated");
  CHECK(Options::from_environment().checks.same_values);
  for (const char* memory : {"memory", "memory,repeated", "atomics,memory", "memory,buffers"}) {
    CAPTURE(memory);
    environment.set("UPTEMPO_VGPU_CHECK", memory);
    CHECK(Options::from_environment().checks.memory);
    CHECK_FALSE(Options::from_environment().checks.fences);
    CHECK(Options::from_environment().checks.atomics);
    CHECK(Options::from_environment().checks.buffers == (std::string(memory) == "memory,buffers"));
    CHECK(Options::from_environment().checks.repeated ==
          (std::string(memory) == "memory,repeated"));
  }
  for (const char* wrong : {"race",
                            "races,hsa",
                            "races,waits",
                            "races,advice",
                            "fence",
                            "fences,",
                            ",fences",
                            "fences;hsa",
                            "all",
                            "hsa",
                            "advice",
                            "memory,fences",
                            "memory,hsa",
                            "memory,waits",
                            "hsa,advice",
                            "waits",
                            "atomics,waits",
                            "fences,waits,advice",
                            "atomics,hsa",
                            "atomics,advice",
                            "atomics,repeated",
                            "atomic",
                            "buffers",
                            "fences,buffers",
                            "same-values",
                            "memory,same-values"}) {
    CAPTURE(wrong);
    environment.set("UPTEMPO_VGPU_CHECK", wrong);
    CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
  }
}

TEST_CASE("an incoherent device is deterministic, and its seed is the default of the general seed",
          "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_INCOHERENT", "18446744073709551615");
  const Options options = Options::from_environment();
  REQUIRE(options.incoherent);
  CHECK(*options.incoherent == ~uint64_t{0});
  CHECK(options.deterministic);
  CHECK(options.seed == ~uint64_t{0});
  environment.set("UPTEMPO_VGPU_INCOHERENT", "0");
  environment.set("UPTEMPO_VGPU_SEED", "5");
  CHECK(Options::from_environment().incoherent == 0);
  CHECK(Options::from_environment().seed == 5);
}

TEST_CASE("delays combine with all options and have their own seed", "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_DELAY", "0");
  CHECK(Options::from_environment().delay == 0);
  CHECK_FALSE(Options::from_environment().deterministic);
  CHECK(Options::from_environment().seed == 1);
  environment.set("UPTEMPO_VGPU_DELAY", "18446744073709551615");
  environment.set("UPTEMPO_VGPU_INCOHERENT", "7");
  CHECK(Options::from_environment().delay == ~uint64_t{0});
  CHECK(Options::from_environment().incoherent == 7);
  CHECK(Options::from_environment().seed == 7);
  environment.unset("UPTEMPO_VGPU_INCOHERENT");
  environment.set("UPTEMPO_VGPU_CHECK", "fences");
  CHECK(Options::from_environment().delay == ~uint64_t{0});
  CHECK(Options::from_environment().checks.fences);
}

TEST_CASE("a lazy path to device memory combines with all options but the fence checker",
          "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_LAZY_BAR", "0");
  environment.set("UPTEMPO_VGPU_DELAY", "2");
  environment.set("UPTEMPO_VGPU_INCOHERENT", "3");
  CHECK(Options::from_environment().lazy_bar == 0);
  environment.unset("UPTEMPO_VGPU_INCOHERENT");
  environment.set("UPTEMPO_VGPU_CHECK", "atomics");
  CHECK(Options::from_environment().lazy_bar == 0);
  environment.set("UPTEMPO_VGPU_CHECK", "fences");
  CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
}

TEST_CASE("a small BAR excludes a lazy path to device memory", "[options]") {
  CleanEnvironment environment;
  CHECK_FALSE(Options::from_environment().small_bar);
  environment.set("UPTEMPO_VGPU_SMALL_BAR", "1");
  environment.set("UPTEMPO_VGPU_CHECK", "fences");
  CHECK(Options::from_environment().small_bar);
  environment.unset("UPTEMPO_VGPU_CHECK");
  environment.set("UPTEMPO_VGPU_LAZY_BAR", "1");
  CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
}

TEST_CASE("an injected effect that only another mode shows is refused without it", "[options]") {
  struct Case {
    const char* rules;
    const char* mode;
    const char* of_variables;
    const char* of_options;
  };
  for (const Case& each : {
           Case{"packet torn;packet stale count=all", "UPTEMPO_VGPU_INCOHERENT",
                "UPTEMPO_VGPU_INJECT 'packet stale count=all' needs UPTEMPO_VGPU_INCOHERENT: other "
                "devices have no stale caches",
                "--inject 'packet stale count=all' needs --incoherent SEED: other devices have no "
                "stale caches"},
           Case{"hdp lost", "UPTEMPO_VGPU_LAZY_BAR",
                "UPTEMPO_VGPU_INJECT 'hdp lost' needs UPTEMPO_VGPU_LAZY_BAR: other devices see the "
                "host's stores at once",
                "--inject 'hdp lost' needs --bar lazy SEED: other devices see the host's stores at "
                "once"},
       }) {
    CleanEnvironment environment;
    environment.set("UPTEMPO_VGPU_INJECT", each.rules);
    CAPTURE(each.rules);
    try {
      Options::from_environment();
      FAIL("the rules were accepted");
    } catch (const OptionConflict& conflict) {
      CHECK(conflict.what() == std::string(each.of_variables));
      CHECK(conflict.options == each.of_options);
    }
    environment.set(each.mode, "1");
    CHECK_NOTHROW(Options::from_environment());
  }
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_INJECT", "packet untimed;copy lost;interrupt lost");
  CHECK_NOTHROW(Options::from_environment());
}

TEST_CASE("fences are not checked on an incoherent device", "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_INCOHERENT", "1");
  environment.set("UPTEMPO_VGPU_CHECK", "fences");
  CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
}

TEST_CASE("an invalid value is refused with the variable, the value and the accepted values",
          "[options]") {
  CleanEnvironment environment;
  struct Case {
    const char* variable;
    const char* value;
    const char* accepted;
  };
  for (const Case& each : {Case{"UPTEMPO_VGPU_DEVICE", "gfx1100", "gfx90a, gfx908, gfx906, gfx900"},
                           Case{"UPTEMPO_VGPU_NULL_KERNELS", "yes", "0 or 1"},
                           Case{"UPTEMPO_VGPU_SEED", "12x", "decimal"},
                           Case{"UPTEMPO_VGPU_WORKERS", "-1", "from 0 to 1024"},
                           Case{"UPTEMPO_VGPU_WORKERS", "1025", "from 0 to 1024"},
                           Case{"UPTEMPO_VGPU_INCOHERENT", "yes", "decimal"},
                           Case{"UPTEMPO_VGPU_DELAY", "0x7", "decimal"},
                           Case{"UPTEMPO_VGPU_LAZY_BAR", "lazy", "decimal"},
                           Case{"UPTEMPO_VGPU_DELAY", "18446744073709551616", "decimal"},
                           Case{"UPTEMPO_VGPU_WATCHDOG", "0", "from 1 to 1000000"},
                           Case{"UPTEMPO_VGPU_WATCHDOG", "1.5", "from 1 to 1000000"},
                           Case{"UPTEMPO_VGPU_WORKERS", "4294967296", "from 0 to 1024"}}) {
    environment.clear();
    environment.set(each.variable, each.value);
    CAPTURE(each.variable, each.value);
    try {
      Options::from_environment();
      FAIL("the value was accepted");
    } catch (const std::invalid_argument& error) {
      const std::string text = error.what();
      CHECK(text.find(each.variable) != std::string::npos);
      CHECK(text.find(each.value) != std::string::npos);
      CHECK(text.find(each.accepted) != std::string::npos);
    }
  }
}

TEST_CASE("a number or a list of targets selects the GPUs", "[options]") {
  CleanEnvironment environment;
  const auto targets = [] {
    std::string names;
    const Options options = Options::from_environment();
    for (const DeviceDescription* gpu : options.gpus) names += std::string(gpu->target) + ' ';
    CHECK(options.device == options.gpus.front());
    return names;
  };
  CHECK(targets() == "gfx90a ");
  environment.set("UPTEMPO_VGPU_GPUS", "3");
  CHECK(targets() == "gfx90a gfx90a gfx90a ");
  environment.set("UPTEMPO_VGPU_DEVICE", "gfx906");
  CHECK(targets() == "gfx906 gfx906 gfx906 ");
  environment.set("UPTEMPO_VGPU_GPUS", "gfx908,gfx90a");
  CHECK(targets() == "gfx908 gfx90a ");
  CHECK(Options::from_environment().of_gpu(1).device->target == "gfx90a");
  for (const char* wrong : {"0", "9", "gfx90a,", ",gfx90a", "mi210", "gfx90a gfx90a",
                            "gfx900,gfx900,gfx900,gfx900,gfx900,gfx900,gfx900,gfx900,gfx900"}) {
    CAPTURE(wrong);
    environment.set("UPTEMPO_VGPU_GPUS", wrong);
    CHECK_THROWS_AS(Options::from_environment(), std::invalid_argument);
  }
}

TEST_CASE("partitions are GPUs of one target", "[options]") {
  using Partitions = Options::Partitions;
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_GPUS", "3");
  CHECK(Options::from_environment().partitions == Partitions::none);
  environment.set("UPTEMPO_VGPU_PARTITIONS", "same-id");
  CHECK(Options::from_environment().partitions == Partitions::same_id);
  environment.set("UPTEMPO_VGPU_PARTITIONS", "own-id");
  CHECK(Options::from_environment().partitions == Partitions::own_id);
  environment.set("UPTEMPO_VGPU_GPUS", "gfx90a,gfx908");
  CHECK(uptempo::test::contains(uptempo::test::error_of(Options::from_environment),
                                "needs GPUs of one target"));
  environment.set("UPTEMPO_VGPU_GPUS", "3");
  environment.set("UPTEMPO_VGPU_PARTITIONS", "1");
  CHECK(uptempo::test::contains(uptempo::test::error_of(Options::from_environment),
                                "'1': use same-id or own-id"));
}

TEST_CASE("several GPUs are divided among the sockets unless one is asked for", "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_SOCKETS", "2");
  CHECK(Options::from_environment().socket_of_gpu(0) == 1);
  environment.set("UPTEMPO_VGPU_GPUS", "4");
  for (uint32_t gpu = 0; gpu < 4; ++gpu)
    CHECK(Options::from_environment().socket_of_gpu(gpu) == gpu / 2);
  environment.set("UPTEMPO_VGPU_GPU_SOCKET", "1");
  CHECK(Options::from_environment().socket_of_gpu(0) == 1);
}

TEST_CASE("modes that know one GPU only are refused with several", "[options]") {
  for (const auto& [variable, value] :
       {std::pair{"UPTEMPO_VGPU_CHECK", "fences,advice"}, {"UPTEMPO_VGPU_LAZY_BAR", "1"}}) {
    CAPTURE(variable);
    CleanEnvironment environment;
    environment.set(variable, value);
    environment.set("UPTEMPO_VGPU_GPUS", "1");
    CHECK_NOTHROW(Options::from_environment());
    environment.set("UPTEMPO_VGPU_GPUS", "2");
    const std::string error = uptempo::test::error_of(Options::from_environment);
    CAPTURE(error);
    CHECK(uptempo::test::contains(error, "2 GPUs"));
    CHECK(uptempo::test::contains(error, variable));
  }
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_GPUS", "2");
  environment.set("UPTEMPO_VGPU_CHECK", "fences,hsa,repeated");
  CHECK_NOTHROW(Options::from_environment());
  environment.set("UPTEMPO_VGPU_CHECK", "races");
  CHECK_NOTHROW(Options::from_environment());
}

TEST_CASE("races need coherent caches", "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_CHECK", "races");
  environment.set("UPTEMPO_VGPU_INCOHERENT", "1");
  CHECK(uptempo::test::contains(uptempo::test::error_of(Options::from_environment),
                                "exclude each other"));
}

TEST_CASE("each of several GPUs has seeds of its own, the first one those of the process",
          "[options]") {
  CleanEnvironment environment;
  environment.set("UPTEMPO_VGPU_GPUS", "3");
  environment.set("UPTEMPO_VGPU_INCOHERENT", "5");
  const Options options = Options::from_environment();
  CHECK(options.deterministic);
  CHECK(options.of_gpu(0).incoherent == 5);
  CHECK(options.of_gpu(0).seed == 5);
  std::set<uint64_t> seeds;
  for (uint32_t gpu = 0; gpu < 3; ++gpu) {
    seeds.insert(*options.of_gpu(gpu).incoherent);
    CHECK(options.of_gpu(gpu).seed == *options.of_gpu(gpu).incoherent);
  }
  CHECK(seeds.size() == 3);
}

}  // namespace
}  // namespace uptempo::vgpu
