// Imports HIP graphs by uptempo::hip. In a shared library of its own (hip_graph_importer.cpp), so
// that the benchmark also runs without HIP, and without HIP beside PoCL. The library uses the
// program's own engine, whose symbols the program exports.
//
// Thread safety: one owner.
// Errors: throw Error.
#pragma once

#include <memory>

#include <uptempo/completion/completion.hpp>
#include <uptempo/dispatch/queue.hpp>

namespace uptempo::bench {

class ImportedGraph {
 public:
  virtual ~ImportedGraph() = default;
  virtual Completion replay(Queue& queue) = 0;
};

// Type of `uptempo_import_hip_graph`, the library's symbol. `hip_graph`: a hipGraph_t.
using ImportHipGraph = void (*)(std::unique_ptr<ImportedGraph>& made, Queue& queue,
                                void* hip_graph);

}  // namespace uptempo::bench
