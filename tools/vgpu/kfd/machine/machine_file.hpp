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
inline constexpr uint64_t kVersion = 3;

// The memory files of the machine: one for each GPU, then the table.
inline constexpr uint32_t kTable = Machine::kMostGpus, kFiles = Machine::kMostGpus + 1;

struct FileIdentity {
  uint64_t device, inode;
};

// The machine file: how processes find each other. It is read and written, never mapped, since any
// process of the user can truncate it. Fields that commit a change are written alone, after
// everything they need; all are read and written under the lock only.
struct ProcessSlot {
  uint64_t pid;  // commits; 0: free
  uint64_t start_ticks, stack_address;
  int32_t files[kFiles];  // the process's descriptors of the memory files
  uint32_t left;          // commits; it ends, and no longer keeps the machine file
};

struct Head {
  uint64_t magic;  // commits; 0: incomplete
  uint64_t version;
  uint64_t pid_namespace;
  uint64_t gpus;
  uint64_t vram_bytes[Machine::kMostGpus], gtt_bytes[Machine::kMostGpus];
  FileIdentity files[kFiles];
  char properties[2048];  // lines of option and value
  ProcessSlot processes[Machine::kMostProcesses];
};
static_assert(std::is_trivially_copyable_v<Head> && std::has_unique_object_representations_v<Head>);

// The table: one Counts, then one Extents for each GPU. Fields that commit a change are stored with
// commit(); extents are read and written under the lock only.
struct Counts {
  uint32_t all_resets;  // futex
  uint32_t resets[Machine::kMostGpus];
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
static_assert(std::is_trivially_copyable_v<Counts> && std::is_trivially_copyable_v<Extents>);
inline constexpr size_t kCountsBytes = 64;

constexpr size_t table_bytes(size_t gpus) { return kCountsBytes + gpus * sizeof(Extents); }

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
// exist. Throws if another process holds the lock too long: for 5 s while it is stopped (SIGSTOP, a
// debugger), or for a minute.
OpenFile open_locked(const std::string& name, bool create);

bool is_alive(const ProcessSlot& slot);

// Begins the machine with that head, whose magic may be 0. Throws if there is no room.
void write_head(const std::string& name, const OpenFile& file, const Head& head);
// Writes the bytes of `part` of the head, which is in memory and in the file.
template <class Part>
void write_part(const OpenFile& file, const Head& head, const Part& part) noexcept {
  const auto offset = reinterpret_cast<uintptr_t>(&part) - reinterpret_cast<uintptr_t>(&head);
  // A file that has become too short to hold it is found by the next process that reads it.
  [[maybe_unused]] const ssize_t written =
      pwrite(file.descriptor.get(), &part, sizeof part, static_cast<off_t>(offset));
}

// Reads the head as it is. Returns false if it is not complete.
bool read_whole(const OpenFile& file, Head& head) noexcept;
// Reads the head of a machine in which other processes live. Returns nullptr if there are none, so
// that the file may begin anew.
std::unique_ptr<Head> read_head(const std::string& name, const OpenFile& file);

// Opens a memory file of the machine through a process that has it. Returns no descriptor if there
// is none.
Descriptor open_memory(const Head& head, uint32_t number);

}  // namespace uptempo::vgpu::kfd::machine_file
