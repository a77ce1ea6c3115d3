#!/usr/bin/env python3
"""Tests that includes.py names each kind of include that looks up, and accepts the others."""

import pathlib
import tempfile
import unittest

import includes

LIBRARY = "uptempo_library({} HEADERS {} SOURCES a.cpp)\n"


class Includes(unittest.TestCase):
    def wrong(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            lists = {"aql/CMakeLists.txt": LIBRARY.format("aql", ""), "engine/CMakeLists.txt": LIBRARY.format("engine", ""),
                     "engine/topology/CMakeLists.txt": LIBRARY.format("topology", ""),
                     "engine/hip/CMakeLists.txt": LIBRARY.format("hip", "")}
            for name, text in {**lists, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return includes.check(root)[0]

    def test_an_include_of_a_later_room_is_named(self):
        found = self.wrong({"engine/fences/a.hpp": '#include <uptempo/dispatch/b.hpp>\n', "engine/dispatch/b.hpp": ""})
        self.assertEqual(len(found), 1)
        self.assertIn("engine/fences/a.hpp:1", found[0])

    def test_a_sub_folder_comes_before_its_room(self):
        down = {"engine/dispatch/a.hpp": '#include <uptempo/dispatch/pools/b.hpp>\n', "engine/dispatch/pools/b.hpp": ""}
        up = {"engine/dispatch/pools/a.hpp": '#include <uptempo/dispatch/b.hpp>\n', "engine/dispatch/b.hpp": ""}
        self.assertEqual(self.wrong(down), [])
        self.assertEqual(len(self.wrong(up)), 1)

    def test_the_rooms_of_engine_do_not_include_hip(self):
        self.assertEqual(len(self.wrong({"engine/stream/a.hpp": '#include <uptempo/hip/b.hpp>\n', "engine/hip/b.hpp": ""})), 1)
        self.assertEqual(self.wrong({"engine/hip/a.hpp": '#include <uptempo/stream/b.hpp>\n', "engine/stream/b.hpp": ""}), [])

    def test_nothing_shipped_includes_a_test(self):
        self.assertEqual(len(self.wrong({"tools/a/a.cpp": '#include "test/b.hpp"\n', "test/b.hpp": ""})), 1)
        self.assertEqual(self.wrong({"test/a.cpp": '#include "test/b.hpp"\n', "test/b.hpp": ""}), [])

    def test_aql_includes_itself_only(self):
        self.assertEqual(len(self.wrong({"aql/a.hpp": '#include <uptempo/memory/b.hpp>\n', "engine/memory/b.hpp": ""})), 1)

    def test_two_headers_of_the_virtual_gpu_are_open_to_others(self):
        self.assertEqual(self.wrong({"tools/a/a.cpp": '#include "tools/vgpu/launch.hpp"\n', "tools/vgpu/launch.hpp": ""}), [])
        self.assertEqual(len(self.wrong({"tools/a/a.cpp": '#include "tools/vgpu/cp/b.hpp"\n', "tools/vgpu/cp/b.hpp": ""})), 1)

    def test_a_sample_includes_installed_headers_and_its_own_files_by_their_names(self):
        files = {"samples/a/b.hpp": "", "samples/c/d.hpp": "", "tools/support/table.hpp": "", "tools/vgpu/launch.hpp": "",
                 "tools/vgpu/query.h": "", "engine/CMakeLists.txt": LIBRARY.format("engine", "dispatch/a.hpp"),
                 "engine/dispatch/a.hpp": ""}
        for name in ('"b.hpp"', "<uptempo/dispatch/a.hpp>", "<uptempo/vgpu/query.h>"):
            self.assertEqual(self.wrong({**files, "samples/a/a.cpp": f"#include {name}\n"}), [], name)
        for name in ("samples/a/b.hpp", "samples/c/d.hpp", "../c/d.hpp", "tools/support/table.hpp", "tools/vgpu/launch.hpp"):
            for source in ("samples/a/a.cpp", "samples/a/a.c"):
                self.assertEqual(len(self.wrong({**files, source: f'#include "{name}"\n'})), 1, name)
        self.assertEqual(self.wrong({**files, "tools/a/a.cpp": '#include "samples/a/b.hpp"\n'}), [])

    def test_the_layers_of_the_virtual_gpu_look_down(self):
        self.assertEqual(len(self.wrong({"tools/vgpu/device/a.hpp": '#include "cp/b.hpp"\n', "tools/vgpu/cp/b.hpp": ""})), 1)
        self.assertEqual(len(self.wrong({"tools/vgpu/cp/a.hpp": '#include <uptempo/aql/packet.hpp>\n', "aql/packet.hpp": ""})), 1)

    def test_an_installed_header_includes_installed_headers_only(self):
        files = {"aql/CMakeLists.txt": LIBRARY.format("aql", "a.hpp"), "aql/a.hpp": '#include <uptempo/aql/b.hpp>\n', "aql/b.hpp": ""}
        self.assertEqual(len(self.wrong(files)), 1)
        self.assertEqual(self.wrong({**files, "aql/CMakeLists.txt": LIBRARY.format("aql", "a.hpp b.hpp")}), [])

    PUBLIC = {"engine/CMakeLists.txt": "uptempo_library(engine HEADERS dispatch/a.hpp DETAIL_HEADERS dispatch/detail/b.hpp SOURCES)",
              "engine/dispatch/a.hpp": '#include <uptempo/dispatch/detail/b.hpp>\n', "engine/dispatch/detail/b.hpp": ""}

    def test_a_public_header_includes_detail_of_its_own_room_only(self):
        self.assertEqual(self.wrong(self.PUBLIC), [])
        sub_folder = "uptempo_library(engine HEADERS dispatch/a.hpp DETAIL_HEADERS dispatch/pools/detail/b.hpp SOURCES)"
        self.assertEqual(self.wrong({"engine/CMakeLists.txt": sub_folder, "engine/dispatch/pools/detail/b.hpp": "",
                                     "engine/dispatch/a.hpp": '#include <uptempo/dispatch/pools/detail/b.hpp>\n'}), [])
        other = "uptempo_library(engine HEADERS stream/a.hpp DETAIL_HEADERS dispatch/detail/b.hpp SOURCES)"
        found = self.wrong({"engine/CMakeLists.txt": other, "engine/stream/a.hpp": '#include <uptempo/dispatch/detail/b.hpp>\n',
                            "engine/dispatch/detail/b.hpp": ""})
        self.assertEqual(len(found), 1)
        self.assertIn("detail/ of another room", found[0])

    def test_detail_headers_are_the_files_of_detail_folders_that_a_public_header_needs(self):
        self.assertIn("no public header needs it", self.wrong({**self.PUBLIC, "engine/dispatch/a.hpp": ""})[0])
        self.assertIn("not of DETAIL_HEADERS", self.wrong({**self.PUBLIC, "engine/dispatch/detail/c.hpp": ""})[0])
        outside = "uptempo_library(engine HEADERS dispatch/a.hpp DETAIL_HEADERS dispatch/b.hpp SOURCES)"
        files = {"engine/CMakeLists.txt": outside, "engine/dispatch/b.hpp": "", "engine/dispatch/a.hpp": '#include <uptempo/dispatch/b.hpp>\n'}
        self.assertIn("in no detail/ folder", self.wrong(files)[0])

    def test_a_header_of_aql_engine_or_kernels_has_one_name(self):
        files = {"aql/a.hpp": "", "engine/memory/a.hpp": "", "test/own/a.hpp": ""}
        for name in ("<uptempo/aql/a.hpp>", "<uptempo/memory/a.hpp>", "<uptempo/kernels/a.hpp>", '"test/own/a.hpp"'):
            self.assertEqual(self.wrong({**files, "test/a.cpp": f"#include {name}\n"}), [], name)
        for name in ('"aql/a.hpp"', "<aql/a.hpp>", '"engine/memory/a.hpp"', "<kernels/a.hpp>", '"kernels/a.hpp"', '"uptempo/memory/a.hpp"'):
            found = self.wrong({**files, "test/a.cpp": f"#include {name}\n"})
            self.assertEqual(len(found), 1, name)
            self.assertIn(f"test/a.cpp:1: includes {name}: headers of aql, engine and kernels, and query.h, are included as", found[0])
        self.assertEqual(len(self.wrong({**files, "engine/memory/a.cpp": '#include "a.hpp"\n'})), 1)
        query = {"tools/vgpu/query.h": ""}
        self.assertEqual(self.wrong({**query, "tools/a/a.cpp": "#include <uptempo/vgpu/query.h>\n"}), [])
        for source, name in (("tools/a/a.cpp", "tools/vgpu/query.h"), ("test/vgpu/a.cpp", "query.h")):
            self.assertEqual(len(self.wrong({**query, source: f'#include "{name}"\n'})), 1, name)

    def test_samples_and_tools_use_public_headers_only(self):
        self.assertEqual(self.wrong({**self.PUBLIC, "samples/a.cpp": "#include <uptempo/dispatch/a.hpp>\n"}), [])
        for user in ("samples/a.cpp", "tools/bench/a.cpp"):
            self.assertEqual(len(self.wrong({**self.PUBLIC, user: '#include <uptempo/dispatch/detail/b.hpp>\n'})), 1)
        private = {"engine/dispatch/c.hpp": "", "tools/a.cpp": '#include <uptempo/dispatch/c.hpp>\n'}
        self.assertEqual(len(self.wrong({**self.PUBLIC, **private})), 1)

    def test_samples_and_tools_do_not_name_the_namespace_detail(self):
        self.assertIn("samples/a.cpp:1", self.wrong({"samples/a.cpp": "auto x = uptempo::detail::f();\n"})[0])
        self.assertEqual(self.wrong({"samples/a.cpp": "// uptempo::detail::f\n"}), [])
        self.assertEqual(self.wrong({"tools/a.cpp": "namespace detail {}\nauto x = detail::f();\n"}), [])


if __name__ == "__main__":
    unittest.main()
