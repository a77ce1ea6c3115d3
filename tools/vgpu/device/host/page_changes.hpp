// Copying and comparing pages while other threads write them: each byte is read once, old or new.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/host/host_events.hpp"

namespace uptempo::vgpu {

// Copies a page; both pointers are aligned to 8 bytes. Async-signal-safe. The copy races with
// stores by design, so it is excluded from the thread sanitizer. It is excluded from the address
// sanitizer, too, which judges memory of the program by what was mapped there before.
void copy_page(std::byte* to, const std::byte* from) noexcept;

// Stores in `changes` the bytes of `now` that differ from `before`. Returns false when there are
// none.
bool find_changes(const std::byte* now, const std::byte* before, PageMask& changes) noexcept;

}  // namespace uptempo::vgpu
