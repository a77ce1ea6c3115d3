#!/usr/bin/env python3
"""Checks that includes look down, to lower layers only. Prints each one that does not.

  test/structure/includes.py [ROOT]

A header of aql or engine has one name: <uptempo/aql/packet.hpp> is aql/packet.hpp,
<uptempo/dispatch/queue.hpp> is engine/dispatch/queue.hpp, <uptempo/vgpu/query.h> is
tools/vgpu/query.h, and <uptempo/kernels/basics.hpp> is made from kernels/basics.cl. No other include
may name it, since a user's own folders engine/, aql/ and kernels/ may be first on the include path.

Rooms are layers: a room includes itself and the rooms before it; its sub-folders come before it.
  aql          includes nothing else of the tree
  engine       includes its rooms in the order of ENGINE, aql and kernels
  shipped      aql, engine, kernels, samples and tools include nothing of test/
  samples      each builds alone against the installed package: it includes installed headers, and
               files of its own folder by their names in it
  virtual GPU  tools include only launch.hpp and query.h of tools/vgpu; its benchmark
               tools/bench/vgpu may include more. tools/vgpu includes nothing else of the tree but
               VGPU_SHARED, which include nothing of it, and its layers in the order of VGPU
  public       a header of HEADERS (uptempo_library) includes public headers, and detail/ headers of
               its own room or of that room's sub-folders. A header of DETAIL_HEADERS includes public
               and detail headers. DETAIL_HEADERS are the files of the detail/ folders, and a public
               header reaches each of them
  users        samples and tools, except tools/vgpu, include only public headers of aql and engine,
               and do not name detail::

Exit code: 1 if an include breaks a rule, else 0.
"""

import pathlib
import posixpath
import re
import sys

ENGINE = ["runtime", "memory", "program", "topology", "fences", "completion", "dispatch/pools", "dispatch", "recording",
          "stream/queue", "stream/copy", "stream", "c", "hip/api", "hip/graph", "hip"]
VGPU = ["device", "gfx9", "cp", "kfd", "interpose"]
VGPU_SHARED = ("aql/printable.hpp", "aql/write_all.hpp", "tools/support/launch/completion.hpp",
               "tools/support/launch/rocm_libraries.hpp", "tools/support/option_text.hpp",
               "tools/support/preload_target.hpp", "tools/support/python_calls.hpp",
               "tools/support/rocr_tables.hpp")
QUERY = "tools/vgpu/query.h"
SOURCES = {".hpp", ".cpp", ".h", ".c", ".inc", ".hip"}


def includes(path):
    """The includes of a file: line number, and the name as it is written, with its quotes or brackets."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*(["<][^">]+[">])', line)
        if found:
            yield number, found.group(1)


def in_tree(written):
    """The path from the root of the tree that a name of the include root stands for; other names as they are."""
    name = written[1:-1]
    if not name.startswith("uptempo/"):
        return name
    if name == "uptempo/vgpu/query.h":
        return QUERY
    return name[8:] if name.startswith(("uptempo/aql/", "uptempo/kernels/")) else "engine/" + name[8:]


def why_misnamed(written, target):
    """Why an include that is written so and means the file `target`, or None, has a wrong name; or None."""
    if not (target or in_tree(written)).startswith(("aql/", "engine/", "kernels/", QUERY)) or written.startswith("<uptempo/"):
        return None
    return "headers of aql, engine and kernels, and query.h, are included as <uptempo/...>"


def room_of(name, rooms):
    """The index of the room that holds this file, by its longest matching folder; -1 if none does."""
    matches = [i for i, room in enumerate(rooms) if name.startswith(room + "/")]
    return max(matches, key=lambda i: len(rooms[i]), default=-1)


def why_wrong(source, target):
    """The rule that an include of `target` in `source` breaks, or None. Both are paths from the root."""
    shipped = source.split("/")[0] in ("aql", "engine", "kernels", "samples", "tools")
    if shipped and target.startswith("test/"):
        return "nothing shipped includes test/"
    if source.startswith("samples/") and target.startswith(("samples/", "tools/")) and target != QUERY:
        return "a sample includes installed headers, and files of its own folder by their names in it"
    if source.startswith("aql/") and not target.startswith("aql/"):
        return "aql includes nothing else of the tree"
    if source.startswith("engine/"):
        if not target.startswith(("engine/", "aql/", "kernels/")):
            return "engine includes aql, kernels and itself only"
        if source not in ("engine/uptempo.h", "engine/uptempo.hpp") and target.startswith("engine/"):
            mine, other = room_of(source[7:], ENGINE), room_of(target[7:], ENGINE)
            if mine < 0 or other < 0:
                return "a file of engine is in no room"
            if other > mine:
                return f"engine/{ENGINE[mine]} comes before engine/{ENGINE[other]}"
    if source in VGPU_SHARED:
        return "files that tools/vgpu shares include nothing of the tree"
    if source.startswith("tools/vgpu/") and not target.startswith("tools/vgpu/") and target not in VGPU_SHARED:
        return "tools/vgpu includes itself only"
    if source.startswith("tools/vgpu/") and target.startswith("tools/vgpu/"):
        mine, other = room_of(source[11:], VGPU), room_of(target[11:], VGPU)
        if mine >= 0 and other > mine:
            return f"tools/vgpu/{VGPU[mine]} comes before tools/vgpu/{VGPU[other]}"
    outside = source.startswith(("tools/", "engine/")) and not source.startswith(("tools/vgpu/", "tools/bench/vgpu/"))
    if outside and target.startswith("tools/vgpu/") and target not in ("tools/vgpu/launch.hpp", QUERY):
        return "others include only launch.hpp and query.h of tools/vgpu"
    return None


def listed_headers(root):
    """The headers of HEADERS and of DETAIL_HEADERS."""
    lists = {"HEADERS": set(), "DETAIL_HEADERS": set(), "SOURCES": set()}
    for library in ("aql", "engine", "engine/topology", "engine/hip"):
        text = (root / library / "CMakeLists.txt").read_text()
        words = re.search(r"uptempo_library\(\w+(.*?)\)", text, re.S).group(1).split()
        for word in words:
            if word in lists:
                current = lists[word]
            else:
                current.add(f"{library}/{word}")
    return lists["HEADERS"], lists["DETAIL_HEADERS"]


def in_detail(name):
    return "/detail/" in name and name.startswith(("aql/", "engine/"))


def why_not_installed(source, target, public, detail):
    """The rule that an include of `target` in the listed header `source` breaks, or None."""
    if target in public:
        return None
    if target not in detail:
        return "an installed header includes one that is not listed"
    room = target.partition("/detail/")[0]
    folder = str(pathlib.PurePosixPath(source).parent)
    if source in public and not (room + "/").startswith(folder + "/"):
        return "a public header includes detail/ of another room"
    if source == "engine/uptempo.hpp":
        return "uptempo.hpp includes public headers only"
    return None


def is_user(name):
    return name.startswith(("samples/", "tools/")) and not name.startswith("tools/vgpu/")


def names_detail(path):
    """Numbers of the lines that name detail::, other than a namespace of the file's own."""
    text = path.read_text(errors="replace")
    if re.search(r"^namespace detail|^namespace \w+(::\w+)*::detail", text, re.M):
        return []
    return [number for number, line in enumerate(text.splitlines(), 1) if re.search(r"\bdetail::", line.split("//")[0])]


def unreached(root, public, detail, files):
    """The headers of DETAIL_HEADERS that no public header reaches."""
    reached, todo = set(), list(public & files)
    while todo:
        for name in [in_tree(written) for _, written in includes(root / todo.pop())]:
            if name in detail & files and name not in reached:
                reached.add(name)
                todo.append(name)
    return sorted(detail & files - reached)


def check(root):
    files = {str(p.relative_to(root)) for folder in ("aql", "engine", "samples", "tools", "test")
             for p in (root / folder).rglob("*") if p.suffix in SOURCES}
    public, detail = listed_headers(root)
    listed = public | detail
    wrong = [f"{name}: listed for installation, but does not exist" for name in sorted(listed - files)]
    wrong += [f"{name}: of DETAIL_HEADERS, but in no detail/ folder" for name in sorted(detail) if not in_detail(name)]
    wrong += [f"{name}: in a detail/ folder, but not of DETAIL_HEADERS" for name in sorted(files - detail) if in_detail(name)]
    wrong += [f"{name}: of DETAIL_HEADERS, but no public header needs it" for name in unreached(root, public, detail, files)]
    for source in sorted(files):
        for number, written in includes(root / source):
            name = in_tree(written)
            candidates = [name, posixpath.normpath(pathlib.PurePosixPath(source).parent / name)]
            if source.startswith(("tools/vgpu/", "tools/bench/vgpu/", "test/vgpu/")):
                candidates.append("tools/vgpu/" + name)
            target = next((c for c in candidates if c in files), None)
            why = why_misnamed(written, target)
            if why:
                wrong.append(f"{source}:{number}: includes {written}: {why}")
            if target is None:
                continue
            of_own_folder = target == candidates[1] and target.split("/")[:2] == source.split("/")[:2]
            why = None if source.startswith("samples/") and of_own_folder else why_wrong(source, target)
            if why is None and source in listed:
                why = why_not_installed(source, target, public, detail)
            if why is None and is_user(source) and target.startswith(("aql/", "engine/")) and target not in public:
                why = "samples and tools include public headers only"
            if why:
                wrong.append(f"{source}:{number}: includes {target}: {why}")
        for number in names_detail(root / source) if is_user(source) else ():
            wrong.append(f"{source}:{number}: names detail::, which is private")
    return wrong, len(files)


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    wrong, files = check(root)
    print("\n".join(wrong))
    print(f"test/structure/includes.py: {files} files, {len(wrong)} findings")
    sys.exit(1 if wrong else 0)
