// Each library runs the code objects of its own util.cl.
#pragma once

#include <cstddef>
#include <span>

namespace tens {
std::span<const std::byte> code();
}
namespace hundreds {
std::span<const std::byte> code();
}
