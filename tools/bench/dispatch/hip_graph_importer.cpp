#include "tools/bench/dispatch/hip_graph_importer.hpp"

#include <uptempo/hip/graph.hpp>

namespace uptempo::bench {
namespace {

class Imported final : public ImportedGraph {
 public:
  Imported(Queue& queue, hipGraph_t graph) : graph_(hip::import(queue, graph)) {}
  Completion replay(Queue& queue) override { return graph_.replay(queue); }

 private:
  hip::Graph graph_;
};

}  // namespace
}  // namespace uptempo::bench

// By its name for dlsym().
extern "C" void uptempo_import_hip_graph(std::unique_ptr<uptempo::bench::ImportedGraph>& made,
                                         uptempo::Queue& queue, void* hip_graph) {
  made = std::make_unique<uptempo::bench::Imported>(queue, static_cast<hipGraph_t>(hip_graph));
}
