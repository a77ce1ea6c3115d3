// Uses uptempo::aql alone.
#include <cstdio>

#include <uptempo/aql/text.hpp>
#include <uptempo/aql/writer.hpp>

int main() {
  using namespace uptempo::aql;
  const Packet64 packet = to_packet(BarrierAnd{});
  std::puts(format(packet).c_str());
  return lint(packet).empty() && packet.header() == 0x1503 ? 0 : 1;
}
