"""Common to the runners of programs of others on the virtual GPU, test/clients/run and
test/libraries/run: their options, and runs with a limit of time."""

import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUN_SECONDS = 900  # a run that takes longer hangs


def fail(runner, code, sentence):
    print(f"{runner}: {sentence}", file=sys.stderr)
    sys.exit(code)


def output(command, **options):
    """The exit status of a command, and what it writes."""
    both = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    done = subprocess.run(command, **both, **options)
    return done.returncode, done.stdout


def timed(command, **options):
    """The exit status of a command or "none", what it writes, and its seconds."""
    started = time.monotonic()
    try:
        status, text = output(command, timeout=RUN_SECONDS, **options)
    except subprocess.TimeoutExpired as late:
        written = (late.output or b"").decode(errors="replace")
        status, text = "none", f"{written}\nstill running after {RUN_SECONDS} s\n"
    return status, text, time.monotonic() - started


def options(runner, description, kind, known):
    """A parser of the command line, whose positional arguments are names of what `known` holds."""
    parser = argparse.ArgumentParser(
        prog=runner, formatter_class=argparse.RawDescriptionHelpFormatter, description=description
    )
    launcher = ROOT / "build" / "bin" / "uptempo-vgpu"
    parser.add_argument("names", nargs="*", metavar=kind.upper(), help=", ".join(known))
    parser.add_argument("--list", action="store_true", help="print the runs, and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once, default: one per processor")
    parser.add_argument("--launcher", type=pathlib.Path, default=launcher, help="default: build/bin/uptempo-vgpu")
    return parser


def named(parser, names, kind, known):
    """The names; refuses unknown ones."""
    for name in names:
        if name not in known:
            fail(parser.prog, 2, f"unknown {kind} '{name}'; there are {', '.join(known)}.")
    return names


def launcher_of(parser, arguments):
    """The launcher; refuses one that does not exist."""
    launcher = arguments.launcher
    if not launcher.exists():
        fail(parser.prog, 2, f"{launcher} does not exist; build the target uptempo_vgpu_launcher, or use --launcher.")
    return launcher.resolve()


def report(title, reason, seconds):
    """Prints one run's result, and the reason of a failure."""
    print(f"{'failed' if reason else 'passed'} {seconds:6.1f} s  {title}", flush=True)
    if reason:
        print(reason, flush=True)
