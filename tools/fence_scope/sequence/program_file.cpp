#include "tools/fence_scope/sequence/program_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "tools/support/json_field.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::ordered_json;
using Node = support::JsonField;

// The elements of a field that may be missing.
std::vector<Node> elements_of(const Node& object, const char* field, size_t most = SIZE_MAX) {
  const std::optional<Node> found = object.find(field);
  return found ? found->elements(most) : std::vector<Node>{};
}

constexpr const char* kTypes = "u32, i32, f32, u64, i64, f64, bytes";

// Appends the bytes of a number of that type; false for an unknown type.
bool append_scalar(const std::string& type, const Node& node, std::vector<std::byte>& to) {
  const auto append = [&to](auto number) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&number);
    to.insert(to.end(), bytes, bytes + sizeof number);
    return true;
  };
  if (type == "u32") return append(node.whole<uint32_t>());
  if (type == "i32") return append(node.whole<int32_t>());
  if (type == "u64") return append(node.whole<uint64_t>());
  if (type == "i64") return append(node.whole<int64_t>());
  if (type == "f32") return append(node.real<float>());
  if (type == "f64") return append(node.real<double>());
  return false;
}

std::vector<std::byte> bytes_of(const Node& list) {
  std::vector<std::byte> bytes;
  for (const Node& element : list.elements()) bytes.push_back(std::byte{element.whole<uint8_t>()});
  return bytes;
}

class Parser {
 public:
  Parser(const ordered_json& document, const std::string& directory)
      : root_(document), directory_(directory) {}

  Sequence all() {
    root_.object({"name", "description", "code_object", "buffers", "steps"});
    if (const auto name = root_.find("name")) sequence_.name = name->text();
    if (const auto description = root_.find("description"))
      sequence_.description = description->text();
    if (const auto code = root_.find("code_object")) sequence_.code_object = code_object(*code);
    for (const Node& buffer : elements_of(root_, "buffers", kMostBuffers)) add_buffer(buffer);
    const Node steps = root_["steps"];
    for (const Node& step : steps.elements(kMostSteps)) add_step(step);
    require_valid(sequence_);
    return std::move(sequence_);
  }

 private:
  std::vector<std::byte> code_object(const Node& node) const {
    const std::filesystem::path path = std::filesystem::path(directory_) / node.text();
    // A pipe or device may never end.
    std::error_code unknown;
    if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown))
      node.refuse(fmt::format("'{}' is not a regular file", path.string()));
    std::string read;
    try {
      read = support::read_input(path == "-" ? "./-" : path.string());  // "-" is standard input
    } catch (const support::UsageError& error) {
      node.refuse(error.what());
    }
    if (read.empty()) node.refuse(fmt::format("'{}' is empty", path.string()));
    const std::span bytes = std::as_bytes(std::span(read));
    return {bytes.begin(), bytes.end()};
  }

  void add_buffer(const Node& node) {
    node.object({"name", "bytes", "kind", "initial"});
    Buffer buffer;
    const Node name = node["name"];
    buffer.name = name.text();
    if (std::ranges::find(sequence_.buffers, buffer.name, &Buffer::name) != sequence_.buffers.end())
      name.refuse(fmt::format("another buffer is called '{}'", buffer.name));
    buffer.bytes = node["bytes"].whole<uint64_t>(1, uint64_t{1} << 40);
    if (const auto kind = node.find("kind")) {
      static const std::map<std::string, BufferKind> kinds{{"device", BufferKind::device_local},
                                                           {"coarse", BufferKind::coarse_grained},
                                                           {"fine", BufferKind::fine_grained}};
      const auto known = kinds.find(kind->text());
      if (known == kinds.end()) kind->refuse_for("device, coarse or fine");
      buffer.kind = known->second;
    }
    if (const auto initial = node.find("initial")) {
      const auto [type, values] = initial->only("one of u32, i32, f32, u64, i64, f64, bytes");
      if (type == "bytes") {
        buffer.initial = bytes_of(values);
      } else {
        const std::vector<Node> list =
            values.is_list() ? values.elements() : std::vector<Node>{values};
        for (const Node& value : list)
          if (!append_scalar(type, value, buffer.initial))
            initial->refuse(fmt::format("there is no type '{}'; there are {}", type, kTypes));
      }
      if (buffer.initial.empty()) values.refuse("empty; without 'initial' a buffer holds zeros");
      if (buffer.initial.size() > buffer.bytes)
        values.refuse(fmt::format("{} bytes, but '{}' has {}", buffer.initial.size(), buffer.name,
                                  buffer.bytes));
    }
    sequence_.buffers.push_back(std::move(buffer));
  }

  size_t buffer_of(const Node& name) const {
    const std::string wanted = name.text();
    const auto found = std::ranges::find(sequence_.buffers, wanted, &Buffer::name);
    if (found != sequence_.buffers.end())
      return static_cast<size_t>(found - sequence_.buffers.begin());
    std::vector<std::string> names;
    for (const Buffer& buffer : sequence_.buffers) names.push_back(buffer.name);
    name.refuse(
        fmt::format("no buffer is called '{}'; there {}", wanted,
                    names.empty() ? "is none" : fmt::format("are {}", fmt::join(names, ", "))));
  }

  // "x" or {"buffer": "x", "offset": o, "bytes": n}. The default size is `otherwise`, without that
  // the rest of the buffer.
  Access range_of(const Node& node, bool writes, std::optional<uint64_t> otherwise = {}) const {
    Access access{.writes = writes};
    std::optional<Node> size;
    if (node.is_text()) {
      access.buffer = buffer_of(node);
    } else {
      node.object({"buffer", "offset", "bytes"});
      access.buffer = buffer_of(node["buffer"]);
      if (const auto offset = node.find("offset")) access.begin = offset_in(access.buffer, *offset);
      size = node.find("bytes");
    }
    const uint64_t room = sequence_.buffers[access.buffer].bytes - access.begin;
    access.bytes = size ? size->whole<uint64_t>() : otherwise.value_or(room);
    if (access.bytes > room)
      (size ? *size : node)
          .refuse(fmt::format("{} bytes from byte {}, but '{}' has {}", access.bytes, access.begin,
                              sequence_.buffers[access.buffer].name,
                              sequence_.buffers[access.buffer].bytes));
    return access;
  }
  uint64_t offset_in(size_t buffer, const Node& node) const {
    const uint64_t offset = node.whole<uint64_t>();
    if (offset >= sequence_.buffers[buffer].bytes)
      node.refuse(fmt::format("byte {}, but '{}' has {}", offset, sequence_.buffers[buffer].name,
                              sequence_.buffers[buffer].bytes));
    return offset;
  }

  static std::vector<uint32_t> sizes_of(const Node& node) {
    std::vector<uint32_t> sizes;
    if (!node.is_list()) return {node.whole<uint32_t>(1)};
    for (const Node& size : node.elements()) sizes.push_back(size.whole<uint32_t>(1));
    if (sizes.empty() || sizes.size() > 3) node.refuse_for("one to three sizes");
    return sizes;
  }
  static aql::Size3 padded(const std::vector<uint32_t>& sizes) {
    return {sizes[0], sizes.size() > 1 ? sizes[1] : 1, sizes.size() > 2 ? sizes[2] : 1};
  }
  static Grid grid_of(const Node& step) {
    const std::vector<uint32_t> items = sizes_of(step["grid"]);
    Grid grid(items[0]);
    grid.items = padded(items);
    grid.dimensions = static_cast<uint16_t>(items.size());
    if (const auto node = step.find("workgroup")) {
      const std::vector<uint32_t> sizes = sizes_of(*node);
      if (sizes.size() > items.size())
        node->refuse(fmt::format("{} sizes for a grid of {}", sizes.size(), items.size()));
      grid.workgroup = padded(sizes);
    }
    return grid;
  }

  Argument argument_of(const Node& node) const {
    Argument argument;
    if (const auto buffer = node.object({"buffer", "offset", "local", "u32", "i32", "f32", "u64",
                                         "i64", "f64", "bytes"})
                                .find("buffer")) {
      node.object({"buffer", "offset"});
      argument.kind = Argument::Kind::address;
      argument.buffer = buffer_of(*buffer);
      if (const auto offset = node.find("offset"))
        argument.begin = offset_in(argument.buffer, *offset);
      return argument;
    }
    const auto [type, value] =
        node.only("a buffer, or one of u32, i32, f32, u64, i64, f64, bytes, local");
    if (type == "local") {
      argument.kind = Argument::Kind::local;
      argument.local_bytes = value.whole<uint32_t>(1);
    } else if (type == "bytes") {
      argument.value = bytes_of(value);
    } else if (!append_scalar(type, value, argument.value)) {
      node.refuse("an offset without a buffer; name the buffer, too");
    }
    return argument;
  }

  void add_step(const Node& node) {
    const bool copies = node.object({"name", "kernel", "grid", "workgroup", "queue", "arguments",
                                     "reads", "writes", "after", "copy"})
                            .find("copy")
                            .has_value();
    Step step;
    if (copies) {
      node.object({"name", "copy", "after"});
      step.kind = Step::Kind::copy;
      const Node copy = node["copy"];
      copy.object({"from", "to"});
      step.from = range_of(copy["from"], false);
      step.to = range_of(copy["to"], true, step.from.bytes);
    } else {
      step.kernel = node["kernel"].text();
      step.grid = grid_of(node);
      if (const auto queue = node.find("queue")) step.queue = queue->whole<uint32_t>(0, 1);
      for (const Node& argument : elements_of(node, "arguments"))
        step.arguments.push_back(argument_of(argument));
      // Both are required, so that none is forgotten: undeclared accesses are not protected.
      const Node reads = node["reads"], writes = node["writes"];
      for (const Node& range : reads.elements()) step.accesses.push_back(range_of(range, false));
      for (const Node& range : writes.elements()) step.accesses.push_back(range_of(range, true));
    }
    step.name = fmt::format("{} {}", copies ? "copy" : step.kernel, sequence_.steps.size());
    const auto name = node.find("name");
    if (name) step.name = name->text();
    if (std::ranges::find(sequence_.steps, step.name, &Step::name) != sequence_.steps.end())
      (name ? *name : node).refuse(fmt::format("another step is called '{}'", step.name));
    for (const Node& waited : elements_of(node, "after")) {
      const std::string wanted = waited.text();
      const auto found = std::ranges::find(sequence_.steps, wanted, &Step::name);
      if (found == sequence_.steps.end())
        waited.refuse(fmt::format("no earlier step is called '{}'", wanted));
      step.after.push_back(static_cast<size_t>(found - sequence_.steps.begin()));
    }
    sequence_.steps.push_back(std::move(step));
  }

  const Node root_;
  const std::string directory_;
  Sequence sequence_;
};

// Refuses objects with two fields of one name: parse() would silently take one of them.
class FieldsOnce : public ordered_json::json_sax_t {
 public:
  bool start_object(size_t) override {
    open_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (!open_.back().insert(name).second)
      throw std::runtime_error(fmt::format("an object has two fields '{}'", name));
    return true;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  // parse() reports it.
  bool parse_error(size_t, const std::string&, const ordered_json::exception&) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> open_;
};

ordered_json parse(std::string_view text) {
  support::require_shallow_json(text);
  FieldsOnce fields;
  ordered_json::sax_parse(text, &fields);
  try {
    return ordered_json::parse(text);
  } catch (const ordered_json::exception& error) {
    // for example "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    const std::string what = error.what();
    const size_t end = what.find("] ");
    throw std::runtime_error(end == std::string::npos ? what : what.substr(end + 2));
  }
}

}  // namespace

Sequence parse_program(std::string_view text, const std::string& directory) {
  try {
    const ordered_json document = parse(text);
    return Parser(document, directory).all();
  } catch (const std::runtime_error& error) {
    throw support::UsageError(error.what());
  }
}

Sequence read_program_file(const std::string& file) {
  const std::string text = support::read_input(file);
  const std::filesystem::path path(file);
  try {
    Sequence sequence = parse_program(text, file == "-" ? "." : path.parent_path().string());
    if (sequence.name.empty()) sequence.name = file == "-" ? "program" : path.stem().string();
    return sequence;
  } catch (const support::UsageError& error) {
    throw support::UsageError(
        fmt::format("{}: {}", file == "-" ? "standard input" : file, error.what()));
  }
}

}  // namespace uptempo::fence_scope
