"""A layer that the package does not have is saved, loaded, counted, factorized and decayed as Linear is."""

import copy

import pytest
import torch
from quatrain import algebra, convert, factorize, load_model, nn, ops, save_model
from safetensors import safe_open


class Cell(nn.HypercomplexLayer):
    """tanh(S * (H_input x + H_state h)): two weights, and a parameter that is called S but is none."""

    def __init__(self, width, notation):
        super().__init__()
        self.input = self.add_weight(notation, width, width, suffix="_input")
        self.state = self.add_weight(notation, width, width, suffix="_state")
        self.S = torch.nn.Parameter(torch.ones(()))

    def forward(self, x, h):
        return torch.tanh(self.S * (self._map(self.input, x) + self._map(self.state, h)))

    def _map(self, weight, x):
        S, operand, A, factors, constant = weight.operands(self)
        return ops.linear(x, S, None, operand, A, factors, constant=constant)


class Net(torch.nn.Module):
    def __init__(self, notation):
        super().__init__()
        self.cell = Cell(16, notation)
        self.head = torch.nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.cell(x, x))


def test_parameters_are_registered_in_the_layer():
    names = ["A_input", "w_input", "S_input", "A_state", "w_state", "S_state", "S"]
    assert sorted(Net("wkp(4)").cell.state_dict()) == sorted(names)


def test_is_saved_with_its_algebra(tmp_path):
    net, x = Net("quaternion"), torch.randn(3, 16)
    save_model(net, tmp_path / "weights")
    with safe_open(tmp_path / "weights", "pt") as file:
        metadata = file.metadata()
    assert metadata["algebra/cell"] == f"quaternion {algebra.get('quaternion').hash}" and "table/quaternion" in metadata
    same, other = Net("quaternion"), Net("split_quaternion")
    load_model(same, tmp_path / "weights")
    assert torch.equal(same(x), net(x))
    with pytest.raises(RuntimeError, match="layer 'cell' was trained with the algebra quaternion .*, the model has split_"):
        load_model(other, tmp_path / "weights")


def test_is_counted_and_decays_by_role():
    net = Net("phm(4)")
    report = nn.parameter_report(net)
    assert report.weights == 2 * (16 * 16 // 4 + 64) and report.total == report.weights + 1 + 16 * 2 + 2
    decaying = nn.decaying_parameters(net)
    assert len(decaying) == 2 and decaying[0] is net.cell.S_input and decaying[1] is net.cell.S_state
    groups = nn.parameter_groups(net, 0.1)
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    assert sum(len(group["params"]) for group in groups) == len(list(net.parameters()))


def test_is_factorized():
    net, x = Net("phm(2)").eval(), torch.randn(3, 16)
    with torch.no_grad():
        y = net(x)
        report = factorize(net)
        assert [(layer.name, layer.sound) for layer in report.layers] == [("cell.S_input", True), ("cell.S_state", True)]
        torch.testing.assert_close(net(x), y, atol=1e-4, rtol=1e-4)
        other = copy.deepcopy(net).double().cell
        assert all(weight.has_factors(other) for weight in other.weights())
        net.load_state_dict(Net("phm(2)").state_dict())
        assert not any(weight.has_factors(net.cell) for weight in net.cell.weights())


def test_forgets_what_was_prepared():
    net, x = Net("quaternion"), torch.randn(3, 16)
    before = ops.prepared_size()[0]
    with torch.no_grad():
        for forget in (net.train, lambda: net.double().float(), lambda: net.load_state_dict(net.state_dict())):
            net.eval()
            for weight in net.cell.weights():
                ops.linear(x, *weight.operands(net.cell)[:1], None, "quaternion", way="materialised", constant=True)
            assert ops.prepared_size()[0] == before + 2
            forget()
            assert ops.prepared_size()[0] == before


def test_convert_says_that_it_leaves_it():
    report = convert(torch.nn.Sequential(Net("real")), "quaternion")[1]
    skipped = {layer.name: layer.skipped for layer in report.layers}
    assert skipped["0.cell"] == "is a Cell, which may do more than a linear layer"


def test_weights_of_a_layer_are_of_one_algebra():
    layer = Cell(16, "quaternion")
    with pytest.raises(ValueError, match="the weights of a layer are of one algebra, got quaternion and octonion"):
        layer.add_weight("octonion", 16, 16, suffix="_more")


def test_kernels_and_packed_maps():
    layer = nn.HypercomplexLayer()
    weight = layer.add_weight("phm(2)", 4, 6, kernel=(3, 3), name="F", maps=3)
    assert layer.F.shape == (2, 3, 2, 3, 3) and weight.matrix(layer).shape == (6, 4 * 9)
    assert nn.MultiheadAttention(480, 2, algebra="real", packed=True).packed.S.var().item() == pytest.approx(1 / 480, rel=0.03)


def test_weights_that_do_not_fit_are_refused():
    layer = nn.HypercomplexLayer()
    with pytest.raises(ValueError, match="in_features must be divisible by n = 4, got 7"):
        layer.add_weight("quaternion", 7, 8)
    with pytest.raises(ValueError, match="out_features must be divisible by n = 4, got 10"):
        layer.add_weight("quaternion", 8, 10)
    layer.add_weight("quaternion", 8, 8)
    with pytest.raises(ValueError, match="has a parameter S already"):
        layer.add_weight("quaternion", 8, 8)
