#include "device/races/report/race_text.hpp"

#include "device/fences/report/details_text.hpp"
#include "device/json_text.hpp"

namespace uptempo::vgpu::races {
namespace {

using Reason = Finding::Reason;

std::string_view class_name(const Finding& finding) noexcept {
  return finding.same_values ? "same-value" : "race";
}

std::string_view reason_text(Reason reason) noexcept {
  switch (reason) {
    case Reason::barrier:
      return "no barrier, and no release and acquire, is between the two accesses";
    case Reason::order:
      return "no release by one workgroup and acquire by the other orders the two accesses";
    case Reason::release:
      return "the two waves synchronised, but the first access had not completed at the release, "
             "or "
             "no barrier was between it and a release by another wave";
    case Reason::release_of_other:
      return "another wave of the first workgroup released, and no barrier is between the first "
             "access and that release";
    case Reason::acquire:
      return "the second wave read what the first one released, but did not acquire: it did not "
             "invalidate its caches after that";
    case Reason::scope:
      return "one of the two atomic accesses reaches its own workgroup only";
  }
  return {};
}

constexpr std::string_view kRule = "LLVM, User Guide for AMDGPU Backend, Memory Model";

std::string_view verb(Access access) noexcept {
  return access == Access::read ? "reads" : access == Access::write ? "writes" : "updates";
}

std::string described(const Finding::Side& side) {
  return std::string(side.reach == Reach::plain || side.access == Access::atomic ? ""
                                                                                 : "atomically ") +
         std::string(verb(side.access)) + (side.access == Access::atomic ? " atomically" : "");
}

std::string where(const Finding& finding) {
  return finding.lds ? "offset " + std::to_string(finding.address) + " of LDS"
                     : "address " + fences::hex(finding.address);
}

std::string to_json(const Finding::Side& side, const std::string& line) {
  const std::string scope = side.reach == Reach::plain   ? ""
                            : side.reach == Reach::agent ? R"(,"scope":"agent")"
                                                         : R"(,"scope":"workgroup")";
  return R"({"access":")" + std::string(fences::access_name(side.access)) + '"' + scope +
         R"(,"workgroup":[)" + fences::listed(side.workgroup) + R"(],"wave":)" +
         std::to_string(side.wave) + R"(,"instruction":)" + std::to_string(side.instruction) +
         (line.empty() ? "" : R"(,"line":)" + json_quoted(line)) + '}';
}

bool one_is_atomic(const Finding& finding) noexcept {
  return (finding.writer.reach == Reach::plain) != (finding.other.reach == Reach::plain);
}

std::string remedy_of_reason(const Finding& finding, Language language) {
  const bool hip = language == Language::hip;
  const std::string fence =
      hip ? "__threadfence()" : "atomic_work_item_fence(..., memory_order_acq_rel, device scope)";
  const std::string barrier = hip ? "__syncthreads()" : "barrier(CLK_GLOBAL_MEM_FENCE)";
  switch (finding.reason) {
    case Reason::barrier: {
      std::string text = "call " +
                         (finding.lds && !hip ? "barrier(CLK_LOCAL_MEM_FENCE)" : barrier) +
                         " between the two accesses";
      if (one_is_atomic(finding)) text += ", or make the plain one atomic, too";
      return text;
    }
    case Reason::order:
      return std::string(one_is_atomic(finding) ? "make the plain access atomic, too"
                                                : "make both accesses atomic") +
             ", or let the first wave call " + fence +
             " and then set a flag atomically, and the second one read the flag atomically and "
             "then "
             "call " +
             fence + ", or use two kernels";
    case Reason::release:
      return "call " + fence +
             " between the access and the atomic operation that tells others of it, or give that "
             "operation release order; if another wave performs it, call " +
             barrier + " before";
    case Reason::release_of_other:
      return "call " + barrier +
             " between the access and the atomic operation by which the other wave tells of it";
    case Reason::acquire:
      return "call " + fence +
             " after the atomic operation that the second wave waits with, or give that operation "
             "acquire order";
    case Reason::scope:
      return hip ? "use __HIP_MEMORY_SCOPE_AGENT for both accesses"
                 : "use memory_scope_device for both accesses";
  }
  return {};
}

}  // namespace

std::optional<Language> language_of(std::string_view line) noexcept {
  const std::string_view file = line.substr(0, line.rfind(':'));
  if (file.ends_with(".cl")) return Language::opencl;
  for (const std::string_view suffix : {".hip", ".cu", ".cpp", ".cc", ".cxx", ".cuh"})
    if (file.ends_with(suffix)) return Language::hip;
  return std::nullopt;
}

std::string remedy(const Finding& finding, Language language) {
  if (finding.same_values)
    return "none, if all waves store one value, which is then the result of each order; "
           "otherwise " +
           remedy_of_reason(finding, language);
  std::string text = remedy_of_reason(finding, language);
  if (finding.may_be_atomic)
    text +=
        "; a store that is already atomic, with relaxed order, is no race: only --device gfx942 "
        "has "
        "an instruction of its own for it";
  return text;
}

std::string to_json(const Checked& dispatch, const Finding& finding, std::string_view target,
                    const Details& details) {
  const std::string readable = fences::readable_kernel(dispatch.kernel);
  return R"({"class":")" + std::string(class_name(finding)) + R"(","memory_space":")" +
         (finding.lds ? "lds" : "global") + R"(","kernel":)" + json_quoted(dispatch.kernel) +
         (readable == dispatch.kernel ? "" : R"(,"source_name":)" + json_quoted(readable)) +
         R"(,"queue":)" + std::to_string(dispatch.queue) +
         (details.several_gpus ? R"(,"gpu":)" + std::to_string(dispatch.gpu) : "") +
         fences::json_field(details.queue_name) + R"(,"index":)" + std::to_string(dispatch.index) +
         R"(,"writer":)" + to_json(finding.writer, details.writer_line) + R"(,"other":)" +
         to_json(finding.other, details.other_line) + R"(,"address":)" +
         std::to_string(finding.address) + R"(,"bytes":)" + std::to_string(finding.bytes) +
         R"(,"times":)" + std::to_string(finding.times) +
         (details.published_by.empty()
              ? ""
              : R"(,"published_by":)" + fences::to_json(details.published_by)) +
         (details.memory ? fences::json_field(*details.memory, finding.address) : "") +
         R"(,"reason":)" + json_quoted(reason_text(finding.reason)) + R"(,"rule":)" +
         json_quoted(kRule) + R"(,"remedy":)" + json_quoted(remedy(finding, details.language)) +
         R"(,"device":)" + json_quoted(target) + '}';
}

std::string to_sentence(const Checked& dispatch, const Finding& finding, const Details& details) {
  const std::string kernel = fences::readable_kernel(dispatch.kernel);
  const Finding::Side& writer = finding.writer;
  const Finding::Side& other = finding.other;
  std::string text = std::string(class_name(finding)) + ": " + kernel + " (" +
                     (details.several_gpus ? "GPU " + std::to_string(dispatch.gpu) + ", " : "") +
                     fences::described(details.queue_name) + "queue " +
                     std::to_string(dispatch.queue) + ", packet " + std::to_string(dispatch.index) +
                     "): wave " + std::to_string(writer.wave) + " of workgroup (" +
                     fences::listed(writer.workgroup) + ") " + described(writer) + ' ' +
                     fences::counted(finding.bytes, "byte") + " at " + where(finding) +
                     ", which wave " + std::to_string(other.wave) + " of " +
                     (writer.workgroup == other.workgroup
                          ? "the same workgroup"
                          : "workgroup (" + fences::listed(other.workgroup) + ")") +
                     ' ' + described(other) + ": " + std::string(reason_text(finding.reason)) +
                     " [" + std::string(kRule) + ']';
  const auto place = [&](const Finding::Side& side, const std::string& line) {
    if (line.empty()) return;
    text += fences::kIndent;
    text += described(side) + " at " + line;
  };
  place(writer, details.writer_line);
  place(other, details.other_line);
  if (!details.published_by.empty()) {
    text += fences::kIndent;
    text += kernel + " was published by" + fences::called(details.published_by);
  }
  if (details.memory) text += fences::described(*details.memory, finding.address);
  text += fences::kIndent;
  return text + "remedy: " + remedy(finding, details.language);
}

}  // namespace uptempo::vgpu::races
