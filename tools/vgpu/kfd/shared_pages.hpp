// System memory for a USERPTR buffer with a separate mapping for the device, so that the program's
// mapping can be protected (device/host/host_pages.hpp).
//
// ROCT maps fresh anonymous memory and registers it at once under its own address (fmm.c,
// fmm_allocate_host_gpu). replace() exchanges such pages for those of an unnamed file before any
// store to them. The program loses NUMA and huge page advice. A fork child would share the pages
// instead of copying them, but ROCT withholds them from children (MADV_DONTFORK), and so does this
// class.
//
// Lifetime: the file exists until both mappings are gone, so memory that the program keeps after
// FREE keeps its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace uptempo::vgpu::kfd {

class SharedPages {
 public:
  // Returns null and changes nothing unless [address, address + size_bytes) is private anonymous
  // memory that is readable, writable and untouched, and the system grants the mappings.
  static std::unique_ptr<SharedPages> replace(uint64_t address, uint64_t size_bytes);

  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  // The device's mapping.
  std::byte* alias() const noexcept { return alias_; }

 private:
  SharedPages(std::byte* alias, size_t size_bytes) noexcept
      : alias_(alias), size_bytes_(size_bytes) {}

  std::byte* const alias_;
  const size_t size_bytes_;
};

}  // namespace uptempo::vgpu::kfd
