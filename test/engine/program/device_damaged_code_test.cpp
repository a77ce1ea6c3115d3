// Damaged code objects: each is refused with an Error, or ROCr loads it and each of its kernels is
// found or refused. ROCr itself is the judge. It runs in processes of their own, because wrong
// tables make it end the process.
#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/damaged_code.hpp>
#include <uptempo/kernels/unoptimized_v4.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "test/engine/program/code_object_bytes.hpp"
#include "test/support/catch.hpp"
#include "test/support/posix.hpp"

using namespace uptempo;
using uptempo::test::in_child;
using uptempo::test::target;

namespace {

using Bytes = std::vector<std::byte>;

Bytes code_of(std::span<const std::byte> bundle) {
  const CodeObject object = select_code_object(bundle, target("gfx90a"));
  return {object.bytes.begin(), object.bytes.end()};
}

struct Object {
  const char* name;
  Bytes bytes;
};

std::vector<Object> objects() {
  return {{"OpenCL C, version 5", code_of(builtin_kernels::bitonic_sort())},
          {"OpenCL C, version 4", code_of(kernels::unoptimized_v4())},
          {"HIP, with variables and relocations", code_of(kernels::damaged_code())},
          {"OpenCL C, many kernels", code_of(builtin_kernels::basics())}};
}

// Progress of a child, in memory that it shares with the test.
struct Progress {
  std::atomic<size_t> next{0};  // input that the child works on
  std::atomic<size_t> loaded{0}, refused{0}, kernels{0}, refused_kernels{0};
};

class SharedProgress {
 public:
  SharedProgress() {
    void* const memory =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    progress_ = new (memory) Progress;
  }
  ~SharedProgress() { munmap(progress_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress* operator->() const { return progress_; }
  Progress& operator*() const { return *progress_; }

 private:
  Progress* progress_;
};

void load(const Agent& gpu, const Bytes& code, Progress& progress) {
  try {
    const Program program(gpu, code);
    for (const std::string& name : program.kernel_names()) {
      try {
        (void)program.kernel_info(name);
        ++progress.kernels;
      } catch (const Error&) {
        ++progress.refused_kernels;
      }
    }
    ++progress.loaded;
  } catch (const Error&) {
    ++progress.refused;
  }
}

struct Input {
  Bytes code;
  std::string what;
};

// Loads the inputs 0 to count - 1. A child that dies is replaced by one for the inputs after it.
void load_all(const char* name, size_t count, const std::function<Input(size_t)>& input,
              const SharedProgress& progress = SharedProgress()) {
  std::vector<std::string> offenders;
  while (progress->next < count) {
    const int exit_code = in_child([&] {
      const Runtime runtime;
      const Agent gpu = runtime.gpu();
      for (; progress->next < count; ++progress->next)
        load(gpu, input(progress->next).code, *progress);
      return 0;
    });
    if (exit_code == 0) break;
    offenders.push_back(fmt::format("{} (exit code {})", input(progress->next).what, exit_code));
    ++progress->next;
  }
  for (size_t i = 0; i < offenders.size() && i < 40; ++i) UNSCOPED_INFO(offenders[i]);
  std::printf(
      "%s: %zu inputs, %zu loaded with %zu kernels found and %zu refused, %zu refused, "
      "%zu ended the process\n",
      name, count, progress->loaded.load(), progress->kernels.load(),
      progress->refused_kernels.load(), progress->refused.load(), offenders.size());
  CHECK(offenders.empty());
  CHECK(progress->loaded + progress->refused + offenders.size() == count);
}

// One byte of one object changed: each of its bits alone, and all of them.
constexpr size_t kPatterns = 9;
Input flipped(const Object& object, size_t offset, size_t pattern) {
  const unsigned mask = pattern == 8 ? 0xff : 1u << pattern;
  Input input{.code = object.bytes,
              .what = fmt::format("{}: byte {} ^ 0x{:02x}", object.name, offset, mask)};
  input.code[offset] ^= std::byte(mask);
  return input;
}

struct Range {
  size_t begin, size;
};

// The whole file and each of its tables, so that a small table is changed as often as all code.
std::vector<Range> ranges_of(const Bytes& elf) {
  const auto header = uptempo::test::at<Elf64_Ehdr>(elf, 0);
  std::vector<Range> ranges{{0, elf.size()},
                            {0, sizeof header},
                            {header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)},
                            {header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)}};
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto section =
        uptempo::test::at<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type > SHT_PROGBITS && section.sh_type != SHT_NOBITS)
      ranges.push_back({section.sh_offset, section.sh_size});
  }
  return ranges;
}

// One to four changes of bits, bytes and words, sometimes of the file's length.
Input mutated(const Object& object, const std::vector<Range>& ranges, size_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  Input input{.code = object.bytes, .what = fmt::format("{}: seed {}", object.name, seed)};
  Bytes& code = input.code;
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const Range range = ranges[below(ranges.size())];
    const size_t at = range.begin + below(range.size);
    const size_t word_at = std::min(range.begin + below(range.size) / 4 * 4, code.size() - 8);
    const uint64_t values[] = {0,
                               1,
                               0x7f,
                               0xffff,
                               UINT32_MAX,
                               0x80000000u,
                               UINT64_MAX,
                               uint64_t{1} << 63,
                               code.size(),
                               below(code.size()),
                               below(0x4000),
                               random()};
    uint64_t word = values[below(std::size(values))];
    switch (below(7)) {
      case 0:
        code[at] ^= std::byte(1u << below(8));
        break;
      case 1:
        code[at] = std::byte(below(256));
        break;
      case 2:
        std::memcpy(code.data() + word_at, &word, 8);
        break;
      case 3:
        std::memcpy(code.data() + word_at, &word, 4);
        break;
      case 4:
        std::memcpy(code.data() + word_at, &word, 2);
        break;
      case 5:
        std::memcpy(&word, code.data() + word_at, sizeof word);
        word += below(129) - 64;
        std::memcpy(code.data() + word_at, &word, sizeof word);
        break;
      default:
        std::memmove(code.data() + word_at, code.data() + below(code.size() - 8), 8);
    }
  }
  if (below(50) == 0) code.resize(below(object.bytes.size()));
  return input;
}

void load_mutated(size_t count, size_t first_seed) {
  const std::vector<Object> all = objects();
  std::vector<std::vector<Range>> ranges;
  for (const Object& object : all) ranges.push_back(ranges_of(object.bytes));
  load_all("random changes", count, [&](size_t i) {
    return mutated(all[i % all.size()], ranges[i % all.size()], first_seed + i);
  });
}

}  // namespace

TEST_CASE("the undamaged code objects load, and each kernel is found", "[program]") {
  const std::vector<Object> all = objects();
  const SharedProgress progress;
  load_all(
      "undamaged", all.size(),
      [&](size_t i) {
        return Input{all[i].bytes, all[i].name};
      },
      progress);
  CHECK(progress->loaded == all.size());
  CHECK(progress->kernels >= 3 + all.size());
  CHECK(progress->refused_kernels == 0);
}

TEST_CASE("a code object with a changed byte loads or is refused", "[program]") {
  const std::vector<Object> all = objects();
  // Some of those that ended the process in ROCr 5.2.3: the type and the offset of a segment, bytes
  // of section headers, names and symbols.
  constexpr struct {
    size_t offset, pattern;
  } kKnown[] = {{122, 0},  {142, 3},  {196, 5},  {3856, 5}, {3863, 3}, {3870, 1},
                {4087, 0}, {4107, 3}, {4109, 8}, {4209, 0}, {4337, 7}, {4419, 1}};
  load_all("known", std::size(kKnown),
           [&](size_t i) { return flipped(all[0], kKnown[i].offset, kKnown[i].pattern); });
  constexpr size_t kStride = 61;  // of all changes
  for (const Object& object : all) {
    load_all(object.name, object.bytes.size() * kPatterns / kStride, [&](size_t i) {
      return flipped(object, i * kStride / kPatterns, i * kStride % kPatterns);
    });
  }
}

TEST_CASE("a code object with random changes loads or is refused", "[program]") {
  load_mutated(2000, 1);
}

TEST_CASE("a code object with any changed byte loads or is refused", "[program][.long]") {
  const std::vector<Object> all = objects();
  for (const Object& object : std::span(all).first(3)) {
    load_all(object.name, object.bytes.size() * kPatterns,
             [&](size_t i) { return flipped(object, i / kPatterns, i % kPatterns); });
  }
}

TEST_CASE("a code object with a hundred thousand random changes loads or is refused",
          "[program][.long]") {
  load_mutated(100'000, 1'000'000);
}
