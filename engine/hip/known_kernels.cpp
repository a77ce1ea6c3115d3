#include <uptempo/hip/known_kernels.hpp>

#include <string>

#include <uptempo/hip/device_agent.hpp>
#include <uptempo/hip/found_kernel.hpp>

namespace uptempo::hip {

std::shared_ptr<const KernelInfo> KnownKernels::find(void* function, Beside beside,
                                                     PrivateBytes stack, ReadObjects& objects) {
  // HIP's graphs keep either, depending on how a node was made.
  hipFuncAttributes attributes{};
  const bool is_host_function = hipFuncGetAttributes(&attributes, function) == hipSuccess;
  if (!is_host_function) (void)hipGetLastError();
  const std::string name =
      is_host_function ? kernel_name(function) : kernel_name(static_cast<hipFunction_t>(function));
  const std::tuple<const void*, const void*, uint32_t> key{function, beside.device_address,
                                                           stack.per_work_item};
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.info->name == name &&
      is_loaded(current_agent(), known->second.code, name + ".kd"))
    return known->second.info;
  FoundKernel found = find_kernel(name, is_host_function ? function : nullptr, beside, stack,
                                  objects, "hip::import");
  auto info = std::make_shared<const KernelInfo>(std::move(found.info));
  known_.insert_or_assign(key, Known{found.code, info});
  return info;
}

}  // namespace uptempo::hip
