#include "engine/dispatch/detail/packet_store.hpp"

#include <algorithm>
#include <utility>

namespace uptempo::detail {
namespace {

constexpr size_t kSmallestCapacity = 64;  // packets

}  // namespace

PacketStore::PacketStore()
    : capacity_(kSmallestCapacity),
      packets_(std::make_unique_for_overwrite<aql::Packet64[]>(kSmallestCapacity)) {
  clear();
}

void PacketStore::grow() {
  const size_t count = size();
  auto memory = std::make_unique_for_overwrite<aql::Packet64[]>(2 * capacity_);
  std::copy_n(packets_.get(), count, memory.get());
  packets_ = std::move(memory);
  capacity_ *= 2;
  next_ = packets_.get() + count;
  end_ = packets_.get() + capacity_;
}

}  // namespace uptempo::detail
