#include "tools/aql_dump/input.hpp"

#include <charconv>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "tools/support/json_field.hpp"

namespace uptempo::aql_dump {

std::vector<aql::Packet64> packets_from_words(const std::string& text) {
  std::vector<uint32_t> words;
  std::string spaced = text;
  for (char& c : spaced) {
    if (c == ',') c = ' ';
  }
  std::istringstream in(spaced);
  for (std::string token; in >> token;) {
    std::string_view digits = token;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    uint32_t word = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), word, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      throw std::runtime_error("word " + std::to_string(words.size()) + ", '" + token +
                               "', is not a hexadecimal number of at most 32 bits");
    }
    words.push_back(word);
  }
  if (words.empty() || words.size() % 16 != 0) {
    throw std::runtime_error(std::to_string(words.size()) +
                             " words given; a packet has 16 words, so give a multiple of 16");
  }
  std::vector<aql::Packet64> packets(words.size() / 16);
  for (size_t i = 0; i < words.size(); ++i) packets[i / 16].word[i % 16] = words[i];
  return packets;
}

std::vector<aql::Packet64> packets_from_bytes(const std::string& bytes, const std::string& name) {
  if (bytes.empty() || bytes.size() % aql::kPacketSizeBytes != 0) {
    throw std::runtime_error("'" + name + "' holds " + std::to_string(bytes.size()) +
                             " bytes; a ring has a multiple of 64 bytes and is not empty");
  }
  std::vector<aql::Packet64> packets(bytes.size() / aql::kPacketSizeBytes);
  std::memcpy(packets.data(), bytes.data(), bytes.size());
  return packets;
}

std::vector<nlohmann::ordered_json> trace_from_lines(const std::string& lines,
                                                     const std::string& name) {
  std::istringstream in(lines);
  std::vector<nlohmann::ordered_json> events;
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    nlohmann::ordered_json event;
    try {
      support::require_shallow_json(line);
      event = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("line " + std::to_string(number) + " of '" + name +
                               "' cannot be read: " + error.what());
    }
    if (!event.is_object() || !event.contains("type") || !event["type"].is_string()) {
      throw std::runtime_error("line " + std::to_string(number) + " of '" + name +
                               "' is not a JSON object with a type");
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace uptempo::aql_dump
