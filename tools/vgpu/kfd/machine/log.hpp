// The emulated driver's log: one line on stderr where a kernel would write to its log.
//
// Thread safety: any thread. Each line is one system call, so lines of threads and processes do not
// mix.
#pragma once

#include <string_view>

namespace uptempo::vgpu::kfd {

// Always printed: faults, invalid options.
void report(std::string_view sentence) noexcept;

// Printed only with --verbose (UPTEMPO_VGPU_VERBOSE=1): unknown ioctls, refused requests with the
// reason.
void note(std::string_view sentence) noexcept;

void set_verbose(bool verbose) noexcept;

}  // namespace uptempo::vgpu::kfd
