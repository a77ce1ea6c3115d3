#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

std::string text_of(const HSAuint16* name) {
  std::string text;
  for (; *name != 0; ++name) text += static_cast<char>(*name);
  return text;
}

TEST_CASE("opens are counted: after two opens, one close keeps the thunk open", "[thunk]") {
  REQUIRE(hsaKmtOpenKFD() == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtOpenKFD() == HSAKMT_STATUS_KERNEL_ALREADY_OPENED);
  CHECK(hsaKmtCloseKFD() == HSAKMT_STATUS_SUCCESS);
  HsaVersionInfo version{};
  CHECK(hsaKmtGetVersion(&version) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtCloseKFD() == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtCloseKFD() == HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
}

TEST_CASE("the thunk can be opened and closed repeatedly", "[thunk]") {
  for (int i = 0; i < 20; ++i) {
    const Thunk thunk;
    CHECK(thunk.system().NumNodes == 2);
  }
}

TEST_CASE("the version is 1.14, the first with event ages", "[thunk]") {
  const Thunk thunk;
  HsaVersionInfo version{};
  REQUIRE(hsaKmtGetVersion(&version) == HSAKMT_STATUS_SUCCESS);
  CHECK(version.KernelInterfaceMajorVersion == 1);
  CHECK(version.KernelInterfaceMinorVersion == 18);
}

TEST_CASE("node 0 is the host", "[topology]") {
  const Thunk thunk;
  const HsaNodeProperties node = properties_of(kCpuNode);
  CHECK(node.NumCPUCores == static_cast<HSAuint32>(sysconf(_SC_NPROCESSORS_ONLN)));
  CHECK(node.NumFComputeCores == 0);
  CHECK(node.NumMemoryBanks == 1);
  CHECK(node.NumCaches == 1);
  CHECK(node.NumIOLinks == 1);
  HsaMemoryProperties bank{};
  REQUIRE(hsaKmtGetNodeMemoryProperties(kCpuNode, 1, &bank) == HSAKMT_STATUS_SUCCESS);
  CHECK(bank.HeapType == HSA_HEAPTYPE_SYSTEM);
  CHECK(value(bank.SizeInBytes) == static_cast<HSAuint64>(sysconf(_SC_PHYS_PAGES)) * kPage);
}

TEST_CASE("node 1 is the described device", "[topology]") {
  const Thunk thunk;
  const DeviceDescription& device = expected_device();
  const HsaNodeProperties node = properties_of(kGpuNode);
  CHECK(node.NumCPUCores == 0);
  CHECK(node.NumFComputeCores == device.compute_units * device.simds_per_compute_unit);
  CHECK(node.NumSIMDPerCU == device.simds_per_compute_unit);
  CHECK(node.NumShaderBanks == device.shader_engines);
  CHECK(node.NumArrays == 1);
  CHECK(node.NumCUPerArray == device.compute_units_per_shader_array);
  CHECK(node.MaxWavesPerSIMD == device.max_waves_per_simd);
  CHECK(node.WaveFrontSize == 64);
  CHECK(node.LDSSizeInKB == device.lds_bytes / 1024);
  CHECK(node.EngineId.ui32.Major == device.gfx_target_version / 10000);
  CHECK(node.EngineId.ui32.Minor == device.gfx_target_version / 100 % 100);
  CHECK(node.EngineId.ui32.Stepping == device.gfx_target_version % 100);
  CHECK(node.VendorId == 0x1002);
  CHECK(node.DeviceId == device.device_id);
  CHECK(node.MaxEngineClockMhzFCompute == device.engine_clock_mhz);
  CHECK(node.DrmRenderMinor == 128);
  CHECK(node.NumCpQueues == 24);
  CHECK(node.NumGws == 64);
  CHECK(node.NumSdmaEngines == 2);
  CHECK(node.NumSdmaXgmiEngines == (device.target == "gfx942"   ? 14u
                                    : device.target == "gfx90a" ? 3u
                                    : device.target == "gfx908" ? 6u
                                                                : 0u));
  CHECK(node.Capability.ui32.DoorbellType == 2);
  CHECK(node.Capability.ui32.SRAM_EDCSupport == (device.sram_ecc ? 1u : 0u));
  CHECK(node.Capability.ui32.WatchPointsTotalBits == 2);
  CHECK(node.Capability.ui32.SVMAPISupported == 0);
  CHECK(value(node.UniqueID) != 0);
  CHECK(text_of(node.MarketingName) == device.marketing_name);
}

TEST_CASE("the device's memory is one bank of VRAM that the host can access", "[topology]") {
  const Thunk thunk;
  const DeviceDescription& device = expected_device();
  const HsaNodeProperties node = properties_of(kGpuNode);
  std::vector<HsaMemoryProperties> banks(node.NumMemoryBanks);
  REQUIRE(hsaKmtGetNodeMemoryProperties(kGpuNode, node.NumMemoryBanks, banks.data()) ==
          HSAKMT_STATUS_SUCCESS);
  const auto vram_bank = std::find_if(banks.begin(), banks.end(), [](const auto& bank) {
    return bank.HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC;
  });
  REQUIRE(vram_bank != banks.end());
  CHECK(value(vram_bank->SizeInBytes) == device.vram_bytes);
  CHECK(vram_bank->Width == device.memory_width_bits);
  CHECK(vram_bank->MemoryClockMax == device.memory_clock_mhz);
  CHECK(std::count_if(banks.begin(), banks.end(), [](const auto& bank) {
          return bank.HeapType == HSA_HEAPTYPE_GPU_LDS || bank.HeapType == HSA_HEAPTYPE_GPU_SCRATCH;
        }) == 2);
}

TEST_CASE("both nodes list caches, and the device lists a data cache", "[topology]") {
  const Thunk thunk;
  HsaCacheProperties caches[3]{};
  REQUIRE(hsaKmtGetNodeCacheProperties(kGpuNode, 0, 3, caches) == HSAKMT_STATUS_SUCCESS);
  CHECK(caches[0].CacheLevel == 1);
  // AMD, "GPU hardware specifications": 16 KiB, MI300X 32 KiB.
  CHECK(caches[0].CacheSize == (expected_device().target == "gfx942" ? 32 : 16));
  CHECK(caches[0].CacheType.ui32.Data == 1);
  CHECK(caches[0].CacheType.ui32.HSACU == 1);
  CHECK(caches[1].CacheType.ui32.Instruction == 1);
  CHECK(caches[2].CacheLevel == 2);
  CHECK(caches[2].CacheSize == expected_device().l2_bytes / 1024);
  HsaCacheProperties host{};
  REQUIRE(hsaKmtGetNodeCacheProperties(kCpuNode, 0, 1, &host) == HSAKMT_STATUS_SUCCESS);
  CHECK(host.CacheType.ui32.CPU == 1);
}

TEST_CASE("host and device are linked both ways over PCI Express", "[topology]") {
  const Thunk thunk;
  for (const HSAuint32 node : {kCpuNode, kGpuNode}) {
    HsaIoLinkProperties link{};
    REQUIRE(hsaKmtGetNodeIoLinkProperties(node, 1, &link) == HSAKMT_STATUS_SUCCESS);
    CHECK(link.IoLinkType == HSA_IOLINKTYPE_PCIEXPRESS);
    CHECK(link.NodeFrom == node);
    CHECK(link.NodeTo == 1 - node);
    CHECK(link.Weight == 20);
  }
}

TEST_CASE("there is no third node", "[topology]") {
  const Thunk thunk;
  HsaNodeProperties node{};
  CHECK(hsaKmtGetNodeProperties(2, &node) != HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("every function that opens or queries a path works on virtual files", "[tree]") {
  constexpr const char* kFile = "/sys/class/kfd/kfd/topology/nodes/1/gpu_id";
  constexpr const char* kSame = "/sys//devices/virtual/kfd/./kfd/topology/nodes/0/../1/gpu_id";
  struct stat status {};
  REQUIRE(stat(kFile, &status) == 0);
  CHECK(S_ISREG(status.st_mode));
  struct stat same {};
  REQUIRE(lstat(kSame, &same) == 0);
  CHECK(same.st_ino == status.st_ino);
  CHECK(access(kFile, R_OK) == 0);
  CHECK(access(kFile, W_OK) == -1);
  std::string one;
  std::string other;
  std::ifstream(kFile) >> one;
  std::ifstream(kSame) >> other;
  CHECK(one == other);
  CHECK_FALSE(one.empty());
  CHECK(static_cast<size_t>(status.st_size) == one.size() + 1);
  char* resolved = realpath(kFile, nullptr);
  REQUIRE(resolved != nullptr);
  CHECK(std::string(resolved) == "/sys/devices/virtual/kfd/kfd/topology/nodes/1/gpu_id");
  std::free(resolved);
}

TEST_CASE("virtual directories list their entries", "[tree]") {
  std::set<std::string> names;
  DIR* directory = opendir("/sys/class/kfd/kfd/topology/nodes");
  REQUIRE(directory != nullptr);
  while (const dirent* entry = readdir(directory)) names.insert(entry->d_name);
  CHECK(names == std::set<std::string>{".", "..", "0", "1"});
  rewinddir(directory);
  CHECK(readdir(directory) != nullptr);
  CHECK(closedir(directory) == 0);
}

TEST_CASE("a virtual directory hides the real entries below it", "[tree]") {
  CHECK(access("/sys/class/kfd/kfd/topology/nodes/2", F_OK) == -1);
  CHECK(access("/dev/dri/card0", F_OK) == -1);
  struct stat status {};
  CHECK(stat("/dev/dri/renderD129", &status) == -1);
  CHECK(stat("/dev/null", &status) == 0);  // outside, the real file system answers
}

TEST_CASE("a program finds no accelerators", "[tree]") {
  struct stat status {};
  CHECK(stat("/dev/accel/accel0", &status) == -1);
  CHECK(errno == ENOENT);
  CHECK(open("/dev/accel/accel0", O_RDWR) == -1);
  CHECK(errno == ENOENT);
  CHECK(opendir("/dev/accel") == nullptr);
  CHECK(errno == ENOENT);
}

TEST_CASE("a program reads the GPU's PCI device and the driver's parameters", "[tree]") {
  const auto line = [](const char* path) {
    std::ifstream file(path);
    std::string text;
    std::getline(file, text);
    return text;
  };
  CHECK(line("/sys/bus/pci/devices/0000:03:00.0/vendor") == "0x1002");
  CHECK(std::stoul(line("/sys/bus/pci/devices/0000:03:00.0/device"), nullptr, 16) ==
        expected_device().device_id);
  CHECK(line("/sys/bus/pci/devices/0000:03:00.0/max_link_width") == "16");
  CHECK(line("/sys/module/amdgpu/parameters/cwsr_enable") == "1");
  char resolved[PATH_MAX];
  REQUIRE(realpath("/sys/dev/char/226:128/device", resolved) != nullptr);
  const std::string by_node = resolved;
  REQUIRE(realpath("/sys/bus/pci/devices/0000:03:00.0", resolved) != nullptr);
  CHECK(by_node == resolved);
  CHECK(by_node.ends_with("/0000:03:00.0"));
}

TEST_CASE("the render node is character device 226:128 by path and by descriptor", "[tree]") {
  struct stat status {};
  REQUIRE(stat("/dev/dri/renderD128", &status) == 0);
  CHECK(S_ISCHR(status.st_mode));
  CHECK(major(status.st_rdev) == 226);
  CHECK(minor(status.st_rdev) == 128);
  std::FILE* file = std::fopen("/dev/dri/renderD128", "r+");
  REQUIRE(file != nullptr);
  struct stat opened {};
  REQUIRE(fstat(fileno(file), &opened) == 0);
  CHECK(S_ISCHR(opened.st_mode));
  CHECK(opened.st_rdev == status.st_rdev);
  std::fclose(file);
}

}  // namespace
}  // namespace uptempo::vgpu
