"""The public safetensors package reads what the library writes, and the library what the package writes."""

import json
import os
import struct
import subprocess

import pytest
import safetensors
import torch
from safetensors.torch import load_file, save_file

REWRITE = os.environ.get("QUATRAIN_REWRITE_SAFETENSORS")
if not REWRITE:
    pytest.skip("QUATRAIN_REWRITE_SAFETENSORS does not name the program", allow_module_level=True)

TYPES = {
    torch.float64: "Double",
    torch.float32: "Float",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}
SHAPES = [(), (1,), (7,), (0,), (2, 3), (4, 0, 2), (2, 3, 4, 5)]
METADATA = {"format": "pt", "text": "line\nbreak \"quoted\" äöü 四元数", "empty": ""}


def rewrite(source, target, *arguments):
    done = subprocess.run([REWRITE, source, target, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(source, target):
    done = subprocess.run([REWRITE, source, target], capture_output=True, text=True)
    assert done.returncode == 1, "the file was read"
    assert not target.exists()
    return done.stderr


def values(dtype, shape):
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).bool()
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=torch.float64).to(dtype)
    low, high = (0, 256) if dtype == torch.uint8 else (-128, 128)
    return torch.randint(low, high, shape, dtype=dtype)


def every_kind():
    tensors = {f"{name}.{list(shape)}": values(dtype, shape) for dtype, name in TYPES.items() for shape in SHAPES}
    tensors["odd"] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45])
    tensors["weights \"quoted\" äöü"] = values(torch.float32, (3, 3))
    return tensors


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def assert_same(read, written):
    assert read.keys() == written.keys()
    for name, tensor in written.items():
        assert read[name].dtype == tensor.dtype, name
        assert read[name].shape == tensor.shape, name
        assert torch.equal(bits(read[name]), bits(tensor)), name


def metadata_of(path):
    with safetensors.safe_open(path, "pt") as file:
        return file.metadata()


@pytest.mark.parametrize("arguments", [[], ["strided"]])
def test_tensors_and_metadata_survive_both_ways(tmp_path, arguments):
    tensors = every_kind()
    save_file(tensors, tmp_path / "public", metadata=METADATA)
    rewrite(tmp_path / "public", tmp_path / "ours", *arguments)
    assert_same(load_file(tmp_path / "ours"), tensors)
    assert metadata_of(tmp_path / "ours") == METADATA


# That a rewritten file is right could be two mistakes that cancel: so what was read is asked for, too.
def test_types_and_shapes_are_read_as_they_were_meant(tmp_path):
    tensors = every_kind()
    save_file(tensors, tmp_path / "public")
    said = dict(
        (name, (dtype, json.loads(shape)))
        for name, dtype, shape in (line.split("\t") for line in rewrite(tmp_path / "public", tmp_path / "ours").splitlines())
    )
    assert said == {name: (TYPES[tensor.dtype], list(tensor.shape)) for name, tensor in tensors.items()}


def test_writing_again_changes_no_byte(tmp_path):
    save_file(every_kind(), tmp_path / "public", metadata=METADATA)
    rewrite(tmp_path / "public", tmp_path / "ours")
    rewrite(tmp_path / "ours", tmp_path / "again", "strided")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "again").read_bytes()


def test_nothing_at_all_travels(tmp_path):
    save_file({}, tmp_path / "public")
    rewrite(tmp_path / "public", tmp_path / "ours")
    assert load_file(tmp_path / "ours") == {}
    assert not metadata_of(tmp_path / "ours")


def test_every_tensor_is_aligned_to_its_type(tmp_path):
    save_file({"byte": torch.ones(3, dtype=torch.uint8), "double": torch.ones(2, dtype=torch.float64)}, tmp_path / "public")
    rewrite(tmp_path / "public", tmp_path / "ours")
    content = (tmp_path / "ours").read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    assert length % 8 == 0
    assert header["double"]["data_offsets"][0] % 8 == 0


# What the package refuses, the library refuses.
@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:4], lambda b: b"\xff" * 8 + b[8:]])
def test_damaged_files_are_refused_by_both(tmp_path, damage):
    save_file({"x": torch.ones(4)}, tmp_path / "whole")
    (tmp_path / "damaged").write_bytes(damage((tmp_path / "whole").read_bytes()))
    with pytest.raises(safetensors.SafetensorError):
        load_file(tmp_path / "damaged")
    assert "damaged" in refusal(tmp_path / "damaged", tmp_path / "ours")


def test_a_type_that_the_library_lacks_is_named(tmp_path):
    save_file({"x": torch.ones(4).to(torch.float8_e4m3fn)}, tmp_path / "public")
    assert "F8_E4M3" in refusal(tmp_path / "public", tmp_path / "ours")
