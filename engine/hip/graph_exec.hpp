// GraphExec: a HIP graph that Uptempo launches in order with a HIP stream, in place of a
// hipGraphExec_t.
//
//   hip::GraphExec step(graph);      // hipGraphInstantiate
//   step.launch(stream);             // hipGraphLaunch
//   step.set(node, params);          // hipGraphExecKernelNodeSetParams
//
// A launch begins after the stream's earlier work and ends before its later work. It runs in a
// queue of its own: after(queue, stream); replay; after(stream, queue) (wait.hpp, graph.hpp). The
// host blocks only if the queue is full, and see Errors.
//
// Cost of a launch: a replay, and two waits on the device. A wait for a stream that is idle costs
// nothing on the device.
//
// Errors: the constructor throws Error for a graph that import() refuses, launch() as after() and
// Graph::replay(), set() as Graph::set(). If the wait of the stream for the replay cannot be
// enqueued, launch() waits on the host instead, for 30 seconds at most; then it throws, and the
// replay runs.
//
// Lifetime: kernels and memory of the graph must live until its last launch is complete. The
// hipGraph_t may be destroyed; its node handles are then only names. The destructor waits for
// launches in flight, at most as long as Recording and Queue do.
// Thread safety: one thread at a time, which must also own the queue.
#pragma once

#include <memory>

#include <uptempo/completion/completion.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/graph.hpp>
#include <uptempo/runtime/runtime.hpp>

namespace uptempo::hip {

class GraphExec {
 public:
  // For the calling thread's current HIP device, with a Runtime and a Queue of its own.
  explicit GraphExec(hipGraph_t graph, const ImportOptions& options = {});
  // For the device of this queue, which must outlive the object.
  GraphExec(Queue& queue, hipGraph_t graph, const ImportOptions& options = {});

  // Returns the completion of this launch.
  Completion launch(hipStream_t stream);

  // Changes the parameters of a node from the next launch on. `node`: of the imported graph.
  template <class Parameters>
  void set(hipGraphNode_t node, const Parameters& parameters) {
    graph_.set(node, parameters);
  }
  Graph& graph() noexcept { return graph_; }
  Queue& queue() noexcept { return *queue_; }

 private:
  struct Own {
    Own();
    Runtime runtime;
    Queue queue;
  };
  GraphExec(std::unique_ptr<Own> own, hipGraph_t graph, const ImportOptions& options);

  std::unique_ptr<Own> own_;  // null: the caller's queue
  Queue* queue_;
  Graph graph_;
};

}  // namespace uptempo::hip
