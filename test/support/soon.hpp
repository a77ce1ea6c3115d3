// A deadline for an event that must happen. Only a hang reaches it.
#pragma once

#include <uptempo/aql/deadline.hpp>
#include "test/support/eventually.hpp"

namespace uptempo::test {

inline Deadline soon() { return Deadline::after(kHang); }

}  // namespace uptempo::test
