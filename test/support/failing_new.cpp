#include "test/support/failing_new.hpp"

#include <malloc.h>

#include <cstdlib>
#include <cstring>

namespace {

constinit thread_local uint64_t calls_left = 0;  // 0: no call fails
constinit thread_local bool call_failed = false;

// False if this call is to fail.
bool may_allocate() noexcept {
  if (calls_left == 0 || --calls_left != 0) return true;
  call_failed = true;
  return false;
}

void* allocate(size_t size) noexcept {
  return may_allocate() ? std::malloc(size == 0 ? 1 : size) : nullptr;
}

void* allocate(size_t size, std::align_val_t alignment) noexcept {
  const auto a = static_cast<size_t>(alignment);
  return may_allocate() ? std::aligned_alloc(a, (size + a - 1) / a * a) : nullptr;
}

void* require(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) std::memset(memory, 0xDD, malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

namespace uptempo::test {

FailingNew::FailingNew(uint64_t number) noexcept {
  call_failed = false;
  calls_left = number;
}

FailingNew::~FailingNew() { calls_left = 0; }

bool FailingNew::has_failed() const noexcept { return call_failed; }

}  // namespace uptempo::test

void* operator new(size_t size) { return require(allocate(size)); }
void* operator new[](size_t size) { return require(allocate(size)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return require(allocate(size, alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return require(allocate(size, alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }
