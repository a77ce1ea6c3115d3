#include <uptempo/hip/kernel.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/hip/device_agent.hpp>
#include <uptempo/hip/found_kernel.hpp>
#include <uptempo/hip/loaded_code.hpp>
#include <uptempo/hip/status.hpp>
#include <uptempo/program/kernel_names.hpp>
#include <uptempo/program/loaded_kernel.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {
namespace {

std::string shown(const std::string& symbol) {
  const std::string cpp = cpp_name(symbol);
  return cpp == symbol ? fmt::format("kernel '{}'", symbol)
                       : fmt::format("kernel '{}' ({})", cpp, symbol);
}

[[noreturn]] void refuse(const std::string& asked, std::string found, std::string remedy) {
  throw Error({.code = ErrorCode::program,
               .status = HSA_STATUS_ERROR_INVALID_SYMBOL_NAME,
               .call = "hip::kernel",
               .asked = asked,
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

// The first address of the program or shared library that holds this address; null if none does.
const void* library_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Keeps the code objects that satisfy the condition, if there are any.
template <class F>
void prefer(std::vector<LoadedCode>& found, F&& condition) {
  if (std::ranges::any_of(found, condition))
    std::erase_if(found, [&](const LoadedCode& code) { return !condition(code); });
}

// `function`: host address of a __global__ function, or null.
LoadedCode select(std::vector<LoadedCode> found, const std::string& asked, const void* function,
                  Beside beside) {
  if (found.empty())
    refuse(asked, "no code object that HIP has loaded on this device defines it",
           "make the device that has the module current (hipSetDevice)");
  if (beside.device_address != nullptr) {
    std::erase_if(found,
                  [&](const LoadedCode& code) { return !code.holds(beside.device_address); });
    if (found.empty())
      refuse(asked,
             fmt::format("no code object with this kernel holds the address {}",
                         fmt::ptr(beside.device_address)),
             "pass the device address of a __device__ variable of the same source");
  } else if (found.size() > 1 && function != nullptr) {
    const void* const library = library_of(function);
    prefer(found, [&](const LoadedCode& code) {
      return library != nullptr && library_of(code.storage) == library;
    });
  }
  if (found.size() == 1) return found.front();
  std::vector<std::string> places;
  places.reserve(found.size());
  for (const LoadedCode& code : found)
    places.push_back(
        fmt::format("{:#x} to {:#x}", code.load_base, code.load_base + code.load_size));
  refuse(asked,
         fmt::format("{} loaded code objects define it, at {}", found.size(),
                     fmt::join(places, " and ")),
         "pass Beside{address}, with the device address of a __device__ variable of the right one");
}

}  // namespace

const ReadObjects::Entry& ReadObjects::of(const LoadedCode& code, const std::string& kernel) {
  const std::pair key(code.executable.handle, code.load_base);
  if (const auto known = entries_.find(key); known != entries_.end()) return known->second;
  LoadedObject loaded = read_loaded(code, kernel);
  ProgramMetadata metadata = program_metadata(loaded.object);
  return entries_.emplace(key, Entry{std::move(loaded), std::move(metadata)}).first->second;
}

FoundKernel find_kernel(const std::string& name, const void* function, Beside beside,
                        PrivateBytes stack, ReadObjects& objects, std::string_view call) {
  const Agent& agent = current_agent();
  const std::string asked = fmt::format("{} on {}", shown(name), agent.name());
  const LoadedCode code = select(code_with_kernel(agent, name + ".kd"), asked, function, beside);
  const auto& [loaded, program] = objects.of(code, name);
  const auto kernel = std::ranges::find(program.kernels, name, &KernelMetadata::name);
  if (kernel == program.kernels.end())
    refuse(asked, "its code object has no metadata of it", "compile the source again");
  KernelInfo info = read_kernel(agent, code.executable, loaded.object, loaded.identity, program,
                                *kernel, stack, call);
  // For errors, which ask ROCr for no names. HIP unloads the kernel without telling.
  uptempo::detail::KernelNames::of_process().add(info.object, info.name, nullptr);
  return {.code = code, .info = std::move(info)};
}

std::string kernel_name(const void* function) {
  // Loads the code, which HIP does at the first use of a function.
  hipFuncAttributes attributes{};
  check(hipFuncGetAttributes(&attributes, function), "hipFuncGetAttributes",
        fmt::format("the function at {}", fmt::ptr(function)),
        "pass a __global__ function that was compiled for this device");
  const char* const name = hipKernelNameRefByPtr(function, nullptr);
  if (name == nullptr)
    refuse(fmt::format("the function at {}", fmt::ptr(function)), "HIP knows no name for it",
           "pass a __global__ function");
  return name;
}

std::string kernel_name(hipFunction_t function) {
  const char* const name = function == nullptr ? nullptr : hipKernelNameRef(function);
  if (name == nullptr)
    refuse("a hipFunction_t", function == nullptr ? "it is null" : "HIP knows no name for it",
           "pass a function of hipModuleGetFunction");
  return name;
}

KernelInfo kernel_info(const void* function, Beside beside, PrivateBytes stack) {
  ReadObjects objects;
  return find_kernel(kernel_name(function), function, beside, stack, objects).info;
}

KernelInfo kernel_info(hipFunction_t function, Beside beside, PrivateBytes stack) {
  ReadObjects objects;
  return find_kernel(kernel_name(function), nullptr, beside, stack, objects).info;
}

}  // namespace uptempo::hip
