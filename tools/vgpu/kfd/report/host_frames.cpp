#include "kfd/report/host_frames.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

#include <uptempo/aql/printable.hpp>
#include "device/host/host_stacks.hpp"
#include "kfd/report/hip_entries.hpp"
#include "kfd/report/host_image.hpp"
#include "tools/support/python_calls.hpp"

namespace uptempo::vgpu::kfd {
namespace {

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

bool is_hip_library(std::string_view file) { return file.starts_with("libamdhip64."); }

bool is_of_runtime(std::string_view file) {
  // libstdc++, libc and libpthread call the program's functions: in threads and at the start.
  // Sanitizers come between ROCr and the system's calls.
  constexpr std::array<std::string_view, 12> kNames{
      "libhsa-runtime64.", "libamdhip64.", "libhsakmt.", "libc.so.",  "libstdc++.", "libpthread.",
      "ld-linux",          "libhiprtc.",   "libasan.",   "libubsan.", "libtsan.",   "libclang_rt."};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return file.starts_with(name); });
}

constexpr std::string_view kUptempo = "uptempo::";

// A function of engine/: not of the virtual GPU, its tests, tools, and the packet language, which
// have namespaces of their own.
bool is_of_engine(std::string_view function) {
  function.remove_prefix(kUptempo.size());
  const size_t end = function.find("::");
  if (end == std::string_view::npos) return true;
  const std::string_view scope = function.substr(0, end);
  return scope == "detail" || scope == "hip" || scope.starts_with('(') ||
         (!scope.empty() && scope.front() >= 'A' && scope.front() <= 'Z');
}

// Files and functions of code that a program has made may have any name.
fences::HostFrame python_frame(support::PythonCallId id) {
  const support::PythonCall call = support::python_call(id);
  return {.function = aql::printable(call.function),
          .source = aql::printable(call.file) +
                    (call.line == 0 ? std::string() : ':' + std::to_string(call.line))};
}

}  // namespace

HostFrames::HostFrames(const DwarfLibrary& library) : library_(library) {}
HostFrames::~HostFrames() = default;

void HostFrames::read_maps() {
  mapped_.clear();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0, offset = 0;
    std::array<char, 8> permissions{};
    int path = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %7s %llx %*s %*s %n", &begin, &end, permissions.data(),
                    &offset, &path) != 4 ||
        permissions[2] != 'x' || path == 0 || static_cast<size_t>(path) >= line.size() ||
        line[static_cast<size_t>(path)] != '/')
      continue;
    mapped_.push_back({begin, end, offset, line.substr(static_cast<size_t>(path))});
    is_hip_ = is_hip_ || is_hip_library(file_name(mapped_.back().path));
  }
}

const HostFrames::Mapped* HostFrames::mapping_of(uintptr_t address) {
  const auto search = [&]() -> const Mapped* {
    for (const Mapped& mapped : mapped_)
      if (address >= mapped.begin && address < mapped.end) return &mapped;
    return nullptr;
  };
  if (const Mapped* const mapped = search(); mapped != nullptr) return mapped;
  read_maps();
  return search();
}

HostImage& HostFrames::image(const std::string& path) {
  std::unique_ptr<HostImage>& image = images_[path];
  if (image == nullptr) image = std::make_unique<HostImage>(path, library_);
  return *image;
}

const HostFrames::Frame& HostFrames::frame(uintptr_t address) {
  const auto [found, is_new] = known_.try_emplace(address);
  Frame& frame = found->second;
  if (!is_new) return frame;
  fences::HostFrame& names = frame.calls.front();
  if ((address & kPythonFrame) != 0) {
    names = python_frame(static_cast<support::PythonCallId>(address & ~kPythonFrame));
    return frame;
  }
  const Mapped* const mapped = mapping_of(address);
  if (mapped == nullptr) {
    names.offset = address;
    return frame;
  }
  names.module = file_name(mapped->path);
  names.offset = address - mapped->begin + mapped->offset;
  if (names.module.starts_with("libuptempo-vgpu."))
    frame.owner = Owner::device;
  else if (is_of_runtime(names.module))
    frame.owner = Owner::runtime;
  else if (support::is_python_file(names.module))
    frame.owner = Owner::interpreter;
  if (frame.owner == Owner::device) return frame;
  const HostImage& file = image(mapped->path);
  const auto at = file.address_of(names.offset);
  if (!at) return frame;
  names.function = file.function_at(*at);
  if (names.function.empty() && is_hip_library(names.module)) {
    if (hip_entries_ == nullptr) hip_entries_ = std::make_unique<HipEntries>(file, address - *at);
    names.function = hip_entries_->name_at(address);
  }
  if (frame.owner == Owner::runtime || file.dwarf() == nullptr) return frame;
  const auto places = library_.places_at(file.dwarf(), *at);
  if (places.empty()) return frame;
  const fences::HostFrame outermost = names;
  frame.calls.assign(places.size(), outermost);
  for (size_t i = 0; i < places.size(); ++i) {
    frame.calls[i].source = places[i].line;
    if (i + 1 < places.size()) frame.calls[i].function = places[i].function;
  }
  return frame;
}

std::vector<fences::HostFrame> HostFrames::place(uint64_t site) {
  const Frame& one = frame(support::address_of_site(site));
  const support::PythonCallId call = support::call_of_site(site);
  if (call == 0) return one.calls;
  std::vector<fences::HostFrame> calls;
  if (one.owner == Owner::program && !one.calls.front().source.empty()) calls = one.calls;
  calls.push_back(python_frame(call));
  return calls;
}

std::vector<fences::HostFrame> HostFrames::frames(std::span<const uintptr_t> stack) {
  std::vector<fences::HostFrame> told;
  const fences::HostFrame* entry = nullptr;  // the runtime's outermost function so far
  size_t of_program = 0;
  const auto python =
      std::ranges::find_if(stack, [](uintptr_t address) { return (address & kPythonFrame) != 0; });
  const std::span<const uintptr_t> code(stack.begin(), python);
  const auto is_complete = [&] {
    return of_program == kMostOfProgram || (of_program != 0 && told.back().function == "main");
  };
  for (const uintptr_t address : code) {
    const Frame& one = frame(address);
    if (one.owner == Owner::device) continue;
    if (one.owner == Owner::interpreter && python != stack.end()) break;
    if (one.owner == Owner::runtime) {
      if (of_program != 0) break;  // the program's caller: libc's start, or a callback
      entry = &one.calls.back();
      continue;
    }
    if (entry != nullptr && of_program == 0) told.push_back(*entry);
    for (const fences::HostFrame& call : one.calls) {
      told.push_back(call);
      ++of_program;
      if (is_complete()) break;
    }
    if (is_complete()) break;
  }
  // A call of Python's, or a thread of the runtime's own.
  if (told.empty() && entry != nullptr) told.push_back(*entry);
  for (const uintptr_t call : std::span(python, stack.end()))
    if (const fences::HostFrame& named = frame(call).calls.front(); !named.function.empty())
      told.push_back(named);
  return told;
}

std::vector<HostFrames::RuntimeCall> HostFrames::runtime_calls(std::span<const uintptr_t> stack) {
  std::vector<RuntimeCall> calls;
  for (const uintptr_t address : stack) {
    const Frame& one = frame(address);
    if (one.owner == Owner::program || one.owner == Owner::interpreter) break;
    if (one.owner == Owner::runtime)
      calls.push_back({.address = address,
                       .function = one.calls.back().function,
                       .hip = is_hip_library(one.calls.back().module)});
  }
  std::ranges::reverse(calls);
  return calls;
}

std::optional<fences::Library> HostFrames::library(std::span<const uintptr_t> stack) {
  for (const uintptr_t address : stack) {
    if ((address & kPythonFrame) != 0) break;
    const Frame& one = frame(address);
    if (one.owner == Owner::runtime && is_hip_library(one.calls.back().module))
      return fences::Library::hip;
    if (one.owner == Owner::runtime || one.owner == Owner::device) continue;
    bool of_uptempo = false;
    for (const fences::HostFrame& call : one.calls) {
      const std::string function = fences::short_function(call.function);
      if (!function.starts_with(kUptempo)) continue;
      if (is_of_engine(function)) return fences::Library::uptempo;
      of_uptempo = true;
    }
    if (!of_uptempo) return fences::Library::hsa;
  }
  return std::nullopt;
}

bool HostFrames::is_hip() {
  if (mapped_.empty()) read_maps();
  return is_hip_;
}

}  // namespace uptempo::vgpu::kfd
