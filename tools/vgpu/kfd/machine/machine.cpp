#include "kfd/machine/machine.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "kfd/machine/log.hpp"
#include "kfd/machine/machine_file.hpp"
#include "kfd/machine/process_identity.hpp"

namespace uptempo::vgpu::kfd {
namespace {

using machine_file::commit;
using machine_file::Counts;
using machine_file::Descriptor;
using machine_file::Extent;
using machine_file::Extents;
using machine_file::Head;
using machine_file::OpenFile;
using machine_file::ProcessSlot;
using machine_file::refuse;

std::string lines_of(const std::vector<Machine::Property>& properties) {
  std::string lines;
  for (const auto& [option, value] : properties) lines += option + ' ' + value + '\n';
  return lines;
}

long futex(const uint32_t* word, int operation, uint32_t value) noexcept {
  return syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

uint64_t file_bytes(const Head& head, uint32_t gpu) {
  return Machine::kFirstOffset + head.vram_bytes[gpu] + head.gtt_bytes[gpu];
}

constexpr const char *kMemoryName = "uptempo-vgpu-render", *kTableName = "uptempo-vgpu-machine";
constexpr const char* kUnreachable =
    "has no process that lets this one open its memory (/proc/PID/fd)";

}  // namespace

struct Machine::Impl {
  // The state that this process has derived from the table of one GPU.
  struct View {
    uint64_t generation = ~uint64_t{0};  // that it was derived from; ~0: none
    RangeAllocator vram{0, 0}, gtt{0, 0};
    std::unordered_map<uint64_t, uint32_t> slot_of;  // by offset; all extents
    std::vector<uint32_t> free_slots;                // below Extents::slots
    std::unordered_map<uint64_t, uint32_t> holds;    // of this process, by offset

    RangeAllocator& heap(Heap which) { return which == Heap::vram ? vram : gtt; }
  };

  std::string name;  // empty: not shared
  ino_t inode = 0;
  uint32_t own_slot = 0;
  std::vector<GpuMemory> sizes;  // of each GPU
  Head head{};                   // as this process has last read it; without a name unused
  std::unique_ptr<SparseFile> table;
  std::vector<std::unique_ptr<SparseFile>> files;
  std::vector<View> views;
  mutable std::mutex mutex;
  // Holds to give up, by GPU and offset: also those for which the file could not be locked.
  std::vector<std::pair<uint32_t, uint64_t>> to_release;
  mutable std::atomic<bool> loss_reported{false}, failure_reported{false};

  Counts& counts() const noexcept { return *reinterpret_cast<Counts*>(table->at(0)); }
  Extents& extents(uint32_t gpu) const noexcept {
    return reinterpret_cast<Extents*>(table->at(machine_file::kCountsBytes))[gpu];
  }
  uint64_t vram_end(uint32_t gpu) const noexcept { return kFirstOffset + sizes[gpu].vram_bytes; }
  uint64_t own_bit() const noexcept { return uint64_t{1} << own_slot; }

  void begin(std::span<const GpuMemory> gpus) {
    sizes.assign(gpus.begin(), gpus.end());
    head.version = machine_file::kVersion;
    head.pid_namespace = pid_namespace();
    head.gpus = gpus.size();
    const auto note_file = [this](uint32_t number, const SparseFile& file) {
      head.files[number] = {file.device(), file.inode()};
    };
    for (uint32_t gpu = 0; gpu < gpus.size(); ++gpu) {
      head.vram_bytes[gpu] = gpus[gpu].vram_bytes;
      head.gtt_bytes[gpu] = gpus[gpu].gtt_bytes;
      files.push_back(std::make_unique<SparseFile>(kMemoryName, file_bytes(head, gpu)));
      note_file(gpu, *files[gpu]);
    }
    table = std::make_unique<SparseFile>(kTableName, machine_file::table_bytes(gpus.size()));
    note_file(machine_file::kTable, *table);
    views.resize(gpus.size());
  }

  void enter(const OpenFile& file, uint32_t slot, const ProcessIdentity& identity) {
    ProcessSlot& own = head.processes[slot];
    own = {.pid = 0,
           .start_ticks = identity.start_ticks,
           .stack_address = identity.stack_address,
           .files = {},
           .left = 0};
    for (uint32_t gpu = 0; gpu < files.size(); ++gpu) own.files[gpu] = files[gpu]->descriptor();
    own.files[machine_file::kTable] = table->descriptor();
    machine_file::write_part(file, head, own);
    own_slot = slot;
    own.pid = identity.pid;
    machine_file::write_part(file, head, own.pid);
  }

  void join(std::span<const GpuMemory> gpus, const std::string& properties) {
    const auto identity = ProcessIdentity::of_this_process();
    if (!identity) refuse(name, "cannot be joined: /proc/self/stat cannot be read");
    // A process that ends closes its files before it counts as dead. Only then can the machine
    // begin anew.
    constexpr std::chrono::seconds kLimit{10};
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!try_join(gpus, properties, *identity)) {
      if (std::chrono::steady_clock::now() > end) refuse(name, kUnreachable);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Returns false if a process lives, but none gives the memory files.
  bool try_join(std::span<const GpuMemory> gpus, const std::string& properties,
                const ProcessIdentity& identity) {
    const OpenFile file = machine_file::open_locked(name, true);
    inode = file.status.st_ino;
    const std::unique_ptr<Head> present = machine_file::read_head(name, file);
    if (present == nullptr) {
      begin(gpus);
      std::memcpy(head.properties, properties.data(), properties.size());
      machine_file::write_head(name, file, head);
      head.magic = machine_file::kMagic;
      machine_file::write_part(file, head, head.magic);
      enter(file, 0, identity);
      return true;
    }
    machine_file::compare_properties(name, present->properties, properties);
    if (!open_files(*present)) return false;
    head = *present;
    own_slot = kMostProcesses;
    forget_dead(file);
    for (uint32_t slot = 0; slot < kMostProcesses; ++slot)
      if (head.processes[slot].pid == 0) {
        enter(file, slot, identity);
        return true;
      }
    refuse(name, "has " + std::to_string(kMostProcesses) + " processes already, the most");
  }

  // Returns false, and opens none, if no process gives them.
  bool open_files(const Head& present) {
    std::vector<Descriptor> opened;
    for (uint32_t gpu = 0; gpu < present.gpus; ++gpu)
      opened.push_back(machine_file::open_memory(present, gpu));
    opened.push_back(machine_file::open_memory(present, machine_file::kTable));
    if (std::ranges::any_of(opened, [](const Descriptor& each) { return each.get() < 0; }))
      return false;
    for (uint32_t gpu = 0; gpu < present.gpus; ++gpu) {
      sizes.push_back({present.vram_bytes[gpu], present.gtt_bytes[gpu]});
      files.push_back(
          std::make_unique<SparseFile>(opened[gpu].release(), file_bytes(present, gpu)));
    }
    table = std::make_unique<SparseFile>(opened.back().release(),
                                         machine_file::table_bytes(present.gpus));
    views.resize(present.gpus);
    return true;
  }

  // Exclusive access to the table. Without it (`!granted`) the machine file is gone.
  class Access {
   public:
    explicit Access(Impl& machine) : lock_(machine.mutex) {
      granted_ = machine.name.empty() || take(machine);
    }
    explicit operator bool() const noexcept { return granted_; }

   private:
    bool take(Impl& machine) {
      try {
        file_ = machine_file::open_locked(machine.name, false);
        const bool is_there = file_.descriptor.get() >= 0 && file_.status.st_ino == machine.inode;
        if (is_there && machine.read_own(file_)) {
          machine.forget_dead(file_);
          return true;
        }
        if (!machine.loss_reported.exchange(true))
          report("the machine '" + machine.name + "' is lost: its file " +
                 machine_file::path_of(machine.name) + " was " +
                 (is_there ? "truncated or overwritten" : "removed") +
                 "; no memory can be allocated or shared");
      } catch (const std::runtime_error& error) {
        if (!machine.failure_reported.exchange(true)) report(error.what());
      }
      return false;
    }
    const std::lock_guard<std::mutex> lock_;
    OpenFile file_;
    bool granted_ = false;
  };

  // Reads the head. Returns false if it is no longer that of this machine.
  bool read_own(const OpenFile& file) noexcept {
    Head now;
    if (!machine_file::read_whole(file, now) ||
        now.files[machine_file::kTable].inode != table->inode())
      return false;
    head = now;
    return true;
  }

  // Announces a change: other processes, and this one if it fails midway, derive their view again.
  uint64_t begin_change(uint32_t gpu) {
    views[gpu].generation = ~uint64_t{0};
    const uint64_t next = extents(gpu).generation + 1;
    commit(extents(gpu).generation, next);
    return next;
  }

  void free_extent(uint32_t gpu, Extent& extent) noexcept {
    // Pages first: if the process dies in between, the next one repeats both.
    files[gpu]->release(extent.begin, extent.end - extent.begin);
    commit(extent.holders, 0);
  }

  // Drops the holds of processes that no longer live.
  void forget_dead(const OpenFile& file) {
    uint64_t dead = 0;
    const auto own = static_cast<uint64_t>(getpid());
    for (uint32_t slot = 0; slot < kMostProcesses; ++slot) {
      const ProcessSlot& process = head.processes[slot];
      if (process.pid == 0 || slot == own_slot) continue;
      // This process's pid in another slot belongs to a program that executed this one.
      if (process.pid == own || !machine_file::is_alive(process)) dead |= uint64_t{1} << slot;
    }
    if (dead == 0) return;
    for (uint32_t gpu = 0; gpu < files.size(); ++gpu) {
      Extents& all = extents(gpu);
      begin_change(gpu);
      for (uint64_t i = 0; i < all.slots; ++i) {
        Extent& extent = all.slot[i];
        if ((extent.holders & dead) == 0) continue;
        if ((extent.holders & ~dead) == 0) {
          free_extent(gpu, extent);
        } else {
          commit(extent.holders, extent.holders & ~dead);
        }
      }
    }
    for (; dead != 0; dead &= dead - 1) {
      uint64_t& pid = head.processes[std::countr_zero(dead)].pid;
      pid = 0;
      machine_file::write_part(file, head, pid);
    }
  }

  View& refreshed(uint32_t gpu) {
    View& view = views[gpu];
    const Extents& all = extents(gpu);
    if (view.generation == all.generation) return view;
    view.generation = ~uint64_t{0};
    const uint64_t end = vram_end(gpu);
    view.vram = RangeAllocator(kFirstOffset, end);
    view.gtt = RangeAllocator(end, end + sizes[gpu].gtt_bytes);
    view.slot_of.clear();
    view.free_slots.clear();
    for (uint32_t i = 0; i < all.slots; ++i) {
      const Extent& extent = all.slot[i];
      if (extent.holders == 0) {
        view.free_slots.push_back(i);
        continue;
      }
      view.heap(extent.begin < end ? Heap::vram : Heap::gtt)
          .take(extent.begin, extent.end - extent.begin);
      view.slot_of.emplace(extent.begin, i);
    }
    view.generation = all.generation;
    return view;
  }

  void release_all();
  void release(uint32_t gpu, uint64_t offset);

  // Returns the extent if this process holds it.
  Extent* held(uint32_t gpu, uint64_t offset) {
    View& view = refreshed(gpu);
    const auto found = view.slot_of.find(offset);
    if (found == view.slot_of.end() || !view.holds.contains(offset)) return nullptr;
    return &extents(gpu).slot[found->second];
  }

  using Named = std::pair<uint32_t, Extent*>;  // GPU and extent
  static Shared shared_of(const Named& named) noexcept {
    const auto& [gpu, extent] = named;
    return {gpu, extent->begin, extent->end - extent->begin, {extent->flags, extent->tag}};
  }
  std::optional<Named> named(const ShareHandle& handle) const {
    for (uint32_t gpu = 0; gpu < files.size(); ++gpu)
      for (uint64_t i = 0; i < extents(gpu).slots; ++i) {
        Extent& extent = extents(gpu).slot[i];
        if (extent.holders != 0 && extent.shared != 0 && extent.handle == handle)
          return Named(gpu, &extent);
      }
    return std::nullopt;
  }
};

Machine::Machine(std::span<const GpuMemory> gpus) : impl_(std::make_unique<Impl>()) {
  impl_->begin(gpus);
}

Machine::Machine(const std::string& name, const std::vector<Property>& properties,
                 std::span<const GpuMemory> gpus)
    : impl_(std::make_unique<Impl>()) {
  impl_->name = name;
  std::string lines = lines_of(properties);
  if (lines.size() >= sizeof Head::properties) refuse(name, "has too many properties");
  impl_->join(gpus, lines);
}

Machine::~Machine() { leave(); }

void Machine::leave() noexcept {
  if (!is_shared()) return;
  // Record locks do not exclude threads of one process.
  const std::lock_guard lock(impl_->mutex);
  try {
    const OpenFile file = machine_file::open_locked(impl_->name, false);
    if (file.descriptor.get() < 0 || file.status.st_ino != impl_->inode) return;
    // Exit handlers of runtimes may still free memory when another process has removed the file.
    impl_->loss_reported = true;
    if (!impl_->read_own(file)) return;
    uint32_t& left = impl_->head.processes[impl_->own_slot].left;
    left = 1;
    machine_file::write_part(file, impl_->head, left);
    const std::unique_ptr<Head> others = machine_file::read_head(impl_->name, file);
    const auto stays = [](const ProcessSlot& slot) {
      return slot.pid != 0 && slot.left == 0 && machine_file::is_alive(slot);
    };
    if (others == nullptr || std::ranges::none_of(others->processes, stays))
      unlink(machine_file::path_of(impl_->name).c_str());
  } catch (const std::exception&) {
    // The next process begins the file anew.
  }
}

bool Machine::is_shared() const noexcept { return !impl_->name.empty(); }
SparseFile& Machine::file(uint32_t gpu) const noexcept { return *impl_->files[gpu]; }
uint64_t Machine::vram_end(uint32_t gpu) const noexcept { return impl_->vram_end(gpu); }
uint64_t Machine::gtt_bytes(uint32_t gpu) const noexcept { return impl_->sizes[gpu].gtt_bytes; }

std::optional<uint64_t> Machine::allocate(uint32_t gpu, Heap heap, uint64_t size_bytes,
                                          uint64_t alignment) {
  const Impl::Access access(*impl_);
  if (!access) return std::nullopt;
  impl_->release_all();
  Impl::View& view = impl_->refreshed(gpu);
  Extents& all = impl_->extents(gpu);
  if (view.free_slots.empty()) {
    if (all.slots == kMostExtents) {
      note("all " + std::to_string(kMostExtents) + " buffers of a GPU are in use");
      return std::nullopt;
    }
    view.free_slots.push_back(static_cast<uint32_t>(all.slots));
    commit(all.slots, all.slots + 1);
  }
  const auto offset = view.heap(heap).allocate(size_bytes, alignment);
  if (!offset) return std::nullopt;
  const uint64_t generation = impl_->begin_change(gpu);
  const uint32_t slot = view.free_slots.back();
  // Everything that can throw comes before the commit.
  view.slot_of.emplace(*offset, slot);
  view.holds.emplace(*offset, 1);
  view.free_slots.pop_back();
  Extent& extent = all.slot[slot];
  extent.begin = *offset;
  extent.end = *offset + size_bytes;
  extent.shared = 0;
  commit(extent.holders, impl_->own_bit());
  view.generation = generation;
  return offset;
}

void Machine::release(uint32_t gpu, uint64_t offset) {
  const Impl::Access access(*impl_);
  impl_->to_release.emplace_back(gpu, offset);
  if (access) impl_->release_all();
}

void Machine::Impl::release_all() {
  for (const auto& [gpu, offset] : std::exchange(to_release, {})) release(gpu, offset);
}

void Machine::Impl::release(uint32_t gpu, uint64_t offset) {
  Extent* const extent = held(gpu, offset);
  if (extent == nullptr) return;
  View& view = views[gpu];
  if (uint32_t& holds = view.holds.at(offset); holds > 1) {
    --holds;
    return;
  }
  const uint64_t generation = begin_change(gpu);
  view.holds.erase(offset);
  if (extent->holders != own_bit()) {
    commit(extent->holders, extent->holders & ~own_bit());
  } else {
    const uint64_t size_bytes = extent->end - extent->begin;
    free_extent(gpu, *extent);
    const uint32_t slot = view.slot_of.at(offset);
    view.slot_of.erase(offset);
    view.heap(offset < vram_end(gpu) ? Heap::vram : Heap::gtt).free(offset, size_bytes);
    view.free_slots.push_back(slot);
  }
  view.generation = generation;
}

uint64_t Machine::used_bytes(uint32_t gpu, Heap heap) const {
  const Impl::Access access(*impl_);
  // Nothing can be allocated then.
  if (!access) return heap == Heap::vram ? impl_->sizes[gpu].vram_bytes : gtt_bytes(gpu);
  uint64_t used = 0;
  const Extents& all = impl_->extents(gpu);
  for (uint64_t i = 0; i < all.slots; ++i)
    if (all.slot[i].holders != 0 && (all.slot[i].begin < vram_end(gpu)) == (heap == Heap::vram))
      used += all.slot[i].end - all.slot[i].begin;
  return used;
}

std::optional<ShareHandle> Machine::share(uint32_t gpu, uint64_t offset, Kind kind) {
  const Impl::Access access(*impl_);
  if (!access) return std::nullopt;
  Extent* const extent = impl_->held(gpu, offset);
  if (extent == nullptr) return std::nullopt;
  if (extent->shared == 0) {
    ShareHandle handle{};
    if (getrandom(handle.data(), sizeof handle, 0) != static_cast<ssize_t>(sizeof handle))
      return std::nullopt;
    extent->handle = handle;
    extent->flags = kind.flags;
    extent->tag = kind.tag;
    commit(extent->shared, 1);
  }
  return extent->handle;
}

std::optional<Machine::Shared> Machine::find(const ShareHandle& handle) const {
  const Impl::Access access(*impl_);
  if (!access) return std::nullopt;
  const auto found = impl_->named(handle);
  if (!found) return std::nullopt;
  return Impl::shared_of(*found);
}

std::optional<Machine::Shared> Machine::hold(const ShareHandle& handle) {
  const Impl::Access access(*impl_);
  if (!access) return std::nullopt;
  const auto found = impl_->named(handle);
  if (!found) return std::nullopt;
  const auto [gpu, extent] = *found;
  ++impl_->views[gpu].holds[extent->begin];
  commit(extent->holders, extent->holders | impl_->own_bit());
  return Impl::shared_of(*found);
}

uint32_t Machine::resets(uint32_t gpu) const noexcept {
  return std::atomic_ref(impl_->counts().resets[gpu]).load(std::memory_order_acquire);
}

uint32_t Machine::all_resets() const noexcept {
  return std::atomic_ref(impl_->counts().all_resets).load(std::memory_order_acquire);
}

namespace {

// Under the lock.
void count_reset(Counts& counts, uint32_t gpu) noexcept {
  commit(counts.resets[gpu], counts.resets[gpu] + 1);
  commit(counts.all_resets, counts.all_resets + 1);
  futex(&counts.all_resets, FUTEX_WAKE, INT_MAX);
}

}  // namespace

bool Machine::reset(uint32_t gpu) {
  const Impl::Access access(*impl_);
  if (access) count_reset(impl_->counts(), gpu);
  return static_cast<bool>(access);
}

uint32_t Machine::wait_for_reset(uint32_t seen) const noexcept {
  for (;;) {
    if (const uint32_t now = all_resets(); now != seen) return now;
    futex(&impl_->counts().all_resets, FUTEX_WAIT, seen);
  }
}

void Machine::reset(const std::string& name, uint32_t gpu) {
  const OpenFile file = machine_file::open_locked(name, false);
  const std::unique_ptr<Head> head =
      file.descriptor.get() < 0 ? nullptr : machine_file::read_head(name, file);
  if (head == nullptr) refuse(name, "does not exist: no process lives in it");
  if (gpu >= head->gpus)
    refuse(name, "has no GPU " + std::to_string(gpu) + ", only " + std::to_string(head->gpus));
  Descriptor table = machine_file::open_memory(*head, machine_file::kTable);
  if (table.get() < 0) refuse(name, kUnreachable);
  const SparseFile mapped(table.release(), machine_file::table_bytes(head->gpus));
  count_reset(*reinterpret_cast<Counts*>(mapped.at(0)), gpu);
}

}  // namespace uptempo::vgpu::kfd
