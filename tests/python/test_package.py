"""What importing the package does, and what it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import quatrain
import torch
from quatrain import _library


def python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


def test_another_torch_is_refused_in_one_sentence():
    _library.check_torch("2.13.0", "2.13.1+cu130")
    with pytest.raises(ImportError, match="built with torch 2.12, but this Python has torch 2.13.0: install torch 2.12, or build"):
        _library.check_torch("2.12.1", "2.13.0")


def test_the_library_says_which_torch_it_fits():
    beside = Path(quatrain.library).parent / "torch_version.txt"
    assert beside.read_text().strip() == torch.__version__.split("+")[0]


def test_a_missing_library_is_one_sentence():
    done = python("import quatrain", QUATRAIN_LIBRARY="nowhere.so")
    assert "ImportError: quatrain: QUATRAIN_LIBRARY names no file: nowhere.so" in done.stderr


def test_one_openmp_runtime():
    """Both work with threads; then the process's memory holds one runtime."""
    done = python(
        "import torch, quatrain\n"
        "torch.set_num_threads(2)\n"
        "torch.randn(512, 512) @ torch.randn(512, 512)\n"
        "quatrain.nn.Linear(512, 512, algebra='quaternion')(torch.randn(512, 512)).sum().backward()\n"
        "print({line.split()[-1] for line in open('/proc/self/maps') if '/lib' in line})"
    )
    assert done.returncode == 0, done.stderr
    libraries = {os.path.realpath(path) for path in eval(done.stdout)}
    assert len([path for path in libraries if "omp" in os.path.basename(path)]) == 1
    assert [path for path in libraries if os.path.basename(path).startswith("libquatrain.so")] == [os.path.realpath(quatrain.library)]


def test_importing_needs_no_more_than_torch():
    """Neither what tests and training use, nor CUDA."""
    done = python(
        "import sys, torch\nbefore = set(sys.modules)\nimport quatrain\n"
        "print({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names) - {'quatrain', 'torch'})\n"
        "assert not torch.cuda.is_initialized()"
    )
    assert done.returncode == 0, done.stderr
    brought = set(done.stdout.strip(" {}\n").replace("'", "").split(", ")) - {"set()"}
    assert brought <= {"typing_extensions", "triton"}  # torch's flop counter looks for triton


def test_types_are_announced():
    assert (Path(quatrain.__file__).parent / "py.typed").is_file()
    assert quatrain.cmake_prefix_path == str(Path(quatrain.__file__).parent)


def test_public_names_exist_and_are_documented():
    for module in (quatrain.algebra, quatrain.init, quatrain.nn, quatrain.ops, quatrain):
        for name in module.__all__:
            thing = getattr(module, name)
            assert not callable(thing) or thing.__doc__, f"{module.__name__}.{name}"
