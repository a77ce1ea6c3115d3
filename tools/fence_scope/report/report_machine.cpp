#include "tools/fence_scope/report/report_machine.hpp"

#include <ctime>

#include "tools/support/program.hpp"
#include "tools/support/software.hpp"

namespace uptempo::fence_scope {
namespace {

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[32] = "";
  if (gmtime_r(&now, &utc) != nullptr) std::strftime(text, sizeof text, "%F %H:%M UTC", &utc);
  return text;
}

}  // namespace

void describe_machine(Report& report, const support::Device& device) {
  report.date = date_now();
  report.device = device.name();
  report.target = device.gpu.name();
  report.time_kind = device.is_virtual ? TimeKind::virtual_gpu : TimeKind::hardware;
  const support::Software software = support::describe_software();
  report.versions = {{"uptempo", support::version()},
                     {"hsa", software.hsa_version},
                     {"rocr", software.rocr_library},
                     {"rocr build", software.rocr_build},
                     {"operating system", support::operating_system()}};
  // The virtual GPU's driver is part of uptempo. A kernel module of the same name was not measured.
  if (device.is_virtual)
    report.versions["kernel driver"] = "uptempo-vgpu";
  else
    report.versions["kernel driver"] = software.driver.empty()
                                           ? "amdgpu of Linux " + software.kernel
                                           : "amdgpu " + software.driver;
  std::erase_if(report.versions, [](const auto& version) { return version.second.empty(); });
  report.environment = support::environment_of({"HSA_", "ROCR_"});
}

}  // namespace uptempo::fence_scope
