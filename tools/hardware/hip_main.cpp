// The probe of hardware_check that needs HIP, as a program of its own, so that hardware_check is
// also built and run without HIP. Prints the probe's answer as a line of JSON.
//
//   hardware_check_hip [--device D]
//
// Exit code: 0, 1 the device or HIP failed, 2 wrong command line, 77 no such device.
#include <memory>

#include <uptempo/hip/device.hpp>
#include "tools/hardware/chain.hpp"
#include "tools/hardware/chain_hip.hpp"
#include "tools/hardware/child.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::hardware;

// ROCm/rocm-systems issue 10834, table of gfx1100. Its text does not say how large a workgroup is.
constexpr const char* kPublished =
    ". Published for the same shapes on a W7900: HIP's graph 14.98, 3.87, 3.85; Vulkan 1.48, 0.88, "
    "0.82";

Answer probe_hip_graph(const support::Device& device) {
  const auto is_wanted = [&](int number) {
    return hip::agent(device.runtime, number) == device.gpu;
  };
  if (!select_device(is_wanted))
    throw support::Unavailable("HIP has no such device; HIP_VISIBLE_DEVICES may hide it");
  Answer answer = run_chains(
      device.gpu, "between two events", [](const ChainShape& shape, uint32_t* words) -> Chain {
        const auto chain =
            std::make_shared<HipChain>(shape.dispatches, shape.workgroups, kChainWorkgroup, words);
        return [chain] { return chain->run(); };
      });
  answer.text = hip_version() + ", " + answer.text;
  if (answer.verdict == Verdict::as_assumed && !device.is_virtual) answer.text += kPublished;
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("hardware_check_hip",
                           "Runs dependent dispatches as a graph of HIP, for hardware_check.");
  std::string device = "auto";
  support::add_device_option(app, device);
  return support::run_program(app, argc, argv, [&] {
    support::write_output("-", line_of(probe_hip_graph(support::open_device(device, argc, argv))));
    return support::exit_ok;
  });
}
