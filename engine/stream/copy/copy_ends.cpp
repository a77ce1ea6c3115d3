#include "engine/stream/copy/copy_ends.hpp"

namespace uptempo {

std::string_view name_of(CopyPath path) noexcept {
  switch (path) {
    case CopyPath::automatic:
      return "automatic";
    case CopyPath::engine:
      return "engine";
    case CopyPath::kernel:
      return "kernel";
    case CopyPath::host:
      return "host";
  }
  return "path";
}

std::string_view detail::name_of(CopyPlace place) noexcept {
  switch (place) {
    case CopyPlace::device:
      return "device memory";
    case CopyPlace::pinned:
      return "pinned host memory";
    case CopyPlace::pageable:
      return "pageable host memory";
    case CopyPlace::peer:
      return "another agent's memory";
  }
  return "memory";
}

}  // namespace uptempo
