#include "tools/graphs/copy_ledger.hpp"

#include <cstddef>
#include <new>
#include <utility>

namespace uptempo::graphs {

bool is_copy(hipGraphNodeType type) noexcept {
  switch (type) {
    case hipGraphNodeTypeKernel:
    case hipGraphNodeTypeMemset:
    case hipGraphNodeTypeHost:
    case hipGraphNodeTypeGraph:
    case hipGraphNodeTypeEmpty:
    case hipGraphNodeTypeWaitEvent:
    case hipGraphNodeTypeEventRecord:
      return false;
    default:
      return true;
  }
}

std::vector<hipGraphNode_t> nodes_of(hipGraph_t graph) {
  size_t count = 0;
  if (hipGraphGetNodes(graph, nullptr, &count) != hipSuccess || count == 0) return {};
  std::vector<hipGraphNode_t> nodes(count);
  if (hipGraphGetNodes(graph, nodes.data(), &count) != hipSuccess) return {};
  nodes.resize(count);
  return nodes;
}

std::optional<hipGraphNodeType> type_of(hipGraphNode_t node) {
  hipGraphNodeType type{};
  if (hipGraphNodeGetType(node, &type) != hipSuccess) return std::nullopt;
  return type;
}

hipGraph_t child_of(hipGraphNode_t node) {
  hipGraph_t child = nullptr;
  if (type_of(node) != hipGraphNodeTypeGraph ||
      hipGraphChildGraphNodeGetGraph(node, &child) != hipSuccess)
    return nullptr;
  return child;
}

CopyLedger& CopyLedger::instance() {
  alignas(CopyLedger) static std::byte storage[sizeof(CopyLedger)];
  static CopyLedger* const ledger = ::new (storage) CopyLedger;
  return *ledger;
}

void CopyLedger::set(hipGraphNode_t node, Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(node, std::move(entry));
}

void CopyLedger::record(hipGraphNode_t node, const hipMemcpy3DParms& copy) {
  set(node, {.copy = copy, .unknown = {}});
}

void CopyLedger::record_unknown(hipGraphNode_t node, std::string why) {
  set(node, {.copy = {}, .unknown = std::move(why)});
}

void CopyLedger::forget(hipGraphNode_t node) {
  const std::lock_guard lock(mutex_);
  entries_.erase(node);
}

void CopyLedger::forget_graph(hipGraph_t graph) {
  for (const hipGraphNode_t node : nodes_of(graph)) {
    if (const hipGraph_t child = child_of(node); child != nullptr) forget_graph(child);
    forget(node);
  }
}

void CopyLedger::copied(hipGraph_t from, hipGraph_t to) {
  const std::vector<hipGraphNode_t> originals = nodes_of(from);
  const std::vector<hipGraphNode_t> copies = nodes_of(to);
  // HIP copies nodes in their order. Without that, the copies stay unknown.
  if (originals.size() != copies.size()) return;
  for (size_t i = 0; i < copies.size(); ++i)
    if (type_of(originals[i]) != type_of(copies[i])) return;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (const hipGraph_t child = child_of(copies[i]); child != nullptr)
      copied(child_of(originals[i]), child);
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(originals[i]); found != entries_.end())
      entries_.insert_or_assign(copies[i], Entry(found->second));
  }
}

void CopyLedger::lose_track(std::string why) {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = std::move(why);
}

CopyLedger::Snapshot CopyLedger::snapshot(hipGraph_t graph) {
  Snapshot result;
  add_to(result, graph);
  return result;
}

void CopyLedger::add_to(Snapshot& snapshot, hipGraph_t graph) {
  for (const hipGraphNode_t node : nodes_of(graph)) {
    if (const hipGraph_t child = child_of(node); child != nullptr) add_to(snapshot, child);
    const std::optional<hipGraphNodeType> type = type_of(node);
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(node);
    if (found != entries_.end() && !found->second.unknown.empty()) {
      snapshot.problem_ = found->second.unknown;
    } else if (type && !is_copy(*type)) {
      continue;
    } else if (!lost_.empty()) {
      snapshot.problem_ = lost_;
    } else if (found == entries_.end()) {
      snapshot.problem_ =
          "a copy node, or a node of an unknown kind, was added by a call that was not seen";
    } else {
      snapshot.copies_.emplace(node, found->second.copy);
    }
  }
}

const hipMemcpy3DParms* CopyLedger::Snapshot::find(hipGraphNode_t node) const {
  const auto found = copies_.find(node);
  return found == copies_.end() ? nullptr : &found->second;
}

}  // namespace uptempo::graphs
