#include <uptempo/hip/graph.hpp>

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/hip/device_agent.hpp>
#include <uptempo/hip/graph/graph_memory.hpp>
#include <uptempo/hip/graph/graph_order.hpp>
#include <uptempo/hip/graph/graph_transfers.hpp>
#include <uptempo/hip/graph_nodes.hpp>
#include <uptempo/hip/graph_text.hpp>
#include <uptempo/hip/known_kernels.hpp>
#include <uptempo/hip/wait.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/copy/transfer_kernels.hpp>

namespace uptempo::hip {
namespace {

using detail::TransferBox;
using detail::TransferDispatch;

[[noreturn]] void refuse(const char* call, std::string asked, std::string found,
                         std::string remedy) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = call,
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

void require_current_device(const Agent& gpu) {
  const Agent& current = current_agent();
  if (current.handle().handle != gpu.handle().handle)
    refuse("hip::import", fmt::format("a graph for a queue of {}", gpu.name()),
           fmt::format("the current HIP device is another one ({})", current.name()),
           "make the queue's device current (hipSetDevice)");
}

const char* name_of(GraphWork work) noexcept {
  switch (work) {
    case GraphWork::kernel:
      return "kernel";
    case GraphWork::copy:
      return "memcpy";
    case GraphWork::fill:
      return "memset";
    case GraphWork::none:
    case GraphWork::event_wait:
    case GraphWork::event_record:
      break;
  }
  return "empty";
}

Arguments arguments_of(const hipKernelNodeParams& parameters, const std::string& node) {
  if (parameters.extra == nullptr) return Arguments(parameters.kernelParams);
  const std::byte* data = nullptr;
  const size_t* bytes = nullptr;
  for (void** entry = parameters.extra; *entry != HIP_LAUNCH_PARAM_END; entry += 2) {
    if (*entry == HIP_LAUNCH_PARAM_BUFFER_POINTER) {
      data = static_cast<const std::byte*>(entry[1]);
    } else if (*entry == HIP_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = static_cast<const size_t*>(entry[1]);
    } else {
      refuse("hip::import", node, "an entry of `extra` that is neither buffer nor size",
             "pass HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END");
    }
  }
  if (data == nullptr || bytes == nullptr)
    refuse("hip::import", node, "`extra` without a buffer or its size",
           "pass HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END");
  return Arguments(std::span(data, *bytes));
}

// Calls `f`, and adds the node to the Errors of the parts that do not know it.
template <class F>
auto naming(const std::string& node, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.asked().find(node) != std::string::npos) throw;
    throw Error({.code = error.code(),
                 .status = error.status(),
                 .call = error.call(),
                 .asked = fmt::format("{}: {}", node, error.asked()),
                 .found = error.found(),
                 .remedy = error.remedy()});
  }
}

Grid grid_of(const hipKernelNodeParams& parameters) {
  return Grid::blocks(parameters.gridDim)
      .threads(parameters.blockDim)
      .lds(parameters.sharedMemBytes);
}

}  // namespace

class GraphState {
 public:
  GraphState(Queue& queue, hipGraph_t graph, const ImportOptions& options)
      : gpu_(queue.agent()),
        grids_(gpu_.properties().compute_units),
        memory_(gpu_),
        beside_of_function_(options.beside_of_node ? nullptr : options.beside_of_function),
        recording_(std::make_unique<Recording>(queue, options.recording)) {
    require_current_device(gpu_);
    const ReadGraph read = read_graph(graph);
    events_ = events_of(read);
    GraphText text(graph);
    add(read, text, options);
  }
  ~GraphState() {
    recording_.reset();  // waits for replays in flight
    if (!has_completed()) memory_.leave_to_session();
  }
  GraphState(const GraphState&) = delete;
  GraphState& operator=(const GraphState&) = delete;

  template <class... D>
  Completion replay(Queue& queue, D... deadline) {
    for (const hipEvent_t event : events_.waits) after(queue, event);
    for (const hipEvent_t event : events_.records_before) record(event, queue);
    const Completion completion = recording_->replay(queue, deadline...);
    last_ = completion;
    for (const hipEvent_t event : events_.records_after) record_after(event, queue, completion);
    return completion;
  }

  void set(hipGraphNode_t handle, const hipKernelNodeParams& parameters) {
    Dispatch& dispatch = find(handle, GraphWork::kernel);
    require_current_device(gpu_);
    naming(dispatch.name, [&] {
      const Beside beside =
          beside_of_function_ ? beside_of_function_(parameters.func) : dispatch.beside;
      ReadObjects objects;
      const auto kernel = kernel_of(parameters.func, beside, dispatch.stack, objects);
      change(dispatch, kernel, grid_of(parameters), arguments_of(parameters, dispatch.name));
      dispatch.beside = beside;
    });
  }
  void set(hipGraphNode_t handle, const hipMemcpy3DParms& parameters) {
    Dispatch& dispatch = find(handle, GraphWork::copy);
    change(dispatch, transfer_of(parameters, dispatch.name), nullptr);
  }
  void set(hipGraphNode_t handle, const hipMemsetParams& parameters) {
    Dispatch& dispatch = find(handle, GraphWork::fill);
    change(dispatch, transfer_of(parameters, dispatch.name), &parameters);
  }
  void set(hipGraphNode_t handle, size_t argument, std::span<const std::byte> value) {
    const Dispatch& dispatch = find(handle, GraphWork::kernel);
    naming(dispatch.name, [&] { recording_->set(dispatch.node, argument, value); });
  }
  Node<Arguments> node(hipGraphNode_t handle) const { return dispatches_[index_of(handle)].node; }
  Recording& recording() noexcept { return *recording_; }

 private:
  struct Dispatch {
    std::string name;
    GraphWork work;
    std::vector<size_t> after;
    Beside beside;
    PrivateBytes stack;
    Kernel<Arguments> kernel;
    Grid grid;
    Node<Arguments> node;
  };

  // The replay runs: if the event cannot be recorded behind it on the device, the host waits for it
  // and tries again, which takes no more than HIP's call.
  static void record_after(hipEvent_t event, Queue& queue, const Completion& replay) {
    try {
      record(event, queue);
    } catch (...) {
      if (!replay.wait(Deadline::after(BatchOptions{}.patience))) throw;
      record(event, queue);
    }
  }

  // Whether the last replay has completed; false also after the queue's failure.
  bool has_completed() const noexcept {
    try {
      return !last_ || last_->ready();
    } catch (...) {
      return false;
    }
  }

  void add(const ReadGraph& read, GraphText& text, const ImportOptions& options) {
    const std::vector<GraphStep> steps = order_graph(read.vertices);
    // Copies and fills first, because their memory is pinned at once.
    std::vector<std::optional<TransferBox>> boxes(steps.size());
    std::vector<std::array<uint64_t, 2>> patterns(steps.size());
    std::vector<GraphRange> ranges;
    for (size_t i = 0; i < steps.size(); ++i) {
      const GraphNode& node = read.nodes[steps[i].vertex];
      if (node.work == GraphWork::copy) {
        boxes[i] = transfer_of(copy_parameters(node, options.copy_of_node, text), node.name);
        ranges.push_back(source_of(*boxes[i], node.name));
      } else if (node.work == GraphWork::fill) {
        const hipMemsetParams parameters = fill_parameters(node, text);
        boxes[i] = transfer_of(parameters, node.name);
        patterns[i] = pattern_of(parameters);
      } else {
        continue;
      }
      ranges.push_back(target_of(*boxes[i], node.name));
    }
    memory_.pin(ranges);
    ReadObjects objects;
    for (size_t i = 0; i < steps.size(); ++i) {
      const GraphNode& node = read.nodes[steps[i].vertex];
      naming(node.name, [&] {
        if (boxes[i]) {
          const TransferDispatch made = dispatch_of(*boxes[i], node.work, patterns[i], node.name);
          add(node, steps[i].after, {}, {}, made.kernel, made.grid, made.arguments());
          return;
        }
        const hipKernelNodeParams parameters = kernel_parameters(node);
        const Beside beside = options.beside_of_node ? options.beside_of_node(node.handle)
                              : beside_of_function_  ? beside_of_function_(parameters.func)
                                                     : Beside{};
        const PrivateBytes stack =
            options.stack_of_node ? options.stack_of_node(node.handle) : PrivateBytes{};
        add(node, steps[i].after, beside, stack, kernel_of(parameters.func, beside, stack, objects),
            grid_of(parameters), arguments_of(parameters, node.name));
      });
    }
  }

  void add(const GraphNode& node, std::span<const size_t> after, Beside beside, PrivateBytes stack,
           const Kernel<Arguments>& kernel, const Grid& grid, Arguments arguments) {
    auto recorded = recording_->dispatch(kernel, grid, arguments);
    recorded.after_packets(after);
    by_handle_[node.handle] = dispatches_.size();
    dispatches_.push_back({.name = node.name,
                           .work = node.work,
                           .after = {after.begin(), after.end()},
                           .beside = beside,
                           .stack = stack,
                           .kernel = kernel,
                           .grid = grid,
                           .node = recorded});
  }

  Kernel<Arguments> kernel_of(void* function, Beside beside, PrivateBytes stack,
                              ReadObjects& objects) {
    return Kernel<Arguments>::of(kernels_.find(function, beside, stack, objects));
  }

  // The dispatch of a transfer whose ranges memory_ has accepted.
  TransferDispatch dispatch_of(TransferBox box, GraphWork work,
                               const std::array<uint64_t, 2>& pattern, const std::string& node) {
    if (!transfer_kernels_) transfer_kernels_.emplace(detail::load_transfer_kernels(gpu_));
    box.to = memory_.device_address(target_of(box, node));
    if (work == GraphWork::fill) return fill_dispatch(*transfer_kernels_, grids_, box, pattern);
    box.from = memory_.device_address(source_of(box, node));
    return copy_dispatch(*transfer_kernels_, grids_, box);
  }

  size_t index_of(hipGraphNode_t handle) const {
    const auto found = by_handle_.find(handle);
    if (found != by_handle_.end()) return found->second;
    refuse("hip::Graph", fmt::format("the node with handle {}", static_cast<void*>(handle)),
           fmt::format("it is none of the {} kernel, memcpy and memset nodes of the graph",
                       dispatches_.size()),
           "pass a node of the imported graph or of its child graphs");
  }

  Dispatch& find(hipGraphNode_t handle, GraphWork work) {
    Dispatch& dispatch = dispatches_[index_of(handle)];
    if (dispatch.work != work)
      refuse("hip::Graph::set",
             fmt::format("parameters of a {} for {}", name_of(work), dispatch.name),
             fmt::format("it is a {} node", name_of(dispatch.work)),
             "pass parameters of the node's own kind");
    return dispatch;
  }

  void change(Dispatch& dispatch, const TransferBox& box, const hipMemsetParams* fill) {
    std::vector<GraphRange> ranges{target_of(box, dispatch.name)};
    if (fill == nullptr) ranges.push_back(source_of(box, dispatch.name));
    memory_.pin(ranges);
    const TransferDispatch made =
        dispatch_of(box, dispatch.work,
                    fill != nullptr ? pattern_of(*fill) : std::array<uint64_t, 2>{}, dispatch.name);
    change(dispatch, made.kernel, made.grid, made.arguments());
  }

  void change(Dispatch& dispatch, const Kernel<Arguments>& kernel, const Grid& grid,
              Arguments arguments) {
    if (dispatch.kernel.shared_info() == kernel.shared_info()) {
      kernel.info().arguments.require(arguments);
      if (dispatch.grid != grid) recording_->set_grid(dispatch.node, grid);
      dispatch.grid = grid;
      recording_->set(dispatch.node, arguments);  // in the block that set_grid() has made writable
      return;
    }
    auto replaced = recording_->replace(dispatch.node, kernel, grid, arguments);
    dispatch.node = replaced;
    dispatch.kernel = kernel;
    dispatch.grid = grid;
    replaced.after_packets(dispatch.after);
  }

  const Agent gpu_;
  const detail::TransferGrids grids_;
  GraphMemory memory_;
  const std::function<Beside(const void*)> beside_of_function_;
  std::unique_ptr<Recording> recording_;
  std::optional<detail::TransferKernels> transfer_kernels_;
  KnownKernels kernels_;
  std::vector<Dispatch> dispatches_;
  std::unordered_map<hipGraphNode_t, size_t> by_handle_;
  GraphEvents events_;
  std::optional<Completion> last_;
};

Graph::Graph(std::unique_ptr<GraphState> state) noexcept : state_(std::move(state)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Completion Graph::replay(Queue& queue) { return state_->replay(queue); }
Completion Graph::replay(Queue& queue, Deadline deadline) {
  return state_->replay(queue, deadline);
}
void Graph::set(hipGraphNode_t node, const hipKernelNodeParams& parameters) {
  state_->set(node, parameters);
}
void Graph::set(hipGraphNode_t node, const hipMemcpy3DParms& parameters) {
  state_->set(node, parameters);
}
void Graph::set(hipGraphNode_t node, const hipMemsetParams& parameters) {
  state_->set(node, parameters);
}
void Graph::set(hipGraphNode_t node, size_t argument, std::span<const std::byte> value) {
  state_->set(node, argument, value);
}
Node<Arguments> Graph::node(hipGraphNode_t node) const { return state_->node(node); }
Recording& Graph::recording() noexcept { return state_->recording(); }
size_t Graph::size() const noexcept { return state_->recording().size(); }

Graph import(Queue& queue, hipGraph_t graph, const ImportOptions& options) {
  return Graph(std::make_unique<GraphState>(queue, graph, options));
}

}  // namespace uptempo::hip
