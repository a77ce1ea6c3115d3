// The library's own memcpy and its relatives, hidden, for programs under ThreadSanitizer. libtsan
// interposes the C library's. It would see the device's accesses without the signals and indices
// that order them with the program, and each race that it then suppresses costs a search of all
// earlier ones. Locks still go through libtsan.
//
// Compiled without the optimisation that makes calls of these functions from loops.
#include <cstddef>

extern "C" {

void* memcpy(void* to, const void* from, size_t bytes) noexcept {
  void* at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
  return to;
}

void* memmove(void* to, const void* from, size_t bytes) noexcept {
  auto* const target = static_cast<unsigned char*>(to);
  const auto* const source = static_cast<const unsigned char*>(from);
  if (target <= source || target >= source + bytes) return memcpy(to, from, bytes);
  for (size_t i = bytes; i-- > 0;) target[i] = source[i];
  return to;
}

void* memset(void* to, int value, size_t bytes) noexcept {
  void* at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
  return to;
}

int memcmp(const void* a, const void* b, size_t bytes) noexcept {
  const auto* const left = static_cast<const unsigned char*>(a);
  const auto* const right = static_cast<const unsigned char*>(b);
  for (size_t i = 0; i < bytes; ++i)
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  return 0;
}

}  // extern "C"
