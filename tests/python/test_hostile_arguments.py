"""Attention, convolutions and what is component-wise under arguments that nobody means: a result or an exception, never a crash.

Calls are made in a process of its own, which tells each before it makes it. By hand, for longer:
python tests/python/test_hostile_arguments.py SEED SECONDS
"""

import os
import random
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch

CALLS, SECONDS = 1500, 20.0
MEMORY = 8 << 30  # bytes that a call may ask for: what is beyond is refused, not waited for


def heads(length, n=4):
    return torch.randn(2, length, n, 2, 3)


def attention():
    n = random.choice([1, 2, 4])
    arguments = dict(query=heads(3, n), key=heads(5, n), value=heads(5, n), algebra={1: "real", 2: "complex", 4: "quaternion"}[n])
    if random.random() < 0.3:
        arguments["padding"] = torch.rand(2, 5) < 0.4
    if random.random() < 0.5:
        mask = torch.randn(random.choice([(3, 5), (2, 1, 1, 5), (2, 2, 3, 5)]))
        arguments["mask"] = random.choice([mask, mask > 0])
    if random.random() < 0.5:
        arguments.update(causal=True, offset=random.choice([0, 2, -1]))
    if random.random() < 0.3:
        arguments.update(dropout=0.5)
    if random.random() < 0.3:
        arguments.update(scale=0.3, order="key_query")
    return arguments


def seeded():
    return attention() | dict(seed=torch.tensor([7]))


def backward():
    arguments = seeded()
    return dict(grad=torch.randn(2, 3, arguments["query"].size(2) * 6)) | arguments


def convolution():
    groups, transposed = random.choice([1, 2]), random.random() < 0.3
    return dict(
        x=torch.randn(2, 16, 5, 4), F=torch.randn(4, 4, 4 // groups, 3, 3), bias=torch.randn(16), algebra="learned", A=torch.randn(4, 4, 4), factors=[],
        stride=[1] if random.random() < 0.5 else [2, 1], padding=[1], dilation=[1], transposed=transposed, output_padding=[0], groups=groups,
        way="auto", winograd=random.choice(["auto", "none", "2x2", "4x4"]))  # fmt: skip


def convolution_with_epilogue():
    arguments = convolution()
    bias = arguments.pop("bias")
    result = torch.ops.quatrain.convolution(bias=bias, **arguments)
    return dict(scale=torch.randn(16), shift=bias, residual=torch.randn_like(result), activation=random.choice(["relu", "gelu"]), **arguments)


def convolution_backward():
    arguments = convolution()
    bias, x = arguments.pop("bias"), arguments["x"]
    return dict(grad=torch.randn_like(torch.ops.quatrain.convolution(bias=bias, **arguments)), **arguments)


def recurrence():
    """With a projection, where q is not p = 2."""
    q = random.choice([2, 1])
    S = [torch.randn(4, 8, q)] + ([torch.randn(4, q, 2)] if q < 2 else [])
    return dict(
        z=torch.randn(6, 32), batch_sizes=torch.tensor([3, 2, 1]), h0=torch.randn(3, 4 * q), c0=torch.randn(3, 8), S=S,
        algebra="learned", A=[torch.randn(4, 4, 4) for _ in S], factors=[], bias=torch.randn(32), mask=torch.rand(3, 4 * q),
        cell="lstm", reverse=True)  # fmt: skip


def recurrent_layer():
    arguments = recurrence()
    del arguments["z"]
    return arguments | dict(
        x=torch.randn(6, 12), S_x=[torch.randn(4, 8, 3)], A_x=[torch.randn(4, 4, 4)], factors_x=[], bias_x=torch.randn(32), way="auto")


def recurrence_backward():
    arguments = recurrence() | dict(algebra="quaternion", A=[])
    q = arguments["S"][0].size(2)
    del arguments["z"], arguments["bias"]
    return arguments | dict(
        dy=torch.randn(6, 4 * q), dh=torch.randn(3, 4 * q), dc=torch.randn(3, 8), y=torch.randn(6, 4 * q), kept=torch.randn(6, 40))


# A call that is well, of each operator.
OPERATORS = {
    "hypercomplex_attention": attention,
    "hypercomplex_attention_with_weights": attention,
    "hypercomplex_attention_forward": seeded,
    "hypercomplex_attention_backward": backward,
    "cached_attention": lambda: dict(
        query=torch.randn(3, 4, 2, 3), keys=torch.randn(5, 6, 4, 2, 3), values=torch.randn(5, 6, 4, 2, 3),
        table=torch.randint(5, (3, 6), dtype=torch.int32), lengths=torch.tensor([1, 4, 6], dtype=torch.int32), algebra="quaternion", scale=0.5),
    "convolution": convolution,
    "convolution_backward": convolution_backward,
    "convolution_with_epilogue": convolution_with_epilogue,
    "recurrent_layer": recurrent_layer,
    "recurrence": recurrence,
    "recurrence_backward": recurrence_backward,
    "attention_dropout_mask": lambda: dict(query=heads(3), key=heads(5), maps=4, p=0.5, seed=torch.tensor([7])),
    "cut_heads": lambda: dict(x=torch.randn(2, 5, 24), heads=2, components=4, parts=3),
    "hamilton_product": lambda: dict(a=torch.randn(3, 8), b=torch.randn(8), algebra="quaternion"),
    "hypercomplex_matching": lambda: dict(a=torch.randn(3, 8), b=torch.randn(3, 8), algebra="quaternion", n=4),
    "hypercomplex_alignment": lambda: dict(
        first=heads(3), second=heads(5), first_padding=torch.rand(2, 3) < 0.3, second_padding=torch.rand(2, 5) < 0.3, algebra="quaternion"),
    "hypercomplex_conjugate": lambda: dict(a=torch.randn(3, 8), algebra="quaternion"),
    "hypercomplex_norm": lambda: dict(a=torch.randn(3, 8), algebra="octonion"),
    "split_activation": lambda: dict(x=torch.randn(3, 8), name="gelu"),
    "hypercomplex_dropout": lambda: dict(x=torch.randn(3, 8), p=0.5, training=True, n=4, per_unit=True),
    "hypercomplex_dropout_drawn": lambda: dict(
        x=torch.randn(3, 8), p=0.5, components=4, seed=torch.tensor([7]), order=torch.contiguous_format),
    "hypercomplex_layer_norm": lambda: dict(x=torch.randn(3, 8), weight=torch.randn(8), bias=torch.randn(8), n=4, eps=1e-5),
    "whitening_norm": lambda: dict(
        x=torch.randn(9, 8, 2), weight=torch.randn(10, 2), bias=torch.randn(8), running_mean=torch.zeros(8),
        running_covariance=torch.eye(4)[..., None].repeat(1, 1, 2), n=4, training=random.random() < 0.7, momentum=0.1, eps=1e-4),
    "embedding": lambda: dict(tokens=torch.randint(48, (2, 5)), S=torch.randn(4, 12, 3), A=torch.randn(4, 4, 4), factored=False),
    "masked_mean": lambda: dict(x=torch.randn(2, 5, 8), padding=torch.rand(2, 5) < 0.5),
}

INTEGERS = [0, 1, -1, 2, 3, 4, 7, 64, 10**9, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63)]
NUMBERS = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, -1.0, 0.5, 1.0, 2.0, 1e308, 5e-324]
TEXTS = ["real", "quaternion", "octonion", "dual", "clifford(1,1)", "clifford(99999999999999999999,1)", "cyclic(64)", "phm(4)", "learned", "",
         "x" * 10000, "\0", "quaternoin", "query_key", "key_query", "relu", "factored", "4x4", "group_z2(-1)"]  # fmt: skip
TYPES = [torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn]
SIZES = [0, 1, 1, 2, 3, 4, 5, 8, 24]
HUGE = [2**40, 2**61]  # as views of little, or of nothing: what is copied is refused


def fresh():
    shape = [random.choice(SIZES) for _ in range(random.randrange(7))]
    t = torch.randn(shape)
    if shape and random.random() < 0.3:
        axis = random.randrange(len(shape))
        shape[axis] = random.choice(HUGE)
        t = torch.randn([1] * len(shape)).expand(shape)
    return t


def bent(t):
    """The tensor with something about it that its user did not think of."""
    dense = t.layout == torch.strided and t.device.type == "cpu"
    ways = [
        lambda: fresh(),
        lambda: t.to(random.choice(TYPES)),
        lambda: t.to("meta"),
        lambda: t.to_sparse(),
        lambda: t.to_mkldnn(),
        lambda: t.flatten(0, -2).to_sparse_csr(),
        lambda: torch.full_like(t, random.choice(NUMBERS)),
        lambda: t.transpose(0, -1),
        lambda: t[..., ::2],
        lambda: t[:0],
        lambda: t.unsqueeze(random.randrange(t.dim() + 1)),
        lambda: t.flatten(),
        lambda: t[0],
        lambda: t.expand(random.choice(HUGE), *t.shape),
        lambda: t[:1].expand(random.choice(HUGE), *t.shape[1:]),
        lambda: t[:, :1].expand(-1, random.choice(HUGE), *t.shape[2:]),
        lambda: t[..., :0].expand(*t.shape[:-1], 0),
        lambda: t.repeat_interleave(2, -1)[..., ::2],
        lambda: torch._neg_view(t),
        lambda: t.as_strided(t.shape, [0] * t.dim()),
        lambda: t.clone().requires_grad_(),
        lambda: torch.nested.nested_tensor([t, t]),
        lambda: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8),
    ]
    return random.choice(ways if dense else ways[:1])()


def hostile(kind, value):
    if random.random() < 0.05:
        return random.choice([None, 1, "real", torch.zeros(()), [], 2.5])
    if "Tensor" in kind:
        if random.random() < 0.1:
            return None
        if isinstance(value, list):  # one of them, or one more or less
            place = random.randrange(len(value) + 1)
            return value[:place] + random.choice([[], [bent(t) for t in value[place : place + 1]], [fresh()]]) + value[place + 1 :]
        return bent(value) if isinstance(value, torch.Tensor) else fresh()
    if kind == "List[int]":
        return [random.choice(INTEGERS) for _ in range(random.randrange(4))]
    if "ScalarType" in kind:
        return random.choice([None, torch.float32, *TYPES])
    if "MemoryFormat" in kind:
        return random.choice([torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d])
    if kind == "List[bool]":
        return [random.random() < 0.5 for _ in range(3)]
    choices = {"int": INTEGERS, "float": NUMBERS, "bool": [True, False], "str": TEXTS}
    return random.choice(choices[kind.removeprefix("Optional[").removesuffix("]").replace("SymInt", "int")])


def told(value):
    if not isinstance(value, torch.Tensor):
        return repr(value)[:60]
    strides = value.stride() if value.layout == torch.strided and not value.is_nested else ""
    shape = "nested" if value.is_nested else list(value.shape)
    return f"{value.dtype} {shape} {strides} {value.layout} {value.device}{' requires grad' if value.requires_grad else ''}"


def touch(result):
    """Reads all of the results and takes their gradients."""
    for t in result if isinstance(result, (tuple, list)) else [result]:
        if t.layout == torch.strided and t.device.type == "cpu" and t.numel() < 1 << 20:
            total = t.double().sum()
            if total.requires_grad:
                total.backward()


def attack(seed, calls, seconds):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(2)
    warnings.simplefilter("ignore")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    end = time.monotonic() + seconds
    made = refused = 0
    while made < calls and time.monotonic() < end:
        name = random.choice(list(OPERATORS))
        operator, arguments = getattr(torch.ops.quatrain, name).default, OPERATORS[name]()
        kinds = {a.name: str(a.real_type) for a in operator._schema.arguments}
        for argument in random.sample(list(kinds), min(random.choice([1, 1, 1, 2, 3]), len(kinds))):
            try:
                arguments[argument] = hostile(kinds[argument], arguments.get(argument))
            except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError):
                continue  # torch itself makes no such tensor
        print(f"{made}: {name}({', '.join(f'{k}={told(v)}' for k, v in arguments.items())})", flush=True)
        made += 1
        try:
            touch(operator(**arguments))
        except Exception as error:
            refused += 1
            print(f"  {type(error).__name__}: {str(error)[:300]!r}")
    print(f"made {made}, refused {refused}", flush=True)


def test_operators_of_these_rooms_are_all_here():
    rooms = ("attention", "cut_heads", "hamilton", "hypercomplex", "split_activation", "masked_mean", "whitening", "embedding", "recurren", "convolution")
    names = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("quatrain::")}
    assert {name for name in names if any(room in name for room in rooms)} == set(OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_calls_that_are_bent_are_well(name):
    for _ in range(5):
        touch(getattr(torch.ops.quatrain, name).default(**OPERATORS[name]()))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_result_or_an_exception(seed, tmp_path):
    log = tmp_path / "calls"
    with log.open("w") as out:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", __file__, str(seed), str(SECONDS)], stdout=out, stderr=subprocess.STDOUT,
            timeout=10 * SECONDS, env=os.environ,
        )  # fmt: skip
    assert done.returncode == 0, "".join(log.read_text().splitlines(keepends=True)[-30:])
    assert "made " in log.read_text().splitlines()[-1]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    import quatrain  # noqa: F401

    attack(int(sys.argv[1]), CALLS if float(sys.argv[2]) <= SECONDS else 1 << 62, float(sys.argv[2]))
