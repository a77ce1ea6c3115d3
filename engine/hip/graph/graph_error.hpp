// The Error of a graph that cannot be imported. Private to engine/hip. Thread safety: any thread.
#pragma once

#include <string>
#include <utility>

#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {

// `asked`: the node, or the part of it that is refused.
[[noreturn]] inline void refuse_import(std::string asked, std::string found, std::string remedy) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "hip::import",
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

}  // namespace uptempo::hip
