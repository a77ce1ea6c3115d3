// Random HIP graphs with their result: nodes that read and write regions of an arena, edges that
// order every conflict, some through empty nodes and child graphs, and the same work on the host.
//
// Every kernel node takes two tickets of a clock in the arena, when it begins and when it ends. So
// each edge between kernels is seen in the tickets, whoever executes the graph.
#pragma once

#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::test {

inline void require(hipError_t status) {
  INFO(hipGetErrorName(status));
  REQUIRE(status == hipSuccess);
}

inline constexpr uint32_t kRegionBytes = 512, kRegionWords = kRegionBytes / 4;
inline constexpr uint32_t kDeviceRegions = 8, kPinnedRegions = 4;
inline constexpr uint32_t kRegions = kDeviceRegions + kPinnedRegions;
inline constexpr uint32_t kMostNodes = 64;

// Regions in device memory and in pinned host memory, the clock and the tickets.
class Arena {
 public:
  Arena() {
    require(hipMalloc(&device_, kDeviceRegions * kRegionBytes));
    require(hipHostMalloc(&pinned_, kPinnedRegions * kRegionBytes, 0));
    require(hipMalloc(&tickets_, (1 + 2 * kMostNodes) * sizeof(uint32_t)));
  }
  ~Arena() {
    (void)hipFree(device_);
    (void)hipHostFree(pinned_);
    (void)hipFree(tickets_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint8_t* region(uint32_t r) const {
    return r < kDeviceRegions ? device_ + r * kRegionBytes
                              : pinned_ + (r - kDeviceRegions) * kRegionBytes;
  }
  uint32_t* clock() const { return tickets_; }
  uint32_t* tickets(uint32_t node) const { return tickets_ + 1 + 2 * node; }

  void fill(std::span<const uint8_t> image) {
    require(hipMemcpy(device_, image.data(), kDeviceRegions * kRegionBytes, hipMemcpyHostToDevice));
    std::memcpy(pinned_, image.data() + kDeviceRegions * kRegionBytes,
                kPinnedRegions * kRegionBytes);
    require(hipMemset(tickets_, 0, (1 + 2 * kMostNodes) * sizeof(uint32_t)));
    require(hipDeviceSynchronize());
  }
  std::vector<uint8_t> image() const {
    std::vector<uint8_t> bytes(kRegions * kRegionBytes);
    require(hipMemcpy(bytes.data(), device_, kDeviceRegions * kRegionBytes, hipMemcpyDeviceToHost));
    std::memcpy(bytes.data() + kDeviceRegions * kRegionBytes, pinned_,
                kPinnedRegions * kRegionBytes);
    return bytes;
  }
  std::vector<uint32_t> all_tickets() const {
    std::vector<uint32_t> words(2 * kMostNodes);
    require(hipMemcpy(words.data(), tickets_ + 1, words.size() * 4, hipMemcpyDeviceToHost));
    return words;
  }

 private:
  uint8_t* device_ = nullptr;
  uint8_t* pinned_ = nullptr;
  uint32_t* tickets_ = nullptr;
};

// Returns the next value of one word of `mix`; the kernel and the host share it.
__host__ __device__ inline uint32_t mixed(uint32_t own, uint32_t other, uint32_t seed) {
  return (own * 5 + other) ^ seed;
}

class RandomGraph {
 public:
  enum class Kind : uint8_t { kernel, copy, fill };
  struct Step {
    Kind kind{};
    uint32_t reads = 0, writes = 0;  // regions
    uint32_t seed = 0;
    // copy: rows and slices inside a region
    uint32_t width = 0, height = 1, depth = 1, to_pitch = 0, from_pitch = 0;
    uint32_t to_rows = 1, from_rows = 1;  // heights of the allocations
    uint32_t to_offset = 0, from_offset = 0;
    uint32_t element = 1;  // fill
    std::vector<uint32_t> after{};
  };

  // HIP 5.2 copies rows of whole words only, and fills several rows with the size of the elements
  // instead of the value, or beyond their end.
  enum class Shapes : uint8_t { that_hip_can, any };
  RandomGraph(uint64_t seed, uint32_t count, Shapes shapes) : random_(seed), shapes_(shapes) {
    for (uint32_t i = 0; i < count; ++i) add();
  }

  std::span<const Step> steps() const { return steps_; }

  // The steps in order, on the host.
  void run(std::span<uint8_t> image) const {
    for (const Step& s : steps_) {
      uint8_t* const to = image.data() + s.writes * kRegionBytes;
      const uint8_t* const from = image.data() + s.reads * kRegionBytes;
      if (s.kind == Kind::kernel) {
        for (uint32_t i = 0; i < kRegionWords; ++i) {
          uint32_t own = 0, other = 0;
          std::memcpy(&own, to + 4 * i, 4);
          std::memcpy(&other, from + 4 * (i * 7 % kRegionWords), 4);
          own = mixed(own, other, s.seed);
          std::memcpy(to + 4 * i, &own, 4);
        }
        continue;
      }
      for (uint32_t z = 0; z < s.depth; ++z)
        for (uint32_t y = 0; y < s.height; ++y)
          for (uint32_t x = 0; x < s.width; ++x)
            to[s.to_offset + (z * s.to_rows + y) * s.to_pitch + x] =
                s.kind == Kind::fill
                    ? static_cast<uint8_t>(s.seed >> (8 * (x % s.element)))
                    : from[s.from_offset + (z * s.from_rows + y) * s.from_pitch + x];
    }
  }

  // Checks that each edge between kernels was respected.
  void check_order(std::span<const uint32_t> tickets) const {
    for (uint32_t i = 0; i < steps_.size(); ++i)
      for (const uint32_t earlier : steps_[i].after) {
        if (steps_[i].kind != Kind::kernel || steps_[earlier].kind != Kind::kernel) continue;
        CAPTURE(i, earlier);
        CHECK(tickets[2 * earlier + 1] < tickets[2 * i]);
      }
  }

  struct Made {
    hipGraph_t graph = nullptr;
    std::vector<hipGraphNode_t> nodes;  // of the steps; in child graphs, the handles of the clones
  };

  // The steps as a HIP graph. `mix`: __global__ void(uint32_t* own, const uint32_t* other,
  // uint32_t seed, uint32_t* clock, uint32_t* tickets), a workgroup of 64.
  Made make(const Arena& arena, void* mix) {
    Made made;
    require(hipGraphCreate(&made.graph, 0));
    made.nodes.resize(steps_.size());
    std::vector<hipGraphNode_t> ends(steps_.size());  // what followers of a step depend on
    for (uint32_t i = 0; i < steps_.size();) {
      const uint32_t count = below(5) == 0 ? std::min<uint32_t>(1 + below(5), size() - i) : 0;
      if (count == 0) {
        made.nodes[i] = ends[i] = add_to(made.graph, arena, mix, i, before(made.graph, i, i, ends));
        ++i;
        continue;
      }
      // Steps i to i + count as a child graph, which follows all that they follow.
      hipGraph_t child = nullptr;
      require(hipGraphCreate(&child, 0));
      std::vector<hipGraphNode_t> in_child(steps_.size()), outside;
      for (uint32_t k = i; k < i + count; ++k) {
        std::vector<hipGraphNode_t> inside;
        for (const uint32_t earlier : steps_[k].after)
          (earlier >= i ? inside : outside)
              .push_back(earlier >= i ? in_child[earlier] : ends[earlier]);
        in_child[k] = add_to(child, arena, mix, k, inside);
      }
      hipGraphNode_t node = nullptr;
      unique(outside);
      require(hipGraphAddChildGraphNode(&node, made.graph, outside.data(), outside.size(), child));
      require(hipGraphDestroy(child));
      hipGraph_t clone = nullptr;
      require(hipGraphChildGraphNodeGetGraph(node, &clone));
      std::vector<hipGraphNode_t> clones(count);
      size_t number = count;
      require(hipGraphGetNodes(clone, clones.data(), &number));
      for (uint32_t k = 0; k < count; ++k) {
        made.nodes[i + k] = clones[k];
        ends[i + k] = node;
      }
      i += count;
    }
    return made;
  }

 private:
  uint32_t below(uint64_t limit) { return static_cast<uint32_t>(random_() % limit); }
  uint32_t size() const { return static_cast<uint32_t>(steps_.size()); }

  static void unique(std::vector<hipGraphNode_t>& nodes) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }

  void add() {
    const uint32_t index = size();
    Step s{.kind = std::array{Kind::kernel, Kind::kernel, Kind::copy, Kind::fill}[below(4)],
           .reads = below(kRegions),
           .writes = below(kRegions),
           .seed = static_cast<uint32_t>(random_())};
    while (s.reads == s.writes) s.reads = below(kRegions);
    const bool is_any = shapes_ == Shapes::any;
    const uint32_t unit = is_any ? 1 : 4;
    if (s.kind == Kind::copy) {
      s.width = unit * (1 + below(36 / unit));
      s.height = 1 + below(3);
      s.depth = 1 + below(3);
      s.to_pitch = s.width + unit * below(2);
      s.from_pitch = s.width + unit * below(2);
      s.to_rows = s.height + below(2);
      s.from_rows = s.height + below(2);
      // 3 slices of 4 rows of 40 bytes fit into a region.
      s.to_offset = below(kRegionBytes + 1 - s.depth * s.to_rows * s.to_pitch) / unit * unit;
      s.from_offset = below(kRegionBytes + 1 - s.depth * s.from_rows * s.from_pitch) / unit * unit;
    } else if (s.kind == Kind::fill) {
      if (is_any) s.height = 1 + below(3);
      s.element = 1u << below(3);
      s.width = s.element * (1 + below(30));
      s.to_pitch = s.width + s.element * below(3);
      s.to_offset = 4 * below(25);
    }
    // Everything that conflicts, and something more.
    for (uint32_t earlier = 0; earlier < index; ++earlier) {
      const Step& e = steps_[earlier];
      const bool e_reads = e.kind != Kind::fill, reads = s.kind != Kind::fill;
      if (e.writes == s.writes || (reads && e.writes == s.reads) ||
          (e_reads && e.reads == s.writes) || below(3 * kMostNodes) == 0)
        s.after.push_back(earlier);
    }
    steps_.push_back(s);
  }

  // The nodes that step `i` follows. Some edges go through an empty node.
  std::vector<hipGraphNode_t> before(hipGraph_t graph, uint32_t i, uint32_t first,
                                     std::span<const hipGraphNode_t> ends) {
    std::vector<hipGraphNode_t> nodes;
    for (const uint32_t earlier : steps_[i].after)
      if (earlier < first) nodes.push_back(ends[earlier]);
    unique(nodes);
    if (below(4) != 0) return nodes;
    hipGraphNode_t empty = nullptr;
    require(hipGraphAddEmptyNode(&empty, graph, nodes.data(), nodes.size()));
    return {empty};
  }

  hipGraphNode_t add_to(hipGraph_t graph, const Arena& arena, void* mix, uint32_t i,
                        const std::vector<hipGraphNode_t>& after) const {
    const Step& s = steps_[i];
    hipGraphNode_t node = nullptr;
    if (s.kind == Kind::kernel) {
      uint8_t* own = arena.region(s.writes);
      uint8_t* other = arena.region(s.reads);
      uint32_t seed = s.seed;
      uint32_t* clock = arena.clock();
      uint32_t* tickets = arena.tickets(i);
      void* arguments[] = {&own, &other, &seed, &clock, &tickets};
      hipKernelNodeParams parameters{};
      parameters.func = mix;
      parameters.gridDim = dim3(1);
      parameters.blockDim = dim3(64);
      parameters.kernelParams = arguments;
      require(hipGraphAddKernelNode(&node, graph, after.data(), after.size(), &parameters));
    } else if (s.kind == Kind::copy) {
      hipMemcpy3DParms parameters{};
      parameters.srcPtr = make_hipPitchedPtr(arena.region(s.reads) + s.from_offset, s.from_pitch,
                                             s.width, s.from_rows);
      parameters.dstPtr =
          make_hipPitchedPtr(arena.region(s.writes) + s.to_offset, s.to_pitch, s.width, s.to_rows);
      parameters.extent = make_hipExtent(s.width, s.height, s.depth);
      parameters.kind = kind_of(s);
      require(hipGraphAddMemcpyNode(&node, graph, after.data(), after.size(), &parameters));
    } else {
      hipMemsetParams parameters{};
      parameters.dst = arena.region(s.writes) + s.to_offset;
      parameters.elementSize = s.element;
      parameters.width = s.width / s.element;
      parameters.height = s.height;
      parameters.pitch = s.to_pitch;
      parameters.value = s.seed;
      require(hipGraphAddMemsetNode(&node, graph, after.data(), after.size(), &parameters));
    }
    return node;
  }

  static hipMemcpyKind kind_of(const Step& s) {
    const bool to_host = s.writes >= kDeviceRegions, from_host = s.reads >= kDeviceRegions;
    if (to_host) return from_host ? hipMemcpyHostToHost : hipMemcpyDeviceToHost;
    return from_host ? hipMemcpyHostToDevice : hipMemcpyDeviceToDevice;
  }

  std::mt19937_64 random_;
  Shapes shapes_;
  std::vector<Step> steps_;
};

}  // namespace uptempo::test
