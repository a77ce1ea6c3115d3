// Code objects, bundles, target IDs, metadata and argument layout: the parts of engine/program that
// need no device.
#include <hsa/hsa.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/probes.hpp>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/code_object.hpp>
#include <uptempo/program/detail/argument_places.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/error_code.hpp"
#include "test/engine/program/code_object_bytes.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

namespace {

using uptempo::test::at;
using uptempo::test::contains;
using uptempo::test::elf_for;
using uptempo::test::error_of;
using uptempo::test::target;

struct Entry {
  std::string id;
  std::span<const std::byte> data;
};

// Clang documentation, "Bundled Code Object Layout".
std::vector<std::byte> bundle_of(const std::vector<Entry>& entries) {
  std::vector<std::byte> bundle;
  const auto put = [&](const void* data, size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(data);
    bundle.insert(bundle.end(), bytes, bytes + size);
  };
  const auto put_number = [&](uint64_t value) { put(&value, sizeof value); };
  put("__CLANG_OFFLOAD_BUNDLE__", 24);
  put_number(entries.size());
  uint64_t offset = 32;
  for (const Entry& entry : entries) offset += 24 + entry.id.size();
  for (const Entry& entry : entries) {
    put_number(offset);
    put_number(entry.data.size());
    put_number(entry.id.size());
    put(entry.id.data(), entry.id.size());
    offset += entry.data.size();
  }
  for (const Entry& entry : entries) put(entry.data.data(), entry.data.size());
  return bundle;
}

const KernelMetadata& kernel_named(const ProgramMetadata& program, std::string_view name) {
  for (const KernelMetadata& kernel : program.kernels) {
    if (kernel.name == name) return kernel;
  }
  FAIL("no kernel " << name);
  return program.kernels.front();
}

KernelMetadata kernel_with(std::vector<ArgumentMetadata> arguments, uint32_t size) {
  KernelMetadata kernel;
  kernel.name = "k";
  kernel.kernarg_size = size;
  kernel.kernarg_alignment = 8;
  kernel.arguments = std::move(arguments);
  return kernel;
}

ArgumentMetadata argument(ArgumentKind kind, uint32_t offset, uint32_t size,
                          std::string kind_name = {}) {
  return {.kind = kind,
          .kind_name = std::move(kind_name),
          .offset = offset,
          .size = size,
          .name = {},
          .type_name = {}};
}

}  // namespace

TEST_CASE("a target ID is parsed alone, after its triple, and with features in any order",
          "[program]") {
  CHECK(target("gfx90a") == TargetId{"gfx90a", TargetFeature::any, TargetFeature::any});
  CHECK(target("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-") ==
        TargetId{"gfx90a", TargetFeature::on, TargetFeature::off});
  CHECK(target("gfx908:xnack+:sramecc-") ==
        TargetId{"gfx908", TargetFeature::off, TargetFeature::on});
  CHECK(to_string(target("gfx908:xnack+:sramecc-")) == "gfx908:sramecc-:xnack+");
  for (const char* bad :
       {"", "gfx", "gfx90a:", "gfx90a:xnack", "gfx90a:tgsplit+", "amdgcn-amd-amdhsa--", "x86_64",
        "gfx90a:xnack+:", "amdgcn-amd-amdhsagfx90a", "gfx90A"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_target_id(bad));
  }
}

TEST_CASE("code runs where processor and features match, and an unset feature matches either value",
          "[program]") {
  const TargetId agent = target("gfx90a:sramecc+:xnack-");
  CHECK(why_incompatible(target("gfx90a"), agent).empty());
  CHECK(why_incompatible(target("gfx90a:xnack-"), agent).empty());
  CHECK(why_incompatible(target("gfx90a:sramecc+:xnack-"), agent).empty());
  CHECK(why_incompatible(target("gfx908"), agent) == "is for gfx908, the agent is gfx90a");
  CHECK(why_incompatible(target("gfx90a:xnack+"), agent) == "needs xnack+, the agent has xnack-");
  CHECK(why_incompatible(target("gfx90a:sramecc-"), agent) ==
        "needs sramecc-, the agent has sramecc+");
  CHECK(why_incompatible(target("gfx900:sramecc+"), target("gfx900:xnack-")) ==
        "needs sramecc+, which the agent does not have");
}

TEST_CASE("a bundle yields the code object for the agent's ISA", "[program]") {
  for (const char* processor : {"gfx90a", "gfx908", "gfx906", "gfx900"}) {
    const CodeObject object =
        select_code_object(builtin_kernels::bitonic_sort(), target(processor));
    CHECK(object.target.processor == processor);
    CHECK(object.version == 5);
    const ProgramMetadata program = read_metadata(metadata_note(object));
    REQUIRE(program.kernels.size() == 1);
    CHECK(program.kernels[0].name == "bitonic_sort");
    CHECK(program.kernels[0].symbol == "bitonic_sort.kd");
  }
}

// Clang documentation, "Clang Offload Bundler", "Bundled Code Object Layout".
TEST_CASE("an embedded bundle has the layout of clang-offload-bundler", "[program]") {
  const auto bundle = builtin_kernels::basics();
  size_t at = 0;
  const auto text = [&](size_t size) {
    REQUIRE(size <= bundle.size() - at);
    const auto part = bundle.subspan(std::exchange(at, at + size), size);
    return std::string(reinterpret_cast<const char*>(part.data()), part.size());
  };
  const auto number = [&] {
    const std::string bytes = text(8);
    uint64_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  CHECK(text(24) == "__CLANG_OFFLOAD_BUNDLE__");
  const uint64_t entries = number();
  REQUIRE(entries >= 2);
  uint64_t end = 0;
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t offset = number();
    const uint64_t size = number();
    const std::string id = text(number());
    CAPTURE(id);
    CHECK(offset % 4096 == 0);
    CHECK(offset >= end);
    if (i != 0) CHECK(offset - end < 4096);
    if (i == 0) {
      CHECK(id == "host-x86_64-unknown-linux");
      CHECK(size == 0);
    } else {
      REQUIRE(offset + size <= bundle.size());
      const CodeObject object = read_code_object(bundle.subspan(offset, size));
      CHECK(id == "hipv4-amdgcn-amd-amdhsa--" + object.target.processor);
    }
    end = offset + size;
  }
  CHECK(end == bundle.size());
  CHECK(at <= 4096);
}

TEST_CASE("a plain ELF file is a candidate", "[program]") {
  const std::vector<std::byte> elf = elf_for("gfx906");
  CHECK(select_code_object(elf, target("gfx906:sramecc+:xnack-")).target.processor == "gfx906");
  CHECK(contains(error_of<Error>([&] { select_code_object(elf, target("gfx90a")); }),
                 "'ELF file' is for gfx906, the agent is gfx90a"));
}

TEST_CASE("when no code object fits, the error lists every candidate with its reason",
          "[program]") {
  // A game console's processor, for which GPU_TARGETS=all does not compile.
  const std::string error = error_of<Error>(
      [] { select_code_object(builtin_kernels::bitonic_sort(), target("gfx1013")); });
  CAPTURE(error);
  std::vector<std::string> processors{"gfx90a", "gfx908", "gfx906", "gfx900"};
  for (const CodeObjectCandidate& candidate : candidates_in(builtin_kernels::bitonic_sort()))
    processors.push_back(read_code_object(candidate.bytes).target.processor);
  CHECK(processors.size() >= 8);
  for (const std::string& processor : processors) {
    CHECK(contains(error, "'hipv4-amdgcn-amd-amdhsa--" + processor + "' is for " + processor +
                              ", the agent is gfx1013"));
  }
  CHECK(contains(error, "GPU_TARGETS containing gfx1013"));
  CHECK(contains(error, "HSA_STATUS_ERROR_INVALID_ISA"));
}

TEST_CASE("a file of another kind is refused with the name of its kind", "[program]") {
  const auto refusal = [](std::string_view text) {
    return error_of<Error>([&] { candidates_in(std::as_bytes(std::span(text))); });
  };
  CHECK(contains(refusal(""), "an empty input"));
  CHECK(contains(refusal("BC\xC0\xDE..."), "LLVM bitcode"));
  CHECK(contains(refusal("CCOB...."), "version 11822"));
  CHECK(contains(refusal("kernel void f() {}"), "18 bytes that are neither"));

  CHECK(contains(refusal("!<arch>\n..."), "an archive"));
  CHECK(contains(refusal("\x10\xFF\x10\xAD"), "clang-offload-packager"));
  CHECK(contains(refusal("\x03\x02\x23\x07"), "SPIR-V"));
  CHECK(contains(refusal("# __CLANG_OFFLOAD_BUNDLE____START__ hip"), "bundle of texts"));
}

TEST_CASE("a foreign ELF file is refused with the name of what it is", "[program]") {
  const auto refusal = [](size_t offset, int value) {
    std::vector<std::byte> elf = elf_for("gfx900");
    elf[offset] = std::byte(value);
    return error_of<Error>([&] { read_code_object(elf); });
  };
  CHECK(contains(refusal(18, 62), "machine x86-64 (62), not AMDGPU"));
  CHECK(contains(refusal(18, 183), "machine AArch64 (183), not AMDGPU"));
  CHECK(contains(refusal(18, 99), "machine 99, not AMDGPU"));
  CHECK(contains(refusal(7, 0), "OS ABI none (0), not HSA"));
  CHECK(contains(refusal(7, 65), "OS ABI AMD PAL (65), not HSA"));
  CHECK(contains(refusal(4, 1), "a 32-bit little-endian ELF file"));
  CHECK(contains(refusal(5, 2), "a 64-bit big-endian ELF file"));
  CHECK(contains(refusal(5, 7), "a 64-bit data encoding 7 ELF file"));
  CHECK(contains(refusal(16, 1), "not been linked"));
  CHECK(contains(refusal(16, 2), "of type 2, not a shared object"));
  CHECK(contains(refusal(48, 0xfe), "processor number 0xfe"));
  CHECK(contains(refusal(8, 0), "code object of version 2 (ABI version 0)"));
  CHECK(contains(refusal(8, 5), "code object of version 7 (ABI version 5)"));
}

// LLVM AMDGPU User Guide, "AMDGPU ELF Header": ABI version 4 is code object version 6. Its e_flags
// are those of version 4, with the generic version in the highest byte.
TEST_CASE("a code object newer than the running ROCr is refused, and the error names both versions",
          "[program]") {
  std::vector<std::byte> elf = elf_for("gfx90a");
  elf[8] = std::byte{4};
  const CodeObject object = read_code_object(elf);
  CHECK(object.version == 6);
  CHECK(object.target.processor == "gfx90a");
  CHECK(contains(error_of<Error>([&] { select_code_object(elf, Loader(target("gfx90a"), 5)); }),
                 "is for gfx90a in code object version 6, but the running ROCr loads versions up "
                 "to 5"));
  CHECK(select_code_object(elf, Loader(target("gfx90a"), 6)).version == 6);
  // The AMD extension's version, from hsa_ext_amd.h of the releases: none in ROCr 5.2, 1.4 in 6.1,
  // 1.6 in 6.2, 1.7 in 6.4.
  CHECK(newest_version_of(0, 0) == 5);
  CHECK(newest_version_of(1, 4) == 5);
  CHECK(newest_version_of(1, 6) == 6);
  CHECK(newest_version_of(1, 7) == 6);
  CHECK(newest_version_of(2, 0) == 6);
}

TEST_CASE("code for a generic target loads where the agent lists that ISA, after code for its own",
          "[program]") {
  std::vector<std::byte> elf = elf_for("gfx900");
  elf[8] = std::byte{4};
  elf[48] = std::byte{0x51};  // gfx9-generic, generic version 1
  elf[51] = std::byte{1};
  CHECK(to_string(read_code_object(elf).target) == "gfx9-generic");
  const std::vector<TargetId> isas{target("gfx900:xnack-"), target("gfx9-generic:xnack-")};
  CHECK(select_code_object(elf, Loader(isas, 6)).target.processor == "gfx9-generic");
  CHECK(
      contains(error_of<Error>([&] { select_code_object(elf, Loader(isas, 5)); }),
               "is for gfx9-generic in code object version 6, but the running ROCr loads versions "
               "up to 5"));
  CHECK(contains(error_of<Error>([&] { select_code_object(elf, Loader({isas[0]}, 6)); }),
                 "is for the generic target gfx9-generic, but ROCr lists gfx900:xnack- for the "
                 "agent"));
  elf[49] = std::byte{0x3};  // xnack+
  CHECK(contains(error_of<Error>([&] { select_code_object(elf, Loader(isas, 6)); }),
                 "needs xnack+, the agent has xnack-"));

  elf[49] = std::byte{0x1};
  const std::vector<std::byte> own = elf_for("gfx900");
  const std::vector<std::byte> bundle = bundle_of(
      {{"hipv4-amdgcn-amd-amdhsa--gfx9-generic", elf}, {"hipv4-amdgcn-amd-amdhsa--gfx900", own}});
  CHECK(select_code_object(bundle, Loader(isas, 6)).target.processor == "gfx900");
}

TEST_CASE("features of a code object are read from its flags", "[program]") {
  std::vector<std::byte> elf = elf_for("gfx90a");
  // e_flags at 48, LLVM AMDGPU User Guide, "e_flags": xnack in bits 8-9, sramecc in bits 10-11; 1
  // any, 2 off, 3 on.
  elf[49] = std::byte{0x2 | 0x3 << 2};
  CHECK(to_string(read_code_object(elf).target) == "gfx90a:sramecc+:xnack-");
  elf[49] = std::byte{0x1 | 0x1 << 2};
  CHECK(to_string(read_code_object(elf).target) == "gfx90a");
  // Version 3: one bit each, clear means off.
  elf[8] = std::byte{1};
  elf[49] = std::byte{0x2};
  CHECK(to_string(read_code_object(elf).target) == "gfx90a:sramecc+:xnack-");
}

TEST_CASE("a truncated code object is refused, and nothing outside it is read", "[program]") {
  const std::vector<std::byte> whole = elf_for("gfx90a");
  for (size_t length = 0; length < whole.size(); ++length) {
    // A copy of exactly that size, so that AddressSanitizer detects a read past the end.
    const std::vector<std::byte> part(whole.begin(),
                                      whole.begin() + static_cast<ptrdiff_t>(length));
    const bool refused =
        error_of<Error>([&] { select_code_object(part, target("gfx90a")); }) != "no error";
    if (!refused) FAIL("accepted " << length << " bytes of " << whole.size());
  }
  CHECK(error_of<Error>([&] { select_code_object(whole, target("gfx90a")); }) == "no error");
}

TEST_CASE("a truncated bundle is refused or still holds the requested code object", "[program]") {
  const auto bundle = builtin_kernels::bitonic_sort();
  for (size_t length = 0; length < bundle.size(); length += length < 512 ? 1 : 61) {
    const std::vector<std::byte> part(bundle.begin(),
                                      bundle.begin() + static_cast<ptrdiff_t>(length));
    const std::string error = error_of<Error>([&] { select_code_object(part, target("gfx90a")); });
    if (error == "no error")
      FAIL("accepted a bundle of " << length << " of " << bundle.size() << " bytes");
  }
}

TEST_CASE("a code object with flipped bytes causes an error or a layout inside its block",
          "[program]") {
  const std::vector<std::byte> whole = elf_for("gfx90a");
  std::mt19937 random(20260101);
  unsigned accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::byte> damaged = whole;
    const size_t limit = round % 2 == 0 ? 6000 : 512;  // headers and notes come first
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      damaged[random() % limit] ^= std::byte(1u << random() % 8);
    try {
      const ProgramMetadata program =
          read_metadata(metadata_note(select_code_object(damaged, target("gfx90a"))));
      for (const KernelMetadata& kernel : program.kernels) {
        for (const ArgumentMetadata& a : kernel.arguments) {
          if (uint64_t{a.offset} + a.size > kernel.kernarg_size) FAIL("argument outside its block");
        }
      }
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  // This reader does not detect damage in code or names. It must detect damage in structure.
  CHECK(accepted > 0);
  CHECK(refused > 400);
}

TEST_CASE("metadata gives each argument its offset, size and kind", "[program]") {
  const ProgramMetadata program =
      read_metadata(metadata_note(select_code_object(builtin_kernels::probes(), target("gfx90a"))));
  const KernelMetadata& kernel = kernel_named(program, "probe_arguments");
  struct Expected {
    uint32_t offset, size;
    ArgumentKind kind;
  };
  const Expected expected[] = {
      {0, 8, ArgumentKind::global_buffer},  {8, 1, ArgumentKind::by_value},
      {10, 2, ArgumentKind::by_value},      {12, 4, ArgumentKind::by_value},
      {16, 8, ArgumentKind::by_value},      {24, 1, ArgumentKind::by_value},
      {28, 4, ArgumentKind::by_value},      {32, 8, ArgumentKind::by_value},
      {48, 16, ArgumentKind::by_value},     {64, 16, ArgumentKind::by_value},
      {80, 8, ArgumentKind::global_buffer},
  };
  REQUIRE(kernel.arguments.size() >= std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    CAPTURE(i);
    CHECK(kernel.arguments[i].offset == expected[i].offset);
    CHECK(kernel.arguments[i].size == expected[i].size);
    CHECK(kernel.arguments[i].kind == expected[i].kind);
  }
  CHECK(kernel.max_workgroup_size == 256);
  CHECK_FALSE(program.has_printf);
}

TEST_CASE("C++ types must match the kernel's parameters in number, size and kind", "[program]") {
  const ProgramMetadata program = read_metadata(
      metadata_note(select_code_object(builtin_kernels::bitonic_sort(), target("gfx90a"))));
  const ArgumentLayout layout(program.kernels[0], false);
  const auto require = [&](std::vector<ArgumentType> types) {
    return error_of<Error>([&] { layout.require(types); });
  };
  const ArgumentType pointer = argument_type<uint32_t*>(), word = argument_type<uint32_t>();
  CHECK(require({pointer, word, word, word}) == "no error");
  CHECK(contains(require({pointer, word, word}), "3 arguments: the kernel takes 4"));
  CHECK(contains(require({pointer, word, argument_type<double>(), word}),
                 "argument 2 as 'double' (8 bytes, aligned to 8)"));
  CHECK(contains(
      require({argument_type<double>(), word, word, word}),
      "argument 0 as 'double' (8 bytes): the kernel takes argument 0 'uint*' (8 bytes, an address, "
      "at offset 0)"));
  CHECK(contains(require({pointer, argument_type<LocalBytes>(), word, word}),
                 "argument 1 as 'LocalBytes' (4 bytes)"));
}

TEST_CASE("hidden arguments are filled from geometry and queue, and every other byte is zero",
          "[program]") {
  using Kind = ArgumentKind;
  // Code object version 5's order, with an explicit pointer and a gap before the hidden arguments.
  const KernelMetadata kernel = kernel_with(
      {
          argument(Kind::global_buffer, 0, 8),
          argument(Kind::by_value, 8, 2),
          argument(Kind::hidden_block_count_x, 16, 4),
          argument(Kind::hidden_block_count_y, 20, 4),
          argument(Kind::hidden_block_count_z, 24, 4),
          argument(Kind::hidden_group_size_x, 28, 2),
          argument(Kind::hidden_group_size_y, 30, 2),
          argument(Kind::hidden_group_size_z, 32, 2),
          argument(Kind::hidden_remainder_x, 34, 2),
          argument(Kind::hidden_remainder_y, 36, 2),
          argument(Kind::hidden_remainder_z, 38, 2),
          argument(Kind::hidden_none, 56, 8),
          argument(Kind::hidden_grid_dims, 80, 2),
          argument(Kind::hidden_private_base, 208, 4),
          argument(Kind::hidden_shared_base, 212, 4),
          argument(Kind::hidden_queue_ptr, 216, 8),
      },
      272);
  const ArgumentLayout layout(kernel, false);
  std::vector<std::byte> block(288, std::byte{0xcc});
  const uint32_t canary = 0xcccccccc;
  std::memset(block.data(), 0x11, 10);  // as if the explicit arguments had been stored
  layout.fill_hidden(block.data(), Grid{1000, 50, 3}.by(64, 4, 2),
                     {.queue_address = 0x123456789a,
                      .private_aperture_high = 0x2000,
                      .group_aperture_high = 0x1000});
  CHECK(at<uint64_t>(block, 0) == 0x1111111111111111u);
  CHECK(at<uint16_t>(block, 8) == 0x1111);
  CHECK(at<uint32_t>(block, 16) == 15);
  CHECK(at<uint32_t>(block, 20) == 12);
  CHECK(at<uint32_t>(block, 24) == 1);
  CHECK(at<uint16_t>(block, 28) == 64);
  CHECK(at<uint16_t>(block, 30) == 4);
  CHECK(at<uint16_t>(block, 32) == 2);
  CHECK(at<uint16_t>(block, 34) == 40);
  CHECK(at<uint16_t>(block, 36) == 2);
  CHECK(at<uint16_t>(block, 38) == 1);
  CHECK(at<uint64_t>(block, 56) == 0);
  CHECK(at<uint16_t>(block, 80) == 3);
  CHECK(at<uint32_t>(block, 208) == 0x2000);
  CHECK(at<uint32_t>(block, 212) == 0x1000);
  CHECK(at<uint64_t>(block, 216) == 0x123456789a);
  CHECK(at<uint16_t>(block, 10) == 0);  // a gap
  CHECK(at<uint32_t>(block, 268) == 0);
  CHECK(at<uint32_t>(block, 272) == canary);  // past the block
}

TEST_CASE("a kernel that requires an unsupported feature is refused, and the error names it",
          "[program]") {
  const auto refusal = [](ArgumentKind kind, const char* name, bool printf = false) {
    return error_of<Error>(
        [&] { ArgumentLayout(kernel_with({argument(kind, 0, 8, name)}, 8), printf); });
  };
  CHECK(contains(refusal(ArgumentKind::hidden_hostcall_buffer, "hidden_hostcall_buffer"),
                 "host calls"));
  CHECK(contains(refusal(ArgumentKind::hidden_heap_v1, "hidden_heap_v1"), "device heap"));
  CHECK(contains(refusal(ArgumentKind::hidden_printf_buffer, "hidden_printf_buffer", true),
                 "printf"));
  CHECK(refusal(ArgumentKind::hidden_printf_buffer, "hidden_printf_buffer", false) == "no error");
  CHECK(contains(refusal(ArgumentKind::unsupported, "image"), "kind 'image'"));
  CHECK(refusal(ArgumentKind::hidden_none, "hidden_none") == "no error");
  for (const ArgumentKind kind : {ArgumentKind::hidden_hostcall_buffer, ArgumentKind::unsupported})
    CHECK(test::code_of_error([&] {
            ArgumentLayout(kernel_with({argument(kind, 0, 8, "any")}, 8), false);
          }) == "program");
}

TEST_CASE("a hostcall buffer and a heap that no code can use are zero", "[program]") {
  ProgramMetadata program;
  program.kernels.push_back(
      kernel_with({argument(ArgumentKind::by_value, 0, 8),
                   argument(ArgumentKind::hidden_hostcall_buffer, 8, 8, "hidden_hostcall_buffer"),
                   argument(ArgumentKind::hidden_heap_v1, 16, 8, "hidden_heap_v1"),
                   argument(ArgumentKind::hidden_group_size_x, 24, 2)},
                  32));
  CHECK(contains(error_of<Error>([&] { ArgumentLayout(program.kernels[0], false); }),
                 "'hidden_hostcall_buffer'"));
  drop_host_calls(program.kernels[0]);
  const ArgumentLayout layout(program.kernels[0], false);
  CHECK(layout.explicit_count() == 1);
  std::vector<std::byte> block(32, std::byte{0xcc});
  layout.fill_hidden(block.data(), Grid{128}.by(32), {});
  CHECK(at<uint64_t>(block, 0) == 0xcccccccccccccccc);
  CHECK(at<uint64_t>(block, 8) == 0);
  CHECK(at<uint64_t>(block, 16) == 0);
  CHECK(at<uint16_t>(block, 24) == 32);
}

TEST_CASE("dynamic LDS arrays follow the static ones, aligned to 16 bytes", "[program]") {
  std::vector<std::byte> block(16);
  uint32_t group_segment = 20;  // static
  detail::store_argument(block.data(), 0, LocalBytes{100}, group_segment);
  detail::store_argument(block.data(), 4, LocalBytes{8}, group_segment);
  CHECK(at<uint32_t>(block, 0) == 32);
  CHECK(at<uint32_t>(block, 4) == 144);
  CHECK(group_segment == 152);
}

TEST_CASE("an Error reports its facts as one sentence and one by one", "[runtime]") {
  const Error error({.code = ErrorCode::memory,
                     .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                     .call = "hsa_queue_create",
                     .asked = "a queue of 64 packets",
                     .found = "HSA refused",
                     .remedy = "destroy queues that are no longer used"});
  CHECK(std::string(error.what()) ==
        "hsa_queue_create: a queue of 64 packets: HSA refused; destroy queues that are no longer "
        "used "
        "(HSA_STATUS_ERROR_OUT_OF_RESOURCES)");
  CHECK(error.status() == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  CHECK(error.asked() == "a queue of 64 packets");
  CHECK(status_name(static_cast<hsa_status_t>(0x1777)) == "status 0x1777");
}
