"""Builds the wheel, installs it into a folder of its own beside torch, and uses it as a user would.

usage: wheel_test.py SOURCE WORK     with the Python that has torch
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

source, work = Path(sys.argv[1]), Path(sys.argv[2])
site = work / "site"
torch_folder = Path(importlib.util.find_spec("torch").submodule_search_locations[0])


def run(*command, **environment):
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("QUATRAIN_LIBRARY", "PYTHONPATH"))}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=work, env={**keep, **environment})
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}\nfailed: {done.returncode}")
    return done.stdout


def check(condition, what):
    if not condition:
        sys.exit(f"the wheel: {what}")


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
run(source / "scripts" / "wheel", work, PYTHON=sys.executable)
(wheel,) = work.glob("*.whl")
check(re.search(r"-py3-none-linux_\w+\.whl$", wheel.name), f"must serve every CPython, is {wheel.name}")
names = zipfile.ZipFile(wheel).namelist()
for name in ("lib/libquatrain.so", "lib/libquatrain_training.so", "lib/torch_version.txt", "bin/quatrain", "py.typed",
             "include/quatrain/quatrain.h", "lib/cmake/quatrain/quatrainConfig.cmake", "nn/linear.py"):  # fmt: skip
    check(f"quatrain/{name}" in names, f"lacks {name}")
libraries = sorted(name for name in names if ".so" in name)
check(libraries == ["quatrain/lib/libquatrain.so", "quatrain/lib/libquatrain_training.so"], f"carries {libraries}")

run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel)
(site / "torch").symlink_to(torch_folder)  # as in a site-packages that holds both

for part in ("lib/libquatrain.so", "lib/libquatrain_training.so", "bin/quatrain"):
    said = run("readelf", "-d", site / "quatrain" / part)
    for path in re.search(r"RUNPATH.*\[(.*)\]", said)[1].strip(":").split(":"):
        check(path.startswith("$ORIGIN"), f"{part} looks for libraries in {path}")
    needed = set(re.findall(r"NEEDED.*\[(lib[^.]+)", said))
    known = {"libquatrain", "libquatrain_training", "libtorch_cpu", "libc10", "libgomp", "libstdc++", "libm", "libgcc_s", "libc"}
    if "training" in part:  # of the system: files, pieces of words, audio and pictures
        known |= {"libz", "libsentencepiece", "libsentencepiece_train", "libutf8proc", "libsndfile", "libsamplerate", "libturbojpeg", "libpng16"}
    check(needed <= known, f"{part} needs {needed - known}")

said = run(sys.executable, "-c", """
import os, quatrain, torch
layer = quatrain.nn.Linear(512, 512, algebra="quaternion")
layer(torch.randn(512, 512)).sum().backward()
maps = {os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps") if "/lib" in line}
print(quatrain.library, quatrain.__version__, sum("omp" in os.path.basename(path) for path in maps), quatrain.cmake_prefix_path, sep="\\n")
""", PYTHONPATH=str(site)).split("\n")
check(said[0] == str(site / "quatrain/lib/libquatrain.so"), f"loads {said[0]}")
check(said[2] == "1", f"brings {said[2]} OpenMP runtimes into the process")

# The program: through its entry point, and where torch stands elsewhere than beside the package.
check(said[1] in run(site / "bin" / "quatrain", "--version", PYTHONPATH=str(site)), f"the program is not {said[1]}")
(site / "torch").unlink()
run(sys.executable, "-m", "quatrain._program", "recipes", PYTHONPATH=str(site))
(site / "torch").symlink_to(torch_folder)

# A C++ project finds the package's CMake files, and torch through them.
run("cmake", "-S", source / "examples" / "cpp", "-B", work / "example", f"-DCMAKE_PREFIX_PATH={said[3]}", "-DCMAKE_BUILD_TYPE=Release")
cache = (work / "example" / "CMakeCache.txt").read_text()
check(f"quatrain_DIR:PATH={site}/quatrain/lib/cmake/quatrain" in cache, "its CMake package was not found")
print(f"{wheel.name}: {wheel.stat().st_size // 1024} kB")
