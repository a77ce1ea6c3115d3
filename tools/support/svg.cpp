#include "tools/support/svg.hpp"

#include <fmt/format.h>

#include <map>

namespace uptempo::support {
std::string escaped(std::string_view text, aql::Lines lines) {
  static const std::map<char, std::string_view> entities{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string out;
  for (const char c : aql::printable(text, lines)) {
    const auto entity = entities.find(c);
    out += entity == entities.end() ? std::string_view(&c, 1) : entity->second;
  }
  return out;
}

// Colours are for a light ground; viewers that support prefers-color-scheme switch all of them.
std::string svg_image(double width, double height, std::string_view title, std::string_view styles,
                      std::string_view dark_styles, std::string_view content) {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif">
<title>{2}</title>
<style>
  .ground {{ fill: #ffffff; }} .title {{ fill: #1f2328; font-size: 17px; font-weight: 600; }}
  .text {{ fill: #1f2328; font-size: 13px; }} .quiet {{ fill: #59636e; font-size: 12px; }}
  {3}
  @media (prefers-color-scheme: dark) {{
    .ground {{ fill: #0d1117; }} .title, .text {{ fill: #e6edf3; }} .quiet {{ fill: #9198a1; }}
    {4}
  }}
</style>
<rect class="ground" width="{0:.0f}" height="{1:.0f}" rx="6"/>
{5}</svg>
)",
      width, height, escaped(title), styles, dark_styles, content);
}

std::string svg_text(double x, double y, const char* style, std::string_view text,
                     const char* anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     x, y, style, anchor, escaped(text));
}

}  // namespace uptempo::support
