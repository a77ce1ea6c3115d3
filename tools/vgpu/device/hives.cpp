#include "device/hives.hpp"

#include <algorithm>

namespace uptempo::vgpu {

std::optional<HivePlace> hive_place(uint32_t gpu, const Options& options) {
  const DeviceDescription* const board = options.gpus[gpu];
  const auto first = options.gpus.begin();
  const auto before = static_cast<uint32_t>(std::count(first, first + gpu, board));
  const auto all = static_cast<uint32_t>(std::count(first, options.gpus.end(), board));
  const uint32_t number = before / board->hive_boards;  // of the hive, among those of the target
  const uint32_t boards = std::min(board->hive_boards, all - number * board->hive_boards);
  if (boards < 2) return std::nullopt;
  const auto targets = device_descriptions();
  const auto target = static_cast<uint32_t>(
      std::ranges::find(targets, board->target, &DeviceDescription::target) - targets.begin());
  return HivePlace{1 + target * Options::kMostGpus + number, before % board->hive_boards, boards};
}

bool share_hive(uint32_t gpu, uint32_t peer, const Options& options) {
  const auto here = hive_place(gpu, options), there = hive_place(peer, options);
  return here && there && here->hive == there->hive;
}

}  // namespace uptempo::vgpu
