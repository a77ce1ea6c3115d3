// The seed corpora, made from the project's own kernels, recordings, packets and texts.
#pragma once

#include <filesystem>

namespace uptempo::fuzz {

// Writes the seeds of each target to a folder of its name. Throws std::exception.
void write_seeds(const std::filesystem::path& directory);

}  // namespace uptempo::fuzz
