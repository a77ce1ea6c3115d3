#include <uptempo/program/program.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/kernel_names.hpp>
#include <uptempo/program/loaded_kernel.hpp>
#include <uptempo/runtime/amd_extension.hpp>
#include <uptempo/runtime/attempt.hpp>
#include <uptempo/runtime/driver/driver_file.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {

uint64_t detail::KernelIdentity::next() noexcept {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {

Loader loader_of(const Agent& agent) {
  const AmdExtensionVersion extension = running_amd_extension();
  std::vector<TargetId> isas;
  for (const std::string& isa : agent.properties().isas)
    if (std::optional<TargetId> id = parse_target_id(isa)) isas.push_back(std::move(*id));
  if (!isas.empty()) return {std::move(isas), newest_version_of(extension.major, extension.minor)};
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_INVALID_ISA_NAME,
               .call = "Program",
               .asked = fmt::format("the target ID of agent {}", agent.name()),
               .found = fmt::format("its ISA is '{}'", agent.isa()),
               .remedy = "use an agent with an amdgcn ISA"});
}

Owned load(const Agent& agent, const CodeObject& code) {
  std::shared_ptr<Session> session = Session::current();
  const std::string asked =
      fmt::format("a code object for {}, {} bytes", to_string(code.target), code.bytes.size());

  hsa_code_object_reader_t reader{};
  check(hsa_code_object_reader_create_from_memory(code.bytes.data(), code.bytes.size(), &reader),
        "hsa_code_object_reader_create_from_memory", asked);
  const std::unique_ptr<hsa_code_object_reader_t, void (*)(hsa_code_object_reader_t*)> reader_guard(
      &reader, [](hsa_code_object_reader_t* r) { hsa_code_object_reader_destroy(*r); });

  hsa_executable_t executable{};
  check(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                  nullptr, &executable),
        "hsa_executable_create_alt", asked);
  Owned owned(std::move(session), Session::Kind::executable, executable.handle,
              [](uint64_t handle) noexcept { hsa_executable_destroy({handle}); });
  check(hsa_executable_load_agent_code_object(executable, agent.handle(), reader, nullptr, nullptr),
        "hsa_executable_load_agent_code_object", asked,
        "check that the code object's external symbols are all defined");
  check(hsa_executable_freeze(executable, nullptr), "hsa_executable_freeze", asked);
  return owned;
}

std::string read_file(const std::filesystem::path& file) {
  if (std::optional<std::string> bytes = detail::contents_of(file.string()))
    return *std::move(bytes);
  throw Error({.code = ErrorCode::file,
               .status = HSA_STATUS_ERROR_INVALID_FILE,
               .call = "Program",
               .asked = fmt::format("the code object in '{}'", file.string()),
               .found = fmt::format("it cannot be read: {}", std::strerror(errno)),
               .remedy = "pass a file that may be read"});
}

}  // namespace

struct Program::Loaded : std::enable_shared_from_this<Program::Loaded> {
  // `kept`: the bytes, if the Program keeps them.
  Loaded(const Agent& on, std::span<const std::byte> code, std::string kept = {})
      : file(std::move(kept)),
        agent(on),
        object(select_code_object(file.empty() ? code : std::as_bytes(std::span(file)),
                                  loader_of(on))),
        metadata(program_metadata(object)),
        executable(load(on, object)),
        identity(to_string(object.target), object.bytes.size(), content_hash(object.bytes)) {
    (void)detail::KernelNames::of_process();  // here, where it may throw
  }

  ~Loaded() { detail::KernelNames::of_process().unload(this); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  std::string file;  // empty if the caller keeps the bytes
  Agent agent;
  CodeObject object;
  ProgramMetadata metadata;
  Owned executable;
  CodeIdentity identity;
  // Kernels requested so far. A deque, because callers hold pointers to them.
  mutable std::mutex mutex;
  mutable std::deque<KernelInfo> kernels;
};

Program::Program(const Agent& agent, std::span<const std::byte> code)
    : loaded_(std::make_shared<const Loaded>(agent, code)) {}

Program::Program(const Agent& agent, const std::filesystem::path& file) {
  std::string bytes = read_file(file);
  try {
    loaded_ = std::make_shared<const Loaded>(agent, std::span<const std::byte>(), std::move(bytes));
  } catch (const Error& error) {  // about the contents
    throw Error({.code = error.code(),
                 .status = error.status(),
                 .call = fmt::format("'{}': {}", file.string(), error.call()),
                 .asked = error.asked(),
                 .found = error.found(),
                 .remedy = error.remedy()});
  }
}

Program Program::with_copy(const Agent& agent, std::span<const std::byte> code) {
  std::string copy(reinterpret_cast<const char*>(code.data()), code.size());
  return Program(std::make_shared<const Loaded>(agent, code, std::move(copy)));
}

const std::string& Program::target() const noexcept { return loaded_->identity.target; }

const CodeIdentity& Program::identity() const noexcept { return loaded_->identity; }

std::vector<std::string> Program::kernel_names() const {
  std::vector<std::string> names;
  for (const KernelMetadata& kernel : loaded_->metadata.kernels) names.push_back(kernel.name);
  return names;
}

Kernel<Arguments> Program::kernel(std::string_view name, std::span<const ArgumentType> types,
                                  PrivateBytes stack) const {
  std::shared_ptr<const KernelInfo> info = kernel_info(name, stack);
  info->arguments.require(types);
  return Kernel<Arguments>::of(std::move(info));
}

std::shared_ptr<const KernelInfo> Program::kernel_info(std::string_view name,
                                                       PrivateBytes stack) const {
  const Loaded& program = *loaded_;
  const std::lock_guard lock(program.mutex);
  const auto share = [&](const KernelInfo& kernel) {
    return std::shared_ptr<const KernelInfo>(loaded_, &kernel);
  };
  const auto requested = [&](std::string_view symbol) -> const KernelInfo* {
    const auto found = std::ranges::find_if(program.kernels, [&](const KernelInfo& kernel) {
      return kernel.name == symbol && kernel.stack == stack;
    });
    return found == program.kernels.end() ? nullptr : &*found;
  };
  if (const KernelInfo* const kernel = requested(name)) return share(*kernel);

  const KernelMetadata& metadata = program.metadata.kernel(name, "Program::kernel");
  if (const KernelInfo* const kernel = requested(metadata.name)) return share(*kernel);
  if (!program.executable.alive())
    Session::refuse_ended("Program::kernel", fmt::format("kernel '{}'", name), "the loaded code",
                          "make a new Runtime and a new Program");
  program.kernels.push_back(read_kernel(program.agent, {program.executable.handle()},
                                        program.object, program.identity, program.metadata,
                                        metadata, stack, "Program::kernel"));
  const KernelInfo& added = program.kernels.back();
  detail::KernelNames::of_process().add(added.object, added.name, &program);
  return share(added);
}

DeviceGlobal Program::global(std::string_view name) const {
  const Loaded& program = *loaded_;
  const std::string symbol(name);
  const std::string asked = fmt::format("variable '{}'", name);
  if (!program.executable.alive())
    Session::refuse_ended("Program::global", asked, "the loaded code",
                          "make a new Runtime and a new Program");
  const auto refuse = [&](const char* found) {
    throw Error({.code = ErrorCode::program,
                 .status = HSA_STATUS_ERROR_INVALID_SYMBOL_NAME,
                 .call = "Program::global",
                 .asked = asked,
                 .found = found,
                 .remedy = "pass the symbol of a variable (llvm-readelf --symbols lists them); in "
                           "HIP, declare it __device__, not static, and use it in a kernel"});
  };
  const hsa_executable_t executable{program.executable.handle()};
  const hsa_agent_t agent = program.agent.handle();
  hsa_executable_symbol_t found{};
  const hsa_status_t status =
      hsa_executable_get_symbol_by_name(executable, symbol.c_str(), &agent, &found);
  if (status == HSA_STATUS_ERROR_INVALID_SYMBOL_NAME) refuse("the program has no such symbol");
  check(status, "hsa_executable_get_symbol_by_name", asked);
  const auto read = [&](hsa_executable_symbol_info_t attribute, auto value) {
    check(hsa_executable_symbol_get_info(found, attribute, &value),
          "hsa_executable_symbol_get_info", asked);
    return value;
  };
  if (read(HSA_EXECUTABLE_SYMBOL_INFO_TYPE, hsa_symbol_kind_t{}) != HSA_SYMBOL_KIND_VARIABLE)
    refuse("a kernel has this name");
  const uint64_t address = read(HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, uint64_t{});
  // NOLINTNEXTLINE(performance-no-int-to-ptr): HSA gives the address as a number
  return {.address = reinterpret_cast<void*>(address),
          .size_bytes = read(HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, uint32_t{})};
}

void require_agent(const KernelInfo& kernel, hsa_agent_t agent) {
  if (kernel.agent.handle == agent.handle || kernel.agent.handle == 0 || agent.handle == 0) return;
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = fmt::format("dispatch of '{}'", kernel.name),
               .asked = fmt::format("a dispatch on a queue of {}", name_and_node(agent)),
               .found = fmt::format("the kernel is loaded for {}", name_and_node(kernel.agent)),
               .remedy = "make a Program for each agent, and dispatch its kernels there"});
}

namespace {

// The smallest grid of whole workgroups that covers this one, in source form.
std::string whole_grid(const std::array<uint32_t, 3>& items, const std::array<uint32_t, 3>& group) {
  std::array<uint32_t, 3> blocks{};
  size_t dimensions = 1;
  for (size_t d = 0; d < 3; ++d) {
    blocks[d] = items[d] / group[d] + (items[d] % group[d] != 0);
    if (blocks[d] != 1 || group[d] != 1) dimensions = d + 1;
  }
  return fmt::format("Grid::blocks({}).threads({})",
                     fmt::join(std::span(blocks).first(dimensions), ", "),
                     fmt::join(std::span(group).first(dimensions), ", "));
}

}  // namespace

void require_geometry(const KernelInfo& kernel, const Grid& grid) {
  const auto refuse = [&](std::string found, std::string remedy) {
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = fmt::format("dispatch of '{}'", kernel.name),
                 .asked = fmt::format("a grid of {} x {} x {} by workgroups of {} x {} x {}",
                                      grid.items.x, grid.items.y, grid.items.z, grid.workgroup.x,
                                      grid.workgroup.y, grid.workgroup.z),
                 .found = std::move(found),
                 .remedy = std::move(remedy)});
  };
  const std::array<uint32_t, 3> items{grid.items.x, grid.items.y, grid.items.z};
  const std::array<uint32_t, 3> group{grid.workgroup.x, grid.workgroup.y, grid.workgroup.z};
  if (std::ranges::count(items, 0u) != 0 || std::ranges::count(group, 0u) != 0)
    refuse("a size of zero", "leave unused dimensions at 1");
  uint64_t work_items = 1;
  for (size_t d = 0; d < 3; ++d) {
    if (kernel.whole_workgroups && items[d] % group[d] != 0)
      refuse(fmt::format("the last workgroup of dimension {} has {} of {} work-items, and the "
                         "kernel is compiled for whole workgroups, as all of HIP",
                         d, items[d] % group[d], group[d]),
             fmt::format("launch {}, and let the kernel compare its index with the size",
                         whole_grid(items, group)));
    // hsa.h, hsa_kernel_dispatch_packet_t: a grid must not be smaller than its workgroups.
    if (items[d] < group[d])
      refuse(fmt::format("dimension {} has workgroups larger than the grid", d),
             "make workgroups smaller");
    if (group[d] > 65535)
      refuse("a workgroup dimension is limited to 65535", "make workgroups smaller");
    if (kernel.required_workgroup_size[d] != 0 && kernel.required_workgroup_size[d] != group[d]) {
      refuse(fmt::format("the kernel was compiled for workgroups of {}",
                         fmt::join(kernel.required_workgroup_size, " x ")),
             "launch it with that size");
    }
    if (const uint32_t groups = items[d] / group[d] + (items[d] % group[d] != 0);
        kernel.max_workgroups[d] != 0 && groups > kernel.max_workgroups[d]) {
      refuse(fmt::format("{} workgroups in dimension {}, but the kernel was compiled for {}",
                         groups, d, kernel.max_workgroups[d]),
             "launch several grids, or compile the kernel for more workgroups");
    }
    work_items *= group[d];
  }
  if (work_items > kernel.max_workgroup_size) {
    refuse(
        fmt::format("workgroups of {} work-items, but the limit is {}", work_items,
                    kernel.max_workgroup_size),
        "make workgroups smaller, or compile the kernel for larger ones, up to the agent's limit");
  }
  detail::require_group_segment(kernel, grid.lds_bytes,
                                uint64_t{kernel.group_segment_size} + grid.lds_bytes);
}

void detail::refuse_blocks(uint64_t blocks_x, uint64_t blocks_y, uint64_t blocks_z,
                           const aql::Size3& threads) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Grid::blocks",
               .asked = fmt::format("{} x {} x {} workgroups of {} x {} x {}", blocks_x, blocks_y,
                                    blocks_z, threads.x, threads.y, threads.z),
               .found = "a dispatch has at most 4294967295 work-items in a dimension",
               .remedy = "launch several grids, or let each work-item do more"});
}

std::optional<Refusal> detail::try_local_arrays(const KernelInfo& kernel, uint32_t lds_bytes,
                                                Arguments given) {
  return attempt([&]() -> std::optional<Refusal> {
    kernel.arguments.require(given);
    if (kernel.arguments.has_local()) require_local_arrays(kernel, lds_bytes, given);
    return {};
  });
}

std::optional<Refusal> detail::try_group_segment(const KernelInfo& kernel, uint32_t lds_bytes,
                                                 uint64_t bytes) {
  return attempt([&]() -> std::optional<Refusal> {
    require_group_segment(kernel, lds_bytes, bytes);
    return {};
  });
}

void detail::require_local_arrays(const KernelInfo& kernel, uint32_t lds_bytes, Arguments given) {
  const uint64_t bytes = uint64_t{kernel.group_segment_size} + lds_bytes;
  require_group_segment(kernel, lds_bytes, kernel.arguments.with_local(bytes, given));
}

void detail::require_group_segment(const KernelInfo& kernel, uint32_t lds_bytes, uint64_t bytes) {
  if (bytes <= kernel.max_group_segment_size) return;
  const uint64_t dynamic = bytes - kernel.group_segment_size;
  std::string asked = fmt::format("{} bytes of dynamic group memory", dynamic);
  if (dynamic != lds_bytes)
    asked += fmt::format(" ({} of Grid::lds, the rest for LocalBytes arguments)", lds_bytes);
  throw Error(
      {.code = ErrorCode::argument,
       .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = fmt::format("dispatch of '{}'", kernel.name),
       .asked = std::move(asked),
       .found = fmt::format("with {} bytes of static group memory the sum is {}; the limit is {}",
                            kernel.group_segment_size, bytes, kernel.max_group_segment_size),
       .remedy = "ask for less, or make the kernel's static arrays smaller"});
}

}  // namespace uptempo
