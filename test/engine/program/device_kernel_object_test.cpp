// Kernels whose code the test loads with plain HSA calls, and variables of a program, on the
// running ROCr.
#include <elf.h>
#include <hsa/hsa.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/device_globals.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include "test/engine/error_code.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using uptempo::test::code_of_error;
using uptempo::test::contains;
using uptempo::test::download;
using uptempo::test::error_of;
using uptempo::test::OnDevice;
using Saxpy = Kernel<float*, const float*, float, uint32_t>;

void require(hsa_status_t status) { REQUIRE(status == HSA_STATUS_SUCCESS); }

// The contents of the note of type 32 (NT_AMDGPU_METADATA) and name "AMDGPU", by elf.h alone.
std::vector<std::byte> metadata_of(std::span<const std::byte> elf) {
  const auto at = [&]<class T>(T, size_t offset) {
    T value;
    REQUIRE(offset + sizeof value <= elf.size());
    std::memcpy(&value, elf.data() + offset, sizeof value);
    return value;
  };
  const auto header = at(Elf64_Ehdr{}, 0);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = at(Elf64_Phdr{}, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_NOTE) continue;
    const auto note = at(Elf64_Nhdr{}, segment.p_offset);
    const size_t name = segment.p_offset + sizeof note, text = name + (note.n_namesz + 3) / 4 * 4;
    if (note.n_type != 32 || std::memcmp(elf.data() + name, "AMDGPU", 7) != 0) continue;
    const auto bytes = elf.subspan(text, note.n_descsz);
    return {bytes.begin(), bytes.end()};
  }
  FAIL("no metadata note");
  return {};
}

// An executable of the test's own.
struct PlainExecutable {
  PlainExecutable(const Agent& gpu, std::span<const std::byte> code) : agent(gpu.handle()) {
    hsa_code_object_reader_t reader{};
    require(hsa_code_object_reader_create_from_memory(code.data(), code.size(), &reader));
    require(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                      nullptr, &executable));
    require(hsa_executable_load_agent_code_object(executable, agent, reader, nullptr, nullptr));
    require(hsa_executable_freeze(executable, nullptr));
    require(hsa_code_object_reader_destroy(reader));
  }
  ~PlainExecutable() { hsa_executable_destroy(executable); }
  PlainExecutable(const PlainExecutable&) = delete;
  PlainExecutable& operator=(const PlainExecutable&) = delete;

  uint64_t object(const char* symbol) const {
    hsa_executable_symbol_t found{};
    require(hsa_executable_get_symbol_by_name(executable, symbol, &agent, &found));
    uint64_t address = 0;
    require(
        hsa_executable_symbol_get_info(found, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &address));
    return address;
  }

  hsa_agent_t agent;
  hsa_executable_t executable{};
};

struct Loaded : OnDevice {
  const std::span<const std::byte> code =
      select_code_object(builtin_kernels::basics(), parse_target_id(gpu.isa()).value()).bytes;
  const std::shared_ptr<const PlainExecutable> executable =
      std::make_shared<const PlainExecutable>(gpu, code);
  const ProgramMetadata metadata = read_metadata(metadata_of(code));
  Copier copier{gpu};

  // y = 2.5 x + y on 1,000 elements, compared with the host's.
  void run(const Saxpy& saxpy) {
    constexpr uint32_t kLength = 1000;
    std::vector<float> x(kLength), y(kLength), expected(kLength);
    for (uint32_t i = 0; i < kLength; ++i) {
      x[i] = static_cast<float>(i) * 0.5f;
      y[i] = static_cast<float>(kLength - i);
      expected[i] = 2.5f * x[i] + y[i];  // exact: small multiples of 1/4
    }
    const DeviceBuffer<float> on_x{gpu, kLength}, on_y{gpu, kLength};
    copier.copy(on_x, x);
    copier.copy(on_y, y);
    Queue queue{gpu};
    BatchSubmitter batch{queue};
    batch.dispatch(saxpy, Grid{1024}.by(64), on_y.data(), on_x.data(), 2.5f, kLength);
    batch.submit().wait();
    copier.copy(y, on_y);
    CHECK(y == expected);
  }
};

// A caller without the compiler's metadata knows this from the kernel's source.
KernelMetadata filled_saxpy(const KernelMetadata& compiled) {
  const auto argument = [](ArgumentKind kind, uint32_t offset, uint32_t size) {
    return ArgumentMetadata{
        .kind = kind, .kind_name = {}, .offset = offset, .size = size, .name = {}, .type_name = {}};
  };
  KernelMetadata filled;
  filled.name = "saxpy by hand";
  filled.kernarg_size = compiled.kernarg_size;  // with the compiler's hidden arguments
  filled.whole_workgroups = false;
  filled.arguments = {
      argument(ArgumentKind::global_buffer, 0, 8), argument(ArgumentKind::global_buffer, 8, 8),
      argument(ArgumentKind::by_value, 16, 4), argument(ArgumentKind::by_value, 20, 4)};
  for (const ArgumentMetadata& hidden : compiled.arguments)
    if (is_hidden(hidden.kind)) filled.arguments.push_back(hidden);
  return filled;
}

}  // namespace

TEST_CASE_METHOD(Loaded, "a kernel that HSA calls have loaded runs with the compiler's metadata",
                 "[program]") {
  const auto info =
      kernel_info(gpu, {.address = executable->object("saxpy.kd")}, metadata.kernel("saxpy"));
  run(Saxpy::of(info));
  CHECK(info->name == "saxpy");
  CHECK_FALSE(info->code.is_known());
  // As Program, which loads the same code once more.
  const Program program{gpu, builtin_kernels::basics()};
  const auto other = program.kernel_info("saxpy");
  CHECK(info->private_segment_size == other->private_segment_size);
  CHECK(info->group_segment_size == other->group_segment_size);
  CHECK(info->reads_packet == other->reads_packet);
  CHECK(info->max_workgroup_size == other->max_workgroup_size);
  CHECK(info->whole_workgroups == other->whole_workgroups);
  CHECK(info->arguments.size_bytes() == other->arguments.size_bytes());
  CHECK(contains(error_of<Error>([&] { Kernel<float*>::of(info); }), "1 arguments"));
}

TEST_CASE_METHOD(Loaded, "a kernel that HSA calls have loaded runs with metadata filled by hand",
                 "[program]") {
  run(Saxpy::of(kernel_info(gpu, {.address = executable->object("saxpy.kd")},
                            filled_saxpy(metadata.kernel("saxpy")))));
}

TEST_CASE_METHOD(Loaded, "a kernel keeps the owner of its code", "[program]") {
  std::weak_ptr<const PlainExecutable> alive;
  {
    auto own = std::make_shared<const PlainExecutable>(gpu, code);
    alive = own;
    const auto saxpy = Saxpy::of(kernel_info(
        gpu, {.address = own->object("saxpy.kd"), .owner = own}, metadata.kernel("saxpy")));
    own.reset();
    CHECK_FALSE(alive.expired());
    run(saxpy);
  }
  CHECK(alive.expired());
}

TEST_CASE_METHOD(Loaded, "a kernel object or metadata that cannot be right are refused by name",
                 "[program]") {
  const uint64_t object = executable->object("saxpy.kd");
  const KernelMetadata& right = metadata.kernel("saxpy");
  const auto refusal = [&](uint64_t address, const KernelMetadata& of) {
    return error_of<Error>([&] { (void)kernel_info(gpu, {.address = address}, of); });
  };
  const auto code_with = [&](uint64_t address, const KernelMetadata& of) {
    return code_of_error([&] { (void)kernel_info(gpu, {.address = address}, of); });
  };
  CHECK(refusal(object, right) == "no error");
  CHECK(contains(refusal(0, right), "descriptors are aligned to 64 bytes"));
  CHECK(contains(refusal(object + 8, right), "descriptors are aligned to 64 bytes"));
  CHECK(contains(refusal(0x123400, right), "ROCr has neither code nor an allocation there"));
  CHECK(code_with(0x123400, right) == "argument");

  const auto changed = [&](auto&& change) {
    KernelMetadata copy = right;
    change(copy);
    CHECK(code_with(object, copy) == "program");
    return refusal(object, copy);
  };
  CHECK(contains(changed([](auto& kernel) { kernel.name.clear(); }), "no name"));
  CHECK(contains(changed([](auto& kernel) { kernel.kernarg_alignment = 24; }), "no power of two"));
  CHECK(contains(changed([](auto& kernel) { kernel.group_segment_size += 64; }),
                 "64 bytes of static group memory: the kernel descriptor at this address has 0"));
  CHECK(
      contains(changed([](auto& kernel) { kernel.kernarg_size += 8; }),
               "the kernel descriptor at this address has " + std::to_string(right.kernarg_size)));
  CHECK(contains(changed([](auto& kernel) { kernel.arguments[3].offset = 1u << 31; }),
                 "argument 3 takes bytes 2147483648 to 2147483652 of a block of"));
  CHECK(contains(changed([](auto& kernel) { kernel.arguments[3].size = 0; }), "argument 3 takes"));
  CHECK(contains(changed([](auto& kernel) { kernel.arguments[1].offset = 4; }),
                 "argument 1 at offset 4 begins before the end of an earlier one (8)"));
  CHECK(contains(changed([](auto& kernel) { kernel.arguments[0].size = 4; }),
                 "argument 0 has 4 bytes; an address has 8"));
  CHECK(contains(changed([](auto& kernel) {
                   kernel.arguments.push_back({.kind = ArgumentKind::hidden_grid_dims,
                                               .kind_name = "hidden_grid_dims",
                                               .offset = 20,
                                               .size = 2,
                                               .name = {},
                                               .type_name = {}});
                 }),
                 "overlap at offset 20"));
  CHECK(contains(error_of<Error>([&] { (void)metadata.kernel("no_such"); }),
                 "ProgramMetadata::kernel: kernel 'no_such': the program has"));
}

TEST_CASE_METHOD(OnDevice, "variables of a program are read and written by name", "[program]") {
  const Program program{gpu, kernels::device_globals()};
  const DeviceGlobal offsets = program.global("offsets"), last = program.global("last_sum");
  REQUIRE(offsets.size_bytes == 16);
  REQUIRE(last.size_bytes == 8);
  Copier copier{gpu};
  std::vector<uint32_t> initial(4);
  copier.copy(initial, CopySource::device(offsets.address, offsets.size_bytes));
  CHECK(initial == std::vector<uint32_t>{1, 20, 300, 4000});

  const std::vector<uint32_t> replaced{100, 200, 300, 400};
  copier.copy(CopyTarget::device(offsets.address, offsets.size_bytes), replaced);
  const DeviceBuffer<uint32_t> out{gpu, 8};
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(program.kernel<uint32_t*>("add_offsets"), Grid::blocks(1).threads(8), out.data());
  batch.submit().wait();
  CHECK(download(copier, out) == std::vector<uint32_t>{100, 205, 310, 415, 120, 225, 330, 435});
  std::vector<uint64_t> sum(1);
  copier.copy(sum, CopySource::device(last.address, last.size_bytes));
  CHECK(sum[0] == 435);

  CHECK(contains(error_of<Error>([&] { (void)program.global("offset"); }),
                 "Program::global: variable 'offset'"));
  CHECK(code_of_error([&] { (void)program.global("offset"); }) == "program");
  CHECK(contains(error_of<Error>([&] { (void)program.global("_Z11add_offsetsPj.kd"); }),
                 "a kernel has this name"));
}
