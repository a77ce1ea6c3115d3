#include "engine/recording/recorded_node.hpp"

#include <cstring>

#include "engine/recording/recording_state.hpp"

namespace uptempo::detail {

size_t RecordedNode::count(const Recording& of_recording) {
  const RecordingState& recording = of_recording.state("save_recording");
  recording.require_usable();
  return recording.size();
}

RecordedNode RecordedNode::of(const Recording& of_recording, size_t index) {
  const RecordingState& recording = *of_recording.state_;
  const Publication& publication = recording.publication_;
  const RecordingState::Recorded& recorded = recording.nodes_[index];
  const aql::Packet64& packet = publication.packets[index];
  RecordedNode node{.kernel = recorded.kernel, .grid = recorded.grid};
  if (node.kernel != nullptr) {
    node.arguments.resize(node.kernel->arguments.size_bytes());
    if (!node.arguments.empty())
      std::memcpy(node.arguments.data(), recorded.host, node.arguments.size());
    node.group_segment_size = packet.word[7];
  }
  node.declarations = publication.find_declared(index);
  const auto first = publication.accesses.begin() + node.declarations.first_access;
  node.accesses.assign(first, first + node.declarations.access_count);
  node.declarations.first_access = 0;
  if (node.declarations.is_finished) node.finished = packet;
  return node;
}

void RecordedNode::append(Recording& to, const RecordedNode& node) {
  RecordingState& recording = *to.state_;
  if (node.finished) return recording.raw(*node.finished);
  if (node.kernel == nullptr) return recording.complete_finished();
  const OpenNode open = recording.add(node.kernel, node.grid);
  const ArgumentLayout& layout = node.kernel->arguments;
  for (size_t i = 0; i < layout.explicit_count(); ++i)
    std::memcpy(open.block + layout.offset(i), node.arguments.data() + layout.offset(i),
                layout.size(i));
  recording.set_group_segment_size(open.handle.index, node.group_segment_size);
  if (node.declarations == Declarations{}) return;  // a plain recording stays plain
  Declarations& own = open.packet.declarations();
  std::vector<AccessRange>& accesses = open.packet.accesses();
  if (node.declarations.declared) own.declare(accesses, nullptr, 0, false);
  if (node.declarations.depends) own.depend(accesses, open.packet.packet, {});
  for (const AccessRange& access : node.accesses) {
    if (access.is_dependency) {
      const size_t earlier = access.begin;
      own.depend(accesses, open.packet.packet, std::span(&earlier, 1));
      continue;
    }
    own.declare(accesses, reinterpret_cast<const void*>(access.begin), access.end - access.begin,
                access.writes);
  }
  own.observer = node.declarations.observer;
  if (node.declarations.explicit_fences)
    own.give_fences(node.declarations.acquire, node.declarations.release);
  own.without_barrier = node.declarations.without_barrier;
}

}  // namespace uptempo::detail
