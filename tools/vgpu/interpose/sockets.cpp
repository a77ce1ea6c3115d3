#include "interpose/sockets.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <string>

#include "interpose/real.hpp"

namespace uptempo::vgpu::interpose {
namespace {

struct Processor {
  uint32_t number = 0;
  uint64_t apic_id = 0;
};

// The processors of /proc/cpuinfo, which lists those that are online. One without APIC ids (a
// machine other than x86) has the id 0.
std::vector<Processor> host_processors() {
  static constinit Next<std::FILE* (*)(const char*, const char*)> fopen_next{"fopen"};
  std::vector<Processor> processors;
  if (std::FILE* const file = fopen_next("/proc/cpuinfo", "re"); file != nullptr) {
    char line[4096];
    unsigned number = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "processor : %u", &number) == 1) processors.push_back({number, 0});
      if (std::sscanf(line, "apicid : %u", &number) == 1 && !processors.empty())
        processors.back().apic_id = number;
    }
    std::fclose(file);
  }
  if (processors.empty()) processors.emplace_back();
  return processors;
}

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

std::string node_range(size_t count) {
  return count == 1 ? "0\n" : "0-" + std::to_string(count - 1) + '\n';
}

}  // namespace

std::vector<Socket> divide_host(uint32_t count) {
  const std::vector<Processor> processors = host_processors();
  const uint64_t pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) / count;
  std::vector<Socket> sockets(count);
  for (size_t i = 0; i < count; ++i) {
    Socket& socket = sockets[i];
    const size_t first = processors.size() * i / count, end = processors.size() * (i + 1) / count;
    for (size_t p = first; p < end; ++p) socket.processors.push_back(processors[p].number);
    socket.apic_id = processors[std::min(first, processors.size() - 1)].apic_id;
    socket.cores = std::max<uint64_t>(end - first, 1);
    socket.memory_bytes = pages * page_bytes();
  }
  return sockets;
}

uint64_t numa_distance(uint32_t from, uint32_t to) { return from == to ? 10 : 32; }

std::string processor_list(const std::vector<uint32_t>& processors) {
  std::string text;
  for (size_t i = 0; i < processors.size();) {
    size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(processors[i]);
    if (last != i) text += '-' + std::to_string(processors[last]);
    i = last + 1;
  }
  return text + '\n';
}

std::string processor_mask(const std::vector<uint32_t>& processors) {
  const uint32_t highest = processors.empty() ? 0 : std::ranges::max(processors);
  std::string text;
  for (uint32_t word = highest / 32 + 1; word-- > 0;) {
    uint32_t bits = 0;
    for (const uint32_t processor : processors)
      if (processor / 32 == word) bits |= 1u << processor % 32;
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08x%s", bits, word == 0 ? "\n" : ",");
    text += digits;
  }
  return text;
}

void add_numa_nodes(Tree& tree, const std::vector<Socket>& sockets) {
  const std::string root = "/sys/devices/system/node";
  tree.add_root(root);
  tree.add_alias("/sys/bus/node/devices", root);
  std::vector<uint32_t> with_processors;
  for (uint32_t i = 0; i < sockets.size(); ++i)
    if (!sockets[i].processors.empty()) with_processors.push_back(i);
  for (const char* name : {"online", "possible", "has_memory", "has_normal_memory"})
    tree.add_file(root + '/' + name, node_range(sockets.size()));
  tree.add_file(root + "/has_cpu", processor_list(with_processors));
  for (uint32_t i = 0; i < sockets.size(); ++i) {
    const std::string node = root + "/node" + std::to_string(i);
    tree.add_file(node + "/cpumap", processor_mask(sockets[i].processors));
    tree.add_file(node + "/cpulist", processor_list(sockets[i].processors));
    std::string distances;
    for (uint32_t to = 0; to < sockets.size(); ++to)
      distances += (to == 0 ? "" : " ") + std::to_string(numa_distance(i, to));
    tree.add_file(node + "/distance", distances + '\n');
    // MemFree is what the machine has free: no node owns any page.
    const auto line = [&](const char* name, uint64_t bytes) {
      char text[96];
      std::snprintf(text, sizeof text, "Node %u %-16s%8llu kB\n", i, name,
                    static_cast<unsigned long long>(bytes / 1024));
      return std::string(text);
    };
    const uint64_t total = sockets[i].memory_bytes;
    const uint64_t free = std::min(
        total, static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page_bytes() / sockets.size());
    tree.add_file(node + "/meminfo", line("MemTotal:", total) + line("MemFree:", free) +
                                         line("MemUsed:", total - free));
    for (const uint32_t processor : sockets[i].processors)
      tree.add_directory(node + "/cpu" + std::to_string(processor));
  }
}

}  // namespace uptempo::vgpu::interpose
