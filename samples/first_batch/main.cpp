// The API in one screen: sort 32,768 keys with 120 dispatches, one doorbell and one completion
// signal.
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace uptempo;

int main() try {
  Runtime runtime;  // throws Error: "no GPU agent: ..."
  Agent gpu = runtime.gpu();
  Program program{gpu,
                  builtin_kernels::workgroups_of_256()};  // the code object for this agent's ISA
  // Checked against the kernel's metadata.
  auto sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
  Queue queue{gpu};
  DeviceBuffer<uint32_t> keys{gpu, 32768};
  PinnedBuffer<uint32_t> host{gpu, 32768};
  Copier copier{gpu};

  std::iota(host.span().rbegin(), host.span().rend(), 0u);
  copier.copy(keys, host);

  BatchSubmitter batch{queue};
  for (uint32_t stage = 0; stage < 15; ++stage)
    for (uint32_t pass = 0; pass <= stage; ++pass)
      batch.dispatch(sort, Grid{16384}.by(256), keys.data(), stage, pass, 1u);
  batch.submit().wait();  // 120 packets, 1 doorbell, 1 signal

  copier.copy(host, keys);
  const bool sorted = std::ranges::is_sorted(host.span());
  std::printf("%s: 32768 keys %s by 120 dispatches\n", gpu.name().c_str(),
              sorted ? "sorted" : "left unsorted");
  return sorted ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "first_batch: %s\n", error.what());
  return 1;
}
