// Saved recordings with damage of every kind. Loading must end with an Error or with a recording
// equal to the file's content.
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/engine/recording/saved_world.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;
using nlohmann::json;

namespace {

struct Fuzz {
  World there{0x9000, 7};
  size_t loaded = 0, refused = 0;
  std::set<std::string> reasons;  // without numbers

  // Loads the file. The test fails unless the result is an Error or a recording with equal content.
  void operator()(const std::string& file) {
    std::string error;
    try {
      const auto recording = there.load(file);
      const std::string again = there.save(*recording);
      ++loaded;
      if (same_content(payload_of(again), payload_of(file))) return;
      error = "saved again it is\n" + again;
    } catch (const Error& refusal) {
      ++refused;
      std::string reason = refusal.found();
      std::erase_if(reason, [](char c) { return c >= '0' && c <= '9'; });
      if (reasons.size() < 10000) reasons.insert(reason);
      return;
    }
    CAPTURE(file);
    FAIL(error);
  }
};

std::string a_file() {
  World here(0x1000);
  return here.save(*here.full_recording());
}

// Every value in the file, by its path.
void places_of(const json& value, const json::json_pointer& at,
               std::vector<json::json_pointer>& places) {
  places.push_back(at);
  if (value.is_object())
    for (const auto& [key, member] : value.items()) places_of(member, at / key, places);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) places_of(value[i], at / i, places);
}

json something_else(std::mt19937_64& random, const json& root,
                    const std::vector<json::json_pointer>& places) {
  switch (random() % 14) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return -1;
    case 3:
      return 0;
    case 4:
      return UINT64_MAX;
    case 5:
      return uint64_t{1} << random() % 64;
    case 6:
      return 1e300;
    case 7:
      return "";
    case 8:
      return json::array();
    case 9:
      return json::object();
    case 10:
      return random() % 8;
    case 11:
      return std::string(random() % 20, '0');
    case 12:
      return json::array({json::array({json::object()})});
    default:
      return root[places[random() % places.size()]];
  }
}

}  // namespace

TEST_CASE("a truncated file is refused, whatever its length", "[recording-file]") {
  const std::string file = a_file(), payload = payload_of(file);
  Fuzz fuzz;
  for (size_t length = 0; length < file.size(); ++length) fuzz(file.substr(0, length));
  CHECK(fuzz.loaded == 0);
  CHECK(fuzz.refused == file.size());
  for (size_t length = 0; length < payload.size(); ++length)
    fuzz(framed(payload.substr(0, length)));
  CHECK(fuzz.loaded == 0);
  fuzz(file);
  CHECK(fuzz.loaded == 1);
}

TEST_CASE("a file with a changed bit is refused because of its hash", "[recording-file]") {
  std::string file = a_file();
  Fuzz fuzz;
  for (char& byte : file)
    for (unsigned bit = 0; bit < 8; ++bit) {
      byte = static_cast<char>(byte ^ 1 << bit);
      fuzz(file);
      byte = static_cast<char>(byte ^ 1 << bit);
    }
  CHECK(fuzz.loaded == 0);
  CHECK(fuzz.refused == 8 * file.size());
}

TEST_CASE(
    "a file with a changed bit and a matching hash is refused, or the recording equals its content",
    "[recording-file]") {
  std::string payload = payload_of(a_file());
  Fuzz fuzz;
  for (char& byte : payload)
    for (unsigned bit = 0; bit < 8; ++bit) {
      byte = static_cast<char>(byte ^ 1 << bit);
      fuzz(framed(payload));
      byte = static_cast<char>(byte ^ 1 << bit);
    }
  CHECK(fuzz.loaded > 100);
  CHECK(fuzz.refused > 100);
}

TEST_CASE("a file with any change in its JSON is refused, or the recording equals its content",
          "[recording-file]") {
  const json original = json::parse(payload_of(a_file()));
  Fuzz fuzz;
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    std::mt19937_64 random(seed);
    json payload = original;
    for (auto changes = random() % 3 + 1; changes > 0; --changes) {
      std::vector<json::json_pointer> places;
      places_of(payload, json::json_pointer(), places);
      const json::json_pointer place = places[random() % places.size()];
      const json other = something_else(random, payload, places);
      if (place.empty()) continue;
      json& parent = payload[place.parent_pointer()];
      switch (random() % 4) {
        case 0:
          payload[place] = other;
          break;
        case 1:
          if (parent.is_object()) parent.erase(place.back());
          if (parent.is_array()) parent.erase(std::stoul(place.back()));
          break;
        case 2:
          if (parent.is_object()) parent["other"] = other;
          if (parent.is_array()) parent.push_back(other);
          break;
        default: {
          const json moved = payload[places[random() % places.size()]];
          payload[place] = moved;
        }
      }
    }
    CAPTURE(seed);
    fuzz(framed(payload.dump()));
  }
  CHECK(fuzz.loaded > 100);
  CHECK(fuzz.reasons.size() > 100);
}
