#!/usr/bin/env python3
"""Mends and checks the HTML of the manual. Prints each defect.

  check.py HTML HEADER...

In code, Doxygen 1.9.4 takes a variable for an enumerator of that name, and Deadline::after for
hip::after. These links are removed first.

  links      each link within the manual leads to a file, and to an anchor in it
  comments   each line of a comment that describes a public declaration is in the HTML, whole
  errors     the page on errors has a row for each ErrorCode

Exit code: 1 if there is a defect, else 0.
"""

import html
import pathlib
import re
import sys
import urllib.parse

sys.dont_write_bytecode = True
import comments  # noqa: E402


def mended(page):
    """The page without links in code to an enumerator, or to a function of another class than is written."""
    page = re.sub(r'<a class="code hl_enumvalue"[^>]*>([^<]*)</a>', r"\1", page)
    return re.sub(r'<a class="code hl_function" href="([^"#]*)[^>]*>((\w+)::\w+)</a>',
                  lambda found: found.group() if re.search(rf"_1{found.group(3)}\.html", found.group(1)) else found.group(2), page)


def links(pages):
    anchors = {name: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for name, text in pages.items()}
    for name, text in pages.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            url = urllib.parse.urlparse(html.unescape(link))
            if url.scheme or link.startswith("javascript"):
                continue
            target = urllib.parse.unquote(url.path) or name
            if not (folder / target).is_file():
                yield f"{name}: a link to {target}, which does not exist"
            elif url.fragment == "nested-classes":  # Doxygen 1.9.4 writes it also where all of them are private
                continue
            elif url.fragment.startswith("index_"):  # Doxygen 1.17 writes those of the letter '~' in two ways
                continue
            elif url.fragment and target in anchors and url.fragment not in anchors[target]:
                yield f"{name}: a link to {target}#{url.fragment}, which has no such anchor"


def squeezed(text):
    """A text by which comments and HTML are compared: without spaces and the marks of lists and code."""
    return re.sub(r"\s|`", "", text)


def lost_comments(pages, headers):
    text = {name: re.sub(r"<(script|style).*?</\1>|<[^>]*>", "", page, flags=re.S) for name, page in pages.items()}
    shown = squeezed(html.unescape("\n".join(text.values())))
    for header in headers:
        for comment in sum(comments.blocks_of(header.read_text()), []):
            line = re.sub(r"^\s*(\* |\d+\. )", "", comment.text)
            if squeezed(line) not in shown:
                yield f"{header}:{comment.line + 1}: not in the manual:{comment.text}"


def missing_codes(pages, headers):
    text = "".join(header.read_text() for header in headers if header.name == "error.hpp")
    found = re.search(r"enum class ErrorCode[^{]*{(.*?)};", text, re.S)
    for code in re.findall(r"^\s*(\w+) =", found.group(1), re.M) if found else ():
        if not re.search(rf">{code}</(code|span)>", pages["errors.html"]):
            yield f"pages/errors.md: no row for ErrorCode::{code}"


folder = pathlib.Path(sys.argv[1])
pages = {page.name: mended(page.read_text()) for page in folder.glob("*.html")}
for name, text in pages.items():
    (folder / name).write_text(text)
headers = [pathlib.Path(name) for name in sys.argv[2:]]
defects = [*links(pages), *lost_comments(pages, headers), *missing_codes(pages, headers)]
print("\n".join([*defects, f"{len(pages)} pages, {len(headers)} headers, {len(defects)} defects"]))
sys.exit(1 if defects else 0)
