// HipEntries: names for the functions of HIP that no symbol names, although programs call them.
//
// Since HIP 6.1, an exported function is a short one that jumps to the function in its place of a
// table, which tools may change (HipDispatchTable of hip/amd_detail/hip_api_trace.hpp). A stack
// therefore has the function from the table alone. This class finds the table where the library
// keeps zero-initialised data, by the places that the exported functions read: all of them must
// hold code of the library, and the first word the table's size.
//
// Errors: where there is no such table, or a tool has changed it, no name is found.
// Thread safety: const. name_at() asks the unwinder, which takes the dynamic loader's lock before
// glibc 2.35.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kfd/report/host_image.hpp"

namespace uptempo::vgpu::kfd {

class HipEntries {
 public:
  // `bias`: what the loader adds to addresses of the file. The library has been called.
  HipEntries(const HostImage& library, uintptr_t bias);

  // The exported function that jumps to the function around `address`; or empty.
  std::string name_at(uintptr_t address) const;

 private:
  std::map<uintptr_t, std::string> names_;  // by the function's first instruction
};

// The place in the table from which an exported function takes the one that it jumps to; 0: it is
// no such function. `code`: all of its instructions, for x86-64.
uint32_t place_in_table(std::string_view code);

}  // namespace uptempo::vgpu::kfd
