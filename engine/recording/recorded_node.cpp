#include "engine/recording/recorded_node.hpp"

#include <cstring>

#include "engine/dispatch/publication.hpp"

namespace uptempo::detail {

RecordedNode RecordedNode::of(const Recording& recording, size_t index) {
  recording.require_not_ended();
  const Publication& publication = recording.publication_;
  const Recording::Recorded& recorded = recording.nodes_[index];
  const aql::Packet64& packet = publication.packets[index];
  RecordedNode node{.kernel = recorded.kernel, .grid = recorded.grid};
  if (node.kernel != nullptr) {
    node.arguments.resize(node.kernel->arguments.size_bytes());
    if (!node.arguments.empty()) std::memcpy(node.arguments.data(), recorded.block, node.arguments.size());
    node.group_segment_size = packet.word[7];
  }
  const Publication::Said* const said = publication.said_of(static_cast<uint32_t>(index));
  if (said == nullptr) return node;
  node.intent = said->intent;
  const auto first = publication.accesses.begin() + node.intent.first_access;
  node.accesses.assign(first, first + node.intent.access_count);
  if (node.intent.as_it_is) node.finished = packet;
  return node;
}

void RecordedNode::append(Recording& recording, const RecordedNode& node) {
  if (node.finished) return recording.raw(*node.finished);
  if (node.kernel == nullptr) return recording.complete_finished();
  const uint32_t index = recording.add(node.kernel, node.grid);
  const ArgumentLayout& layout = node.kernel->arguments;
  for (size_t i = 0; i < layout.explicit_count(); ++i)
    std::memcpy(recording.nodes_[index].block + layout.offset(i), node.arguments.data() + layout.offset(i),
                layout.size(i));
  recording.publication_.edit(index).set_group_segment_size(node.group_segment_size);
  const PacketRef packet = recording.publication_.ref_of(index);
  const PacketIntent& intent = node.intent;
  if (intent.declared) declare(packet, nullptr, 0, false);
  for (const AccessRange& access : node.accesses)
    declare(packet, reinterpret_cast<const void*>(access.begin), access.end - access.begin, access.writes);
  if (intent.observer != Observer::none) observe(packet, intent.observer);
  if (intent.explicit_fences) set_fences(packet, intent.acquire, intent.release);
  if (intent.without_barrier) drop_barrier(packet);
}

}  // namespace uptempo::detail
