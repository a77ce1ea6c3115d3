// BatchState: the implementation of BatchSubmitter. It stays in place when its BatchSubmitter
// moves, because Prepared and CommandRef refer to it. Private: the templates of BatchSubmitter need
// it.
//
// Thread safety: thread-compatible.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include <uptempo/dispatch/detail/dispatch_shape.hpp>
#include <uptempo/dispatch/detail/publication.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo {

struct BatchOptions;

namespace detail {

// Consecutive slots with a kernarg block each. `blocks` is null if the kernel takes no arguments.
struct DispatchSlots {
  aql::Packet64* packets;
  std::byte* blocks;
  uint32_t count;
};

struct BatchState {
  BatchState(BatchQueue& queue, const BatchOptions& options);

  // The batch's queue. Throws Error if it has ended.
  BatchQueue& queue() const {
    if (publication.queue == nullptr) [[unlikely]]
      refuse_ended();
    return *publication.queue;
  }
  // Throws Error if the batch has ended or is partly published.
  void make_room() {
    if (publication.packets.full()) [[unlikely]]
      make_more_room();
  }
  // Also makes room for one more packet.
  const DispatchShape& shape_for(const KernelInfo& kernel, const Grid& grid) {
    make_room();
    return shapes.of(kernel, grid);
  }
  const DispatchShape& prepare(std::shared_ptr<const KernelInfo> kernel, const Grid& grid);

  // The functions that take blocks and slots require room for one packet.
  template <class... Args>
  std::byte* take_block(const DispatchShape& shape) {
    if (!takes_block<Args...>(shape)) return nullptr;
    if (publication.kernargs.fits(shape.block_bytes)) [[likely]]
      return publication.kernargs.take(shape.block_bytes);
    return wait_for_block(shape.block_bytes);
  }
  std::byte* wait_for_block(uint32_t block_bytes);
  // Appends a dispatch, or returns a refusal. `call`: the try_ form, a string literal.
  template <class... Args>
  Tried<PacketRef> try_append(const char* call, const KernelInfo& kernel, uint32_t lds_bytes,
                              const DispatchShape& shape, const ArgumentPlaces<Args...>& places,
                              const Args&... args) {
    if (const std::optional<Refusal> refusal = try_arguments(kernel, lds_bytes, args...))
      return *refusal;
    std::byte* block = nullptr;
    if (takes_block<Args...>(shape)) {
      block = try_take_block(shape.block_bytes);
      if (block == nullptr) [[unlikely]]
        return refuse_block(shape.block_bytes, call);
    }
    return append(shape, places, block, args...);
  }
  // Returns null if none is free.
  std::byte* try_take_block(uint32_t block_bytes) noexcept;
  Refusal refuse_block(uint32_t block_bytes, const char* call) const;
  // Returns slots and kernarg blocks for 1 to `count` dispatches. Throws Error if no block became
  // free in time.
  DispatchSlots take_slots(uint32_t count, uint32_t block_bytes);
  // Lends the caller's block to the next submission. Throws Error if it cannot serve.
  void lend(const KernelInfo& kernel, std::span<std::byte> block);

  template <class... Args>
  PacketRef append(const DispatchShape& shape, const ArgumentPlaces<Args...>& places,
                   std::byte* block, const Args&... args) {
    aql::Packet64& packet = publication.packets.add();
    publication.packets.fetch_slot(packet);
    write_dispatch(packet, block, shape, shape.packet, places, args...);
    return publication.ref_of_last();
  }

  struct PreparedShape {
    std::shared_ptr<const KernelInfo> kernel;  // keeps the code loaded
    DispatchShape shape;
  };

  Publication publication;
  DispatchShapes shapes;
  std::deque<PreparedShape> prepared;
  const std::chrono::nanoseconds patience;

 private:
  void make_more_room();
  [[noreturn]] void refuse_ended() const;
};

}  // namespace detail
}  // namespace uptempo
