// Copying and comparing pages that others write at the same time: each byte is seen once, old or new.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/host_events.hpp"

namespace uptempo::vgpu {

// Async-signal-safe. Both are aligned to 8 bytes. What is copied races with stores by design, so the thread sanitizer must not look.
void copy_page(std::byte* to, const std::byte* from) noexcept;

// The bytes of `now` that are not those of `before`. False: there are none.
bool find_changes(const std::byte* now, const std::byte* before, PageMask& changes) noexcept;

}  // namespace uptempo::vgpu
