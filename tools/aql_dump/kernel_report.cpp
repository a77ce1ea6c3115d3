#include "tools/aql_dump/kernel_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <uptempo/program/kernel_start.hpp>
#include <uptempo/runtime/error.hpp>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "tools/support/table.hpp"

namespace uptempo::aql_dump {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNameColumns = 28;
constexpr size_t kIndent = 11;  // of continued lines

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Hidden arguments that need a service of the host or of the runtime.
bool needs_service(const std::string& hidden) {
  return is_one_of(hidden, {"hostcall_buffer", "printf_buffer", "heap_v1", "default_queue",
                            "completion_action", "multigrid_sync_arg"});
}

// Hidden arguments from which a kernel computes its position in the grid.
bool is_geometry(const std::string& hidden) {
  return hidden.starts_with("block_count_") || hidden.starts_with("group_size_") ||
         hidden.starts_with("remainder_") || hidden.starts_with("global_offset_") ||
         hidden == "grid_dims";
}

// Targets whose packet processor loads kernargs into SGPRs (LLVM AMDGPU User Guide, "Preloaded
// Kernel Arguments").
bool can_preload(const std::string& target) {
  return target.starts_with("gfx94") || target.starts_with("gfx950") ||
         target.starts_with("gfx9-4-generic") || target.starts_with("gfx125");
}

struct Cost {
  std::string_view name;
  bool (*applies)(const KernelStart& kernel);
  std::string_view remedy;
};

const Cost kCosts[] = {
    {"packet", [](const KernelStart& kernel) { return kernel.packet; },
     "Every wave reads the dispatch packet from the ring, an uncached round trip to host memory, "
     "and the queue keeps the packet's slot until the kernel has completed. Compile with "
     "-mcode-object-version=5 or newer, use get_global_size() or gridDim instead of "
     "__builtin_amdgcn_dispatch_ptr() and __builtin_amdgcn_grid_size_x(), and make calls "
     "inlinable."},
    {"queue", [](const KernelStart& kernel) { return kernel.queue; },
     "The kernel reads amd_queue_t in host memory, usually for the apertures of generic pointers. "
     "Compile with -mcode-object-version=5 or newer, and name the address space of pointers to "
     "local and private memory."},
    {"dispatch id", [](const KernelStart& kernel) { return kernel.dispatch_id; },
     "The packet processor computes the packet's index for the kernel. Pass a number of your own "
     "as "
     "an argument instead of calling __builtin_amdgcn_dispatch_id()."},
    {"geometry",
     [](const KernelStart& kernel) {
       return std::ranges::any_of(kernel.hidden_arguments, is_geometry);
     },
     "Every wave loads its geometry from hidden arguments, and the host writes them for every "
     "dispatch. Fix the workgroup size with reqd_work_group_size, compute the global ID as "
     "get_group_id() * size + get_local_id(), and pass the grid size as an argument."},
    {"service",
     [](const KernelStart& kernel) {
       return std::ranges::any_of(kernel.hidden_arguments, needs_service);
     },
     "The metadata declares a service of the host: printf, assert, malloc or device enqueue. "
     "Remove "
     "the call, or compile with optimization, which removes a declaration without use."},
    {"scratch",
     [](const KernelStart& kernel) { return kernel.scratch || kernel.private_segment_bytes != 0; },
     "The kernel needs scratch memory: its first dispatch on a queue may stop the queue until the "
     "runtime has allocated it. Index arrays with constants or unroll the loop, use local memory, "
     "or reduce registers; -Rpass-analysis=kernel-resource-usage shows what the compiler used."},
    {"dynamic stack", [](const KernelStart& kernel) { return kernel.dynamic_stack; },
     "The stack has no static bound. Remove recursion and calls through pointers."},
    {"no preload",
     [](const KernelStart& kernel) {
       return kernel.explicit_kernarg_bytes != 0 && kernel.preload_words == 0 &&
              can_preload(kernel.target);
     },
     "Every wave waits for a load of its arguments, which this target can preload into registers. "
     "Compile with clang 17 or newer and -mllvm -amdgpu-kernarg-preload-count=16."},
};

// Joins x, y and z of one argument: "group_size_x" to "group_size_z" become "group_size".
std::vector<std::string> short_names(const std::vector<std::string>& hidden) {
  std::vector<std::string> names;
  for (std::string name : hidden) {
    const bool has_dimension = name.ends_with("_x") || name.ends_with("_y") || name.ends_with("_z");
    if (has_dimension) name.resize(name.size() - 2);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::string row(const KernelStart& kernel) {
  const auto mark = [](bool is_set) { return is_set ? "yes" : "-"; };
  const auto count = [](uint64_t value) { return value == 0 ? "-" : std::to_string(value); };
  const std::string values =
      fmt::format("{:>6} {:>5} {:>6} {:>7} {:>7} {:>7} {:>7}\n", mark(kernel.packet),
                  mark(kernel.queue), count(kernel.hidden_arguments.size()),
                  count(kernel.kernarg_bytes), count(4 * uint64_t{kernel.preload_words}),
                  kernel.dynamic_stack ? std::to_string(kernel.private_segment_bytes) + "+"
                                       : count(kernel.private_segment_bytes),
                  mark(kernel.scratch));
  if (kernel.name.size() <= kNameColumns) return fmt::format("{:<28} {}", kernel.name, values);
  return fmt::format("{}\n{:<28} {}", kernel.name, "", values);
}

Json json_of(const KernelStart& kernel) {
  Json costs = Json::array();
  for (const Cost& cost : kCosts)
    if (cost.applies(kernel)) costs.push_back({{"cost", cost.name}, {"remedy", cost.remedy}});
  return {{"name", kernel.name},
          {"packet", kernel.packet},
          {"queue", kernel.queue},
          {"dispatch_id", kernel.dispatch_id},
          {"kernarg_segment", kernel.kernarg_segment},
          {"hidden_arguments_declared", kernel.hidden_arguments},
          {"kernarg_bytes", kernel.kernarg_bytes},
          {"explicit_kernarg_bytes", kernel.explicit_kernarg_bytes},
          {"preload_bytes", 4 * kernel.preload_words},
          {"private_segment_bytes", kernel.private_segment_bytes},
          {"scratch", kernel.scratch},
          {"dynamic_stack", kernel.dynamic_stack},
          {"costs", std::move(costs)}};
}

bool same_object(const KernelStart& one, const KernelStart& other) {
  return one.origin == other.origin && one.target == other.target &&
         one.code_object_version == other.code_object_version;
}

std::vector<KernelStart> read_kernels(const std::string& bytes, const std::string& name) {
  try {
    return kernel_starts(std::as_bytes(std::span(bytes)));
  } catch (const Error& error) {
    throw std::runtime_error(fmt::format("'{}' holds {}; {}", name, error.found(), error.remedy()));
  }
}

}  // namespace

KernelReport report_kernels(const std::string& bytes, const std::string& name) {
  const std::vector<KernelStart> kernels = read_kernels(bytes, name);
  KernelReport report;
  report.json["file"] = name;
  report.json["code_objects"] = Json::array();
  Json& objects = report.json["code_objects"];
  const KernelStart* last = nullptr;
  for (const KernelStart& kernel : kernels) {
    if (last == nullptr || !same_object(*last, kernel)) {
      report.text += fmt::format("{}{}, code object version {} ({})\n", last ? "\n" : "",
                                 kernel.target, kernel.code_object_version, kernel.origin);
      report.text +=
          fmt::format("{:<28} {:>6} {:>5} {:>6} {:>7} {:>7} {:>7} {:>7}\n", "kernel", "packet",
                      "queue", "hidden", "kernarg", "preload", "private", "scratch");
      objects.push_back({{"origin", kernel.origin},
                         {"target", kernel.target},
                         {"version", kernel.code_object_version},
                         {"kernels", Json::array()}});
    }
    last = &kernel;
    report.text += row(kernel);
    if (!kernel.hidden_arguments.empty())
      report.text +=
          support::wrapped(fmt::format("{}", fmt::join(short_names(kernel.hidden_arguments), " ")),
                           support::kTerminalColumns, kIndent, "  declares ");
    std::vector<std::string_view> costs;
    for (const Cost& cost : kCosts)
      if (cost.applies(kernel)) costs.push_back(cost.name);
    if (!costs.empty())
      report.text += support::wrapped(fmt::format("{}", fmt::join(costs, " | ")),
                                      support::kTerminalColumns, kIndent, "  costs    ");
    objects.back()["kernels"].push_back(json_of(kernel));
  }
  bool has_remedies = false;
  for (const Cost& cost : kCosts) {
    const auto count = std::ranges::count_if(kernels, cost.applies);
    if (count == 0) continue;
    if (!has_remedies) report.text += "\nremedies\n";
    has_remedies = true;
    report.text += support::wrapped(
        fmt::format("{} ({} of {} kernels): {}", cost.name, count, kernels.size(), cost.remedy),
        support::kTerminalColumns, 4, "  ");
  }
  if (kernels.empty()) report.text += "no kernels\n";
  return report;
}

}  // namespace uptempo::aql_dump
