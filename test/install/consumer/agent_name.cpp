// Built with pkg-config alone: prints the target of the first GPU agent.
#include <cstdio>
#include <uptempo/uptempo.hpp>

int main() {
  uptempo::Runtime runtime;
  std::puts(runtime.gpu().isa().c_str());
}
