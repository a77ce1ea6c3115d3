// Versions of saved recordings: the content of each version, and that files of old versions still
// load.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/engine/recording/saved_world.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;
using nlohmann::json;

TEST_CASE("a file of version 2 keeps dynamic group memory", "[recording-file]") {
  World here(0x1000), there(0x9000, 7);
  const auto saved = here.recording();
  saved->dispatch(here.empty, Grid{64});
  CHECK(here.save(*saved).starts_with("uptempo-recording 1 "));
  saved->dispatch(here.reduce, Grid{64, 2}.by(32, 1).lds(50), LocalBytes{40}, here.f,
                  LocalBytes{24}, Vec3{1, 2.5f, -3});
  const std::string file = here.save(*saved);
  CHECK(file.starts_with("uptempo-recording 2 "));
  const auto loaded = there.load(file);
  const std::string expected = here.replay(*saved);
  CHECK(contains(expected, "group 232 "));  // 100 + 50, up to 160, 48, 24
  CHECK(there.replay(*loaded) == expected);
  CHECK(there.save(*loaded).starts_with("uptempo-recording 2 "));
}

TEST_CASE("a file of version 3 keeps dependencies", "[recording-file]") {
  World here(0x1000), there(0x9000, 7);
  const auto saved = here.recording();
  const Node first = saved->dispatch(here.empty, Grid{64}).after_packets({});
  const Node second =
      saved->dispatch(here.scale, Grid{64}, 1u, here.x, here.f, uint16_t{2}).after(first);
  saved->dispatch(here.empty, Grid{64}).after_packets({}).writes(here.f, 4);
  saved->dispatch(here.empty, Grid{64}).after(second, first);
  const std::string file = here.save(*saved);
  CHECK(file.starts_with("uptempo-recording 3 "));
  const auto loaded = there.load(file);
  const std::string expected = here.replay(*saved);
  CHECK(contains(expected, "packet 1: barrier bit: it depends on packet 0;"));
  CHECK(contains(expected, "packet 2: no barrier bit"));
  CHECK(there.replay(*loaded) == expected);
  CHECK(payload_of(there.save(*loaded)) == payload_of(file));

  const auto load_with = [&](const json& after, int version = 3) {
    json payload = json::parse(payload_of(file));
    payload["nodes"][1]["after"] = after;
    return error_of<Error>([&] { here.load(framed(payload.dump(), version)); });
  };
  CHECK(load_with(json::array({0, 0})) == "no error");
  CHECK(contains(load_with(json::array({0, 1})), "dependency 1 of 'after' of node 1 is 1"));
  CHECK(contains(load_with(json::array({"0"})), "is not a whole number"));
  CHECK(contains(load_with(0), "is not a list"));
  CHECK(contains(load_with(json::array(), 2), "has unknown members"));
}

TEST_CASE("a file of version 1 loads, and its grids have no dynamic group memory",
          "[recording-file]") {
  World here(0x1000);
  const std::string payload =
      R"({"kernels":[{"code_bytes":4711,"code_hash":"0123456789abcdef","name":"empty","target":"gfx90a"}],)"
      R"("memory":[],"nodes":[{"arguments":[],"grid":[256],"kernel":0,"workgroup":[64]}]})";
  const auto loaded = here.load(framed(payload, 1));
  REQUIRE(loaded->size() == 1);
  CHECK(contains(here.replay(*loaded), "grid 256 1 1 by 64 1 1, group 100 "));
  CHECK(payload_of(here.save(*loaded)) == payload);

  json with_lds = json::parse(payload);
  with_lds["nodes"][0]["lds"] = 16;
  CHECK(contains(error_of<Error>([&] { here.load(framed(with_lds.dump(), 1)); }),
                 "node 0 has unknown members"));
  const auto newer = here.load(framed(with_lds.dump(), 2));
  CHECK(contains(here.replay(*newer), "group 116 "));
}

TEST_CASE("dynamic group memory in a file is checked as in a dispatch", "[recording-file]") {
  World here(0x1000);
  const auto saved = here.recording();
  saved->dispatch(here.empty, Grid{64}.lds(48));
  const std::string file = here.save(*saved);
  const auto error = [&](const json& lds) {
    json payload = json::parse(payload_of(file));
    payload["nodes"][0]["lds"] = lds;
    return error_of<Error>([&] { here.load(framed(payload.dump(), 2)); });
  };
  CHECK(contains(error(0), "'lds' of node 0 is 0, not from 1"));
  CHECK(contains(error(-1), "'lds' of node 0 is not a whole number"));
  CHECK(contains(error(uint64_t{1} << 32), "'lds' of node 0 is 4294967296"));
  CHECK(contains(error("48"), "not a whole number"));

  const auto load_with_limit = [&](uint32_t limit) {
    const auto kernel = kernel_of<>({.name = "empty",
                                     .group_segment_bytes = 100,
                                     .code = World::the_code(),
                                     .max_group_segment_bytes = limit});
    return error_of<Error>([&] { here.load(file, {kernel.shared_info()}, here.memory); });
  };
  CHECK(load_with_limit(148) == "no error");
  CHECK(contains(load_with_limit(147),
                 "node 0, a dispatch of 'empty' with 48 bytes of dynamic group memory"));

  const auto arrays = here.recording();
  arrays->dispatch(here.reduce, Grid{64}.lds(50), LocalBytes{40}, here.f, LocalBytes{24}, Vec3{});
  const std::string arrays_file = here.save(*arrays);
  const auto load_arrays = [&](uint32_t limit) {
    KernelInfo info = here.reduce.info();
    info.max_group_segment_size = limit;
    return error_of<Error>(
        [&] { here.load(arrays_file, {std::make_shared<const KernelInfo>(info)}, here.memory); });
  };
  CHECK(load_arrays(232) == "no error");
  CHECK(contains(load_arrays(231), "is 24, not from 0 to 23"));
  CHECK(contains(load_arrays(159), "begins at byte 160 of group memory; the limit is 159"));
}
