// System memory for a USERPTR buffer whose pages the device reaches by a mapping of its own, so that the program's may be protected (device/host_pages.hpp).
//
// ROCT maps fresh anonymous memory and registers it at once, under its own address (fmm.c, fmm_allocate_host_gpu). Such pages are exchanged for
// those of a nameless file before anybody has stored to them. What changes for the program: NUMA and huge page advice is forgotten, and the pages would be
// shared with a fork child where private ones are copied; ROCT withholds them from children (MADV_DONTFORK), and so does this.
//
// Lifetime: the file goes with the last of both mappings, so memory that the program keeps after FREE stays what it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace uptempo::vgpu::kfd {

class SharedPages {
 public:
  // Null, and nothing changed, unless [address, address + size_bytes) are pages of private anonymous memory that may be read and written and that nobody has
  // touched, and the system grants the mappings.
  static std::unique_ptr<SharedPages> replace(uint64_t address, uint64_t size_bytes);

  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  // The device's mapping.
  std::byte* alias() const noexcept { return alias_; }

 private:
  SharedPages(std::byte* alias, size_t size_bytes) noexcept : alias_(alias), size_bytes_(size_bytes) {}

  std::byte* const alias_;
  const size_t size_bytes_;
};

}  // namespace uptempo::vgpu::kfd
