// Uses uptempo::aql alone, with header paths as in Uptempo's own tree.
#include <cstdio>

#include "aql/text.hpp"
#include "aql/writer.hpp"

int main() {
  using namespace uptempo::aql;
  const Packet64 packet = to_packet(BarrierAnd{});
  std::puts(format(packet).c_str());
  return lint(packet).empty() && packet.header() == 0x1503 ? 0 : 1;
}
