#include "kfd/program_mappings.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "kfd/program_memory.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::kfd {
namespace {

constexpr size_t kPage = 4096;

// A range of address space in which the test maps single pages.
struct Range {
  explicit Range(size_t pages)
      : bytes(pages * kPage),
        begin(static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    REQUIRE(begin != MAP_FAILED);
  }
  ~Range() { munmap(begin, bytes); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  std::byte* page(size_t index) const { return begin + index * kPage; }
  uint64_t address(size_t index) const { return reinterpret_cast<uint64_t>(page(index)); }
  void map(size_t index, size_t pages, int protection, int flags, int file = -1,
           off_t offset = 0) const {
    REQUIRE(mmap(page(index), pages * kPage, protection, flags | MAP_FIXED, file, offset) !=
            MAP_FAILED);
  }

  const size_t bytes;
  std::byte* const begin;
};

// A file whose path is longer than a line that the text is read with.
class LongPath {
 public:
  LongPath() {
    std::string folder = (std::filesystem::temp_directory_path() / "mappingsXXXXXX").string();
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    root_ = folder;
    std::filesystem::path path = root_;
    for (int level = 0; level < 4; ++level) path /= std::string(200, 'd');
    std::filesystem::create_directories(path);
    file = open((path / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    REQUIRE(ftruncate(file, 4 * kPage) == 0);
  }
  ~LongPath() {
    close(file);
    std::filesystem::remove_all(root_);
  }
  LongPath(const LongPath&) = delete;
  LongPath& operator=(const LongPath&) = delete;

  int file = -1;

 private:
  std::filesystem::path root_;
};

std::vector<ProgramMapping> mappings_of(const Range& range, ProgramMappings::Source source) {
  ProgramMappings mappings(source);
  std::vector<ProgramMapping> found;
  found.reserve(64);
  uint64_t at = range.address(0);
  const uint64_t end = at + range.bytes;
  while (const auto mapping = mappings.at_or_above(at)) {
    if (mapping->begin >= end) break;
    found.push_back(*mapping);
    at = mapping->end;
  }
  return found;
}

// Returns how many read() calls this process has made. A call of this function counts as one.
uint64_t read_calls() {
  char text[512] = {};
  const int file = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  REQUIRE(read(file, text, sizeof text - 1) > 0);
  close(file);
  const char* const line = std::strstr(text, "syscr: ");
  REQUIRE(line != nullptr);
  return std::strtoull(line + std::strlen("syscr: "), nullptr, 10);
}

template <typename Action>
uint64_t read_calls_in(Action&& action) {
  const uint64_t before = read_calls();
  action();
  return read_calls() - before - 1;
}

bool kernel_answers_queries() {
  utsname system{};
  unsigned major = 0, minor = 0;
  REQUIRE(uname(&system) == 0);
  REQUIRE(std::sscanf(system.release, "%u.%u", &major, &minor) == 2);
  return major > 6 || (major == 6 && minor >= 11);
}

TEST_CASE("the kernel's query and the text describe the same mappings", "[program_mappings]") {
  const Range range(32);
  const LongPath long_path;
  const int memory_file = memfd_create("mappings", MFD_CLOEXEC);
  REQUIRE(ftruncate(memory_file, 8 * kPage) == 0);
  range.map(1, 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  range.map(4, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  range.map(6, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  range.map(8, 3, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file, 2 * kPage);
  range.map(12, 2, PROT_READ | PROT_EXEC, MAP_PRIVATE, memory_file, 0);
  range.map(16, 2, PROT_READ | PROT_WRITE, MAP_PRIVATE, long_path.file, kPage);
  munmap(range.page(20), 4 * kPage);

  const auto text = mappings_of(range, ProgramMappings::Source::text);
  const auto query = mappings_of(range, ProgramMappings::Source::query_or_text);
  CHECK(text.size() == 14);
  REQUIRE(query.size() == text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    CAPTURE(i, text[i].begin, text[i].end);
    CHECK(query[i].begin == text[i].begin);
    CHECK(query[i].end == text[i].end);
    CHECK(query[i].readable == text[i].readable);
    CHECK(query[i].writable == text[i].writable);
    CHECK(query[i].shared == text[i].shared);
    CHECK(query[i].named == text[i].named);
    CHECK(query[i].offset == text[i].offset);
    CHECK(query[i].device == text[i].device);
    CHECK(query[i].inode == text[i].inode);
  }
  close(memory_file);
}

TEST_CASE("the stack and the heap have names, an anonymous mapping has none",
          "[program_mappings]") {
  const Range range(1);
  for (const auto source :
       {ProgramMappings::Source::text, ProgramMappings::Source::query_or_text}) {
    const auto named = [source](uint64_t address) {
      const auto mapping = ProgramMappings(source).at_or_above(address);
      return mapping && mapping->begin <= address && mapping->named;
    };
    const char on_stack = 0;
    CHECK(named(reinterpret_cast<uint64_t>(&on_stack)));
    CHECK_FALSE(named(range.address(0)));
  }
}

TEST_CASE("above the highest mapping there is none", "[program_mappings]") {
  constexpr uint64_t kNearlyAllOnes = ~uint64_t{0} - kPage + 1;
  for (const auto source : {ProgramMappings::Source::text, ProgramMappings::Source::query_or_text})
    CHECK_FALSE(ProgramMappings(source).at_or_above(kNearlyAllOnes));
}

TEST_CASE("memory for registration must be mapped, readable and writable", "[program_memory]") {
  const Range range(8);
  range.map(0, 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  range.map(4, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  munmap(range.page(5), kPage);
  range.map(6, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  CHECK(check_user_pages(range.address(0), 4 * kPage) == 0);
  CHECK(check_user_pages(range.address(1) + 100, 200) == 0);
  CHECK(check_user_pages(range.address(6), kPage) == 0);
  CHECK(check_user_pages(range.address(0), 5 * kPage) == -EPERM);
  CHECK(check_user_pages(range.address(4), kPage) == -EPERM);
  CHECK(check_user_pages(range.address(5), kPage) == -EFAULT);
  CHECK(check_user_pages(range.address(5) - 1, 2) == -EPERM);
  CHECK(check_user_pages(range.address(6), 2 * kPage) == -EFAULT);  // PROT_NONE
  CHECK(check_user_pages(range.address(7), 1) == -EFAULT);
}

TEST_CASE("checking memory costs the same whatever is mapped below it", "[program_memory]") {
  constexpr size_t kMappings = 8'000;
  const Range range(2 * kMappings);
  const auto last = [&] { return check_user_pages(range.address(2 * kMappings - 2), kPage); };
  size_t mapped = 0;
  const auto map_until = [&](size_t count) {
    for (; mapped < count; ++mapped)
      REQUIRE(mprotect(range.page(2 * mapped), kPage, PROT_READ | PROT_WRITE) == 0);
  };
  REQUIRE(mprotect(range.page(2 * kMappings - 2), kPage, PROT_READ | PROT_WRITE) == 0);
  map_until(10);
  int few_result = -1;
  const uint64_t few = read_calls_in([&] { few_result = last(); });
  map_until(kMappings);
  int many_result = -1;
  const uint64_t many = read_calls_in([&] { many_result = last(); });
  CHECK(few_result == 0);
  CHECK(many_result == 0);
  if (kernel_answers_queries()) {
    CHECK(few == 0);
    CHECK(many == 0);
  } else {
    // A kernel before 6.11 lists the mappings only as text, a page at a time.
    CHECK(few > 0);
    CHECK(many > few + 100);
  }
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
