// fence_scope's program files. An accepted sequence passes to another process unchanged, and the
// fence rules judge it.
#include "tools/fence_scope/sequence/program_file.hpp"

#include "test/fuzz/fuzz.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/fence_scope/sequence/sequence_rules.hpp"

namespace uptempo::fuzz {

void program_file(Bytes input) {
  using namespace fence_scope;
  Sequence sequence;
  if (!accepts_or<support::UsageError>(
          [&] { sequence = parse_program(text_of(input), "no such directory"); }))
    return;
  const Headers headers = everywhere(sequence);
  const Case one{&sequence, headers};
  const std::vector<uint8_t> message = to_bytes({&one, 1});
  const Cases received = from_bytes(message);
  require(received.sequences.size() == 1 && received.cases.size() == 1, "one case");
  const Case again{&received.sequences[0], received.cases[0].headers};
  require(to_bytes({&again, 1}) == message, "a case passes to another process unchanged");
  if (sequence.steps.size() > 16) return;  // the rules take cubic time
  for (const Hazard& hazard : hazards_of(sequence, headers))
    require(!in_words(hazard, sequence, headers).empty(), "a hazard has words");
}

}  // namespace uptempo::fuzz
