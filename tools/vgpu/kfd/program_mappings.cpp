#include "kfd/program_mappings.hpp"

#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace uptempo::vgpu::kfd {
namespace {

// struct procmap_query of Linux 6.11's uapi (linux/fs.h). Older headers do not declare it.
struct MapsQuery {
  uint64_t size_bytes;
  uint64_t flags;
  uint64_t address;
  uint64_t begin;
  uint64_t end;
  uint64_t found_flags;
  uint64_t page_bytes;
  uint64_t offset;
  uint64_t inode;
  uint32_t device_major;
  uint32_t device_minor;
  uint32_t name_bytes;  // in: of the buffer; out: of the name with its zero, 0 without a name
  uint32_t build_id_bytes;
  uint64_t name_address;
  uint64_t build_id_address;
};
static_assert(sizeof(MapsQuery) == 104);
static_assert(offsetof(MapsQuery, device_major) == 72);
static_assert(offsetof(MapsQuery, name_address) == 88);

constexpr unsigned long kQueryMaps = _IOWR('f', 17, MapsQuery);  // PROCMAP_QUERY
constexpr uint64_t kQueryReadable = 0x1;                         // PROCMAP_QUERY_VMA_READABLE
constexpr uint64_t kQueryWritable = 0x2;                         // PROCMAP_QUERY_VMA_WRITABLE
constexpr uint64_t kQueryShared = 0x8;                           // PROCMAP_QUERY_VMA_SHARED
constexpr uint64_t kQueryCoveringOrNext = 0x10;  // PROCMAP_QUERY_COVERING_OR_NEXT_VMA

}  // namespace

ProgramMappings::ProgramMappings(Source source)
    : maps_(std::fopen("/proc/self/maps", "re"), std::fclose),
      can_query_(source == Source::query_or_text) {}

std::optional<ProgramMapping> ProgramMappings::at_or_above(uint64_t address) {
  if (maps_ == nullptr) return std::nullopt;
  std::optional<ProgramMapping> found;
  if (can_query_ && query(address, found)) return found;
  can_query_ = false;
  return read_text(address);
}

// Returns false if the kernel does not answer the query.
bool ProgramMappings::query(uint64_t address, std::optional<ProgramMapping>& found) const {
  // The buffer holds every name that is no path: "[heap]", or "[anon:...]" with up to 80 characters
  // (linux/prctl.h, PR_SET_VMA_ANON_NAME).
  char name[256];
  MapsQuery query{};
  query.size_bytes = sizeof query;
  query.flags = kQueryCoveringOrNext;
  query.address = address;
  query.name_bytes = sizeof name;
  query.name_address = reinterpret_cast<uint64_t>(name);
  int result = ioctl(fileno(maps_.get()), kQueryMaps, &query);
  const bool long_name = result != 0 && errno == ENAMETOOLONG;
  if (long_name) {
    query.name_bytes = 0;
    query.name_address = 0;
    result = ioctl(fileno(maps_.get()), kQueryMaps, &query);
  }
  if (result != 0) return errno == ENOENT;  // no mapping there or above
  found = ProgramMapping{.begin = query.begin,
                         .end = query.end,
                         .readable = (query.found_flags & kQueryReadable) != 0,
                         .writable = (query.found_flags & kQueryWritable) != 0,
                         .shared = (query.found_flags & kQueryShared) != 0,
                         .named = long_name || query.name_bytes != 0,
                         .offset = query.offset,
                         .device = makedev(query.device_major, query.device_minor),
                         .inode = query.inode};
  return true;
}

std::optional<ProgramMapping> ProgramMappings::read_text(uint64_t address) {
  char line[512];
  bool begins = true;  // a line longer than the buffer arrives in parts
  while (std::fgets(line, sizeof line, maps_.get()) != nullptr) {
    const bool whole_line = begins;
    begins = std::strchr(line, '\n') != nullptr;
    unsigned long first = 0, last = 0, offset = 0, inode = 0;
    char may[5] = {};
    unsigned major = 0, minor = 0;
    int name = 0;
    if (!whole_line ||
        std::sscanf(line, "%lx-%lx %4c %lx %x:%x %lu %n", &first, &last, may, &offset, &major,
                    &minor, &inode, &name) != 7 ||
        last <= address)
      continue;
    return ProgramMapping{.begin = first,
                          .end = last,
                          .readable = may[0] == 'r',
                          .writable = may[1] == 'w',
                          .shared = may[3] == 's',
                          .named = line[name] != '\0',
                          .offset = offset,
                          .device = makedev(major, minor),
                          .inode = inode};
  }
  return std::nullopt;
}

}  // namespace uptempo::vgpu::kfd
