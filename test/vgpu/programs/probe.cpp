// A program under test. It acts as its first argument says and answers by exit status or on stdout.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include "launch.hpp"

namespace {

using namespace uptempo::vgpu;

int open_kfd() { return open("/dev/kfd", O_RDWR | O_CLOEXEC); }

// Closes every descriptor above stderr, as daemons do, and then opens the device.
int close_all_then_open() {
  for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
  return open_kfd() >= 0 ? 0 : 1;
}

// Uses ROCr as a plug-in: loads it late, calls it, unloads it unless `keep`.
int load_rocr(bool keep) {
  void* library = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 1;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "hsa_init"));
  const auto shut_down = reinterpret_cast<int (*)()>(dlsym(library, "hsa_shut_down"));
  for (int i = 0; i < 3; ++i)
    if (init() != 0 || shut_down() != 0) return 2;
  return keep || dlclose(library) == 0 ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "exit") return std::atoi(argv[2]);
  if (what == "signal") raise(std::atoi(argv[2]));
  if (what == "pid") std::cout << getpid() << '\n';
  if (what == "arguments")
    for (int i = 2; i < argc; ++i) std::cout << argv[i] << '\n';
  if (what == "kfd") return open_kfd() >= 0 ? 0 : errno;
  if (what == "close-all") return close_all_then_open();
  if (what == "rocr") return load_rocr(/*keep=*/false);
  if (what == "rocr-kept") return load_rocr(/*keep=*/true);
  if (what == "choose") {
    try {
      std::cout << label(choose_device(parse_device(argv[2]), argc, argv)) << '\n';
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
      return 1;
    }
  }
  return 0;
}
