// What the emulated driver says where a kernel would write to its log: one line on stderr.
//
// Thread safety: any thread; one system call a line, so that lines of threads and processes do not mix.
#pragma once

#include <string_view>

namespace uptempo::vgpu::kfd {

// Always: faults, refused options.
void report(std::string_view sentence) noexcept;

// Under --verbose only (UPTEMPO_VGPU_VERBOSE=1): unknown ioctls, refused requests with the reason.
void note(std::string_view sentence) noexcept;

void set_verbose(bool verbose) noexcept;

}  // namespace uptempo::vgpu::kfd
