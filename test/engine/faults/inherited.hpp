// Objects of a Runtime as the child of a fork inherits them: idle, in use, and with work in flight.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <uptempo/uptempo.hpp>

namespace uptempo::faults {

class Inherited {
 public:
  using Fill = Kernel<uint32_t*, uint32_t>;

  // Work on `queue` that stays unfinished until `gate` is 0, and objects that are not used yet.
  Inherited(const Agent& gpu, Queue& queue, const Fill& fill, std::span<uint32_t> words,
            const Signal& gate);

  // Uses each object. Calls is_refused(what, use) for each use, which must throw Error. Returns
  // true if all are refused.
  bool are_refused(
      const std::function<bool(const char* what, const std::function<void()>& use)>& is_refused);

  // In the parent, after the gate: all of it still works. Returns true if the results are right.
  bool work(Deadline deadline);

 private:
  static constexpr uint32_t kWords = 64;

  Queue& queue_;
  const Fill& fill_;
  uint32_t* const words_;
  std::vector<uint32_t> host_;
  DeviceBuffer<uint32_t> device_;
  SharedQueue common_;
  Queue member_;
  Streams streams_;
  Stream idle_, busy_;
  Copier copier_;
  Event event_;
  Completion unfinished_;
  std::optional<BatchSubmitter> begun_;
  Recording recording_;
  std::optional<Node<uint32_t*, uint32_t>> node_;
};

}  // namespace uptempo::faults
