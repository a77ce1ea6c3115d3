// Program: a code object loaded on an agent. Kernel<Args...>: one of its kernels, with checked
// argument types.
//
//   Program program{gpu, kernels::bitonic_sort()};
//   auto sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
//   auto any = program.kernel<Arguments>("bitonic_sort");  // arguments given at run time
//
// Errors: found here rather than at dispatch. The constructor throws if no code object matches the
// agent's ISA, with the reason for each. kernel() throws for an unknown name (it lists the known
// ones), for a C++ name of several kernels, for argument types that do not match, and for
// unsupported hidden arguments.
//
// Stacks: the compiler cannot bound the stack of a kernel that recurses or calls through pointers
// (metadata .uses_dynamic_stack). kernel() throws for it unless the caller gives its private
// memory:
//   auto walk = program.kernel<uint32_t*>("walk", PrivateBytes{4096});
//
// Agents: a program is loaded for one agent. Queues, streams, batches and recordings of another one
// refuse its kernels with an Error that names both. Make one Program per agent.
//
// Lifetime: the caller's bytes must outlive the Program and its kernels, except those of
// with_copy(). Programs and kernels are small values that share the loaded code. The last of them
// unloads it, which must not happen before its dispatches have completed. Moving copies, so every
// Program and Kernel always has its code. After the end of the Runtime, existing kernels remain
// readable; requesting another throws Error.
//
// Thread safety: immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/arguments.hpp>
#include <uptempo/program/detail/argument_places.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo {

// Target ID, size and hash of the code object that a kernel was loaded from. A saved recording
// identifies its kernels by it, because arguments and results are valid only for this code. Two
// code objects with one identity are equal, except with a probability of 2^-64. The hash does not
// protect against deliberate collisions.
struct CodeIdentity {
  // Constructors: without them, if a later member of the outer aggregate throws, GCC 12 destroys a
  // nested aggregate that it has not constructed.
  CodeIdentity() noexcept {}
  CodeIdentity(std::string the_target, uint64_t size, uint64_t the_hash) noexcept
      : target(std::move(the_target)), size_bytes(size), hash(the_hash) {}

  std::string target;       // "gfx90a"
  uint64_t size_bytes = 0;  // of the code object; 0: unknown
  uint64_t hash = 0;        // XXH64 with seed 0, as printed by `xxhsum -H1`

  bool is_known() const noexcept { return size_bytes != 0; }
  friend bool operator==(const CodeIdentity&, const CodeIdentity&) = default;
};

// "gfx90a, 4711 bytes, hash 00ff00ff00ff00ff".
std::string to_string(const CodeIdentity& code);

namespace detail {

// Unique number of a kernel, never reused even if its address is. A copy gets a new number, because
// it may be changed.
class KernelIdentity {
 public:
  KernelIdentity() noexcept : number_(next()) {}
  KernelIdentity(const KernelIdentity&) noexcept : KernelIdentity() {}
  KernelIdentity& operator=(const KernelIdentity&) noexcept {
    number_ = next();
    return *this;
  }
  uint64_t number() const noexcept { return number_; }  // from 1

 private:
  static uint64_t next() noexcept;
  uint64_t number_;
};

}  // namespace detail

// The private memory of a work-item, in bytes, where the compiler's size may not suffice: that of a
// kernel with a dynamic stack. 0: not given. The kernel gets the larger of the two sizes. Hardware
// does not check the stack: a kernel that needs more overwrites memory of other work-items, or ends
// the queue with a fault. HIP's size is hipLimitStackSize, 1,024 bytes by default, with the same
// greatest value (CLR, rocvirtual.cpp, submitKernelInternal(), and device.cpp, UpdateStackSize()).
// clang 15 assumes 16 KiB for calls through pointers, and takes a function that calls itself
// directly for one with a bounded stack: give such a kernel its PrivateBytes, too.
struct PrivateBytes {
  static constexpr uint32_t kMost = 128 * 1024 - 16;
  uint32_t per_work_item = 0;

  friend constexpr bool operator==(const PrivateBytes&, const PrivateBytes&) = default;
};

// Properties of a kernel that a dispatch needs.
struct KernelInfo {
  detail::KernelIdentity identity{};
  CodeIdentity code{};  // unknown for a kernel that the caller has loaded
  std::string name;
  // The agent for which it is loaded. Queues of other agents refuse it. 0: unknown to its loader.
  hsa_agent_t agent{0};
  uint64_t object = 0;  // address of the kernel descriptor: the packet's kernel_object
  // The kernel may read its packet while it runs, so that the packet's slot is in use until
  // completion. Program takes it from the descriptor (ENABLE_SGPR_DISPATCH_PTR). True is always
  // correct; false lets the slot be reused as soon as the kernel has been launched.
  bool reads_packet = true;
  uint32_t group_segment_size = 0;                    // static, bytes per workgroup
  uint32_t private_segment_size = 0;                  // bytes per work-item
  PrivateBytes stack{};                               // as given
  uint32_t max_workgroup_size = 0;                    // work-items; minimum of kernel and agent
  std::array<uint32_t, 3> required_workgroup_size{};  // 0: any
  std::array<uint32_t, 3> max_workgroups{};           // per dimension; 0: any
  // No workgroup of a grid may be partial. Program takes it from the metadata: true for kernels of
  // HIP, which computes indices with one blockDim, and of OpenCL C before 2.0.
  bool whole_workgroups = false;
  // bytes, static and dynamic; the agent's limit, or unknown
  uint32_t max_group_segment_size = UINT32_MAX;
  ArgumentLayout arguments;
};

template <class... Args>
class Kernel {
 public:
  Kernel(const Kernel&) noexcept = default;  // no move: a moved-from Kernel would have no code
  Kernel& operator=(const Kernel&) noexcept = default;

  const KernelInfo& info() const noexcept { return *info_; }
  const std::string& name() const noexcept { return info_->name; }
  // Keeps the code loaded.
  const std::shared_ptr<const KernelInfo>& shared_info() const noexcept { return info_; }

  // The kernel with these properties: those of another Kernel, of Program::kernel_info(), or of a
  // kernel that the caller has loaded (kernel_object.hpp). Throws Error if the argument types do
  // not match.
  static Kernel of(std::shared_ptr<const KernelInfo> info) {
    if constexpr (detail::kAtRunTime<Args...>) {
      static_assert(sizeof...(Args) == 1, "Arguments are all arguments of a kernel");
    } else {
      constexpr std::array<ArgumentType, sizeof...(Args)> types{argument_type<Args>()...};
      info->arguments.require(types);
    }
    return Kernel(std::move(info));
  }

 private:
  explicit Kernel(std::shared_ptr<const KernelInfo> info) : info_(std::move(info)) {}
  std::shared_ptr<const KernelInfo> info_;
};

// Throws Error for a grid that the kernel or its agent cannot run; the Error names the limit.
void require_geometry(const KernelInfo& kernel, const Grid& grid);
// Throws Error if the kernel is loaded for another agent than this one; the Error names both. There
// the code's address is unmapped, or holds something else. Agent 0 passes.
void require_agent(const KernelInfo& kernel, hsa_agent_t agent);

namespace detail {

// Throws Error if a workgroup of this kernel cannot have `bytes` of group memory. `lds_bytes` of
// them are Grid::lds_bytes; the rest beyond the static part are LocalBytes arguments.
void require_group_segment(const KernelInfo& kernel, uint32_t lds_bytes, uint64_t bytes);

void require_local_arrays(const KernelInfo& kernel, uint32_t lds_bytes, Arguments given);

// True if the arguments of each dispatch need a check.
template <class... Args>
inline constexpr bool kCheckedByDispatch = kAtRunTime<Args...> || takes_local_bytes<Args...>;

// Checks the arguments of one dispatch before anything is taken for it. Throws Error.
// Program::kernel() has checked types, and require_geometry() the group memory without LDS arrays.
// Always inline: in a call, Arguments would be stored and loaded again.
template <class... Args>
[[gnu::always_inline]] inline void require_arguments([[maybe_unused]] const KernelInfo& kernel,
                                                     [[maybe_unused]] uint32_t lds_bytes,
                                                     [[maybe_unused]] const Args&... args) {
  if constexpr (kAtRunTime<Args...>) {
    (kernel.arguments.require(args), ...);
    if (kernel.arguments.has_local()) [[unlikely]]
      require_local_arrays(kernel, lds_bytes, args...);
  } else if constexpr (takes_local_bytes<Args...>) {
    uint64_t bytes = uint64_t{kernel.group_segment_size} + lds_bytes;
    ((bytes = with_argument(bytes, args)), ...);
    if (bytes > kernel.max_group_segment_size) [[unlikely]]
      require_group_segment(kernel, lds_bytes, bytes);
  }
}

// The same for a try_ form: empty if a dispatch may have these arguments.
std::optional<Refusal> try_local_arrays(const KernelInfo& kernel, uint32_t lds_bytes,
                                        Arguments given);
std::optional<Refusal> try_group_segment(const KernelInfo& kernel, uint32_t lds_bytes,
                                         uint64_t bytes);
template <class... Args>
[[gnu::always_inline]] inline std::optional<Refusal> try_arguments(
    [[maybe_unused]] const KernelInfo& kernel, [[maybe_unused]] uint32_t lds_bytes,
    [[maybe_unused]] const Args&... args) {
  if constexpr (kAtRunTime<Args...>) {
    if (kernel.arguments.has_local() || !(kernel.arguments.accepts(args) && ...)) [[unlikely]]
      return try_local_arrays(kernel, lds_bytes, args...);
  } else if constexpr (takes_local_bytes<Args...>) {
    uint64_t bytes = uint64_t{kernel.group_segment_size} + lds_bytes;
    ((bytes = with_argument(bytes, args)), ...);
    if (bytes > kernel.max_group_segment_size) [[unlikely]]
      return try_group_segment(kernel, lds_bytes, bytes);
  }
  return {};
}

}  // namespace detail

// A variable of a program: `__device__` in HIP, `global` outside of functions in OpenCL C.
struct DeviceGlobal {
  void* address = nullptr;  // on the device, for kernels and copies (CopyTarget::device)
  size_t size_bytes = 0;
};

class Program {
 public:
  // `code`: an AMDGPU ELF file, as Triton (.hsaco) and comgr make them, or a clang offload bundle,
  // plain or compressed, as `hipcc --genco` makes it. Throws Error.
  Program(const Agent& agent, std::span<const std::byte> code);
  // The same with a copy of the bytes, which the Program keeps.
  static Program with_copy(const Agent& agent, std::span<const std::byte> code);
  // The same from a file, whose bytes the Program keeps. Also throws Error if it cannot be read.
  Program(const Agent& agent, const std::filesystem::path& file);
  Program(const Program&) noexcept = default;  // no move: a moved-from Program would have no code
  Program& operator=(const Program&) noexcept = default;

  // `name`: the kernel's symbol, or its name in a C++ source: "scale<double>(double*, double)", or
  // without parameters "scale<double>" if there is one such kernel. `stack`: for a kernel with a
  // dynamic stack. Throws Error; see above.
  template <class... Args>
  Kernel<Args...> kernel(std::string_view name, PrivateBytes stack = {}) const {
    return Kernel<Args...>::of(kernel_info(name, stack));
  }
  // A kernel whose arguments are given at run time, with the types that the caller will give. Also
  // throws Error if they do not match. Element and alignment are compared where the type has them.
  Kernel<Arguments> kernel(std::string_view name, std::span<const ArgumentType> types,
                           PrivateBytes stack = {}) const;
  // As kernel(), without a check of the argument types.
  std::shared_ptr<const KernelInfo> kernel_info(std::string_view name,
                                                PrivateBytes stack = {}) const;

  // The variable of this symbol ("table", or mangled as the compiler does it in a namespace). Every
  // Program has its own; it lives as long as the code. The compiler must have kept its symbol.
  // Throws Error for a name that the program does not have, and for a kernel's.
  DeviceGlobal global(std::string_view name) const;

  // The kernels' symbols.
  std::vector<std::string> kernel_names() const;
  // Target ID of the code object in use: "gfx90a".
  const std::string& target() const noexcept;
  const CodeIdentity& identity() const noexcept;

 private:
  struct Loaded;
  explicit Program(std::shared_ptr<const Loaded> loaded) noexcept : loaded_(std::move(loaded)) {}
  std::shared_ptr<const Loaded> loaded_;
};

}  // namespace uptempo
