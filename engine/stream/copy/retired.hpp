// Retired: what the host does when the stream work that uses a resource is complete. It copies
// bytes from staging to pageable memory and releases the resource: staging memory, a pin, a buffer
// that a stream frees, the memory of a launcher. Private to engine/stream and its tests. One list
// serves the process, because an event does not name the streams that it follows.
//
// Every function that observes completion calls release_retired() before it reports it; if the
// list is empty, this costs one load. Entries are due in the order of add(), as far as the device's
// order makes that visible. Bytes are copied before any release_retired() returns that could
// observe their completion. Event::ready() calls copy_owed_bytes() instead, which leaves what needs
// a call of HSA to a later release_retired().
//
// Thread safety: every function may be called from any thread. A lock is held while the host copies
// and unpins, not while it frees memory.
// Lifetime: the list is never destroyed. An owner drops its remaining entries before it frees the
// memory they use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <uptempo/completion/detail/uses.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/memory/host_pin.hpp>
#include <uptempo/memory/kernarg_memory.hpp>
#include <uptempo/stream/copy/copy_memory.hpp>
#include <uptempo/stream/copy/staging.hpp>

namespace uptempo::detail {

struct Retired {
  Uses uses;
  // Rows that the host copies; none if resources are only released.
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  CopyRows rows{};
  // The caller's memory that is pinned, or that this entry or the device writes.
  const std::byte* used = nullptr;
  size_t used_bytes = 0;
  bool writes = false;
  // Released afterwards.
  std::shared_ptr<Staging> staging{};  // used by this copy only; outlives its chunk
  Staging::Chunk chunk{};
  HostPin pin{};
  std::vector<Allocation> memory{};
  KernargMemory kernargs{};

  const void* owner = nullptr;
  bool is_due = false;  // the list's own

  bool owes_bytes() const noexcept { return from != nullptr; }
  // Its release calls HSA.
  bool releases_memory() const noexcept {
    return pin.device_address() != nullptr || staging || !memory.empty() ||
           kernargs.data() != nullptr;
  }
  void leave_to_session() noexcept;
};

// Copies row by row, or all rows at once if they are contiguous.
void copy_rows_on_host(std::byte* to, const std::byte* from, const CopyRows& rows) noexcept;

class RetiredList {
 public:
  static RetiredList& of_process();
  RetiredList() = default;
  RetiredList(const RetiredList&) = delete;
  RetiredList& operator=(const RetiredList&) = delete;

  // A list of one entry without uses, which the caller fills: one use and one allocation need no
  // memory. Made before work begins: nothing may fail after that. Throws std::bad_alloc. Allocates
  // if more entries exist than ever before.
  using Entry = std::list<Retired>;
  Entry make_entry();
  void add(Entry&& entry) noexcept;
  // Copies the bytes of the entries whose uses are over, and releases what they hold. Without
  // `releases_memory`, only what needs no call of HSA.
  void carry_out(bool releases_memory) noexcept;
  enum class Use : uint8_t { writes, pins };
  // Returns the publication after which the last entry that uses any part of the range in this way
  // is due. Empty if there is none.
  std::optional<Completion> user_of(const std::byte* data, size_t bytes, Use use) noexcept;
  // Drops the owner's entries that are not due. What they hold lives until the end of the Runtime,
  // because the device may still use it.
  void drop(const void* owner) noexcept;
  size_t size() noexcept;

 private:
  std::mutex mutex_;
  std::list<Retired> entries_;  // in call order
  std::list<Retired> unused_;   // for later ones
};

}  // namespace uptempo::detail
