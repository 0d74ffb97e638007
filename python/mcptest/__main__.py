"""`python -m mcptest`: the command-line program of this package."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def program() -> Path:
    """The path of the program `mcptest` that was installed with this package."""
    name = "mcptest" + (sysconfig.get_config_var("EXE") or "")
    schemes = [sysconfig.get_path("scripts")]
    for scheme in (f"{os.name}_user", "posix_user"):
        if scheme in sysconfig.get_scheme_names():
            schemes.append(sysconfig.get_path("scripts", scheme))
    # `pip install --target FOLDER` has the programs in FOLDER/bin.
    schemes.append(str(Path(__file__).resolve().parent.parent / "bin"))
    for folder in schemes:
        path = Path(folder) / name
        if path.is_file():
            return path
    found = shutil.which(name)
    if found:
        return Path(found)
    raise FileNotFoundError(f"the program {name} is in none of: {', '.join(schemes)}")


def main() -> None:
    """Replaces this process by the program, so that signals and exit codes are its own."""
    path = str(program())
    if os.name == "posix":
        os.execv(path, [path, *sys.argv[1:]])
    import subprocess

    sys.exit(subprocess.run([path, *sys.argv[1:]], check=False).returncode)


if __name__ == "__main__":
    main()
