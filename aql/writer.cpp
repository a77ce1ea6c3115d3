#include <uptempo/aql/writer.hpp>

#include <uptempo/aql/pause.hpp>

namespace uptempo::aql {

AqlQueueWriter AqlQueueWriter::borrow(hsa_queue_t* queue, const std::atomic<hsa_status_t>* error,
                                      RingAccess access) {
  return AqlQueueWriter(queue, error, access, nullptr);
}

AqlQueueWriter AqlQueueWriter::share(SharedRing& ring, const std::atomic<hsa_status_t>* error) {
  return AqlQueueWriter(ring.queue(), error, ring.access(), &ring);
}

AqlQueueWriter::AqlQueueWriter(hsa_queue_t* queue, const std::atomic<hsa_status_t>* error,
                               RingAccess access, SharedRing* shared)
    : queue_(queue), error_(error), shared_(shared) {
  require_ring(queue);
  ring_ = static_cast<Packet64*>(queue->base_address);
  mask_ = queue->size - 1;
  has_device_ring_ = is_ring_in_device_memory(queue);
  view_ = view(queue, access);
  next_ = load_write_index();
  read_seen_ = load_read_index();
}

PublishResult AqlQueueWriter::reserve(Slots& slots, Deadline deadline) noexcept {
  PublishResult result{.ring_size = ring_size(), .requested = slots.count};
  if (try_reserve(slots)) return result;
  SharedRing::Waiter waiter(shared_, this);
  for (Pause pause(deadline);;) {
    result.queue_error = queue_error();
    if (result.queue_error != HSA_STATUS_SUCCESS) {
      result.status = PublishStatus::queue_failed;
    } else if (slots.count > ring_size()) {
      result.status = PublishStatus::too_long;
    } else if (claim(slots)) {
      return result;
    } else {
      waiter.refused();
      if (pause.wait()) continue;
      result.status = PublishStatus::resource_full;
    }
    result.occupancy = room().occupancy;
    return result;
  }
}

PublishResult AqlQueueWriter::publish(std::span<const Packet64> packets, Deadline deadline,
                                      Chunking chunking) {
  struct Copies {
    uint32_t operator()(uint64_t i, void* slot) const noexcept { return fill(slot, packets[i]); }
    void operator()(uint64_t i, std::span<Packet64> slots) const noexcept {
      store_behind_gate(slots, &packets[i]);
    }
    std::span<const Packet64> packets;
  };
  return publish(packets.size(), deadline, Copies{packets}, chunking);
}

Room AqlQueueWriter::room() const noexcept {
  // Load the read index first: the write index loaded after it is no older, so the difference is
  // never negative.
  const uint64_t read = free_below();
  const uint64_t occupied = next_index() - read;
  return {.ring_size = ring_size(),
          .occupancy = occupied,
          .free = occupied < ring_size() ? ring_size() - occupied : 0};
}

}  // namespace uptempo::aql
