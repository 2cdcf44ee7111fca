"""The program ``quatrain``, as the package carries it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def main() -> None:
    """Becomes the program. It finds torch beside the package; elsewhere, where this Python finds it."""
    program = _FOLDER / "bin" / "quatrain"
    if not program.is_file():
        sys.exit("quatrain: the package holds no program (it was built without the trainer, or this is a source tree)")
    if not (_FOLDER.parent / "torch" / "lib").is_dir():
        spec = importlib.util.find_spec("torch")
        if spec is None or not spec.submodule_search_locations:
            sys.exit("quatrain: this Python has no torch: install it")
        folders = [os.path.join(spec.submodule_search_locations[0], "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
