"""python -m uptempo_vgpu [options] -- program: the command uptempo-vgpu of this Python's environment."""

import os
import signal
import sys

from uptempo_vgpu import path


def main():
    try:
        command = path("uptempo-vgpu")
    except FileNotFoundError as error:
        sys.exit(f"uptempo_vgpu: {error}")
    # Python ignores these signals, and a program would inherit that.
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    os.execv(command, [str(command), *sys.argv[1:]])


main()
