"""Where the wheel uptempo-vgpu has installed its commands.

The commands are programs, not Python scripts: they start at once, and leave the signals and the
environment of the program that they run as they are.
"""

import importlib.metadata
import pathlib

COMMANDS = ("uptempo-vgpu", "uptempo-graphs", "uptempo-lint")


def path(command):
    """The path of one of COMMANDS, as a pathlib.Path. Raises FileNotFoundError if it is not there."""
    # `pip install --target` puts `bin` beside the package, after it has listed the files elsewhere.
    places = [pathlib.Path(__file__).parent.parent / "bin" / command]
    try:
        files = importlib.metadata.files("uptempo-vgpu") or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    # Scripts for the completion of shells have the commands' names, too.
    places += [file.locate() for file in files if file.name == command and file.parent.name == "bin"]
    for place in places:
        if pathlib.Path(place).is_file():
            return pathlib.Path(place).resolve()
    raise FileNotFoundError(f"{command} is not installed (tried {', '.join(map(str, places))}): install uptempo-vgpu again")
