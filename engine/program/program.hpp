// Program: code objects loaded on an agent. Kernel<Args...>: one of its kernels, with argument types that were checked.
//
//   Program program{gpu, kernels::bitonic_sort()};
//   auto sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
//
// Everything that can be wrong is found here and not at dispatch: no code object for the agent's ISA (each rejected one is named
// with its reason), an unknown kernel (the known ones are listed), argument types that do not fit, unsupported hidden arguments.
//
// Lifetimes: the code object's bytes live as long as the Program. Programs and kernels are cheap values that share the loaded code; it
// is unloaded with the last of them, which must not be before its dispatches have completed. Moving
// copies them: no Program or Kernel is ever without its code. Kernels that were asked for stay
// readable after the Runtime has gone; asking for another throws Error then. Thread safety:
// immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/program/arguments.hpp"
#include "engine/program/code_identity.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo {

// Tells kernels apart, also from one that had its address before. A copy is another kernel: it may be changed.
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

// What a dispatch needs to know of a kernel.
struct KernelInfo {
  KernelIdentity identity{};
  CodeIdentity code{};  // of a kernel from elsewhere: what its loader knows
  std::string name;
  uint64_t object = 0;              // address of the kernel descriptor, the packet's kernel_object
  uint32_t group_segment_size = 0;  // static, bytes for each workgroup
  uint32_t private_segment_size = 0;
  uint32_t max_workgroup_size = 0;                    // work-items, of kernel and agent
  std::array<uint32_t, 3> required_workgroup_size{};  // 0: any
  std::array<uint64_t, 3> max_grid{};                 // work-items, of the agent
  uint32_t max_group_segment_size = UINT32_MAX;       // bytes, static and dynamic, of the agent; or not known
  ArgumentLayout arguments;
};

template <class... Args>
class Kernel {
 public:
  Kernel(const Kernel&) noexcept = default;  // no move: what was moved from would have no kernel
  Kernel& operator=(const Kernel&) noexcept = default;

  const KernelInfo& info() const noexcept { return *info_; }
  const std::string& name() const noexcept { return info_->name; }
  // Keeps the code loaded.
  const std::shared_ptr<const KernelInfo>& shared_info() const noexcept { return info_; }

  // A kernel that the caller has loaded by other means, and for whose argument types the caller vouches.
  static Kernel trusted(std::shared_ptr<const KernelInfo> info) { return Kernel(std::move(info)); }

 private:
  friend class Program;
  explicit Kernel(std::shared_ptr<const KernelInfo> info) : info_(std::move(info)) {}
  std::shared_ptr<const KernelInfo> info_;
};

// Throws Error for a grid that this kernel or its agent cannot run, saying which limit it breaks.
void require_geometry(const KernelInfo& kernel, const Grid& grid);

namespace detail {

// Throws Error where a workgroup of this kernel cannot have `bytes` of group memory. `lds_bytes` of
// them are Grid::lds_bytes, and what is left beside the static part are LocalBytes arguments.
void require_group_segment(const KernelInfo& kernel, uint32_t lds_bytes, uint64_t bytes);

// The same for the arguments of one dispatch. Without LocalBytes among them there is nothing to
// check: require_geometry() has.
template <class... Args>
void require_local_bytes([[maybe_unused]] const KernelInfo& kernel, [[maybe_unused]] uint32_t lds_bytes,
                         [[maybe_unused]] const Args&... args) {
  if constexpr (takes_local_bytes<Args...>) {
    uint64_t bytes = uint64_t{kernel.group_segment_size} + lds_bytes;
    ((bytes = with_argument(bytes, args)), ...);
    if (bytes > kernel.max_group_segment_size) [[unlikely]]
      require_group_segment(kernel, lds_bytes, bytes);
  }
}

}  // namespace detail

class Program {
 public:
  // `code` is an AMDGPU ELF file or a clang offload bundle. Throws Error.
  Program(const Agent& agent, std::span<const std::byte> code);
  Program(const Program&) noexcept = default;  // no move: what was moved from would have no code
  Program& operator=(const Program&) noexcept = default;

  // Throws Error; see above.
  template <class... Args>
  Kernel<Args...> kernel(std::string_view name) const {
    constexpr std::array<ArgumentType, sizeof...(Args)> types{argument_type<Args>()...};
    std::shared_ptr<const KernelInfo> info = kernel_info(name);
    info->arguments.require(types);
    return Kernel<Args...>(std::move(info));
  }
  // A kernel whose argument types are not known here. Throws Error but for types.
  std::shared_ptr<const KernelInfo> kernel_info(std::string_view name) const;

  std::vector<std::string> kernel_names() const;
  // The target ID of the code object in use: "gfx90a".
  const std::string& target() const noexcept;
  const CodeIdentity& identity() const noexcept;

 private:
  struct Loaded;
  std::shared_ptr<const Loaded> loaded_;
};

}  // namespace uptempo
