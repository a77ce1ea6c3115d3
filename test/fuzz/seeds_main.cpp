// fuzz_seeds DIRECTORY: writes the seed corpus of each target to DIRECTORY/<target>.
#include <exception>
#include <iostream>

#include "test/fuzz/seeds.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fuzz_seeds DIRECTORY\n";
    return 2;
  }
  try {
    uptempo::fuzz::write_seeds(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "fuzz_seeds: " << error.what() << "\n";
    return 1;
  }
}
