// The machine file (machine.hpp): its layout, and how processes open and lock it. Private to
// machine.cpp.
//
// Functions that take a machine's name throw std::runtime_error, in one sentence that names it.
// Thread safety: record locks do not exclude threads of one process, so the caller holds a mutex.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kfd/machine/machine.hpp"

namespace uptempo::vgpu::kfd::machine_file {

inline constexpr uint64_t kMagic = 0x5550'4d41'4348'494e;
inline constexpr uint64_t kVersion = 2;

// The machine file: one Head, then one Extents for each GPU. Fields that commit a change are stored
// with commit(); all others are read and written under the lock only.
struct ProcessSlot {
  uint64_t pid;  // commits; 0: free
  uint64_t start_ticks, stack_address;
  int32_t files[Machine::kMostGpus];  // the process's descriptors of the memory files
  uint64_t left;                      // commits; it ends, and no longer keeps the machine file
};

struct Head {
  uint64_t magic;  // commits; 0: incomplete
  uint64_t version;
  uint64_t pid_namespace;
  uint64_t gpus;
  uint64_t vram_bytes[Machine::kMostGpus], gtt_bytes[Machine::kMostGpus];
  uint64_t file_device[Machine::kMostGpus], file_inode[Machine::kMostGpus];
  char properties[2048];  // lines of option and value
  uint32_t all_resets;    // futex
  uint32_t resets[Machine::kMostGpus];
  ProcessSlot processes[Machine::kMostProcesses];
};

struct Extent {
  uint64_t begin, end;
  uint64_t holders;  // commits; one bit for each process slot; 0: the slot is free
  ShareHandle handle;
  uint32_t flags, tag;
  uint32_t shared;  // commits; whether `handle`, `flags` and `tag` are valid
  uint32_t unused[3];
};
static_assert(sizeof(Extent) == 64 && std::is_trivially_copyable_v<Extent>);
static_assert(Machine::kMostProcesses == 64, "one bit of Extent::holders each");

struct Extents {
  uint64_t generation;  // changes before each change of the extents
  uint64_t slots;       // those from here on were never used
  uint64_t unused[6];
  Extent slot[Machine::kMostExtents];
};
static_assert(std::is_trivially_copyable_v<Head> && std::is_trivially_copyable_v<Extents>);
inline constexpr size_t kHeadBytes = (sizeof(Head) + 4095) / 4096 * 4096;

constexpr size_t table_bytes(size_t gpus) { return kHeadBytes + gpus * sizeof(Extents); }

// release: the process may be killed after any store, so everything before must be complete.
template <typename Word>
void commit(Word& word, std::type_identity_t<Word> value) noexcept {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

std::string path_of(const std::string& name);

[[noreturn]] void refuse(const std::string& name, const std::string& reason);

// Throws an error that names the first of the lines of Head::properties that differs.
void compare_properties(const std::string& name, std::string_view theirs, std::string_view ours);

class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) syscall(SYS_close, number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct OpenFile {
  Descriptor descriptor{};  // locked
  struct stat status {};
};

// Opens and locks the machine file, `create` also a new one. Returns no descriptor if it does not
// exist.
OpenFile open_locked(const std::string& name, bool create);

bool is_alive(const ProcessSlot& slot);

// Reads the head of a machine in which other processes live. Returns nullptr if there are none, so
// that the file may begin anew.
std::unique_ptr<Head> read_head(const std::string& name, const OpenFile& file);

// Opens the memory files of the machine, each through a process that has it. A file that no process
// gives has no descriptor.
std::vector<Descriptor> open_memory(const Head& head);

}  // namespace uptempo::vgpu::kfd::machine_file
