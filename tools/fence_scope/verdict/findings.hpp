// Translates the fence checker's findings (`uptempo-vgpu --check fences --report FILE`;
// tools/vgpu/device/fences/finding.hpp) into steps of a sequence.
//
// Packets are identified by queue and index, so the same kernel may occur any number of times. For
// a copy the report names its engine and bytes: it may be any copy of the sequence that touches
// them, or one that the bench makes for the host.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/sequence_rules.hpp"

namespace uptempo::fence_scope {

// Two accesses that lack order or a fence.
struct Finding {
  // Possible steps of each access, the most likely first. kNoStep: the host, or the bench before
  // and after a run.
  std::vector<size_t> earlier{}, later{};
  bool ordered = false;
  bool possible_on_target = false;
  bool earlier_writes = true, later_reads = true;
  // The first byte in which they meet; no value if it is in no buffer of the sequence.
  std::optional<Bench::Place> place{};
  std::string reason{};  // in the checker's words
};

// Where the packets of one or several runs of a bench were published.
struct Placement {
  std::array<std::optional<uint32_t>, 2>
      queues{};  // the device's queue numbers (uptempo/vgpu/query.h)
  std::vector<Bench::Packet> packets{};
  std::function<std::optional<Bench::Place>(uint64_t address)> place_of;
};

// One line of a report. Throws std::runtime_error with the line if it is not a finding.
Finding finding_of(std::string_view line, const Sequence& sequence, const Placement& placement);

// Whether steps and complaint are equal, ignoring byte and run.
bool same(const Finding& a, const Finding& b) noexcept;
// Whether the pair and its order are equal. Without order, which of the two comes first is random.
bool agrees(const Finding& finding, const Hazard& hazard) noexcept;
// The hazard that a finding agrees with, preferably with the same reads and writes. Null: the rules
// do not know it.
const Hazard* hazard_of(const Finding& finding, const std::vector<Hazard>& hazards) noexcept;

// The finding to report first: missing order before a missing fence, possible on the target before
// harmless, early steps before late. Null if there is none.
const Finding* worst_of(const std::vector<Finding>& findings) noexcept;

// for example "'pass 1.1' (2) reads what 'pass 1.0' (1) wrote to keys, from byte 128"
std::string in_words(const Finding& finding, const Sequence& sequence);
// The step that touches the byte without declaring it. No value if both declare it, or if the byte
// is in no buffer.
std::optional<size_t> undeclared(const Finding& finding, const Sequence& sequence);

}  // namespace uptempo::fence_scope
