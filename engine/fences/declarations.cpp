#include "engine/fences/declarations.hpp"

namespace uptempo {

void Declarations::move_to_end(std::vector<AccessRange>& accesses) {
  const auto end = static_cast<uint32_t>(accesses.size());
  for (uint32_t i = 0; i < access_count; ++i) accesses.push_back(accesses[first_access + i]);
  first_access = end;
}

}  // namespace uptempo
