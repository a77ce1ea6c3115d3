// Cells of one or several sequences on a device: what carries them out, judges, counts and models them.
//
// Thread safety: one owner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/experiment.hpp"
#include "tools/support/device.hpp"

namespace uptempo::fence_scope {

class Session {
 public:
  // `profile`: of the device whose time is modelled on the virtual GPU; "": of the one that is emulated, if there is one. Throws support::UsageError for one that does not exist.
  Session(const support::Device& device, TimingMode timing, const std::string& profile);
  ~Session();

  // The bench of one more sequence, and the cells that it carries out. Throws as Bench's constructor does.
  Bench& add(const Sequence& sequence);
  void add_cells(std::vector<Cell> cells);  // of the bench that was added last

  // All cells, carried out as `method` has it, one of each group recommended. Throws Error.
  std::vector<Cell> carry_out(const Method& method);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::fence_scope
