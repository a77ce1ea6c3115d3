// The arguments of recorded nodes: changes, and the declared ranges that follow their addresses.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <uptempo/recording/recording_state.hpp>

namespace uptempo::detail {
namespace {

uintptr_t address_at(const std::byte* bytes) noexcept {
  uintptr_t address;
  std::memcpy(&address, bytes, sizeof address);
  return address;
}

}  // namespace

uint64_t RecordingState::place_local_arrays(uint32_t index, uint64_t begin,
                                            const std::byte* arguments,
                                            std::byte* block) const noexcept {
  const ArgumentLayout& layout = nodes_[index].kernel->arguments;
  const auto offset_at = [&](size_t argument) {
    uint32_t offset = 0;
    std::memcpy(&offset, arguments + layout.offset(argument), sizeof offset);
    return offset;
  };
  const auto next_array = [&](size_t argument) {
    while (argument < layout.explicit_count() && layout.kind(argument) != ArgumentType::Kind::local)
      ++argument;
    return argument;
  };
  uint64_t end = begin;
  for (size_t i = next_array(0); i < layout.explicit_count();) {
    const size_t next = next_array(i + 1);
    const uint32_t array_end = next < layout.explicit_count()
                                   ? offset_at(next)
                                   : publication_.packets[index].group_segment_size();
    const uint32_t bytes = array_end - offset_at(i);
    const uint64_t offset = align_local(end);
    if (block != nullptr) {  // may equal `arguments`: every byte written here has been read
      const auto offset_argument = static_cast<uint32_t>(offset);
      std::memcpy(block + layout.offset(i), &offset_argument, sizeof offset_argument);
    }
    end = offset + bytes;
    i = next;
  }
  return end;
}

std::byte* RecordingState::writable_argument(const NodeHandle& node, size_t argument) {
  const Recorded& recorded = find(node);
  return writable_block(node.packet) + recorded.kernel->arguments.offset(argument);
}

void RecordingState::set_address(const NodeHandle& node, size_t argument, uintptr_t value) {
  const Recorded& recorded = find(node);
  const uint32_t offset = recorded.kernel->arguments.offset(argument);
  const bool moves = declares_memory(node.packet);
  if (moves) {
    if (address_at(recorded.host + offset) == value) return;
    require_movable(node.packet, argument);
  }
  std::memcpy(writable_block(node.packet) + offset, &value, sizeof value);
  if (moves) move_ranges(node.packet, argument, value);
}

bool RecordingState::declares_memory(uint32_t index) const noexcept {
  return publication_.find_declared(index).declares_memory(publication_.accesses);
}

std::span<AccessRange> RecordingState::ranges_of(uint32_t index) noexcept {
  const Declarations& own = publication_.declared[index];
  return std::span(publication_.accesses).subspan(own.first_access, own.access_count);
}

// Calls visit(argument, its value) for each address argument.
template <class Visit>
void RecordingState::each_address(uint32_t index, Visit&& visit) const {
  const Recorded& recorded = nodes_[index];
  const ArgumentLayout& layout = recorded.kernel->arguments;
  for (uint32_t i = 0; i < layout.explicit_count(); ++i)
    if (layout.kind(i) == ArgumentType::Kind::address)
      visit(i, address_at(recorded.host + layout.offset(i)));
}

// A range moves with the argument that it starts at. It is found before the node's first change of
// an address: later, two arguments may be equal for a moment, as in the middle of a swap. A range
// that starts at several arguments becomes one range for each of them. One that contains another
// argument's address may describe accesses through both, so it moves with neither.
void RecordingState::find_arguments_of_ranges(uint32_t index) {
  for (size_t i = 0; i < ranges_of(index).size(); ++i) {
    AccessRange range = ranges_of(index)[i];
    if (range.is_dependency || range.argument != 0) continue;
    uint32_t first = 0;
    bool contains_other = false;
    each_address(index, [&](uint32_t, uintptr_t value) {
      contains_other = contains_other || (value > range.begin && value < range.end);
    });
    if (contains_other) continue;
    each_address(index, [&](uint32_t argument, uintptr_t value) {
      if (value != range.begin) return;
      range.argument = argument + 1;
      if (first == 0) {
        first = range.argument;
      } else if (const auto all = ranges_of(index); std::ranges::find(all, range) == all.end()) {
        publication_.declared[index].add(publication_.accesses, range);
      }
    });
    ranges_of(index)[i].argument = first;  // last: an exception leaves the range as it was
  }
}

// Each range must move with an argument, and each argument that the kernel may follow must have
// one: otherwise it may access the bytes of another argument's range. A value may hold an address,
// too: a range that moves must not leave it behind.
void RecordingState::require_movable(uint32_t index, size_t argument) {
  find_arguments_of_ranges(index);
  const auto refuse = [&](const std::string& found) {
    refuse_recording(fmt::format("another address for argument {} of node {}", argument, index),
                     "the node's accesses are declared, and " + found,
                     "declare one range or more from each address argument on, or replace() the "
                     "node and declare it again");
  };
  for (const AccessRange& range : ranges_of(index))
    if (!range.is_dependency && range.argument == 0)
      refuse(
          fmt::format("the range of {} bytes at 0x{:x} starts at none of its address arguments, "
                      "or contains another one's address",
                      range.end - range.begin, range.begin));
  each_address(index, [&](uint32_t i, uintptr_t value) {
    const auto starts = [i](const AccessRange& range) { return range.argument == i + 1; };
    if ((value != 0 || i == argument) && std::ranges::none_of(ranges_of(index), starts))
      refuse(fmt::format("no range starts at argument {}", i));
  });
  const Recorded& recorded = nodes_[index];
  const ArgumentLayout& layout = recorded.kernel->arguments;
  for (size_t i = 0; i < layout.explicit_count(); ++i) {
    if (layout.kind(i) != ArgumentType::Kind::value) continue;
    each_word(layout, i, [&](uint32_t at) {
      const uintptr_t word = address_at(recorded.host + at);
      for (const AccessRange& range : ranges_of(index))
        if (range.argument == argument + 1 && range.begin != 0 && range.begin <= word &&
            word < range.end)
          refuse(fmt::format(
              "bytes {} to {} of argument {}, a value, are an address in the range that would move",
              at - layout.offset(i), at - layout.offset(i) + 7, i));
    });
  }
}

void RecordingState::move_ranges(uint32_t index, size_t argument, uintptr_t to) noexcept {
  for (AccessRange& range : ranges_of(index))
    if (range.argument == argument + 1) range.move_to(to);
  publication_.replan();
}

void RecordingState::set_value(const NodeHandle& node, size_t argument,
                               std::span<const std::byte> value) {
  const KernelInfo& kernel = *find(node).kernel;
  const ArgumentLayout& layout = kernel.arguments;
  const auto refuse_value = [&](std::string found, std::string remedy) {
    refuse_recording(
        fmt::format("{} bytes for argument {} of node {}", value.size(), argument, node.packet),
        std::move(found), std::move(remedy));
  };
  if (argument >= layout.explicit_count())
    refuse_value(
        fmt::format("kernel '{}' takes {} arguments", kernel.name, layout.explicit_count()),
        "count arguments from 0");
  if (layout.kind(argument) == ArgumentType::Kind::local)
    refuse_value("it is an LDS array, whose size is part of the packet", "replace() the node");
  if (layout.size(argument) != value.size())
    refuse_value(fmt::format("kernel '{}' takes {}", kernel.name, layout.size(argument)),
                 "pass the whole value and nothing else");
  if (layout.kind(argument) == ArgumentType::Kind::address)
    return set_address(node, argument, address_at(value.data()));
  std::memcpy(writable_argument(node, argument), value.data(), value.size());
}

void RecordingState::set_values(const NodeHandle& node, const Arguments& values) {
  const Recorded& recorded = find(node);
  const ArgumentLayout& layout = recorded.kernel->arguments;
  layout.require(values);
  if (layout.has_local())
    refuse_recording(fmt::format("other arguments for node {}", node.packet),
                     "LDS arrays are among them, whose sizes are part of the packet",
                     "replace() the node");
  const bool declares = declares_memory(node.packet);
  bool differ = false, move = false;
  for (size_t i = 0; i < layout.explicit_count(); ++i) {
    if (std::memcmp(recorded.host + layout.offset(i), layout.value(values, i), layout.size(i)) == 0)
      continue;
    differ = true;
    if (!declares || layout.kind(i) != ArgumentType::Kind::address) continue;
    require_movable(node.packet, i);
    move = true;
  }
  if (!differ) return;
  uint32_t group_segment = 0;
  std::byte* const block = writable_block(node.packet);
  layout.store(block, values, group_segment);
  for (size_t i = 0; move && i < layout.explicit_count(); ++i)
    if (layout.kind(i) == ArgumentType::Kind::address)
      move_ranges(node.packet, i, address_at(block + layout.offset(i)));
}

}  // namespace uptempo::detail
