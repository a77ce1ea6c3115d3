// Requests each kernel of services.s and prints the result.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <uptempo/uptempo.hpp>

int main() {
  using namespace uptempo;
  std::ifstream file(CODE_OBJECT, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, std::as_bytes(std::span(bytes))};
  for (const char* name : {"prints", "calls_host"}) {
    try {
      program.kernel<>(name);
      std::printf("%s is accepted\n", name);
    } catch (const Error& error) {
      std::printf("%s is refused: %s\n", name, error.what());
    }
  }
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(program.kernel<>("quiet"), Grid{64}.by(64));
  batch.submit().wait();
  std::puts("quiet has run");
}
