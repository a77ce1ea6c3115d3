#include <uptempo/runtime/driver/hardware_exceptions.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/library_thread.hpp>

namespace uptempo::detail {
namespace {

// The driver's requests. linux/kfd_ioctl.h has them, but includes a header of libdrm.
namespace kfd {

struct CreateEvent {  // kfd_ioctl_create_event_args
  uint64_t page_offset;
  uint32_t trigger_data, type, auto_reset, node_id;
  uint32_t event_id, slot_index;  // from the driver, like the first two
};
struct DestroyEvent {  // kfd_ioctl_destroy_event_args
  uint32_t event_id, pad;
};
struct EventData {  // kfd_event_data, of a hardware exception
  uint32_t reset_type, reset_cause, memory_lost, gpu_id;
  uint64_t of_other_types[2];
  uint64_t extension;
  uint32_t event_id, pad;
};
struct WaitEvents {  // kfd_ioctl_wait_events_args
  uint64_t events;   // address of an array of EventData
  uint32_t count, all, timeout_ms;
  uint32_t result;  // from the driver
};
static_assert(sizeof(CreateEvent) == 32 && sizeof(DestroyEvent) == 8 && sizeof(EventData) == 48 &&
              sizeof(WaitEvents) == 24);

constexpr unsigned long kCreateEvent = _IOWR('K', 0x08, CreateEvent),
                        kDestroyEvent = _IOW('K', 0x09, DestroyEvent),
                        kWaitEvents = _IOWR('K', 0x0C, WaitEvents);
constexpr uint32_t kHardwareException = 3;  // KFD_IOC_EVENT_HW_EXCEPTION
constexpr uint32_t kComplete = 0;           // KFD_IOC_WAIT_RESULT_COMPLETE
constexpr uint32_t kEcc = 1;                // KFD_HW_EXCEPTION_ECC

}  // namespace kfd

constexpr const char* kDriver = "/dev/kfd";
constexpr const char* kNodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";

// Destroying the event ends the wait. This limit is for a driver that refuses to destroy it.
constexpr std::chrono::milliseconds kLongestWait{1000};
// After an error of the driver.
constexpr std::chrono::milliseconds kPause{50};

struct PciPlace {
  uint32_t domain = 0, bdf_id = 0;
  bool operator==(const PciPlace&) const = default;
};

PciPlace place_of(hsa_agent_t agent) noexcept {
  const auto get = [&](int attribute, uint32_t& value) {
    hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(attribute), &value);
  };
  PciPlace place;
  get(HSA_AMD_AGENT_INFO_DOMAIN, place.domain);
  get(HSA_AMD_AGENT_INFO_BDFID, place.bdf_id);
  return place;
}

// A driver that is too old to report a property has 0, as ROCr does then.
uint32_t property_in(std::string_view text, std::string_view name) noexcept {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(' '))
      return static_cast<uint32_t>(std::strtoul(line.data() + name.size(), nullptr, 10));
  }
  return 0;
}

}  // namespace

// By the place on the PCI bus. ROCr's node numbers leave out GPUs that are denied to the process.
std::vector<HardwareExceptions::Gpu> HardwareExceptions::find_gpus() {
  std::vector<hsa_agent_t> agents = all_agents();
  std::erase_if(agents, [](hsa_agent_t agent) {
    hsa_device_type_t type = HSA_DEVICE_TYPE_CPU;
    hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
    return type != HSA_DEVICE_TYPE_GPU;
  });
  std::vector<Gpu> gpus;
  for (uint32_t node = 0;; ++node) {
    const std::string folder = fmt::format("{}/{}", kNodes, node);
    const std::optional<std::string> id = contents_of(folder + "/gpu_id");
    if (!id && errno == EPERM) continue;  // a control group denies the device
    if (!id) return gpus;                 // past the last node
    const std::optional<std::string> properties = contents_of(folder + "/properties");
    const uint64_t number = std::strtoull(id->c_str(), nullptr, 10);
    if (number == 0 || !properties) continue;
    const PciPlace place{.domain = property_in(*properties, "domain"),
                         .bdf_id = property_in(*properties, "location_id")};
    for (const hsa_agent_t agent : agents)
      if (place_of(agent) == place) gpus.push_back({number, agent});
  }
}

HardwareExceptions::HardwareExceptions(OnLoss on_loss)
    : on_loss_(on_loss), gpus_(find_gpus()), driver_(kDriver, O_RDWR) {
  if (gpus_.empty()) {
    refusal_ = fmt::format("{}: it shows none of ROCr's GPUs", kNodes);
    return;
  }
  if (!create_event()) {
    refusal_ = fmt::format("{}: {}", kDriver, std::generic_category().message(errno));
    return;
  }
  try {
    thread_ = start_library_thread("uptempo-losses", [this] { listen(); });
  } catch (const std::system_error& error) {
    refusal_ = error.what();
  }
}

HardwareExceptions::~HardwareExceptions() {
  stops_.store(true, std::memory_order_relaxed);
  if (event_ != 0) {
    kfd::DestroyEvent destroy{.event_id = event_, .pad = 0};
    while (::ioctl(driver_.get(), kfd::kDestroyEvent, &destroy) != 0 && errno == EINTR) {
    }
  }
  if (thread_.joinable()) thread_.join();
}

// Returns false with errno set.
bool HardwareExceptions::create_event() {
  if (driver_.get() < 0) return false;
  kfd::CreateEvent create{};
  create.type = kfd::kHardwareException;
  create.auto_reset = 1;  // another GPU may be lost later
  while (::ioctl(driver_.get(), kfd::kCreateEvent, &create) != 0)
    if (errno != EINTR) return false;
  event_ = create.event_id;
  return true;
}

void HardwareExceptions::listen() noexcept {
  while (!stops_.load(std::memory_order_relaxed)) {
    kfd::EventData found{};
    found.event_id = event_;
    kfd::WaitEvents wait{};
    wait.events = reinterpret_cast<uintptr_t>(&found);
    wait.count = 1;
    wait.timeout_ms = static_cast<uint32_t>(kLongestWait.count());
    if (::ioctl(driver_.get(), kfd::kWaitEvents, &wait) != 0) {
      if (!stops_.load(std::memory_order_relaxed)) std::this_thread::sleep_for(kPause);
      continue;
    }
    if (wait.result != kfd::kComplete) continue;
    for (const Gpu& gpu : gpus_)
      if (gpu.id == found.gpu_id) on_loss_(gpu.agent, found.reset_cause == kfd::kEcc);
  }
}

}  // namespace uptempo::detail
