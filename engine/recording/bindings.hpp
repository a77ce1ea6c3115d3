// Bindings: names for memory ranges. A saved recording refers to memory by these names, because
// addresses differ between processes.
//
//   Bindings memory;
//   memory.add("positions", positions).add("forces", forces);  // buffers, or address and size
//
// Thread safety: thread-compatible.
// Lifetime: stores only names, addresses and sizes; the memory itself is not referenced.
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
  // Throws Error if the name is empty or taken, if there is no memory, and if a byte already has a
  // name.
  Bindings& add(std::string name, const void* data, size_t size_bytes);
  // `buffer`: a DeviceBuffer, a PinnedBuffer, or any other type with data() and size_bytes().
  template <class Buffer>
  Bindings& add(std::string name, const Buffer& buffer) {
    return add(std::move(name), buffer.data(), buffer.size_bytes());
  }

  // Null if there is none. The address one past a range does not belong to it: another range may
  // begin there.
  const MemoryRange* find(std::string_view name) const noexcept;
  const MemoryRange* find(uintptr_t address) const noexcept;

  // Returns "'positions' of 4096 bytes, ...", for error messages.
  std::string list() const;

 private:
  std::map<uintptr_t, MemoryRange> ranges_;              // key: first byte
  std::map<std::string, uintptr_t, std::less<>> names_;  // value: first byte
};

}  // namespace uptempo
