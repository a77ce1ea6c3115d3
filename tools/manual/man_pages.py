#!/usr/bin/env python3
"""Makes the man page of each command from its --help, by help2man.

  man_pages.py HELP2MAN FOLDER COMMAND...

A command's own commands, such as `aql_dump ring`, have pages, too: aql_dump-ring.1. The name line is
the first sentence of the help text.
"""

import pathlib
import re
import subprocess
import sys


def output_of(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def summary(help_text):
    """The first sentence that is no usage line, as man pages have it behind the name."""
    usage = r"^(Usage: .*\n(?:  .*\n)*|\s*\n)"
    while re.match(usage, help_text):
        help_text = re.sub(usage, "", help_text, count=1)
    sentence = re.match(r"(.+?)([.:]\s|\.?\n(?:\n|Usage)|\.?\Z)", help_text, re.S).group(1)
    return " ".join(sentence.split())


def write_page(help2man, folder, command, own):
    """`own`: the command's own command that the page is for, or none."""
    name = "-".join([pathlib.Path(command).name, *own])
    help_text = output_of(command, *own, "--help")
    page = output_of(help2man, "--no-info", f"--help-option={' '.join([*own, '--help'])}", f"--name={summary(help_text)}", command)
    if own:  # help2man knows the command only
        command_name = pathlib.Path(command).name
        page = page.replace(f".TH {command_name.upper()} ", f".TH {name.upper()} ", 1).replace(f"\n{command_name} \\-", f"\n{name} \\-", 1)
    (folder / f"{name}.1").write_text(page)
    listed = re.search(r"^(?:Subcommands|Commands):\n((?:  .*\n?)+)", help_text, re.M)
    return re.findall(r"^  (\w[\w-]*)", listed.group(1), re.M) if listed else []


def main():
    help2man, folder, *commands = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1"):
        old.unlink()
    for command in commands:
        for own in write_page(help2man, folder, command, []):
            write_page(help2man, folder, command, [own])


main()
