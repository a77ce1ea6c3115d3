#include <uptempo/hip/graph_exec.hpp>

#include <utility>

#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/hip/device.hpp>
#include <uptempo/hip/wait.hpp>

namespace uptempo::hip {

GraphExec::Own::Own() : queue(agent(runtime)) {}

GraphExec::GraphExec(Queue& queue, hipGraph_t graph, const ImportOptions& options)
    : queue_(&queue), graph_(import(queue, graph, options)) {}

GraphExec::GraphExec(std::unique_ptr<Own> own, hipGraph_t graph, const ImportOptions& options)
    : own_(std::move(own)), queue_(&own_->queue), graph_(import(*queue_, graph, options)) {}

GraphExec::GraphExec(hipGraph_t graph, const ImportOptions& options)
    : GraphExec(std::make_unique<Own>(), graph, options) {}

Completion GraphExec::launch(hipStream_t stream) {
  after(*queue_, stream);
  const Completion done = graph_.replay(*queue_);
  try {
    after(stream, *queue_);
  } catch (...) {
    // The graph runs. If the host waits for it here, the stream's later work follows it as well.
    if (!done.wait(Deadline::after(BatchOptions{}.patience))) throw;
  }
  return done;
}

}  // namespace uptempo::hip
