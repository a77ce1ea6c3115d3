#include "device/waits/code_site.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

namespace uptempo::vgpu {
namespace {

std::string hexadecimal(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

}  // namespace

std::string code_site(uint64_t instruction) {
  std::ifstream maps("/proc/self/maps");
  std::map<std::string, uint64_t> first;  // the address of each file's first mapping
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &begin, &end,
                    &path) < 2 ||
        path == 0 || static_cast<size_t>(path) >= line.size())
      continue;
    const std::string file = line.substr(static_cast<size_t>(path));
    const uint64_t base = first.try_emplace(file, begin).first->second;
    if (instruction < begin || instruction >= end || file[0] != '/') continue;
    return file.substr(file.rfind('/') + 1) + '+' + hexadecimal(instruction - base);
  }
  return hexadecimal(instruction);
}

}  // namespace uptempo::vgpu
