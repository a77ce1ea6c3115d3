#include "tools/fence_scope/sequence/workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace uptempo::fence_scope {
namespace {

constexpr uint64_t kWord = sizeof(uint32_t);
constexpr uint32_t kWorkgroup = 64, kSortWorkgroup = 256;

// resolve() adds the workload's name.
[[noreturn]] void refuse(const std::string& text) { throw support::UsageError(text); }

template <class T>
Argument value(T of) {
  Argument argument;
  argument.value.resize(sizeof of);
  std::memcpy(argument.value.data(), &of, sizeof of);
  return argument;
}
Argument address(size_t buffer, uint64_t begin = 0) {
  return {.kind = Argument::Kind::address, .buffer = buffer, .begin = begin};
}

// Words that differ from each other and from kernels' results, for 64 KiB, then repeated.
std::vector<std::byte> random_bytes(uint64_t bytes) {
  std::vector<std::byte> made(std::min<uint64_t>(bytes, 65536));
  uint32_t state = 0x9e3779b9;
  for (std::byte& byte : made) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return made;
}

// Bytes [begin, begin + bytes) of a buffer.
struct Piece {
  size_t buffer;
  uint64_t begin, bytes;
};

Grid words_of(const Piece& piece) {
  const uint32_t words = static_cast<uint32_t>(piece.bytes / kWord);
  return Grid{words}.by(std::min(words, kWorkgroup));
}

// out = 7 out + 3 mirrored a + 5 b + number. The result is right only if each input was complete
// and nothing was overwritten too early.
Step combine(std::string name, const Piece& out, const Piece& a, const Piece& b, uint32_t number) {
  Step step{.name = std::move(name), .kernel = "combine", .grid = words_of(out)};
  step.arguments = {address(out.buffer, out.begin), address(a.buffer, a.begin),
                    address(b.buffer, b.begin), value(number)};
  step.accesses = {{out.buffer, out.begin, out.bytes, false},
                   {out.buffer, out.begin, out.bytes, true},
                   {a.buffer, a.begin, a.bytes, false}};
  if (b.buffer != a.buffer || b.begin != a.begin)
    step.accesses.push_back({b.buffer, b.begin, b.bytes, false});
  return step;
}

Sequence sort(const Shape& shape) {
  Sequence sequence;
  sequence.buffers = {{"keys", shape.bytes_per_kernel, BufferKind::device_local,
                       random_bytes(shape.bytes_per_kernel)}};
  const uint32_t keys = static_cast<uint32_t>(shape.bytes_per_kernel / kWord);
  const uint32_t stages = static_cast<uint32_t>(std::bit_width(keys) - 1);
  for (uint32_t stage = 0; stage < stages; ++stage)
    for (uint32_t pass = 0; pass <= stage && sequence.steps.size() < shape.kernels; ++pass) {
      Step step{.name = fmt::format("pass {}.{}", stage, pass),
                .kernel = "bitonic_sort",
                .grid = Grid{keys / 2}.by(std::min(keys / 2, kSortWorkgroup))};
      step.arguments = {address(0), value(stage), value(pass), value(uint32_t{1})};
      step.accesses = {{0, 0, shape.bytes_per_kernel, false}, {0, 0, shape.bytes_per_kernel, true}};
      sequence.steps.push_back(std::move(step));
    }
  return sequence;
}

// Adds `count` links. Link i reads piece i - 1 of the buffer's and writes piece i, cyclically.
void add_chain(Sequence& sequence, size_t buffer, const Shape& shape) {
  const uint64_t pieces = shape.working_set_bytes / shape.bytes_per_kernel;
  const auto piece = [&](uint64_t i) {
    return Piece{buffer, i % pieces * shape.bytes_per_kernel, shape.bytes_per_kernel};
  };
  for (uint32_t i = 0; i < shape.kernels; ++i)
    sequence.steps.push_back(
        combine(fmt::format("link {}", i), piece(i + 1), piece(i), piece(i), i));
}

Sequence chain(const Shape& shape) {
  Sequence sequence;
  sequence.buffers = {{"data", shape.working_set_bytes, BufferKind::device_local,
                       random_bytes(shape.working_set_bytes)}};
  add_chain(sequence, 0, shape);
  return sequence;
}

Sequence independent(const Shape& shape) {
  Sequence sequence;
  sequence.buffers = {{"data", shape.working_set_bytes, BufferKind::device_local,
                       random_bytes(shape.working_set_bytes)}};
  // Spreads the pieces over the whole working set.
  const uint64_t stride =
      shape.working_set_bytes / shape.kernels / shape.bytes_per_kernel * shape.bytes_per_kernel;
  for (uint32_t i = 0; i < shape.kernels; ++i) {
    const Piece mine{0, i * stride, shape.bytes_per_kernel};
    Step step{
        .name = fmt::format("kernel {}", i), .kernel = "chain_increment", .grid = words_of(mine)};
    step.arguments = {address(0, mine.begin), value(i)};
    step.accesses = {{0, mine.begin, mine.bytes, false}, {0, mine.begin, mine.bytes, true}};
    sequence.steps.push_back(std::move(step));
  }
  return sequence;
}

Sequence producer_consumer(const Shape& shape) {
  Sequence sequence;
  const uint64_t slots = shape.working_set_bytes / shape.bytes_per_kernel - 1;
  sequence.buffers = {{"slots", slots * shape.bytes_per_kernel, BufferKind::device_local, {}},
                      {"result", shape.bytes_per_kernel, BufferKind::device_local, {}}};
  const Piece result{1, 0, shape.bytes_per_kernel};
  for (uint32_t i = 0; i < shape.kernels / 2; ++i) {
    const Piece slot{0, i % slots * shape.bytes_per_kernel, shape.bytes_per_kernel};
    Step produce{.name = fmt::format("produce {}", i), .kernel = "iota", .grid = words_of(slot)};
    produce.arguments = {address(0, slot.begin), value(i * 1000003u), value(uint32_t{i + 1})};
    produce.accesses = {{0, slot.begin, slot.bytes, true}};
    // The slot has been read.
    if (i >= slots) produce.after = {2 * (i - slots) + 1};
    sequence.steps.push_back(std::move(produce));

    Step consume = combine(fmt::format("consume {}", i), result, slot, slot, i);
    consume.queue = 1;
    consume.after = {size_t{2} * i};
    sequence.steps.push_back(std::move(consume));
  }
  return sequence;
}

Sequence copy_kernel_copy(const Shape& shape) {
  Sequence sequence;
  const uint64_t bytes = shape.bytes_per_kernel;
  const uint64_t pieces = shape.working_set_bytes / bytes;
  sequence.buffers = {{"in", bytes, BufferKind::fine_grained, random_bytes(bytes)},
                      {"data", shape.working_set_bytes, BufferKind::device_local, {}},
                      {"out", bytes, BufferKind::fine_grained, {}}};
  const auto copy = [&](const char* name, const Piece& from, const Piece& to) {
    Step step{.kind = Step::Kind::copy, .name = name};
    step.from = {from.buffer, from.begin, from.bytes, false};
    step.to = {to.buffer, to.begin, to.bytes, true};
    return step;
  };
  sequence.steps.push_back(copy("copy in", {0, 0, bytes}, {1, 0, bytes}));
  add_chain(sequence, 1, shape);
  sequence.steps[1].after = {0};
  Step out = copy("copy out", {1, shape.kernels % pieces * bytes, bytes}, {2, 0, bytes});
  out.after = {shape.kernels};
  sequence.steps.push_back(std::move(out));
  return sequence;
}

Sequence empty(const Shape& shape) {
  Sequence sequence;
  for (uint32_t i = 0; i < shape.kernels; ++i)
    sequence.steps.push_back({.name = fmt::format("kernel {}", i),
                              .kernel = "empty",
                              .grid = Grid{kWorkgroup}.by(kWorkgroup)});
  return sequence;
}

// ---- shapes

Shape defaults(Shape shape, uint32_t kernels, uint64_t bytes, uint64_t pieces) {
  if (shape.kernels == 0) shape.kernels = kernels;
  if (shape.bytes_per_kernel == 0) shape.bytes_per_kernel = bytes;
  if (shape.working_set_bytes == 0) shape.working_set_bytes = shape.bytes_per_kernel * pieces;
  return shape;
}

void require_pieces(const Shape& shape, uint64_t least) {
  const uint64_t bytes = shape.bytes_per_kernel;
  if (bytes % (kWorkgroup * kWord) != 0)
    refuse(fmt::format("{} bytes per kernel; take a multiple of {}", bytes, kWorkgroup * kWord));
  if (bytes / kWord > UINT32_MAX)
    refuse(fmt::format("{} bytes per kernel; take at most {}", bytes, UINT32_MAX * kWord));
  if (shape.working_set_bytes % bytes != 0 || shape.working_set_bytes / bytes < least)
    refuse(fmt::format(
        "a working set of {} bytes; take a multiple of the {} bytes per kernel, {} or more",
        shape.working_set_bytes, bytes, bytes * least));
}

Shape sort_shape(Shape shape) {
  if (shape.bytes_per_kernel == 0)
    shape.bytes_per_kernel = shape.working_set_bytes != 0 ? shape.working_set_bytes : 32768 * kWord;
  const uint64_t keys = shape.bytes_per_kernel / kWord;
  if (shape.bytes_per_kernel % kWord != 0 || !std::has_single_bit(keys) || keys < 2 ||
      keys > uint64_t{1} << 24)
    refuse(fmt::format(
        "{} bytes per kernel; take 4 bytes per key, for a power of two of keys from 2 to 2^24",
        shape.bytes_per_kernel));
  if (shape.working_set_bytes == 0) shape.working_set_bytes = shape.bytes_per_kernel;
  if (shape.working_set_bytes != shape.bytes_per_kernel)
    refuse(fmt::format("a working set of {} bytes; each kernel touches all of the {} bytes",
                       shape.working_set_bytes, shape.bytes_per_kernel));
  const uint32_t stages = static_cast<uint32_t>(std::bit_width(keys) - 1),
                 passes = stages * (stages + 1) / 2;
  if (shape.kernels == 0) shape.kernels = passes;
  if (shape.kernels > passes)
    refuse(fmt::format("{} kernels; a sort of {} keys has {}", shape.kernels, keys, passes));
  return shape;
}

Shape chain_shape(Shape shape, uint32_t kernels) {
  shape = defaults(shape, kernels, 65536, 2);
  require_pieces(shape, 2);
  return shape;
}

Shape independent_shape(Shape shape) {
  shape = defaults(shape, 32, 65536, shape.kernels != 0 ? shape.kernels : 32);
  require_pieces(shape, shape.kernels);
  return shape;
}

Shape producer_consumer_shape(Shape shape) {
  shape = defaults(shape, 32, 65536, 5);
  if (shape.kernels % 2 != 0)
    refuse(fmt::format("{} kernels; each producer has a consumer, so take an even number",
                       shape.kernels));
  require_pieces(shape, 2);
  return shape;
}

Shape empty_shape(Shape shape) {
  if (shape.bytes_per_kernel != 0 || shape.working_set_bytes != 0)
    refuse("its kernels touch no memory; give only the number of kernels");
  if (shape.kernels == 0) shape.kernels = 128;
  return shape;
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all{
      {"bitonic-sort", "a sort in place, each kernel on the result of the previous one", sort_shape,
       sort},
      {"chain", "each kernel reads all output of the previous one",
       [](const Shape& shape) { return chain_shape(shape, 32); }, chain},
      {"independent", "kernels without common memory", independent_shape, independent},
      {"producer-consumer", "one queue fills slots, the other one folds them into a result",
       producer_consumer_shape, producer_consumer},
      {"copy-kernel-copy", "a copy to the device, a chain of kernels, a copy to the host",
       [](const Shape& shape) { return chain_shape(shape, 4); }, copy_kernel_copy},
      {"empty", "kernels that do nothing", empty_shape, empty}};
  return all;
}

const Workload& find_workload(std::string_view name) {
  std::string names;
  for (const Workload& one : workloads()) {
    if (one.name == name) return one;
    names += (names.empty() ? "" : ", ") + one.name;
  }
  throw support::UsageError(fmt::format("there is no workload '{}'; there are {}", name, names));
}

Shape resolve(std::string_view workload, Shape shape) {
  const Workload& one = find_workload(workload);
  try {
    if (shape.kernels > kMostSteps)
      refuse(fmt::format("{} kernels; take at most {}", shape.kernels, kMostSteps));
    return one.shape(shape);
  } catch (const support::UsageError& error) {
    throw support::UsageError(fmt::format("workload {}: {}", workload, error.what()));
  }
}

Sequence make_workload(std::string_view workload, Shape shape) {
  const Workload& one = find_workload(workload);
  Sequence sequence = one.make(resolve(workload, shape));
  sequence.name = one.name;
  sequence.description = one.description;
  return sequence;
}

}  // namespace uptempo::fence_scope
