// The mappings of the program, as /proc/self/maps lists them.
//
// Cost: with Linux 6.11 or later, one ioctl for each mapping that the caller reads. An older kernel
// has no such query; the first call then reads the text of every mapping below the address.
//
// Thread safety: thread-compatible. The program may change its mappings at any time; each answer
// describes one moment.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

namespace uptempo::vgpu::kfd {

struct ProgramMapping {
  uint64_t begin, end;
  bool readable, writable, shared, named;
  uint64_t offset;
  dev_t device;
  ino_t inode;
};

class ProgramMappings {
 public:
  enum class Source : uint8_t { query_or_text, text };

  explicit ProgramMappings(Source source = Source::query_or_text);

  // Returns the mapping that contains `address`, else the next one above. Returns nullopt if there
  // is none or the system does not list mappings. Requires an address at or above the end of the
  // mapping that the previous call returned.
  std::optional<ProgramMapping> at_or_above(uint64_t address);

 private:
  bool query(uint64_t address, std::optional<ProgramMapping>& found) const;
  std::optional<ProgramMapping> read_text(uint64_t address);

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps_;
  bool can_query_;
};

}  // namespace uptempo::vgpu::kfd
