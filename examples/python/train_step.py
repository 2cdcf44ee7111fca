"""A few steps of training with quaternion layers, in a model of torch's own modules.

    python examples/python/train_step.py

Needs the package (docs/python.md). The task: to tell whether a point lies inside a ball.
"""

import quatrain
import torch


def make_model(algebra: str) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        quatrain.nn.Linear(8, 64, algebra=algebra),
        torch.nn.GELU(),
        quatrain.nn.Linear(64, 64, algebra=algebra),
        torch.nn.GELU(),
        torch.nn.Linear(64, 2),
    )


def train(algebra: str, steps: int = 300) -> tuple[int, float]:
    """Parameters, and the share of right answers on new points."""
    torch.manual_seed(0)
    model = make_model(algebra)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        x = torch.randn(128, 8)
        loss = torch.nn.functional.cross_entropy(model(x), (x.norm(dim=1) < 8**0.5).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = torch.randn(2000, 8)
    with torch.no_grad():
        right = model.eval()(x).argmax(1) == (x.norm(dim=1) < 8**0.5)
    return sum(p.numel() for p in model.parameters()), right.float().mean().item()


if __name__ == "__main__":
    for algebra in ("real", "complex", "quaternion", "phm(4)", "octonion"):
        parameters, accuracy = train(algebra)
        print(f"{algebra:12} {parameters:5} parameters   {accuracy:6.1%} right")
