// The files that --trace and --report name. The program and its children append lines to them.
//
// Errors: Failure.
// Thread safety: none; reads the environment.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace uptempo::vgpu::launcher {

// By option, absolute. "%p" stands for the process id.
using Outputs = std::map<std::string, std::filesystem::path>;

// Empties the files, so that they hold only lines of this run. Call it last, because their previous
// contents are lost then. First refuses, and changes nothing, if a file cannot be written, is the
// program, the file of UPTEMPO_VGPU_SUPPRESSIONS, or that of the other option, also if a launcher
// around this one was given that, or if a program of another run has it open. Leaves pipes to the
// program.
void empty(const Outputs& outputs, const std::filesystem::path& program);

}  // namespace uptempo::vgpu::launcher
