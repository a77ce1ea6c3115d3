// Saved recordings: a file is refused, or the recording saved again has the file's content. An
// input that begins as files do is one; otherwise it is the JSON part, after a digit: the version.
#include <memory>
#include <string>

#include "test/engine/recording/file_content.hpp"
#include "test/fuzz/fuzz.hpp"
#include "test/fuzz/recording_world.hpp"

namespace uptempo::fuzz {

void recording(Bytes input) {
  const std::string_view text = text_of(input);
  std::string file(text);
  if (!text.starts_with("uptempo-")) {
    if (text.empty() || text[0] < '1' || text[0] > '3') return;
    file = test::framed(std::string(text.substr(1)), text[0] - '0');
  }
  // Never destroyed: the queue's memory is that of the process.
  static RecordingWorld& world = *new RecordingWorld;
  std::unique_ptr<Recording> loaded;
  if (!accepts([&] { loaded = world.load(file); })) return;
  const std::string again = world.save(*loaded);
  // A stream may continue after its recording, whose size is the third word.
  const std::string payload =
      test::payload_of(file).substr(0, std::stoull(file.substr(file.find(' ', 18) + 1)));
  if (!test::same_content(payload, test::payload_of(again))) finding("saved again it is\n" + again);
  loaded = world.load(again);
  require(world.save(*loaded) == again, "a saved recording loads and saves unchanged");
}

}  // namespace uptempo::fuzz
