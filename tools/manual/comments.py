#!/usr/bin/env python3
"""Doxygen's input filter: prints a header with its comments in Doxygen's form.

  comments.py HEADER|PAGE.md

The headers have plain comments (`//`), which read well in an editor. The filter turns those that
describe a declaration into `///`, and those behind a member into `///<`. Comments in function
bodies and in namespaces `detail` stay as they are. Lines keep their numbers.

  * The first comment of a file is the contract of the class that it names ("Queue: ...", "Runtime
    starts ..."), and is printed on the page of that class. If it names none, it belongs to the only
    class of the file, or else to the page of the file, which each class of the file refers to. In
    a header for C it always belongs to the page of the file.
  * Indented lines are code. They become @code, of no language if nothing in them looks like code.
  * A label that opens a line ("Thread safety: ...") opens a paragraph, in bold.
  * All other text is plain: characters that mean something to Doxygen are escaped, except in
    `spans of code`. Names such as Queue::report() become links.

Lists begin with "* " or "1. ". Their further lines are indented.
"""

import dataclasses
import pathlib
import re
import sys


@dataclasses.dataclass
class Comment:
    line: int  # of the file, from 0
    column: int
    text: str  # behind the slashes
    code: str  # before it, on its line
    shown: bool  # describes a declaration that the manual shows
    scope: str  # "namespace", "class", "enum"; "body" within functions, initializers and brackets


@dataclasses.dataclass
class Type:
    kind: str  # "class" or "struct"
    name: str  # with namespaces
    has_comment: bool  # directly before it


LITERAL = re.compile(r'R"\(.*?\)"|"(?:\\.|[^"\\])*"|(?<![0-9a-zA-Z])\'(?:\\.|[^\'\\])*\'', re.S)
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|' + LITERAL.pattern + r'|[{}();:]', re.S | re.M)
DEFINITION = re.compile(r"(?:^|\s)(class|struct|union|enum(?:\s+class)?)\s+(?:\[\[.*?\]\]\s*|alignas\([^)]*\)\s*)*([\w:]+)")

COMMENTED = re.compile(r"//[^\n]*\n[ \t]*(template\b[^{;]*)?(class|struct)\b")


def definition(text):
    """What a brace opens after `text`: its scope, the keyword and the name."""
    text = re.sub(r"template\s*<[^{}]*?>\s*(?=class|struct|template|requires)", " ", text, flags=re.S)
    namespace = re.search(r"(?:^|\s)namespace\s*([\w:]*)\s*$", text)
    if namespace:
        return "namespace", "namespace", namespace.group(1)
    if re.search(r'extern\s*"C"\s*$', text):
        return "namespace", "extern", ""
    found = DEFINITION.search(text)
    if found and "=" not in text and not re.search(r"\)\s*(const|noexcept|\s)*$", text):
        keyword = found.group(1).split()[0]
        return "enum" if keyword == "enum" else "class", keyword, found.group(2)
    return "body", "", ""


def parse(text):
    """The comments of a header, and the classes that it defines outside of classes and namespaces `detail`."""
    comments, types = [], []
    scopes = []  # [scope, name, whether it is shown]
    parentheses = 0
    since = 0  # where the current declaration begins
    for found in TOKEN.finditer(text):
        token, at = found.group(), found.start()
        scope = scopes[-1][0] if scopes else "namespace"
        shown = all(each[2] for each in scopes)
        if token.startswith("//"):
            line_start = text.rfind("\n", 0, at) + 1
            comments.append(Comment(text.count("\n", 0, at), at - line_start, token[2:], text[line_start:at],
                                    shown and scope != "body" and parentheses == 0, scope if parentheses == 0 else "body"))
        elif token == "(":
            parentheses += 1
        elif token == ")":
            parentheses -= 1
        elif token == "{":
            before = re.sub(r"//[^\n]*|^[ \t]*#[^\n]*", " ", text[since:at], flags=re.M)
            opened, keyword, name = definition(before) if parentheses == 0 and scope != "body" else ("body", "", "")
            if opened == "class" and shown and scope == "namespace" and keyword != "union":
                name = "::".join([each[1] for each in scopes if each[1]] + [name])
                types.append(Type(keyword, name, COMMENTED.search(text[since:at]) is not None))
            is_hidden = keyword == "namespace" and (name.split("::")[-1] == "detail" or not name)
            scopes.append([opened, name, not is_hidden and keyword != "class"])
            since = found.end()
        elif token == "}":
            scopes.pop()
            since = found.end()
        elif token == ";":
            since = found.end()
        elif token == ":" and scope == "class":
            access = re.search(r"(public|protected|private)\s*$", text[since:at])
            if access:
                scopes[-1][2] = access.group(1) != "private"
                since = found.end()
    return comments, types


COMMAND = re.compile(r"((?<![\w>)])::|[\\@&#%])")  # also within quotes, where Doxygen leaves all else alone
MARKDOWN = re.compile(r"(--+|[<>*~]|(?<!\w)_|_(?!\w)|\[(?=[^\]]*\][\[(]))")
LABEL = re.compile(r"([A-Z][A-Za-z, -]{1,30}:)( |$)")


# Comments at these are not for the manual's reader.
UNDESCRIBED = re.compile(r"(}|namespace|friend|static_assert|#include|#ifdef|private:)")


def escaped(text):
    parts = re.split(r'(`[^`]*`|"[^"]*")', text)
    for i, part in enumerate(parts):
        if not part.startswith("`"):
            parts[i] = COMMAND.sub(r"\\\1", part)
            parts[i] = parts[i] if part.startswith('"') else MARKDOWN.sub(r"\\\1", parts[i])
    return "".join(parts)


def is_statement(line):
    """Whether a line of an indented block ends a statement, so that the block is code and no table."""
    return re.search(r"([;{}]|\) \.\.\.)\s*(//.*)?$", line) is not None


def marked_up(lines):
    """The text of a comment in Doxygen's form, with as many lines."""
    out = []
    item = 0  # the indentation of a list item's further lines; 0: not in a list
    numbered = False
    code = None  # index of the first line of a block of code

    def end_code():
        nonlocal code
        if code is None:
            return
        block = out[code:]
        while not block[-1].strip():
            block.pop()
        is_code = any(is_statement(each) for each in block)
        margin = min(len(each) - len(each.lstrip()) for each in block if each.strip()) - 1
        out[code:code + len(block)] = [each[margin:] for each in block]
        # Not @verbatim, which Doxygen 1.9.4 prints with stars at the begins of lines.
        out[code] = ("@code{.cpp}" if is_code else "@code{.unparsed}") + out[code]
        out[code + len(block) - 1] += " @endcode"
        code = None

    for line in lines:
        text = line[1:] if line.startswith(" ") else line
        indent = len(text) - len(text.lstrip())
        if not text.strip():
            item = 0 if code is None else item
            out.append("")
            continue
        if item and indent >= item and code is None:
            out.append(" " * item + escaped(text.strip()))
            continue
        if indent >= 2:
            code = len(out) if code is None else code
            out.append(" " + text)
            continue
        end_code()
        bullet = re.match(r"(\* |(\d+)\. )(.*)", text)
        if bullet and (bullet.group(1) == "* " or bullet.group(2) == "1" or numbered):
            numbered = bullet.group(1) != "* "
            item = len(bullet.group(1))
            out.append(" " + bullet.group(1) + escaped(bullet.group(3)))
            continue
        item, numbered = 0, numbered and bool(item)
        text = escaped(text)
        text = re.sub(r"^(\d+)([.)] )", r"\1\\\2", text) if re.match(r"\d+\. ", text) else re.sub(r"^([-+]) ", r"\\\1 ", text)
        label = LABEL.match(text)
        if label and out and (not out[-1].strip() or re.search(r"[.:)]$|@end\w+$", out[-1])):
            text = ("<p>" if out[-1].strip() else "") + f"**{label.group(1)}** " + text[label.end():]
        out.append(" " + text)
    end_code()
    return out


def opening(text, types):
    """The class whose contract the first comment of a file is; None if it describes the file."""
    name = re.match(r"\s*(\w+)", text)
    for each in types:
        if name and each.name.split("::")[-1] == name.group(1):
            return each
    return types[0] if len(types) == 1 and not types[0].has_comment else None


def blocks_of(text):
    """The comments that describe what the manual shows, in blocks of consecutive lines at one column."""
    lines, blocks, last = text.split("\n"), [], None
    for comment in parse(text)[0]:
        alone = not comment.code.strip()
        if last and alone and last[-1].line + 1 == comment.line and last[-1].column == comment.column:
            last.append(comment)
            continue
        last = [comment]
        blocks.append(last)
    for block in blocks:
        first = block[0]
        described = first.code.lstrip() or lines[block[-1].line + 1].lstrip()
        if first.shown and not first.text.startswith(" NOLINT") and not UNDESCRIBED.match(described):
            yield block


def without_friends(text):
    """The text with each friend declaration in a condition: Doxygen 1.9.4 links to friends that it does not print."""
    for found in reversed(list(re.finditer(r"^ +friend [^;{]*(;|{)", text, re.M))):
        end = found.end()
        depth = 1 if found.group(1) == "{" else 0
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = f"{text[:found.start()]}/** @cond */{text[found.start():end]}/** @endcond */{text[end:]}"
    return text


def documented(text, name):
    """The header's text with comments in Doxygen's form. `name`: as users include it."""
    types = parse(text)[1]
    lines = text.split("\n")
    end = []
    for block in blocks_of(text):
        first, last = block[0], block[-1]
        opens = "///" if not first.code.strip() else "///<"
        for comment, plain in zip(block, marked_up([each.text for each in block])):
            space = "" if plain.startswith((" ", "@")) or not plain else " "
            lines[comment.line] = lines[comment.line][:comment.column] + opens + space + plain
        if first.line != 0:
            continue
        subject = opening(first.text, types) if name.endswith(".hpp") else None
        if subject and subject.has_comment:  # which is the brief description
            lines[0] = lines[0].replace("///", "/// @details", 1)
        if subject:
            end.append(f"/** @file\n * Defines {subject.name}, which has the contract. */")
        owner = f"/// @{subject.kind} {subject.name}" if subject else "/// @file"
        after = lines[last.line + 1]  # lines keep their numbers where it is `#pragma once`
        lines[last.line + 1] = owner if after.startswith("#pragma once") else f"{owner}\n{after}"
        place = subject.name if subject else name
        end += [f"/** @{each.kind} {each.name}\n * @see {place} */" for each in types if each != subject]
    return without_friends("\n".join(lines + end)) + "\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as header:
        text = header.read()
    path = pathlib.PurePath(sys.argv[1])
    if path.suffix == ".md":  # a page of the tree: other pages refer to it as its file's name
        sys.stdout.write(re.sub(r"^(# .*[^}\n])(?=\n)", rf"\1 {{#{path.stem.lower()}}}", text, count=1))
    else:
        sys.stdout.write(documented(text, str(path).rpartition("/include/")[2]))


if __name__ == "__main__":
    main()
