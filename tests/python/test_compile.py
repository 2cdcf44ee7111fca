"""torch.compile without a graph break, and torch.export: both equal to eager."""

import io

import pytest
import quatrain
import torch
from quatrain import nn
from quatrain.models import TextClassifier

MODELS = {
    "linear": lambda: nn.Linear(16, 24, algebra="quaternion"),
    "linear-phm": lambda: nn.Linear(16, 24, algebra="phm(4)"),
    "linear-wkp": lambda: nn.Linear(16, 24, algebra="wkp(4)"),
    "linear-factors": lambda: nn.Linear(16, 24, algebra="phm(4, trained_rank=6)"),
    "feed-forward": lambda: nn.FeedForward(16, 32, algebra="phm(2)", activation="gelu"),
    "pre": lambda: nn.TransformerEncoder(16, 2, 2, feed_forward=32, algebra="quaternion", norm="pre", norm_per_component=True, dropout=0.0),
    "post-phm": lambda: nn.TransformerEncoder(16, 2, 2, feed_forward=32, algebra="phm(2)", packed=True, activation="gelu", dropout=0.0),
    "phydi": lambda: nn.TransformerEncoder(16, 2, 2, feed_forward=32, algebra="octonion", norm="phydi", dropout=0.0),
    "classifier": lambda: TextClassifier(50, 3, width=16, heads=2, feed_forward=32, algebra="quaternion", dropout=0.0),
}


def inputs(name, batch=3, length=5):
    if name == "classifier":
        tokens = torch.randint(1, 50, (batch, length))
        tokens[1, 3:] = 0
        return tokens
    return torch.randn(batch, length, 16)


def gradients(module, f, x):
    module.zero_grad()
    y = f(x)
    y.square().sum().backward()
    return y.detach(), {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compare(name, backend, **options):
    module = MODELS[name]()
    compiled = torch.compile(module, fullgraph=True, backend=backend, **options)
    for length in (5, 7) if options.get("dynamic") else (5,):
        x = inputs(name, length=length)
        y, expected = gradients(module, module, x)
        z, got = gradients(module, compiled, x)
        torch.testing.assert_close(z, y, rtol=1e-4, atol=1e-5)
        assert got.keys() == expected.keys()
        for parameter, g in expected.items():
            torch.testing.assert_close(got[parameter], g, rtol=1e-3, atol=1e-4, msg=lambda m: f"{parameter}: {m}")
    module.eval()
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_compile(name):
    compare(name, "aot_eager")


@pytest.mark.parametrize("name", ["linear", "pre"])
def test_compile_with_dynamic_sizes(name):
    compare(name, "aot_eager", dynamic=True)


def test_compile_with_inductor():
    compare("feed-forward", "inductor")


def test_compile_of_a_growing_cache():
    module = nn.MultiheadAttention(16, 2, algebra="quaternion").eval()

    def step(x, keys, values, t):
        Q, K, V = module.project(x)
        keys, values = torch.cat([keys, K], 1), torch.cat([values, V], 1)
        return module.attend(Q, keys, values, causal=True, offset=t)[0], keys, values

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=True)
    x = torch.randn(3, 12, 16)
    with torch.no_grad():
        whole = module.self_attention(x, causal=True)
        keys = values = torch.empty(3, 0, 4, 2, 2)
        for t in range(0, 12, 2):
            y, keys, values = compiled(x[:, t : t + 2], keys, values, t)
            torch.testing.assert_close(y, whole[:, t : t + 2])


def test_compiled_eval_mode_sees_new_weights():
    module, x = MODELS["linear"]().eval(), inputs("linear")
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        compiled(x)
        module.S.mul_(2)
        torch.testing.assert_close(compiled(x), module(x))
        module.load_state_dict({name: 3 * p for name, p in module.state_dict().items()})
        torch.testing.assert_close(compiled(x), module(x))


@pytest.mark.parametrize("name", ["linear", "linear-wkp", "post-phm", "classifier"])
def test_export_and_reload(name):
    module, x = MODELS[name]().eval(), inputs(name)
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(module, (x,)), buffer)
    buffer.seek(0)
    again = torch.export.load(buffer).module()
    torch.testing.assert_close(again(x), module(x), rtol=1e-5, atol=1e-6)


class Packaged(torch.nn.Module):
    """Layers whose operators take lists of tensors, which are empty where an algebra is fixed."""

    def __init__(self, algebra):
        super().__init__()
        self.convolution = nn.Conv1d(8, 16, 3, algebra=algebra)
        self.lstm = nn.LSTM(16, 16, batch_first=True, algebra=algebra)
        self.linear = nn.Linear(16, 8, algebra=algebra)

    def forward(self, x):
        y, _ = self.lstm(self.convolution(x).transpose(1, 2))
        return self.linear(y)


@pytest.mark.parametrize("algebra", ["quaternion", "phm(4)"])
def test_packages_of_aot_inductor(algebra, tmp_path):
    module, x = Packaged(algebra).eval(), torch.randn(2, 8, 7)
    quatrain.factorize(module)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},))
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    packaged = torch._inductor.aoti_load_package(package)
    for batch in (2, 5):
        x = torch.randn(batch, 8, 7)
        torch.testing.assert_close(packaged(x), module(x), rtol=1e-5, atol=1e-5)


def test_export_with_a_dynamic_batch():
    module, x = MODELS["classifier"]().eval(), inputs("classifier")
    sizes = {"tokens": {0: torch.export.Dim("batch", min=2, max=64)}}
    exported = torch.export.export(module, (x,), dynamic_shapes=sizes)
    more = inputs("classifier", batch=6)
    torch.testing.assert_close(exported.module()(more), module(more), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(exported.run_decompositions().module()(more), module(more), rtol=1e-5, atol=1e-6)
