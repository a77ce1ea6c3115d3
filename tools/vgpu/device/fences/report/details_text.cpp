#include "device/fences/report/details_text.hpp"

#include "device/json_text.hpp"

namespace uptempo::vgpu::fences {

std::string counted(uint64_t number, std::string_view one, std::string_view several) {
  return std::to_string(number) + ' ' + std::string(number == 1 ? one : several);
}

std::string counted(uint64_t number, std::string_view unit) {
  return counted(number, unit, std::string(unit) + 's');
}

std::string_view access_name(Access access) noexcept {
  return access == Access::read ? "read" : access == Access::write ? "write" : "atomic";
}

std::string listed(const std::array<uint32_t, 3>& workgroup) {
  return std::to_string(workgroup[0]) + ',' + std::to_string(workgroup[1]) + ',' +
         std::to_string(workgroup[2]);
}

std::string json_list(const std::vector<std::string>& texts) {
  return json_list(texts, [](const std::string& text) { return json_quoted(text); });
}

std::string json_field(const MemoryDetails& memory, GpuAddress address) {
  std::string text = R"(,"memory":{"kind":)" + json_quoted(memory.kind) + R"(,"address":)" +
                     std::to_string(memory.begin) + R"(,"bytes":)" + std::to_string(memory.bytes) +
                     R"(,"offset":)" + std::to_string(address - memory.begin);
  if (!memory.allocated_by.empty()) text += R"(,"allocated_by":)" + to_json(memory.allocated_by);
  return text + '}';
}

std::string described(const QueueName& name) {
  if (name.stream == HipStream::null) return "the null stream, ";
  if (name.stream == HipStream::per_thread) return "the thread's default stream, ";
  if (name.stream != HipStream::unknown)
    return "stream " + hex(static_cast<uint64_t>(name.stream)) + ", ";
  if (name.hsa_queue == 0) return {};
  return "hsa_queue_t " + hex(name.hsa_queue) +
         (name.hsa_queue_id ? " of id " + std::to_string(*name.hsa_queue_id) : "") + ", ";
}

std::string json_field(const QueueName& name) {
  if (name.stream == HipStream::null) return R"(,"stream":"null")";
  if (name.stream == HipStream::per_thread) return R"(,"stream":"per-thread")";
  if (name.stream != HipStream::unknown)
    return R"(,"stream":")" + hex(static_cast<uint64_t>(name.stream)) + '"';
  if (name.hsa_queue == 0) return {};
  return R"(,"hsa_queue":")" + hex(name.hsa_queue) + '"' +
         (name.hsa_queue_id ? R"(,"hsa_queue_id":)" + std::to_string(*name.hsa_queue_id) : "");
}

std::string listed(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "" : i + 1 == lines.size() ? " or " : ", ") + lines[i];
  return text;
}

std::string described(const MemoryDetails& memory, GpuAddress address) {
  std::string text{kIndent};
  text += "the address is " + std::to_string(address - memory.begin) + " bytes into " +
          std::to_string(memory.bytes) + " bytes of " + memory.kind;
  if (!memory.allocated_by.empty()) text += ", allocated by" + called(memory.allocated_by);
  return text;
}

}  // namespace uptempo::vgpu::fences
