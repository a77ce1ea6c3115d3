// What the charts of reports are made of: an image whose colours follow the viewer's scheme, and text in it.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace uptempo::support {

// An SVG image, complete in itself. `title` is what is read out; `content` is SVG. Every image has the classes ground, title, text and quiet; `styles` are those
// of its own, and `dark_styles` what of them differs on dark ground.
std::string svg_image(double width, double height, std::string_view title, std::string_view styles,
                      std::string_view dark_styles, std::string_view content);

// A line of text, from (x, y) on or, with `anchor` "middle" or "end", about it or up to it. Markup in it is text.
std::string svg_text(double x, double y, const char* style, std::string_view text,
                     const char* anchor = "start");

}  // namespace uptempo::support
