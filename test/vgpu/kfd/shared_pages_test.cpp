#include "kfd/shared_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "kfd/program_memory.hpp"
#include "test/support/catch.hpp"
#include "test/support/posix.hpp"

namespace uptempo::vgpu::kfd {
namespace {

constexpr size_t kPageBytes = 4096;

struct Memory {
  explicit Memory(size_t page_count = 4, int protection = PROT_READ | PROT_WRITE,
                  int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1)
      : bytes(page_count * kPageBytes),
        begin(static_cast<std::byte*>(mmap(nullptr, bytes, protection, flags, file, 0))) {
    REQUIRE(begin != MAP_FAILED);
  }
  ~Memory() { munmap(begin, bytes); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(begin); }
  const size_t bytes;
  std::byte* const begin;
};

TEST_CASE("untouched memory keeps its address and its zeros, and gets a second mapping",
          "[shared_pages]") {
  const Memory memory;
  const auto shared = SharedPages::replace(memory.address(), memory.bytes);
  REQUIRE(shared != nullptr);
  CHECK(shared->alias() != memory.begin);
  for (size_t byte = 0; byte < memory.bytes; byte += 512)
    REQUIRE(memory.begin[byte] == std::byte{0});
  memory.begin[5000] = std::byte{7};
  CHECK(shared->alias()[5000] == std::byte{7});
  shared->alias()[5001] = std::byte{8};
  CHECK(memory.begin[5001] == std::byte{8});
}

TEST_CASE("the memory keeps its content when the device removes its mapping", "[shared_pages]") {
  const Memory memory;
  auto shared = SharedPages::replace(memory.address(), memory.bytes);
  REQUIRE(shared != nullptr);
  shared->alias()[100] = std::byte{9};
  shared.reset();
  CHECK(memory.begin[100] == std::byte{9});
  memory.begin[100] = std::byte{10};
  CHECK(memory.begin[100] == std::byte{10});
}

TEST_CASE("replacing pages inside a larger mapping leaves their neighbours unchanged",
          "[shared_pages]") {
  const Memory memory(6);
  memory.begin[0] = std::byte{1};
  memory.begin[5 * kPageBytes] = std::byte{2};
  const auto shared = SharedPages::replace(memory.address() + kPageBytes, 4 * kPageBytes);
  REQUIRE(shared != nullptr);
  memory.begin[kPageBytes] = std::byte{3};
  CHECK(shared->alias()[0] == std::byte{3});
  CHECK(memory.begin[0] == std::byte{1});
  CHECK(memory.begin[5 * kPageBytes] == std::byte{2});
}

TEST_CASE("memory that is in use or of another kind stays unchanged", "[shared_pages]") {
  SECTION("it was written") {
    const Memory memory;
    memory.begin[3 * kPageBytes + 17] = std::byte{42};
    CHECK(SharedPages::replace(memory.address(), memory.bytes) == nullptr);
    CHECK(memory.begin[3 * kPageBytes + 17] == std::byte{42});
    CHECK(SharedPages::replace(memory.address(), 3 * kPageBytes) != nullptr);
  }
  SECTION("it is read-only") {
    const Memory memory(4, PROT_READ);
    CHECK(SharedPages::replace(memory.address(), memory.bytes) == nullptr);
  }
  SECTION("it is shared already") {
    const Memory memory(4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    CHECK(SharedPages::replace(memory.address(), memory.bytes) == nullptr);
  }
  SECTION("it maps a file") {
    const int file = open("/proc/self/exe", O_RDONLY);
    const Memory memory(2, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
    CHECK(SharedPages::replace(memory.address(), memory.bytes) == nullptr);
    close(file);
  }
  SECTION("there is a hole in it") {
    const Memory memory;
    munmap(memory.begin + kPageBytes, kPageBytes);
    CHECK(SharedPages::replace(memory.address(), memory.bytes) == nullptr);
  }
}

TEST_CASE("a fork child does not have the pages, as with ROCT alone", "[shared_pages]") {
  const Memory memory;
  const auto shared = SharedPages::replace(memory.address(), memory.bytes);
  REQUIRE(shared != nullptr);
  memory.begin[0] = std::byte{1};
  CHECK(uptempo::test::in_child([&] {
          // mincore() returns ENOMEM, because the page is unmapped in the child.
          unsigned char present = 0;
          return mincore(memory.begin, kPageBytes, &present) == -1 &&
                         mincore(shared->alias(), kPageBytes, &present) == -1
                     ? 0
                     : 1;
        }) == 0);
  CHECK(memory.begin[0] == std::byte{1});
}

TEST_CASE("a mapping of a file is recognised by file, offset and permissions", "[program_memory]") {
  SparseFile file("uptempo-vgpu-test", 16 * kPageBytes);
  SparseFile other("uptempo-vgpu-other", 16 * kPageBytes);
  const int descriptor = file.open(true);
  void* const at =
      mmap(nullptr, 4 * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 8 * kPageBytes);
  const auto address = reinterpret_cast<uint64_t>(at);
  CHECK(is_mapping_of(address, 4 * kPageBytes, file, 8 * kPageBytes));
  CHECK(is_mapping_of(address + kPageBytes, kPageBytes, file, 9 * kPageBytes));
  CHECK_FALSE(is_mapping_of(address, 4 * kPageBytes, file, 7 * kPageBytes));
  CHECK_FALSE(is_mapping_of(address, 4 * kPageBytes, other, 8 * kPageBytes));
  CHECK_FALSE(is_mapping_of(address, 64 * kPageBytes, file, 8 * kPageBytes));
  mprotect(at, kPageBytes, PROT_READ);
  CHECK_FALSE(is_mapping_of(address, 4 * kPageBytes, file, 8 * kPageBytes));
  CHECK(is_mapping_of(address + kPageBytes, 3 * kPageBytes, file, 9 * kPageBytes));
  munmap(at, 4 * kPageBytes);
  close(descriptor);
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
