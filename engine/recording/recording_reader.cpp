#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <variant>

#include <uptempo/recording/recording_payload.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

using nlohmann::json;

uint64_t number(const Origin& origin, const std::string& where, const json& value, uint64_t least,
                uint64_t most) {
  if (!value.is_number_unsigned()) origin.nonsense(fmt::format("{} is not a whole number", where));
  const auto found = value.get<uint64_t>();
  if (found < least || found > most)
    origin.nonsense(fmt::format("{} is {}, not from {} to {}", where, found, least, most));
  return found;
}

// One map of the file. Members are read one by one; require_no_more() refuses members that were not
// read.
class Map {
 public:
  Map(const Origin& origin, std::string where, const json& value)
      : origin_(origin), where_(std::move(where)), value_(value) {
    if (!value.is_object()) origin_.nonsense(fmt::format("{} is not a map", where_));
  }

  std::string path(const char* key) const { return fmt::format("'{}' of {}", key, where_); }
  bool has(const char* key) const { return value_.contains(key); }
  const json& at(const char* key) {
    const auto found = value_.find(key);
    if (found == value_.end()) origin_.nonsense(fmt::format("{} has no '{}'", where_, key));
    ++asked_;
    return *found;
  }
  uint64_t number(const char* key, uint64_t least, uint64_t most) {
    return detail::number(origin_, path(key), at(key), least, most);
  }
  const std::string& text(const char* key) {
    return require(key, &json::is_string, "is not a string").get_ref<const std::string&>();
  }
  const json& list(const char* key) { return require(key, &json::is_array, "is not a list"); }
  bool flag(const char* key) {
    return require(key, &json::is_boolean, "is neither true nor false").get<bool>();
  }
  template <class Value, size_t N>
  Value one_of(const char* key, const NameInFile<Value> (&names)[N]) {
    const std::string& name = text(key);
    for (const NameInFile<Value>& entry : names)
      if (name == entry.name) return entry.value;
    origin_.nonsense(fmt::format("{} is '{}', which is unknown", path(key), name));
  }
  void require_no_more() const {
    if (asked_ == value_.size()) return;
    origin_.nonsense(fmt::format("{} has unknown members", where_));
  }

 private:
  const json& require(const char* key, bool (json::*is)() const noexcept, const char* otherwise) {
    const json& value = at(key);
    if (!(value.*is)()) origin_.nonsense(fmt::format("{} {}", path(key), otherwise));
    return value;
  }

  const Origin& origin_;
  const std::string where_;
  const json& value_;
  size_t asked_ = 0;
};

uint64_t hash(const Origin& origin, Map& map, const char* key) {
  const std::string& digits = map.text(key);
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    origin.nonsense(fmt::format("{} is not a hash", map.path(key)));
  return std::stoull(digits, nullptr, 16);
}

// Parses exactly as many bytes as fit from hexadecimal text.
void unhex(const Origin& origin, const std::string& where, const std::string& digits,
           std::span<std::byte> into) {
  const auto digit = [&](char c) -> unsigned {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
    origin.nonsense(fmt::format("{} has a character that is not a hexadecimal digit", where));
  };
  if (digits.size() != 2 * into.size())
    origin.nonsense(fmt::format("{} has {} digits, but the kernel takes {} bytes", where,
                                digits.size(), into.size()));
  for (size_t i = 0; i < into.size(); ++i)
    into[i] = static_cast<std::byte>(digit(digits[2 * i]) << 4 | digit(digits[2 * i + 1]));
}

std::shared_ptr<const KernelInfo> find_kernel(const Origin& origin, const std::string& name,
                                              const CodeIdentity& wanted, PrivateBytes stack,
                                              const std::vector<KernelSource>& sources) {
  std::string others, other_stacks, all;
  const auto add = [](std::string& list, const char* between, const std::string& one) {
    list += (list.empty() ? "" : between) + one;
  };
  for (const KernelSource& source : sources) {
    if (const auto* const program = std::get_if<Program>(&source)) {
      const std::vector<std::string> names = program->kernel_names();
      const bool has = std::find(names.begin(), names.end(), name) != names.end();
      if (has && program->identity() == wanted) return program->kernel_info(name, stack);
      if (has) add(others, "; ", to_string(program->identity()));
      for (const std::string& known : names) add(all, ", ", fmt::format("'{}'", known));
      continue;
    }
    const auto& kernel = std::get<std::shared_ptr<const KernelInfo>>(source);
    if (kernel == nullptr) continue;
    if (kernel->name == name && kernel->code == wanted) {
      if (kernel->stack == stack) return kernel;
      add(other_stacks, " and ", fmt::format("PrivateBytes{{{}}}", kernel->stack.per_work_item));
    } else if (kernel->name == name) {
      add(others, "; ", to_string(kernel->code));
    }
    add(all, ", ", fmt::format("'{}'", kernel->name));
  }
  if (!other_stacks.empty())
    origin.refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT,
                  fmt::format("it needs kernel '{}' with PrivateBytes{{{}}}; the caller passed it "
                              "with {}",
                              name, stack.per_work_item, other_stacks),
                  "pass the program, or the kernel with these PrivateBytes");
  if (others.empty())
    origin.refuse(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME,
                  fmt::format("it needs kernel '{}' of {}; the caller passed {}", name,
                              to_string(wanted), all.empty() ? "no kernels" : all),
                  "pass the program that the recording was made with");
  const bool other_target = others.find(wanted.target + ",") == std::string::npos;
  origin.refuse(
      HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
      fmt::format("it needs kernel '{}' of {}; the caller passed one {} code object: {}", name,
                  to_string(wanted),
                  other_target ? "for another target and from another" : "from another", others),
      "pass the program that the recording was made with, or record and save it again");
}

struct Range {
  std::string name;
  uintptr_t begin;
  uint64_t size_bytes;  // when it was saved
};

Range find_memory(const Origin& origin, Map map, const Bindings& memory) {
  Range range{
      .name = map.text("name"), .begin = 0, .size_bytes = map.number("size_bytes", 1, UINT64_MAX)};
  map.require_no_more();
  const MemoryRange* const found = memory.find(range.name);
  const char* const remedy = "name memory of at least that size in the Bindings";
  if (found == nullptr)
    origin.refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT,
                  fmt::format("it uses memory '{}' of {} bytes; named are {}", range.name,
                              range.size_bytes, memory.list()),
                  remedy);
  if (found->size_bytes < range.size_bytes)
    origin.refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT,
                  fmt::format("it uses memory '{}' of {} bytes; the one of that name has {}",
                              range.name, range.size_bytes, found->size_bytes),
                  remedy);
  range.begin = found->begin;
  return range;
}

class Reader {
 public:
  Reader(const Origin& origin, uint64_t version, const std::vector<KernelSource>& sources,
         const Bindings& memory)
      : origin_(origin), version_(version), sources_(sources), memory_(memory) {}

  void tables(Map& root) {
    for (const json& entry : root.list("kernels")) {
      Map map(origin_, fmt::format("kernel {}", kernels_.size()), entry);
      const CodeIdentity code(map.text("target"), map.number("code_bytes", 1, UINT64_MAX),
                              hash(origin_, map, "code_hash"));
      const std::string& name = map.text("name");
      PrivateBytes stack;
      if (version_ >= 4 && map.has("private_bytes"))
        stack.per_work_item =
            static_cast<uint32_t>(map.number("private_bytes", 1, PrivateBytes::kMost));
      map.require_no_more();
      kernels_.push_back(find_kernel(origin_, name, code, stack, sources_));
    }
    for (const json& entry : root.list("memory"))
      ranges_.push_back(find_memory(
          origin_, Map(origin_, fmt::format("memory {}", ranges_.size()), entry), memory_));
  }

  // Adds the next node to the recording.
  void node(const json& value, RecordingState& to) const {
    const std::string where = fmt::format("node {}", to.size());
    Map map(origin_, where, value);
    if (map.has("barrier")) {
      finished(map, map.text("barrier"), to);
    } else {
      const std::shared_ptr<const KernelInfo>& kernel =
          kernels_[index(map.path("kernel"), map.at("kernel"), kernels_.size())];
      const Grid grid = grid_of(map);
      try {
        require_geometry(*kernel, grid);
      } catch (const Error& error) {
        origin_.refuse(HSA_STATUS_ERROR_INVALID_FILE,
                       fmt::format("{}, a dispatch of '{}' with {}: {}", where, kernel->name,
                                   error.asked(), error.found()),
                       fmt::format("record and save it again: {}", error.remedy()));
      }
      const OpenNode node = to.add(kernel, grid);
      to.set_group_segment_size(node.handle.packet, arguments(map, node));
      declarations(map, node.handle);
    }
    map.require_no_more();
  }

 private:
  size_t index(const std::string& where, const json& value, size_t count) const {
    if (count == 0) origin_.nonsense(fmt::format("{} refers to an empty list", where));
    return static_cast<size_t>(number(origin_, where, value, 0, count - 1));
  }

  void finished(Map& map, const std::string& kind, RecordingState& to) const {
    if (kind == "closing") return to.complete_finished();
    if (kind != "and" && kind != "or")
      origin_.nonsense(fmt::format("{} is '{}', which is unknown", map.path("barrier"), kind));
    const aql::HeaderFlags flags{
        .barrier = map.flag("waits") ? aql::Barrier::on : aql::Barrier::off,
        .acquire = map.one_of("acquire", kScopeNames),
        .release = map.one_of("release", kScopeNames)};
    to.raw(kind == "and" ? aql::to_packet(aql::BarrierAnd{.flags = flags})
                         : aql::to_packet(aql::BarrierOr{.flags = flags}));
  }

  Grid grid_of(Map& map) const {
    uint32_t sizes[2][3] = {{1, 1, 1}, {1, 1, 1}};
    size_t dimensions = 0;
    for (size_t which = 0; which < 2; ++which) {
      const char* const key = which == 0 ? "grid" : "workgroup";
      const json& found = map.list(key);
      if (found.empty() || found.size() > 3 || (which == 1 && found.size() != dimensions))
        origin_.nonsense(fmt::format("{} has {} sizes", map.path(key), found.size()));
      dimensions = found.size();
      for (size_t d = 0; d < dimensions; ++d)
        sizes[which][d] =
            static_cast<uint32_t>(number(origin_, map.path(key), found[d], 0, UINT32_MAX));
    }
    Grid grid =
        Grid(sizes[0][0], sizes[0][1], sizes[0][2]).by(sizes[1][0], sizes[1][1], sizes[1][2]);
    grid.dimensions = static_cast<uint16_t>(dimensions);
    // Version 1 has no such member.
    if (version_ >= 2 && map.has("lds"))
      grid.lds_bytes = static_cast<uint32_t>(map.number("lds", 1, UINT32_MAX));
    return grid;
  }

  // Returns the address at `memory` and `offset`. Requires `bytes` bytes from there in the range.
  uintptr_t place(Map& map, uint64_t bytes) const {
    const Range& range = ranges_[index(map.path("memory"), map.at("memory"), ranges_.size())];
    const uint64_t offset = map.number("offset", 0, range.size_bytes - 1);
    if (bytes > range.size_bytes - offset)
      origin_.nonsense(fmt::format("{} is {}: with {} bytes from there it leaves '{}' of {} bytes",
                                   map.path("offset"), offset, bytes, range.name,
                                   range.size_bytes));
    return range.begin + static_cast<uintptr_t>(offset);
  }

  // Writes the node's arguments. Returns the size of its group segment.
  uint32_t arguments(Map& map, const OpenNode& node) const {
    const ArgumentLayout& layout = node.kernel->arguments;
    const json& list = map.list("arguments");
    if (list.size() != layout.explicit_count())
      origin_.nonsense(fmt::format("{} has {} entries; kernel '{}' takes {} arguments",
                                   map.path("arguments"), list.size(), node.kernel->name,
                                   layout.explicit_count()));
    uint32_t group_segment = node.group_segment_bytes;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = fmt::format("argument {} of {}", i, map.path("arguments"));
      const std::span<std::byte> bytes(node.block + layout.offset(i), layout.size(i));
      const ArgumentType::Kind kind = layout.kind(i);
      if (kind != ArgumentType::Kind::value &&
          bytes.size() !=
              (kind == ArgumentType::Kind::address ? sizeof(uintptr_t) : sizeof(uint32_t)))
        origin_.nonsense(
            fmt::format("{} is of {} bytes, which is neither an address nor an LDS array", where,
                        bytes.size()));
      switch (kind) {
        case ArgumentType::Kind::address: {
          uintptr_t address = 0;
          if (!list[i].is_null()) {
            Map argument(origin_, where, list[i]);
            address = place(argument, 1);
            argument.require_no_more();
          }
          std::memcpy(bytes.data(), &address, sizeof address);
          break;
        }
        case ArgumentType::Kind::local: {
          Map argument(origin_, where, list[i]);
          const uint64_t begin = align_local(group_segment);
          const uint32_t limit = node.kernel->max_group_segment_size;
          if (begin > limit)
            origin_.nonsense(fmt::format("{} begins at byte {} of group memory; the limit is {}",
                                         where, begin, limit));
          const LocalBytes local{static_cast<uint32_t>(argument.number("local", 0, limit - begin))};
          argument.require_no_more();
          store_argument(node.block, layout.offset(i), local, group_segment);
          break;
        }
        case ArgumentType::Kind::value: {
          Map argument(origin_, where, list[i]);
          unhex(origin_, argument.path("value"), argument.text("value"), bytes);
          argument.require_no_more();
          break;
        }
      }
    }
    return group_segment;
  }

  void declarations(Map& map, const NodeHandle& packet) const {
    if (map.has("accesses")) {
      Declarations& own = packet.declarations();
      own.declare(packet.accesses(), nullptr, 0, false);
      for (const json& entry : map.list("accesses")) {
        Map access(origin_, fmt::format("access {} of {}", own.access_count, map.path("accesses")),
                   entry);
        const uint64_t bytes = access.number("size_bytes", 1, UINT64_MAX);
        const uintptr_t begin = place(access, bytes);
        own.declare(packet.accesses(), reinterpret_cast<const void*>(begin), bytes,
                    access.flag("writes"));
        access.require_no_more();
      }
    }
    if (version_ >= 3 && map.has("after")) {
      std::vector<size_t> earlier;
      for (const json& entry : map.list("after"))
        earlier.push_back(
            index(fmt::format("dependency {} of {}", earlier.size(), map.path("after")), entry,
                  packet.packet));
      packet.declarations().depend(packet.accesses(), packet.packet, earlier);
    }
    if (map.has("acquire") || map.has("release")) {
      const aql::FenceScope acquire = map.one_of("acquire", kScopeNames);
      packet.declarations().give_fences(acquire, map.one_of("release", kScopeNames));
    }
    if (map.has("observer"))
      packet.declarations().observer = map.one_of("observer", kObserverNames);
    if (map.has("without_barrier"))
      packet.declarations().without_barrier = map.flag("without_barrier");
  }

  const Origin& origin_;
  const uint64_t version_;
  const std::vector<KernelSource>& sources_;
  const Bindings& memory_;
  std::vector<std::shared_ptr<const KernelInfo>> kernels_;
  std::vector<Range> ranges_;
};

}  // namespace

void read_payload(std::string_view payload, uint64_t version, const Origin& origin,
                  const std::vector<KernelSource>& kernels, const Bindings& memory,
                  RecordingState& to) {
  const json root = json::parse(payload, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) origin.nonsense("bytes that are not JSON");
  Map map(origin, "the recording", root);
  Reader reader(origin, version, kernels, memory);
  reader.tables(map);
  for (const json& node : map.list("nodes")) reader.node(node, to);
  map.require_no_more();
}

}  // namespace uptempo::detail
