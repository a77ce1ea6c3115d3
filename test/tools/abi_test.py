#!/usr/bin/env python3
"""Tests which changes of the C interface tools/abi accepts: changes of the last release's description, engine/c/uptempo.abi.

Takes the source tree as its first argument. Needs abidiff (Debian: abigail-tools)."""

import copy
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

TREE = pathlib.Path(sys.argv.pop(1))


class Abi(unittest.TestCase):
    def setUp(self):
        self.tree = xml.parse(TREE / "engine" / "c" / "uptempo.abi")

    def named(self, kind, name):
        return next(found for found in self.tree.iter(kind) if found.get("name") == name and len(found) > 0)

    def function(self, name):
        return self.named("function-decl", name)

    def fields(self, struct):
        return self.named("class-decl", struct).findall("data-member")

    def append_field(self, struct):
        """A field of 64 bits at the struct's end."""
        grown = self.named("class-decl", struct)
        bits = int(grown.get("size-in-bits"))
        field = copy.deepcopy(self.fields(struct)[0])
        field.set("layout-offset-in-bits", str(bits))
        field.find("var-decl").set("name", "appended")
        grown.append(field)
        grown.set("size-in-bits", str(bits + 64))

    def remove_function(self, name):
        for parent in self.tree.iter():
            for child in list(parent):
                if child.tag in ("elf-symbol", "function-decl") and child.get("name") == name:
                    parent.remove(child)

    def verdict(self):
        with tempfile.NamedTemporaryFile(suffix=".abi") as changed:
            self.tree.write(changed.name)
            ended = subprocess.run([TREE / "tools" / "abi", changed.name], capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def accepted(self):
        self.assertEqual(self.verdict()[0], 0, self.verdict()[1])

    def refused(self, *words):
        status, output = self.verdict()
        self.assertEqual(status, 1)
        for word in (*words, "is not compatible with the last release"):
            self.assertIn(word, output)

    def test_the_released_interface(self):
        self.accepted()

    def test_a_new_function(self):
        for kind in ("elf-symbol", "function-decl"):
            parent = next(found for found in self.tree.iter() for child in found if child.get("name") == "uptempo_version" and child.tag == kind)
            added = copy.deepcopy(next(child for child in parent if child.get("name") == "uptempo_version"))
            for key, value in added.attrib.items():
                added.set(key, value.replace("uptempo_version", "uptempo_added"))
            parent.append(added)
        self.accepted()

    def test_a_new_field_at_the_end_of_a_struct_with_a_size(self):
        self.append_field("uptempo_queue_options")
        self.accepted()

    def test_a_new_enumerator(self):
        xml.SubElement(self.named("enum-decl", "uptempo_kernargs"), "enumerator", name="UPTEMPO_KERNARGS_NEW", value="3")
        self.accepted()

    def test_a_removed_function(self):
        self.remove_function("uptempo_queue_drain")
        self.refused("uptempo_queue_drain")

    def test_a_removed_parameter(self):
        drain = self.function("uptempo_queue_drain")
        drain.remove(drain.findall("parameter")[-1])
        self.refused("uptempo_queue_drain", "parameter 2")

    def test_a_removed_field(self):
        self.named("class-decl", "uptempo_queue_options").remove(self.fields("uptempo_queue_options")[-1])
        self.refused("uptempo_queue_options", "reserved")

    def test_a_moved_field_beside_a_new_one(self):
        packets, publications = self.fields("uptempo_queue_options")[2:4]
        for field, other in ((packets, publications.get("layout-offset-in-bits")), (publications, packets.get("layout-offset-in-bits"))):
            field.set("layout-offset-in-bits", other)
        self.append_field("uptempo_queue_options")
        self.refused("packets", "publications")

    def test_a_new_field_of_a_struct_without_a_size(self):
        self.append_field("uptempo_range")
        self.refused("uptempo_range", "appended")

    def test_a_changed_number_of_an_enumerator(self):
        self.named("enum-decl", "uptempo_kernargs").findall("enumerator")[-1].set("value", "7")
        self.refused("UPTEMPO_KERNARGS_AUTOMATIC")


if __name__ == "__main__":
    unittest.main()
