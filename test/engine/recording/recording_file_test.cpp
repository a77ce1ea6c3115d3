// Recordings in files, against the packet processor double: the stored content, and each refusal
// with its message.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <uptempo/program/metadata.hpp>
#include "test/engine/recording/saved_world.hpp"
#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using namespace uptempo::test;
using nlohmann::json;

namespace {

// The file with one value in its JSON changed.
template <class Change>
std::string changed(const std::string& file, Change&& change) {
  json payload = json::parse(payload_of(file));
  change(payload);
  return framed(payload.dump());
}

size_t files_in(const std::string& directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a hash of content is XXH64", "[recording-file]") {
  const auto hash = [](std::string_view text) {
    return content_hash(std::as_bytes(std::span(text)));
  };
  CHECK(hash("") == 0xef46db3751d8e999);
  CHECK(hash("a") == 0xd24ec4f1a98c6e5b);
  CHECK(hash("abc") == 0x44bc2cf5ad770999);
  CHECK(hash("Nobody inspects the spammish repetition") == 0xfbcea83c8a378bf1);
}

TEST_CASE("a name is given once, to memory that has none", "[recording-file]") {
  std::vector<uint32_t> words(100);
  const auto* const at = words.data();
  Bindings memory;
  memory.add("middle", at + 40, 80);
  CHECK(contains(error_of<Error>([&] { memory.add("middle", at, 4); }), "taken"));
  CHECK(contains(error_of<Error>([&] { memory.add("", at, 4); }), "no name"));
  CHECK(contains(error_of<Error>([&] { memory.add("none", at, 0); }), "no memory"));
  CHECK(contains(error_of<Error>([&] { memory.add("none", nullptr, 4); }), "no memory"));
  CHECK(contains(error_of<Error>([&] { memory.add("none", at, SIZE_MAX); }), "no memory"));
  for (const auto& [first, count] :
       {std::pair<size_t, size_t>{40, 1}, {59, 1}, {0, 41}, {0, 100}, {59, 20}, {45, 2}})
    CHECK(contains(error_of<Error>([&, first = first, count = count] {
                     memory.add("more", at + first, 4 * count);
                   }),
                   "already belong to 'middle'"));
  memory.add("before", at, 160).add("behind", at + 60, 160);
  const Bindings copy = memory;
  memory = {};
  CHECK(copy.find("before")->size_bytes == 160);
  CHECK(copy.find(reinterpret_cast<uintptr_t>(at + 40))->name == "middle");
  CHECK(copy.find(reinterpret_cast<uintptr_t>(at + 60) - 1)->name == "middle");
  CHECK(copy.find(reinterpret_cast<uintptr_t>(at + 60))->name == "behind");
  CHECK(copy.find(reinterpret_cast<uintptr_t>(at + 100)) == nullptr);
  CHECK(copy.find(reinterpret_cast<uintptr_t>(at) - 1) == nullptr);
  CHECK(copy.find("none") == nullptr);
  CHECK(memory.find("before") == nullptr);
}

TEST_CASE(
    "a recording loaded elsewhere does what the saved one did, with the memory of that process",
    "[recording-file]") {
  World here(0x1000), there(0x9000, 77);
  const auto saved = here.full_recording();
  const std::string file = here.save(*saved);
  const auto loaded = there.load(file);
  CHECK(loaded->size() == saved->size());
  const std::string one = here.replay(*saved), other = there.replay(*loaded);
  CHECK(one == other);
  CHECK(contains(one, "positions+2000 forces+400"));
  CHECK(contains(one, "null forces+3996"));
  for (const float* address : {here.x, here.f}) {
    INFO(file);
    CHECK(!contains(file, fmt::format("{}", reinterpret_cast<uintptr_t>(address))));
  }

  // A replay completed both with one more packet, which the file also holds.
  CHECK(saved->size() == 10);
  const std::string again = here.save(*saved);
  CHECK(again != file);
  CHECK(there.save(*loaded) == again);
  const auto longer = World(0x5000).load(again);
  CHECK(longer->size() == 10);
  World third(0x7000, 5);
  const auto replayed = third.load(again);
  CHECK(third.replay(*replayed) == one);
  CHECK(replayed->size() == 10);
}

TEST_CASE("a loaded recording can be patched and extended like a recorded one",
          "[recording-file]") {
  World here(0x1000), there(0x9000, 3);
  const auto patch = [](World& world, Recording& recording) {
    const auto first = recording.node<uint32_t, const float*, float*, uint16_t>(0);
    const auto unplanned = recording.node<uint32_t, const float*, float*, uint16_t>(5);
    const auto reduce = recording.node<LocalBytes, float*, LocalBytes, Vec3>(2);
    recording.set<0>(first, 1234u);
    recording.set<1>(unplanned, world.x + 1);
    recording.set_grid(reduce, Grid{128}.by(128));
    recording.set<1>(first, world.x + 4);  // its declared range moves with it
    recording
        .replace(recording.node(4), world.scale, Grid{64}, 5u, world.x + 3, world.f, uint16_t{1})
        .writes(world.f, 9);
    recording.dispatch(world.empty, Grid{7});
    return world.replay(recording);
  };
  const auto saved = here.full_recording();
  const auto loaded = there.load(here.save(*saved));
  const std::string expected = patch(here, *saved);
  CHECK(contains(expected, "positions+12"));
  CHECK(patch(there, *loaded) == expected);
  // Patched, replayed, saved: in its current state.
  World third(0x7000, 5);
  const auto anew = third.load(there.save(*loaded));
  CHECK(third.replay(*anew) == there.replay(*loaded));
}

TEST_CASE("a node handle is requested by number and argument types, and refused for others",
          "[recording-file]") {
  World here(0x1000);
  const auto saved = here.full_recording();
  CHECK(contains(error_of<Error>([&] { saved->node<>(9); }), "has 9 nodes"));
  CHECK(contains(error_of<Error>([&] { saved->node<>(SIZE_MAX); }), "has 9 nodes"));
  CHECK(contains(error_of<Error>([&] { saved->node<>(3); }), "finished packet"));
  CHECK(contains(error_of<Error>([&] { saved->node<>(0); }), "takes 4"));
  CHECK(contains(error_of<Error>([&] { saved->node<uint32_t, float*, float*, uint32_t>(0); }),
                 "argument 3"));
  CHECK(saved->node<>(4).index() == 4);
}

TEST_CASE("recording options come from the loading process", "[recording-file]") {
  World here(0x1000), there(0x9000);
  const auto saved = here.full_recording();
  there.options.fences = FencePolicy::system_everywhere;
  const auto loaded = there.load(here.save(*saved));
  const std::string text = there.replay(*loaded);
  CHECK(contains(text, "policy"));
  // except for the closing packet
  CHECK(there.save(*loaded) != there.save(*there.load(here.save(*saved))));
}

TEST_CASE("an empty recording is saved as empty", "[recording-file]") {
  World here(0x1000);
  const std::string file = here.save(*here.recording());
  CHECK(here.load(file)->size() == 0);
  CHECK(here.load(file, {}, {})->size() == 0);
}

TEST_CASE("content that another process cannot use is refused when saved, and the error names it",
          "[recording-file]") {
  World here(0x1000);
  std::vector<float> unnamed(10);
  const auto recording = here.recording();
  recording->dispatch(here.empty, Grid{1});
  const auto error = [&] { return error_of<Error>([&] { here.save(*recording); }); };

  SECTION("an address without a name") {
    recording->dispatch(here.scale, Grid{64}, 1u, here.x, unnamed.data(), uint16_t{1});
    CHECK(contains(error(), "argument 2 of node 1 (kernel 'scale')"));
    CHECK(contains(error(), fmt::format("0x{:x}", reinterpret_cast<uintptr_t>(unnamed.data()))));
    CHECK(contains(error(), "'positions' of 4000 bytes"));
  }
  SECTION("the end of memory does not belong to it") {
    recording->dispatch(here.scale, Grid{64}, 1u, here.x + 1000, nullptr, uint16_t{1});
    CHECK(contains(error(), "argument 1 of node 1"));
  }
  SECTION("an access beyond its memory") {
    recording->dispatch(here.scale, Grid{64}, 1u, here.x, here.f, uint16_t{1})
        .reads(here.x, 1000)
        .writes(here.f + 1, 1000);
    CHECK(contains(error(), "access 1 of node 1 (kernel 'scale')"));
    CHECK(contains(error(), "4000 bytes"));
  }
  SECTION("an address in a value") {
    struct Hidden {
      uint64_t number;
      const float* address;
    };
    const auto kernel = saved_kernel<uint32_t, Hidden>(
        "hidden", 0x2000, 24,
        {argument(ArgumentKind::by_value, 0, 4), argument(ArgumentKind::by_value, 8, 16)},
        World::the_code());
    recording->dispatch(kernel, Grid{64}, 1u, Hidden{1, unnamed.data()});
    CHECK(error() == "no error");
    recording->dispatch(kernel, Grid{64}, 1u, Hidden{1, here.x + 5});
    CHECK(contains(error(), "argument 1 of node 2 (kernel 'hidden')"));
    CHECK(contains(error(), "bytes 8 to 15 are an address in 'positions'"));
  }
  SECTION("a kernel of unknown code") {
    recording->dispatch(number_kernel(), Grid{64}, 1u);
    CHECK(contains(error(), "node 1 (kernel 'number')"));
    CHECK(contains(error(), "KernelInfo::code"));
  }
  SECTION("a finished packet that waits for a signal") {
    recording->raw(aql::to_packet(aql::BarrierAnd{.flags = {}, .dependencies = {hsa_signal_t{1}}}));
    CHECK(contains(error(), "node 1, a finished packet with header 0x1503"));
  }
  SECTION("a finished packet that completes a signal") {
    recording->raw(aql::to_packet(aql::BarrierOr{.flags = {}, .completion_signal = {1}}));
    CHECK(contains(error(), "node 1, a finished packet"));
  }
  SECTION("a finished dispatch") {
    recording->raw(aql::to_packet(aql::KernelDispatch{.kernel_object = 0x1000}));
    CHECK(contains(error(), "node 1, a finished packet with header 0x1502"));
  }
  SECTION("a fence scope that does not exist") {
    recording->raw(aql::to_packet(
        aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope{3}, aql::FenceScope::none}}));
    CHECK(contains(error(), "node 1"));
    CHECK(contains(error(), "a fence scope that HSA does not define"));
  }
  SECTION("a name that is not UTF-8") {
    std::vector<float> more(10);
    here.memory.add("\xff\xfe", more.data(), 40);
    recording->dispatch(here.scale, Grid{64}, 1u, more.data(), nullptr, uint16_t{1});
    CHECK(contains(error(), "not UTF-8"));
  }
  SECTION("a stream that fails") {
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    CHECK(contains(error_of<Error>([&] { save_recording(*recording, out, here.memory); }),
                   "stream has failed"));
  }
}

TEST_CASE("a kernel must come from the recorded code object", "[recording-file]") {
  World here(0x1000);
  const std::string file = here.save(*here.full_recording());
  CodeIdentity code = World::the_code();
  SECTION("another code object for the same target") {
    code.hash ^= 1;
    const std::string error = error_of<Error>([&] { World(0x2000, 0, code).load(file); });
    CHECK(contains(error, "kernel 'scale' of gfx90a, 4711 bytes, hash 0123456789abcdef"));
    CHECK(contains(error,
                   "the caller passed one from another code object: gfx90a, 4711 bytes, hash "
                   "0123456789abcdee"));
  }
  SECTION("another size") {
    code.size_bytes = 4712;
    CHECK(contains(error_of<Error>([&] { World(0x2000, 0, code).load(file); }),
                   "gfx90a, 4712 bytes"));
  }
  SECTION("another target") {
    code.target = "gfx906";
    CHECK(contains(error_of<Error>([&] { World(0x2000, 0, code).load(file); }),
                   "for another target and from another code object: gfx906"));
  }
  SECTION("no such kernel") {
    const std::string error = error_of<Error>([&] {
      here.load(file, {here.empty.shared_info(), here.reduce.shared_info()}, here.memory);
    });
    CHECK(contains(error, "needs kernel 'scale'"));
    CHECK(contains(error, "the caller passed 'empty', 'reduce'"));
    CHECK(contains(error_of<Error>([&] { here.load(file, {}, here.memory); }),
                   "the caller passed no kernels"));
    CHECK(contains(error_of<Error>([&] {
                     here.load(file, {std::shared_ptr<const KernelInfo>()}, here.memory);
                   }),
                   "the caller passed no kernels"));
  }
  SECTION("the right one among others") {
    code.hash ^= 1;
    World other(0x2000, 0, code);
    std::vector<KernelSource> all = other.kernels();
    for (const KernelSource& one : here.kernels()) all.push_back(one);
    CHECK(here.load(file, all, here.memory)->size() == 9);
  }
}

TEST_CASE("memory must have its recorded name and at least its size", "[recording-file]") {
  World here(0x1000);
  const std::string file = here.save(*here.full_recording());
  const auto error = [&](const Bindings& memory) {
    return error_of<Error>([&] { here.load(file, here.kernels(), memory); });
  };
  Bindings memory;
  memory.add("positions", here.x, 4000);
  CHECK(contains(error(memory),
                 "memory 'forces' of 4000 bytes; named are 'positions' of 4000 bytes"));
  CHECK(contains(error({}), "named are nothing"));
  std::vector<std::byte> large(8000);
  memory.add("forces", large.data(), 3999);
  CHECK(contains(error(memory), "memory 'forces' of 4000 bytes; the one of that name has 3999"));
  memory = {};
  memory.add("positions", here.x, 4000).add("forces", large.data(), 8000);
  CHECK(error(memory) == "no error");
}

TEST_CASE("errors distinguish a foreign file, another version, a truncated file and a damaged one",
          "[recording-file]") {
  World here(0x1000);
  const std::string file = here.save(*here.full_recording());
  const std::string payload = payload_of(file);
  const auto error = [&](const std::string& bytes) {
    return error_of<Error>([&] { here.load(bytes); });
  };
  CHECK(error(file) == "no error");
  CHECK(contains(error(""), "an empty input"));
  for (const char* foreign :
       {"\x7f"
        "ELF",
        "{\"nodes\": []}", "uptempo_recording 1 ", "\n", "u\n", "uptempo-recordings 1"})
    CHECK(contains(error(foreign), "do not begin with 'uptempo-recording '"));
  for (const char* newer :
       {"uptempo-recording 5 0 0\n", "uptempo-recording 5 what comes then\n",
        "uptempo-recording 10\n", "uptempo-recording 18446744073709551615 5 5 5\n",
        "uptempo-recording 6 cut"})
    CHECK(contains(error(newer), "this library reads versions up to 4"));
  for (const char* damaged :
       {"uptempo-recording 0 0 ef46db3751d8e999\n", "uptempo-recording 01 0 ef46db3751d8e999\n",
        "uptempo-recording  1 0 ef46db3751d8e999\n", "uptempo-recording 1 0 EF46DB3751D8E999\n",
        "uptempo-recording 1 00 ef46db3751d8e999\n", "uptempo-recording 1 -1 ef46db3751d8e999\n",
        "uptempo-recording 1 +1 ef46db3751d8e999\n",
        "uptempo-recording 1 18446744073709551616 ef46db3751d8e999\n",
        "uptempo-recording 1 0 ef46db3751d8e99\n", "uptempo-recording 1 0 ef46db3751d8e999 \n",
        "uptempo-recording 1\n", "uptempo-recording \n",
        "uptempo-recording x 0 ef46db3751d8e999\n"})
    CHECK(contains(error(damaged), "a first line that is not"));
  CHECK(contains(error("uptempo-recording 1 0 " + std::string(100, '0')),
                 "a first line that is not"));
  CHECK(contains(error("uptempo-recording 1 0 ef46db3751d8e999\n"), "not JSON"));
  for (const char* claim :
       {"1", "1000000000000000000", "9223372036854775808", "18446744073709551615"})
    CHECK(contains(error(fmt::format("uptempo-recording 1 {} ef46db3751d8e999\n", claim)),
                   fmt::format("0 of {} bytes", claim)));
  std::string flipped = file;
  flipped.back() ^= 1;
  CHECK(contains(error(flipped), "bytes whose hash is"));
  for (const std::string bad :
       {"", "nodes", "[1, 2", "{\"a\": 1e999}", "{\"a\": \"\xff\"}", "[]]", "\xef\xbb\xbf[", "nul"})
    CHECK(contains(error(framed(bad)), "not JSON"));
  for (const char* wrong : {"[]", "null", "1", "\"text\""})
    CHECK(contains(error(framed(wrong)), "is not a map"));
  CHECK(contains(error(framed(std::string(200000, '['))), "not JSON"));
  CHECK(
      contains(error(framed(std::string(200000, '[') + std::string(200000, ']'))), "is not a map"));
}

TEST_CASE("an invalid value in a complete file is reported with its position", "[recording-file]") {
  World here(0x1000);
  const std::string file = here.save(*here.full_recording());
  const auto error = [&](const char* pointer, const json& value) {
    return error_of<Error>([&] {
      here.load(
          changed(file, [&](json& payload) { payload[json::json_pointer(pointer)] = value; }));
    });
  };
  CHECK(contains(error("/nodes/0/kernel", 3), "'kernel' of node 0 is 3, not from 0 to 2"));
  CHECK(contains(error("/nodes/0/kernel", -1), "'kernel' of node 0 is not a whole number"));
  CHECK(contains(error("/nodes/0/kernel", 0.0), "not a whole number"));
  CHECK(contains(error("/nodes/0/kernel", "0"), "not a whole number"));
  CHECK(contains(error("/nodes/0/kernel", 2), "has 4 entries; kernel 'empty' takes 0"));
  CHECK(contains(error("/nodes/0/grid", json::array()), "'grid' of node 0 has 0 sizes"));
  CHECK(contains(error("/nodes/0/grid", {1, 1, 1, 1}), "'grid' of node 0 has 4 sizes"));
  CHECK(contains(error("/nodes/0/workgroup", {64}), "'workgroup' of node 0 has 1 sizes"));
  CHECK(contains(error("/nodes/0/grid/0", 4294967296), "is 4294967296"));
  CHECK(contains(error("/nodes/0/grid/0", 0), "a size of zero"));
  CHECK(contains(error("/nodes/0/workgroup/0", 2048), "node 0, a dispatch of 'scale'"));
  CHECK(contains(error("/nodes/0/grid", "512"), "is not a list"));
  CHECK(contains(error("/nodes/0/arguments", json::array()),
                 "has 0 entries; kernel 'scale' takes 4"));
  CHECK(contains(error("/nodes/0/arguments/0", nullptr),
                 "argument 0 of 'arguments' of node 0 is not a map"));
  CHECK(contains(error("/nodes/0/arguments/0/value", "2a0000"),
                 "6 digits, but the kernel takes 4 bytes"));
  CHECK(contains(error("/nodes/0/arguments/0/value", "2A000000"), "not a hexadecimal digit"));
  CHECK(contains(error("/nodes/0/arguments/0", {{"memory", 0}, {"offset", 0}}), "has no 'value'"));
  CHECK(
      contains(error("/nodes/0/arguments/1", {{"value", "0000000000000000"}}), "has no 'memory'"));
  CHECK(contains(error("/nodes/0/arguments/1/memory", 2), "is 2, not from 0 to 1"));
  CHECK(contains(error("/nodes/0/arguments/1/offset", 4000), "is 4000, not from 0 to 3999"));
  CHECK(contains(error("/nodes/0/arguments/1/offset", -4), "not a whole number"));
  CHECK(contains(error("/nodes/2/arguments/0/local", 4294967295), "not from 0 to 4294967135"));
  CHECK(contains(error("/nodes/2/arguments/0", nullptr), "is not a map"));
  CHECK(contains(error("/nodes/0/accesses", nullptr), "'accesses' of node 0 is not a list"));
  CHECK(contains(error("/nodes/0/accesses/1/offset", 3700), "leaves 'forces' of 4000 bytes"));
  CHECK(contains(error("/nodes/0/accesses/1/size_bytes", UINT64_MAX),
                 "leaves 'forces' of 4000 bytes"));
  CHECK(contains(error("/nodes/0/accesses/1/size_bytes", 0), "is 0, not from 1"));
  CHECK(contains(error("/nodes/0/accesses/1/writes", 1), "neither true nor false"));
  CHECK(contains(error("/nodes/0/observer", "everybody"),
                 "'observer' of node 0 is 'everybody', which is unknown"));
  CHECK(contains(error("/nodes/0/acquire", "agent"), "node 0 has no 'release'"));
  CHECK(contains(error("/nodes/5/release", "workgroup"), "which is unknown"));
  CHECK(contains(error("/nodes/5/without_barrier", "yes"), "neither true nor false"));
  CHECK(
      contains(error("/nodes/3/barrier", "xor"), "'barrier' of node 3 is 'xor', which is unknown"));
  CHECK(contains(error("/nodes/3/waits", nullptr), "neither true nor false"));
  CHECK(contains(error("/nodes/3/kernel", 0), "unknown members"));
  CHECK(contains(error("/nodes/0/later", 0), "unknown members"));
  CHECK(contains(error("/later", 0), "unknown members"));
  CHECK(contains(error("/nodes", json::object()), "'nodes' of the recording is not a list"));
  CHECK(contains(error("/nodes/0", 5), "node 0 is not a map"));
  CHECK(contains(error("/memory", json::array()), "refers to an empty list"));
  CHECK(contains(error("/memory/0/name", 5), "is not a string"));
  CHECK(contains(error("/memory/0/size_bytes", 0), "is 0, not from 1"));
  CHECK(contains(error("/kernels", json::array()), "refers to an empty list"));
  CHECK(contains(error("/kernels/0/code_bytes", 0), "is 0, not from 1"));
  CHECK(contains(error("/kernels/0/code_hash", "1"), "is not a hash"));
  CHECK(contains(error("/kernels/0/target", nullptr), "is not a string"));
}

TEST_CASE("several recordings follow each other in a stream", "[recording-file]") {
  World here(0x1000);
  std::ostringstream out;
  const auto one = here.recording();
  one->dispatch(here.empty, Grid{1});
  save_recording(*one, out, here.memory);
  one->dispatch(here.empty, Grid{2});
  save_recording(*one, out, here.memory);
  std::istringstream in(out.str());
  const auto load = [&] {
    return detail::load_recording(in, here.kernels(), here.memory,
                                  [&] { return here.device.recording({}, {}); });
  };
  for (size_t nodes = 1; nodes <= 2; ++nodes) CHECK(load()->size() == nodes);
  CHECK(contains(error_of<Error>([&] { load(); }), "an empty input"));
}

TEST_CASE("a recording is written to a file completely or not at all", "[recording-file]") {
  World here(0x1000);
  const auto recording = here.full_recording();
  const TemporaryDirectory directory;
  const std::string path = directory.file("step.recording");
  save_recording(*recording, path, here.memory);
  CHECK(contents_of(path) == here.save(*recording));
  recording->dispatch(here.empty, Grid{3});
  save_recording(*recording, path, here.memory);
  CHECK(contents_of(path) == here.save(*recording));
  CHECK(files_in(directory.file("")) == 1);

  SECTION("a recording that cannot be saved leaves the old file") {
    const std::string before = contents_of(path);
    CHECK(contains(error_of<Error>([&] { save_recording(*recording, path, {}); }),
                   "named are nothing"));
    CHECK(contents_of(path) == before);
  }
  SECTION("so does a file size limit, and SIGXFSZ does not end the process") {
    const std::string before = contents_of(path);
    rlimit old{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    const auto old_handler = std::signal(SIGXFSZ, SIG_DFL);
    const rlimit little{.rlim_cur = 100, .rlim_max = old.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
    const std::string error =
        error_of<Error>([&] { save_recording(*recording, path, here.memory); });
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, old_handler);
    CHECK(contains(error, "it cannot be written: File too large: the file size limit (ulimit -f)"));
    CHECK(contents_of(path) == before);
    CHECK(files_in(directory.file("")) == 1);
  }
  SECTION("the file keeps its mode") {
    std::filesystem::permissions(path, std::filesystem::perms{0640});
    save_recording(*recording, path, here.memory);
    CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms{0640});
  }
  SECTION("a link stays a link") {
    const std::string link = directory.file("link");
    std::filesystem::create_symlink("step.recording", link);
    recording->dispatch(here.empty, Grid{4});
    save_recording(*recording, link, here.memory);
    CHECK(std::filesystem::is_symlink(link));
    CHECK(contents_of(path) == here.save(*recording));
    std::filesystem::remove(directory.file("step.recording"));
    save_recording(*recording, link, here.memory);  // a link that names nothing yet
    CHECK(std::filesystem::is_symlink(link));
    CHECK(std::filesystem::is_regular_file(directory.file("step.recording")));
  }
  SECTION("only a regular file is replaced") {
    CHECK(contains(
        error_of<Error>([&] { save_recording(*recording, directory.file(""), here.memory); }),
        "not a regular file"));
    CHECK(contains(error_of<Error>([&] { save_recording(*recording, "/dev/null", here.memory); }),
                   "not a regular file"));
    CHECK(!std::filesystem::is_regular_file("/dev/null"));
    CHECK(contains(error_of<Error>([&] {
                     save_recording(*recording, directory.file("none/file"), here.memory);
                   }),
                   "No such file or directory"));
  }
}
