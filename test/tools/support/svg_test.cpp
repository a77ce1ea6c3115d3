#include "tools/support/svg.hpp"

#include "test/support/catch.hpp"

using namespace uptempo::support;

TEST_CASE("text has its requested position, and markup in it stays text") {
  CHECK(svg_text(20, 51.25, "quiet", "a<b> & c", "end") ==
        "<text x=\"20.0\" y=\"51.2\" class=\"quiet\" text-anchor=\"end\">a&lt;b&gt; &amp; "
        "c</text>\n");
}

TEST_CASE(
    "an image is complete: a background of its size, and styles for light and dark background") {
  const std::string image =
      svg_image(720, 300, "a < b", ".own { fill: #111111; }", ".own { fill: #eeeeee; }", "<g/>\n");
  CHECK(image.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 300\""));
  CHECK(image.ends_with("<g/>\n</svg>\n"));
  CHECK(image.find("<title>a &lt; b</title>") != std::string::npos);
  CHECK(image.find("<rect class=\"ground\" width=\"720\" height=\"300\"") != std::string::npos);
  const size_t light = image.find("#111111"), scheme = image.find("prefers-color-scheme: dark"),
               dark = image.find("#eeeeee");
  CHECK(light < scheme);
  CHECK(scheme < dark);
  CHECK(dark < image.find("</style>"));
}

TEST_CASE("control characters in a title or a text show as their bytes") {
  CHECK(svg_text(0, 0, "text", "a\x1b[2J\xff").find(">a\\x1b[2J\\xff<") != std::string::npos);
  CHECK(svg_image(1, 1, "a\nb", "", "", "").find("<title>a\\x0ab</title>") != std::string::npos);
}
