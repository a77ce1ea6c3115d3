// The API in one screen: sort 32,768 keys with 120 dispatches, one doorbell and one completion
// signal.
//
//   first_batch [--device auto|hardware|virtual]
//
// Exit code: 0 sorted, 1 not sorted or the device failed, 2 wrong argument.
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "samples/support/sample.hpp"

using namespace uptempo;

namespace {

bool sort_32768_keys() {
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
  return std::ranges::is_sorted(host.span());
}

}  // namespace

int main(int argc, char** argv) {
  return support::run_sample(
      "first_batch", "Sorts 32,768 keys with 120 dispatches, one doorbell and one signal.", argc,
      argv, [](vgpu::RunningOn device) {
        const bool sorted = sort_32768_keys();
        std::printf("%s: 32768 keys %s by 120 dispatches\n", vgpu::label(device).data(),
                    sorted ? "sorted" : "left unsorted");
        return sorted;
      });
}
