// Arguments from the metadata of a code object, which nlohmann's library encodes, and from its
// image in GPU memory.
#include "cp/kernel/kernel_arguments.hpp"

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cp/kernel/code_image.hpp"
#include "cp/memory_watch.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

using nlohmann::json;
using Words = std::vector<ArgumentWord>;

json argument(uint64_t offset, uint64_t size, const std::string& kind) {
  return {{".offset", offset},
          {".size", size},
          {".value_kind", kind},
          {".name", "name"},
          {".address_space", "global"}};
}

json program() {
  json large{{".symbol", "large.kd"}, {".name", "large"}, {".args", json::array()}};
  for (uint64_t i = 0; i < 70'000; ++i)  // the lengths of lists, and offsets, have several formats
    large[".args"].push_back(argument(8 * i, 8, "global_buffer"));
  return {{"amdhsa.version", {1, 2}},
          {"amdhsa.target", "amdgcn-amd-amdhsa--gfx90a"},
          {"other", {{"nil", nullptr}, {"yes", true}, {"half", 0.5}, {"less", -70'000}}},
          {"amdhsa.kernels",
           {{{".symbol", "mixed.kd"},
             {".name", std::string(300, 'x')},
             {".args",
              {argument(0, 8, "global_buffer"), argument(8, 4, "by_value"),
               argument(12, 28, "by_value"), argument(40, 8, "by_value"),
               argument(48, 8, "hidden_global_offset_x"), argument(56, 8, "hidden_none"),
               argument(64, 4, "dynamic_shared_pointer"), argument(72, 8, "image")}}},
            large,
            {{".symbol", "none.kd"}, {".name", "none"}},
            {{".symbol", "strange.kd"}, {".args", {{{".offset", 0}}}}}}}};
}

std::vector<std::byte> packed(const json& value) {
  const std::vector<uint8_t> bytes = json::to_msgpack(value);
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

}  // namespace

TEST_CASE("pointers are arguments, and whole words of arguments by value may be",
          "[memory_check]") {
  const auto metadata = packed(program());
  const auto mixed = kernel_arguments(metadata, "mixed.kd");
  REQUIRE(mixed);
  CHECK(*mixed == Words{{0, true}, {16, false}, {24, false}, {32, false}, {40, false}});
  const auto large = kernel_arguments(metadata, "large.kd");
  REQUIRE(large);
  CHECK(large->size() == 70'000);
  CHECK(large->back() == ArgumentWord{8 * 69'999, true});
  const auto none = kernel_arguments(metadata, "none.kd");
  REQUIRE(none);
  CHECK(none->empty());
}

TEST_CASE("metadata that does not describe the kernel says nothing of it", "[memory_check]") {
  const auto metadata = packed(program());
  CHECK_FALSE(kernel_arguments(metadata, "other.kd"));
  CHECK_FALSE(kernel_arguments(metadata, "strange.kd"));
  CHECK_FALSE(kernel_arguments({}, "mixed.kd"));
  CHECK_FALSE(kernel_arguments(packed({1, 2, 3}), "mixed.kd"));
  CHECK_FALSE(kernel_arguments(packed({{"amdhsa.kernels", 7}}), "mixed.kd"));
}

TEST_CASE("damaged metadata is read to its damage at most", "[memory_check]") {
  json small = program();
  small["amdhsa.kernels"].erase(1);
  const auto metadata = packed(small);
  const auto whole = kernel_arguments(metadata, "mixed.kd");
  for (size_t size = 0; size < metadata.size(); ++size) {
    // Exactly so many bytes, for the address sanitizer.
    const std::vector<std::byte> part(metadata.begin(),
                                      metadata.begin() + static_cast<std::ptrdiff_t>(size));
    const auto words = kernel_arguments(part, "mixed.kd");
    CHECK((!words || words == whole));
    if (size < metadata.size() / 2) CHECK_FALSE(words);
  }
  std::mt19937 random(1);
  for (int step = 0; step < 20'000; ++step) {
    std::vector<std::byte> changed = metadata;
    for (int change = 0; change < 3; ++change)
      changed[random() % changed.size()] = static_cast<std::byte>(random());
    if (const auto words = kernel_arguments(changed, "mixed.kd"))
      for (const ArgumentWord& word : *words) REQUIRE(word.offset % 8 == 0);
  }
  // Sizes that no kernel has, in one argument and in many.
  for (const auto& [size, count] : {std::pair{0xffffffffu, 1}, {0x100000u, 100}}) {
    json huge{{".symbol", "huge.kd"}, {".args", json::array()}};
    for (int i = 0; i < count; ++i) huge[".args"].push_back(argument(0, size, "by_value"));
    CHECK_FALSE(kernel_arguments(packed({{"amdhsa.kernels", {huge}}}), "huge.kd"));
  }
  // Lists of 2^32 - 1 entries in each other.
  std::vector<std::byte> lists;
  for (int i = 0; i < 10'000; ++i)
    for (const int byte : {0xdd, 0xff, 0xff, 0xff, 0xff})
      lists.push_back(static_cast<std::byte>(byte));
  CHECK_FALSE(kernel_arguments(lists, "mixed.kd"));
}

TEST_CASE("the metadata is the note of the image in GPU memory", "[memory_check]") {
  alignas(4096) static std::byte image[2 * 4096] = {};
  const auto put = [&](size_t offset, const auto& value) {
    std::memcpy(image + offset, &value, sizeof value);
  };
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 224;
  header.e_phoff = 64;
  header.e_phnum = 1;
  put(0, header);
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_vaddr = 0x200;
  segment.p_memsz = 0x800;
  put(64, segment);
  // Behind a note of somebody else, whose name and contents are padded to words.
  put(0x200, Elf64_Nhdr{.n_namesz = 3, .n_descsz = 5, .n_type = 32});
  json small = program();
  small["amdhsa.kernels"].erase(1);
  const auto metadata = packed(small);
  REQUIRE(metadata.size() < 0x700);
  put(0x218,
      Elf64_Nhdr{
          .n_namesz = 7, .n_descsz = static_cast<Elf64_Word>(metadata.size()), .n_type = 32});
  std::memcpy(image + 0x224, "AMDGPU", 7);
  std::memcpy(image + 0x22c, metadata.data(), metadata.size());

  constexpr GpuAddress kBase = 0x7000'0000;
  AddressSpace memory;
  Mapping mapping;
  mapping.begin = kBase;
  mapping.end = kBase + sizeof image;
  mapping.host = image;
  memory.map(mapping);
  AddressSpace::Reader reader(memory);
  reader.enter();
  const auto found = CodeImage::of(reader, kBase + 0x1040);
  REQUIRE(found);
  const auto note = found->metadata();
  CHECK(std::vector(note.begin(), note.end()) == metadata);
  // Notes that end beyond their segment, and segments beyond their mapping, have none.
  segment.p_memsz = 0x40;
  put(64, segment);
  CHECK(found->metadata().empty());
  segment.p_memsz = 0x8000;
  put(64, segment);
  CHECK(found->metadata().empty());
  reader.leave();
}

TEST_CASE("without metadata, each word of the kernargs may be an address", "[memory_check]") {
  using memory_check::Use;
  alignas(16) static uint64_t kernargs[8] = {10, 11, 12, 13, 14, 15, 16, 17};
  constexpr GpuAddress kBase = 0x7000'0000;
  AddressSpace memory;
  Mapping mapping;
  mapping.begin = kBase;
  mapping.end = kBase + 4096;
  alignas(4096) static std::byte page[4096];
  std::memcpy(page, kernargs, sizeof kernargs);
  mapping.host = page;
  memory.map(mapping);
  AddressSpace::Reader reader(memory);
  reader.enter();
  gfx9::Kernel descriptor;
  descriptor.kernarg_bytes = 28;
  LoadedKernel kernel{.kernel = descriptor, .name = "kernel.kd", .arguments = {}};
  const auto guessed = possible_addresses(reader, kBase, kernel);
  REQUIRE(guessed.size() == 3);
  for (uint32_t word = 0; word < 3; ++word) {
    CHECK(guessed[word].value == 10 + word);
    CHECK(guessed[word].offset == 8 * word);
    CHECK(guessed[word].use == Use::unknown);
  }
  kernel.arguments = Words{{8, true}, {24, false}};
  const auto known = possible_addresses(reader, kBase, kernel);
  REQUIRE(known.size() == 2);
  CHECK(known[0].value == 11);
  CHECK(known[0].use == Use::pointer);
  CHECK(known[1].value == 13);
  CHECK(known[1].use == Use::by_value);
  // Kernargs that are not mapped.
  CHECK(possible_addresses(reader, kBase + 4096, kernel).empty());
  reader.leave();
}

}  // namespace uptempo::vgpu
