#include <uptempo/program/code_object.hpp>

#include <fmt/format.h>

namespace uptempo {
namespace {

constexpr std::string_view kTriple = "amdgcn-amd-amdhsa";

char sign(TargetFeature feature) noexcept { return feature == TargetFeature::on ? '+' : '-'; }

std::string why_feature(std::string_view name, TargetFeature code, TargetFeature agent) {
  if (code == TargetFeature::any || code == agent) return {};
  if (agent == TargetFeature::any)
    return fmt::format("needs {}{}, which the agent does not have", name, sign(code));
  return fmt::format("needs {}{}, the agent has {}{}", name, sign(code), name, sign(agent));
}

}  // namespace

std::optional<TargetId> parse_target_id(std::string_view text) {
  if (text.starts_with(kTriple)) {
    text.remove_prefix(kTriple.size());
    // "-" and an environment, which is empty for HSA: "--gfx90a". Bundles may omit one dash.
    const size_t dashes = text.find_first_not_of('-');
    if (dashes == std::string_view::npos || dashes == 0 || dashes > 2) return {};
    text.remove_prefix(dashes);
  }
  TargetId id;
  id.processor = text.substr(0, text.find(':'));
  if (!id.processor.starts_with("gfx") || id.processor.size() < 6) return {};
  if (id.processor.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz-") != std::string::npos)
    return {};
  text.remove_prefix(id.processor.size());
  while (!text.empty()) {
    text.remove_prefix(1);  // ':'
    const std::string_view feature = text.substr(0, text.find(':'));
    text.remove_prefix(feature.size());
    if (feature.size() < 2 || (feature.back() != '+' && feature.back() != '-')) return {};
    const TargetFeature value = feature.back() == '+' ? TargetFeature::on : TargetFeature::off;
    const std::string_view name = feature.substr(0, feature.size() - 1);
    if (name == "sramecc") {
      id.sramecc = value;
    } else if (name == "xnack") {
      id.xnack = value;
    } else {
      return {};
    }
  }
  return id;
}

std::string to_string(const TargetId& id) {
  std::string text = id.processor;
  if (id.sramecc != TargetFeature::any) text += fmt::format(":sramecc{}", sign(id.sramecc));
  if (id.xnack != TargetFeature::any) text += fmt::format(":xnack{}", sign(id.xnack));
  return text;
}

std::string why_incompatible(const TargetId& code, const TargetId& agent) {
  if (code.processor != agent.processor)
    return fmt::format("is for {}, the agent is {}", code.processor, agent.processor);
  if (std::string why = why_feature("sramecc", code.sramecc, agent.sramecc); !why.empty())
    return why;
  return why_feature("xnack", code.xnack, agent.xnack);
}

}  // namespace uptempo
