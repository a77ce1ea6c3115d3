#include "tools/graphs/taken_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include <uptempo/hip/wait.hpp>
#include "tools/graphs/device_queues.hpp"
#include "tools/graphs/module_kernels.hpp"

namespace uptempo::graphs {
namespace {

void require(hipError_t status, const char* call) {
  if (status != hipSuccess)
    throw std::runtime_error(fmt::format("{} failed: {}", call, hipGetErrorName(status)));
}

bool is_over(const Completion& completion) noexcept {
  try {
    return completion.ready();
  } catch (const std::exception&) {
    return true;  // the queue has failed
  }
}

}  // namespace

TakenGraph::TakenGraph(hipGraph_t graph) : nodes_(nodes_of(graph)) {
  require(hipGetDevice(&device_), "hipGetDevice");
  queues_ = &DeviceQueues::of(device_);
  import(graph);
}

TakenGraph::~TakenGraph() = default;

void TakenGraph::import(hipGraph_t graph) {
  const CopyLedger::Snapshot copies = CopyLedger::instance().snapshot(graph);
  if (!copies.problem().empty()) throw std::runtime_error(copies.problem());
  Shape shape = shape_of(graph, nodes_of(graph));
  LockedQueue& queue = queues_->first();
  const std::lock_guard lock(queue.mutex);
  hip::ImportOptions options;
  options.copy_of_node = [&copies](hipGraphNode_t node) { return copies.find(node); };
  options.beside_of_function = [agent = queues_->agent().handle()](const void* function) {
    return hip::Beside{ModuleKernels::instance().address(function, agent)};
  };
  graph_.emplace(hip::import(queue.queue, graph, options));
  shape_ = std::move(shape);
}

TakenGraph::Shape TakenGraph::shape_of(hipGraph_t graph, const std::vector<hipGraphNode_t>& nodes) {
  Shape shape;
  std::unordered_map<hipGraphNode_t, size_t> positions;
  for (const hipGraphNode_t node : nodes) {
    hipGraphNodeType type{};
    require(hipGraphNodeGetType(node, &type), "hipGraphNodeGetType");
    positions.emplace(node, shape.types.size());
    shape.types.push_back(type);
  }
  size_t count = 0;
  require(hipGraphGetEdges(graph, nullptr, nullptr, &count), "hipGraphGetEdges");
  std::vector<hipGraphNode_t> from(count), to(count);
  if (count != 0)
    require(hipGraphGetEdges(graph, from.data(), to.data(), &count), "hipGraphGetEdges");
  for (size_t i = 0; i < count; ++i)
    shape.edges.emplace_back(positions.at(from[i]), positions.at(to[i]));
  std::ranges::sort(shape.edges);
  return shape;
}

void TakenGraph::launch(hipStream_t stream) {
  std::optional<std::lock_guard<std::mutex>> lock;
  try {
    if (last_queue_ == nullptr || is_over(last_)) {
      last_queue_ = &queues_->of(stream);
      replaced_.clear();
    }
    lock.emplace(last_queue_->mutex);
    hip::after(last_queue_->queue, stream);
  } catch (const std::exception& error) {
    throw NotLaunched(error.what());
  }
  last_ = graph_->replay(last_queue_->queue);
  try {
    hip::after(stream, last_queue_->queue);
  } catch (const std::exception&) {
    last_.wait();  // so that the stream's later work follows
  }
}

hipGraphNode_t TakenGraph::name_of(hipGraphNode_t node) const {
  const auto found = names_.find(node);
  return found == names_.end() ? node : found->second;
}

void TakenGraph::take(hipGraphNode_t from, hipGraphNodeType type, hipGraphNode_t to,
                      const CopyLedger::Snapshot& copies) {
  if (type == hipGraphNodeTypeKernel) {
    hipKernelNodeParams parameters{};
    require(hipGraphKernelNodeGetParams(from, &parameters), "hipGraphKernelNodeGetParams");
    set(to, parameters);
  } else if (type == hipGraphNodeTypeMemset) {
    hipMemsetParams parameters{};
    require(hipGraphMemsetNodeGetParams(from, &parameters), "hipGraphMemsetNodeGetParams");
    set(to, parameters);
  } else if (const hipMemcpy3DParms* const copy = copies.find(from); copy != nullptr) {
    set(to, *copy);
  }
}

void TakenGraph::update(hipGraph_t graph) {
  const std::vector<hipGraphNode_t> nodes = nodes_of(graph);
  Shape shape = shape_of(graph, nodes);
  const bool has_children = std::ranges::count(shape.types, hipGraphNodeTypeGraph) != 0;
  if (shape == shape_ && !has_children) {
    const CopyLedger::Snapshot copies = CopyLedger::instance().snapshot(graph);
    if (!copies.problem().empty()) throw std::runtime_error(copies.problem());
    for (size_t i = 0; i < nodes.size(); ++i) take(nodes[i], shape.types[i], nodes_[i], copies);
    return;
  }
  // Positions differ, or the nodes of child graphs have no names in the program's graph.
  if (!is_over(last_)) replaced_.emplace_back(std::move(*graph_), last_);
  graph_.reset();
  names_.clear();
  if (shape == shape_)
    for (size_t i = 0; i < nodes.size(); ++i) names_.emplace(nodes_[i], nodes[i]);
  import(graph);
}

bool TakenGraph::is_idle() const noexcept { return is_over(last_); }

}  // namespace uptempo::graphs
