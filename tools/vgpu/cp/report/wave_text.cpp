#include "cp/report/wave_text.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cp/report/code_place.hpp"
#include "cp/report/packet_text.hpp"
#include "device/demangled.hpp"

namespace uptempo::vgpu {
namespace {

constexpr size_t kMaxWaveLines = 12;
constexpr size_t kMaxPlaces = 256;  // that are decoded

// Waves with equal keys share a line.
struct WaveKey {
  GpuAddress begin = 0, end = 0;  // of the loop, or both the instruction
  uint64_t exec = 0;
  gfx9::WaveStop stop = gfx9::WaveStop::quantum;
  bool global_barrier = false;
  bool sleeps = false;
  uint32_t missing = 0;  // bit i: wave i has not arrived at the barrier
  uint32_t ended = 0;    // bit i: wave i has ended; only for waves at a barrier
  uint32_t waves = 0;    // bit i: wave i of the workgroup is one of these

  auto operator<=>(const WaveKey&) const = default;
};

struct WaveGroup {
  uint64_t workgroups = 0;
  std::array<uint32_t, 3> first{};
  GpuAddress pc = 0;                               // of the first wave
  std::shared_ptr<const WaveRegisters> registers;  // its; or null
};

using WaveGroups = std::map<WaveKey, WaveGroup>;
using Places = std::map<GpuAddress, CodePlace>;

// "waves 0-3, 5"
std::string waves_text(uint32_t mask) {
  std::string list;
  for (unsigned first = 0; first < 32; ++first) {
    if ((mask >> first & 1) == 0) continue;
    unsigned last = first;
    while (last + 1 < 32 && (mask >> (last + 1) & 1) != 0) ++last;
    if (!list.empty()) list += ", ";
    list += std::to_string(first);
    if (last != first) list += '-' + std::to_string(last);
    first = last;
  }
  return ((mask & (mask - 1)) == 0 ? "wave " : "waves ") + list;
}

std::string offset_text(const DispatchSnapshot& dispatch, GpuAddress at) {
  return at >= dispatch.entry ? "+" + hex_text(at - dispatch.entry)
                              : "-" + hex_text(dispatch.entry - at);
}

std::string group_text(const std::array<uint32_t, 3>& id) {
  std::string text = std::to_string(id[0]);
  text.append(",").append(std::to_string(id[1])).append(",").append(std::to_string(id[2]));
  return '(' + text + ')';
}

class WaveLines {
 public:
  WaveLines(const DispatchSnapshot& dispatch, AddressSpace::Reader& memory)
      : dispatch_(dispatch), memory_(memory) {
    for (const WorkgroupSnapshot& workgroup : dispatch.resident) add(workgroup);
  }

  const WaveGroups& groups() const noexcept { return groups_; }

  // The waves' activity or wait.
  std::string activity(const WaveKey& key, const WaveGroup& group) const {
    if (key.stop == gfx9::WaveStop::barrier) {
      std::string text = "at s_barrier; " + waves_text(key.missing) +
                         ((key.missing & (key.missing - 1)) == 0 ? " has" : " have") +
                         " not arrived";
      if (key.ended != 0) text += "; " + waves_text(key.ended) + " ended";
      return text;
    }
    if (key.global_barrier) return "at a barrier for all waves of the queue (ds_gws_barrier)";
    const auto found = places_.find(group.pc);
    if (found == places_.end()) return "not decoded";
    const CodePlace& place = found->second;
    if (!place.readable) return "no instruction of this GPU is there";
    std::string text;
    if (key.sleeps) text = "in s_sleep, then " + std::string(place.instruction);
    if (!key.sleeps && place.loop_begin == 0) text = "at " + std::string(place.instruction);
    if (place.loop_begin == 0) return text;
    text += text.empty() ? "in a loop of " : ", in a loop of ";
    text += std::to_string(place.loop_instructions) + " instructions";
    if (place.loop_sleeps) text += " with s_sleep";
    if (place.access.empty()) return text + (place.loop_sleeps ? "" : " without loads");
    return text + (place.loop_sleeps ? " and " : " with ") + std::string(place.access) + " (" +
           offset_text(dispatch_, place.access_at) + ")";
  }

  struct AccessLine {
    GpuAddress address = 0;
    uint64_t bytes = 0;
    std::string text;
  };

  // The address that the loop's load or atomic accesses; nullopt if it is not known.
  std::optional<AccessLine> access(const WaveGroup& group) const {
    const auto found = places_.find(group.pc);
    if (found == places_.end() || !found->second.addressed || group.registers == nullptr)
      return std::nullopt;
    const CodePlace& place = found->second;
    const auto address = accessed_address(*place.addressed, *group.registers);
    if (!address) return std::nullopt;
    const bool wide = loads_64_bits(*place.addressed);
    std::string text = word_text(*address, wide);
    if (place.condition) text += awaited_text(*place.condition, *group.registers);
    return AccessLine{*address, wide ? sizeof(uint64_t) : sizeof(uint32_t), std::move(text)};
  }

 private:
  // The word that the first lane accesses, as it is now.
  std::string word_text(GpuAddress address, bool wide) const {
    std::string text = "the first lane accesses " + hex_text(address);
    const auto value = wide ? value_at<uint64_t>(address) : value_at<uint32_t>(address);
    return value ? text + ", where " + hex_text(*value) + " is now" : text;
  }

  template <typename T>
  std::optional<uint64_t> value_at(GpuAddress address) const {
    if (address % sizeof(T) != 0) return std::nullopt;
    auto* const word = reinterpret_cast<T*>(memory_.translate(address, sizeof(T), Access::read));
    if (word == nullptr) return std::nullopt;
    return std::atomic_ref<T>(*word).load(std::memory_order_relaxed);
  }

  void add(const WorkgroupSnapshot& workgroup) {
    uint32_t live = 0, arrived = 0;
    for (size_t index = 0; index < workgroup.waves.size(); ++index) {
      const uint32_t bit = 1u << index;
      if (workgroup.waves[index].stop == gfx9::WaveStop::ended) continue;
      live |= bit;
      if (workgroup.waves[index].stop == gfx9::WaveStop::barrier) arrived |= bit;
    }
    struct First {
      uint32_t mask = 0;
      GpuAddress pc = 0;
      const WaveSnapshot* wave = nullptr;
    };
    std::map<WaveKey, First> of_workgroup;
    for (size_t index = 0; index < workgroup.waves.size(); ++index) {
      if ((live >> index & 1) == 0) continue;
      const WaveSnapshot& wave = workgroup.waves[index];
      WaveKey key{.begin = wave.pc, .end = wave.pc, .exec = wave.exec, .stop = wave.stop};
      if (wave.stop == gfx9::WaveStop::barrier) {
        constexpr GpuAddress kBarrierBytes = 4;
        key.begin = key.end = wave.pc - kBarrierBytes;
        key.missing = live & ~arrived;
        const uint32_t all = static_cast<uint32_t>((uint64_t{1} << workgroup.waves.size()) - 1);
        key.ended = all & ~live;
      } else if (wave.global_barrier) {
        key.global_barrier = true;
      } else {
        // A wave that polls is preempted anywhere in its loop, in s_sleep or not.
        if (const CodePlace* place = place_at(wave.pc)) {
          if (place->loop_begin != 0) {
            key.begin = place->loop_begin;
            key.end = place->loop_end;
          }
          key.sleeps =
              place->loop_begin == 0 && wave.stop == gfx9::WaveStop::yield && place->after_sleep;
        }
        key.stop = gfx9::WaveStop::quantum;
      }
      First& first = of_workgroup[key];
      if (first.mask == 0) {
        first.pc = key.begin == key.end ? key.begin : wave.pc;
        first.wave = &wave;
      }
      first.mask |= 1u << index;
    }
    for (const auto& [key, first] : of_workgroup) {
      WaveKey with_waves = key;
      with_waves.waves = first.mask;
      WaveGroup& group = groups_[with_waves];
      if (group.workgroups == 0 || workgroup.id < group.first) {
        group.first = workgroup.id;
        group.pc = first.pc;
        group.registers = first.wave->registers;
      }
      ++group.workgroups;
    }
  }

  const CodePlace* place_at(GpuAddress pc) {
    if (const auto found = places_.find(pc); found != places_.end()) return &found->second;
    if (places_.size() >= kMaxPlaces) return nullptr;
    return &places_.emplace(pc, code_place(memory_, pc, dispatch_.target)).first->second;
  }

  const DispatchSnapshot& dispatch_;
  AddressSpace::Reader& memory_;
  Places places_;
  WaveGroups groups_;
};

}  // namespace

void add_waves(ReportText& text, size_t indent, const DispatchSnapshot& dispatch, uint32_t gpu,
               AddressSpace::Reader& memory, SourceLookup* sources,
               const std::function<void(size_t indent, GpuAddress, uint64_t bytes)>& accessed) {
  const WaveLines lines(dispatch, memory);
  std::vector<std::pair<WaveKey, WaveGroup>> sorted(lines.groups().begin(), lines.groups().end());
  // The most common first.
  std::ranges::stable_sort(sorted, {}, [](const auto& group) {
    return std::pair(~group.second.workgroups, std::countr_zero(group.first.waves));
  });
  const std::string kernel = shown_kernel(dispatch.kernel).substr(0, 40);
  for (const auto& [key, group] : std::span(sorted).first(std::min(sorted.size(), kMaxWaveLines))) {
    std::string line = waves_text(key.waves);
    line += group.workgroups == 1 ? " of workgroup " + group_text(group.first)
                                  : " of " + std::to_string(group.workgroups) +
                                        " workgroups, first " + group_text(group.first);
    line += ": " + kernel + offset_text(dispatch, key.begin);
    if (key.end != key.begin) line += " to " + offset_text(dispatch, key.end);
    if (sources != nullptr) {
      memory.leave();  // unmap() waits for the end of a section
      const std::string source = sources->line(gpu, group.pc);
      memory.enter();
      if (!source.empty()) line += " (" + source + ")";
    }
    text.line(indent, line);
    text.line(indent + 2, "EXEC " + hex_text(key.exec) + "; " + lines.activity(key, group));
    const auto access = lines.access(group);
    if (!access) continue;
    text.line(indent + 2, access->text);
    accessed(indent + 4, access->address, access->bytes);
  }
  if (sorted.size() <= kMaxWaveLines) return;
  uint64_t waves = 0;
  for (const auto& [key, group] : std::span(sorted).subspan(kMaxWaveLines))
    waves += group.workgroups * static_cast<uint64_t>(__builtin_popcount(key.waves));
  text.line(indent, "and " + std::to_string(waves) + " more waves at " +
                        std::to_string(sorted.size() - kMaxWaveLines) + " other places");
}

}  // namespace uptempo::vgpu
