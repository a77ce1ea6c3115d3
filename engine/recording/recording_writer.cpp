#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include <uptempo/recording/recording_payload.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

using nlohmann::json;

template <class Value, size_t N>
const char* name_of(const NameInFile<Value> (&names)[N], Value value) {
  const auto found =
      std::find_if(names, names + N, [&](const auto& entry) { return entry.value == value; });
  return found == names + N ? nullptr : found->name;
}

[[noreturn]] void refuse_to_save(std::string asked, std::string found, std::string remedy) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "save_recording",
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes)
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

template <class T>
T load_from(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Converts nodes to JSON and collects the lists of kernels and memory ranges that they refer to by
// number.
class Writer {
 public:
  Writer(const RecordingState& recording, const Bindings& memory)
      : recording_(recording), publication_(recording.publication()), memory_(memory) {}

  void add(size_t index) {
    const RecordingState::Recorded& node = recording_.recorded(index);
    name_ = fmt::format("node {}", index);
    if (node.kernel != nullptr) name_ += fmt::format(" (kernel '{}')", node.kernel->name);
    nodes_.push_back(node.kernel != nullptr            ? dispatch(node, index)
                     : publication_.is_finished(index) ? finished(publication_.packets[index])
                                                       : json::object({{"barrier", "closing"}}));
  }
  Payload payload() && {
    const json root{{"kernels", std::move(kernels_)},
                    {"memory", std::move(ranges_)},
                    {"nodes", std::move(nodes_)}};
    try {
      return {version_, root.dump()};
    } catch (const json::exception& error) {
      refuse_to_save("names of kernels and memory",
                     fmt::format("one that is not UTF-8 ({})", error.what()),
                     "give memory a name in UTF-8");
    }
  }

 private:
  json dispatch(const RecordingState::Recorded& node, size_t index) {
    json object = json::object({{"kernel", number_of(*node.kernel)}});
    put_sizes(object, node.grid);
    json& arguments = object["arguments"] = json::array();
    for (size_t i = 0; i < node.kernel->arguments.explicit_count(); ++i)
      arguments.push_back(argument(node, publication_.packets[index].group_segment_size(), i));
    const Declarations declarations = publication_.find_declared(index);
    const auto own = std::span(publication_.accesses)
                         .subspan(declarations.first_access, declarations.access_count);
    if (declarations.depends) {
      version_ = std::max<uint64_t>(version_, 3);
      json& after = object["after"] = json::array();
      for (const AccessRange& access : own)
        if (access.is_dependency) after.push_back(access.begin);
    }
    if (declarations.declares_memory(publication_.accesses)) {
      json& accesses = object["accesses"] = json::array();
      for (const AccessRange& access : own) {
        if (access.is_dependency) continue;
        const size_t bytes = access.end - access.begin;
        json entry =
            place(access.begin, bytes, fmt::format("access {} of {}", accesses.size(), name_));
        entry["size_bytes"] = bytes;
        entry["writes"] = access.writes;
        accesses.push_back(std::move(entry));
      }
    }
    if (declarations.explicit_fences)
      put_scopes(object, declarations.acquire, declarations.release);
    if (declarations.observer != Observer::none)
      object["observer"] = name_of(kObserverNames, declarations.observer);
    if (declarations.without_barrier) object["without_barrier"] = true;
    return object;
  }

  json finished(const aql::Packet64& packet) const {
    const aql::HeaderFlags flags = aql::header_flags(packet.header());
    const bool is_and = packet == aql::to_packet(aql::BarrierAnd{.flags = flags});
    if (!is_and && packet != aql::to_packet(aql::BarrierOr{.flags = flags}))
      refuse_to_save(
          fmt::format("{}, a finished packet with header 0x{:04x}", name_, packet.header()),
          "it is not a barrier packet without signals: signals and addresses are not valid in "
          "another process",
          "save the recording without the packet, and record the packet after loading");
    json object{{"barrier", is_and ? "and" : "or"}, {"waits", flags.barrier == aql::Barrier::on}};
    put_scopes(object, flags.acquire, flags.release);
    return object;
  }

  void put_scopes(json& object, aql::FenceScope acquire, aql::FenceScope release) const {
    const char* const names[] = {name_of(kScopeNames, acquire), name_of(kScopeNames, release)};
    if (names[0] == nullptr || names[1] == nullptr)
      refuse_to_save(name_, "a fence scope that HSA does not define", "use none, agent or system");
    object["acquire"] = names[0];
    object["release"] = names[1];
  }

  void put_sizes(json& object, const Grid& grid) {
    if (grid.dimensions < 1 || grid.dimensions > 3)
      refuse_to_save(name_, fmt::format("a grid of {} dimensions", grid.dimensions),
                     "use 1 to 3 dimensions");
    const auto sizes = [&](const aql::Size3& size) {
      const uint32_t all[] = {size.x, size.y, size.z};
      for (size_t d = grid.dimensions; d < 3; ++d)
        if (all[d] != 1)
          refuse_to_save(
              name_, fmt::format("size {} in dimension {} of {}", all[d], d + 1, grid.dimensions),
              "leave sizes beyond the grid's dimensions at 1");
      return json(std::vector<uint32_t>(all, all + grid.dimensions));
    };
    object["grid"] = sizes(grid.items);
    object["workgroup"] = sizes(grid.workgroup);
    if (grid.lds_bytes == 0) return;
    object["lds"] = grid.lds_bytes;
    version_ = std::max<uint64_t>(version_, 2);
  }

  size_t number_of(const KernelInfo& kernel) {
    const auto known = std::find(numbered_.begin(), numbered_.end(), kernel.identity.number());
    if (known != numbered_.end()) return static_cast<size_t>(known - numbered_.begin());
    if (!kernel.code.is_known())
      refuse_to_save(name_, "a kernel loaded by other means, whose code object is not known",
                     "set KernelInfo::code where it is loaded");
    kernels_.push_back({{"name", kernel.name},
                        {"target", kernel.code.target},
                        {"code_bytes", kernel.code.size_bytes},
                        {"code_hash", fmt::format("{:016x}", kernel.code.hash)}});
    if (kernel.stack != PrivateBytes{}) {
      kernels_.back()["private_bytes"] = kernel.stack.per_work_item;
      version_ = std::max<uint64_t>(version_, 4);
    }
    numbered_.push_back(kernel.identity.number());
    return numbered_.size() - 1;
  }

  json place(uintptr_t address, size_t bytes, const std::string& what) {
    const MemoryRange* const range = memory_.find(address);
    if (range == nullptr || bytes > range->size_bytes - (address - range->begin))
      refuse_to_save(
          what,
          fmt::format("{} bytes at 0x{:x}, which are not all in one named range; named are {}",
                      bytes, address, memory_.list()),
          "name the memory that the recording uses");
    const auto known = std::find(named_.begin(), named_.end(), range);
    const auto number = static_cast<size_t>(known - named_.begin());
    if (known == named_.end()) {
      named_.push_back(range);
      ranges_.push_back({{"name", range->name}, {"size_bytes", range->size_bytes}});
    }
    return json::object({{"memory", number}, {"offset", address - range->begin}});
  }

  json argument(const RecordingState::Recorded& node, uint32_t group_segment, size_t i) {
    const std::string what = fmt::format("argument {} of {}", i, name_);
    const ArgumentLayout& layout = node.kernel->arguments;
    const std::byte* const block = node.host;
    const uint32_t offset = layout.offset(i);
    switch (layout.kind(i)) {
      case ArgumentType::Kind::address: {
        const auto address = load_from<uintptr_t>(block + offset);
        return address == 0 ? json(nullptr) : place(address, 1, what);
      }
      case ArgumentType::Kind::local: {
        const auto begin = load_from<uint32_t>(block + offset);
        uint32_t end = group_segment;  // or the beginning of the next array
        for (size_t next = layout.explicit_count(); next-- > i + 1;)
          if (layout.kind(next) == ArgumentType::Kind::local)
            end = load_from<uint32_t>(block + layout.offset(next));
        return json::object({{"local", end - begin}});
      }
      case ArgumentType::Kind::value:
        break;
    }
    each_word(layout, i, [&](uint32_t at) {
      const MemoryRange* const hidden = memory_.find(load_from<uintptr_t>(block + at));
      if (hidden != nullptr)
        refuse_to_save(what,
                       fmt::format("a value whose bytes {} to {} are an address in '{}'",
                                   at - offset, at - offset + 7, hidden->name),
                       "pass each address as an argument of its own");
    });
    return json::object({{"value", hex({block + offset, layout.size(i)})}});
  }

  const RecordingState& recording_;
  const Publication& publication_;
  const Bindings& memory_;
  uint64_t version_ = 1;
  std::string name_;  // of the current node, for errors
  json kernels_ = json::array(), ranges_ = json::array(), nodes_ = json::array();
  std::vector<uint64_t> numbered_;         // kernel numbers, parallel to kernels_
  std::vector<const MemoryRange*> named_;  // parallel to ranges_
};

}  // namespace

Payload write_payload(const RecordingState& recording, const Bindings& memory) {
  Writer writer(recording, memory);
  for (size_t i = 0; i < recording.size(); ++i) writer.add(i);
  return std::move(writer).payload();
}

}  // namespace uptempo::detail
