// Content of saved recordings, so that files can be compared.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include <uptempo/program/code_object.hpp>

namespace uptempo::test {

// A file with this payload and a matching first line.
inline std::string framed(const std::string& payload, int version = 3) {
  return fmt::format("uptempo-recording {} {} {:016x}\n{}", version, payload.size(),
                     content_hash(std::as_bytes(std::span(payload))), payload);
}
inline std::string payload_of(const std::string& file) { return file.substr(file.find('\n') + 1); }

// The nodes of a payload. Replaces indices into the name lists by the names, so that the order of
// the lists and unused entries do not matter. Memory sizes in the saved copy are those of the
// loading side.
inline nlohmann::json without_numbers(const std::string& payload) {
  using nlohmann::json;
  const json file = json::parse(payload);
  json nodes = file.at("nodes");
  const auto name_memory = [&](json& place) {
    if (place.is_object() && place.contains("memory"))
      place["memory"] = file.at("memory").at(place["memory"].get<size_t>()).at("name");
  };
  for (json& node : nodes) {
    // An omitted default and an explicit default are equal.
    if (node.value("observer", json()) == "none") node.erase("observer");
    if (node.value("without_barrier", json()) == false) node.erase("without_barrier");
    if (node.contains("kernel"))
      node["kernel"] = file.at("kernels").at(node["kernel"].get<size_t>());
    if (node.contains("arguments"))
      for (json& argument : node["arguments"]) {
        name_memory(argument);
        // All but the last LDS array are rounded up.
        if (argument.is_object() && argument.contains("local"))
          argument["local"] = (argument["local"].get<uint64_t>() + 15) / 16 * 16;
      }
    if (node.contains("accesses"))
      for (json& access : node["accesses"]) name_memory(access);
  }
  return nodes;
}

inline bool same_content(const std::string& payload, const std::string& other) {
  return without_numbers(payload) == without_numbers(other);
}

}  // namespace uptempo::test
