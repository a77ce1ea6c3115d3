// Parts of the charts in reports: an image whose colours follow the viewer's colour scheme, and
// text.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include <uptempo/aql/printable.hpp>

namespace uptempo::support {

// Text for an element or a quoted attribute of SVG or HTML. Control characters become visible
// (aql/printable.hpp).
std::string escaped(std::string_view text, aql::Lines lines = aql::Lines::one);

// A complete SVG image. `title` is for screen readers; `content` is SVG. Every image has the
// classes ground, title, text and quiet. `styles` adds more, and `dark_styles` overrides them on a
// dark ground.
std::string svg_image(double width, double height, std::string_view title, std::string_view styles,
                      std::string_view dark_styles, std::string_view content);

// A line of text at (x, y), which is its start or, with `anchor` "middle" or "end", its middle or
// end. Escapes markup.
std::string svg_text(double x, double y, const char* style, std::string_view text,
                     const char* anchor = "start");

}  // namespace uptempo::support
