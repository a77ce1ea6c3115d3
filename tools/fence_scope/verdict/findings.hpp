// What the fence checker reports (`uptempo-vgpu --check fences --report FILE`; tools/vgpu/device/fences/finding.hpp), told in the steps of the sequence that was carried out.
//
// A packet is known by its queue and index, so the same kernel may occur as often as it likes. Of a copy the report says which engine it was made by and which bytes it touched:
// it may be any copy of the sequence that touches them, or one that the bench makes for the host.
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
  // The steps that each may be of, the likeliest first. npos: the host, or what the bench does ahead of a run and behind it.
  std::vector<size_t> earlier{}, later{};
  bool ordered = false;
  bool possible_on_target = false;
  bool earlier_writes = true, later_reads = true;
  // The first byte in which they meet; nothing: in none of the sequence's buffers.
  std::optional<Bench::Place> place{};
  std::string reason{};  // in the checker's words
};

// Where the packets of one or several runs of a bench went.
struct Placement {
  std::array<std::optional<uint32_t>, 2> queues{};  // the device's numbers (tools/vgpu/query.h)
  std::vector<Bench::Packet> packets{};
  std::function<std::optional<Bench::Place>(uint64_t address)> place_of;
};

// One line of a report. Throws std::runtime_error with the line for one that is no finding.
Finding finding_of(std::string_view line, const Sequence& sequence, const Placement& placement);

// The same two steps and the same complaint: nothing about which byte, nor in which run.
bool same(const Finding& a, const Finding& b) noexcept;
// The same pair, and whether it is ordered. Which of two comes first when nothing orders them is chance.
bool agrees(const Finding& finding, const Hazard& hazard) noexcept;
// The hazard that a finding agrees with, if it can be with the same reads and writes. Null: the rules know nothing of it.
const Hazard* hazard_of(const Finding& finding, const std::vector<Hazard>& hazards) noexcept;

// The one to tell first: without order before without fence, possible on the target before harmless, early steps before late. Null: there is none.
const Finding* worst_of(const std::vector<Finding>& findings) noexcept;

// "'pass 1.1' (2) reads what 'pass 1.0' (1) wrote to keys, from byte 128 on"
std::string in_words(const Finding& finding, const Sequence& sequence);
// The step that touches the byte without declaring it; nothing: both declare it, or none can, for it is in no buffer.
std::optional<size_t> undeclared(const Finding& finding, const Sequence& sequence);

}  // namespace uptempo::fence_scope
