// Names for memory: what a saved recording says instead of addresses, which another process does not share.
//
//   Bindings memory;
//   memory.add("positions", positions).add("forces", forces);    // buffers; or address and bytes
//
// Thread safety: as a vector. Lifetime: nothing is kept but names, addresses and sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace uptempo {

struct MemoryRange {
  std::string name;
  uintptr_t begin = 0;
  size_t size_bytes = 0;
};

class Bindings {
 public:
  // Throws Error for a name that is empty or taken, and for no memory, no bytes, or bytes that have a name already.
  Bindings& add(std::string name, const void* data, size_t size_bytes);
  // A DeviceBuffer, a PinnedBuffer, or whatever else has data() and size_bytes().
  template <class Buffer>
  Bindings& add(std::string name, const Buffer& buffer) {
    return add(std::move(name), buffer.data(), buffer.size_bytes());
  }

  // Null if there is none. One past the last byte of a range is not in it: it may be the first one of another.
  const MemoryRange* find(std::string_view name) const noexcept;
  const MemoryRange* find(uintptr_t address) const noexcept;

  // "'positions' of 4096 bytes, ...", for errors.
  std::string list() const;

 private:
  std::map<uintptr_t, MemoryRange> ranges_;              // by their first byte
  std::map<std::string, uintptr_t, std::less<>> names_;  // where they begin
};

}  // namespace uptempo
