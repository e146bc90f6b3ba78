from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from plain_cnn import CLASSES, SETTINGS, image_client, normalised, random_stack, spec
from torch import Tensor, nn
from torch.nn import functional

from bench.engine.method import Task
from bench.engine.run import Run
from bench.errors import NotApplicableError
from bench.federation.types import Federation
from bench.nn.base import keep_all
from bench.nn.resnet import ResNet18

CPU = torch.device("cpu")
RESNET = SETTINGS.model_copy(update={"model": "resnet18"})


class PlainBlock(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        stride = 1 if before == after else 2
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample: nn.Module = nn.Identity()
        if stride == 2:
            shortcut = nn.Conv2d(before, after, 1, 2, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        residual = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(residual + self.downsample(x))


class PlainResNet18(nn.Module):
    """Four stages of two residual blocks behind the stem for ImageNet."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(PlainBlock(64, 64), PlainBlock(64, 64))
        self.layer2 = nn.Sequential(PlainBlock(64, 128), PlainBlock(128, 128))
        self.layer3 = nn.Sequential(PlainBlock(128, 256), PlainBlock(256, 256))
        self.layer4 = nn.Sequential(PlainBlock(256, 512), PlainBlock(512, 512))
        self.fc = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        logits: Tensor = self.fc(functional.adaptive_avg_pool2d(hidden, 1).flatten(1))
        return logits


def plain_copy(stack: Mapping[str, Tensor], client: int) -> PlainResNet18:
    """A plain network with one client's weights and running statistics."""
    network = PlainResNet18(3, stack["fc.bias"].shape[1])
    of_client = {name: value[client] for name, value in stack.items()}
    of_client["fc.weight"] = of_client["fc.weight"].T
    missing, unknown = network.load_state_dict(of_client, strict=False)
    assert not unknown
    assert all(name.endswith("num_batches_tracked") for name in missing)
    return network


@pytest.mark.parametrize(("classes", "expected"), [(100, 11_227_812), (200, 11_279_112)])
def test_parameters_and_layers_are_those_of_the_study(classes: int, expected: int) -> None:
    model = ResNet18([image_client(3, 3, side=32)], classes, RESNET)
    sizes = {name: int(np.prod(shape)) for name, shape in model.shapes.items()}
    trained = {name: size for name, size in sizes.items() if name not in model.buffers}
    assert (len(trained), sum(trained.values())) == (62, expected)
    assert sum(sizes[name] for name in model.buffers) == 9600
    task = Task(spec("local", 2), model, torch.ones(2), CPU)
    plain = PlainResNet18(3, classes)
    modules = [name for name, part in plain.named_modules() if list(part.parameters(recurse=False))]
    assert len(modules) == 41
    assert list(task.layers) == modules
    assert task.layers["fc"] == task.head


def test_initial_weights_are_drawn_as_torchvision_draws_them() -> None:
    """He's normal weights by fan out for convolutions; a linear layer uniform within 1 / sqrt(512)."""
    drawn = ResNet18([image_client(3, 3, side=32)], 10, RESNET).initial(np.random.default_rng(0))
    for name, value in drawn.items():
        if value.ndim == 4:
            expected = (2 / (value.shape[0] * value.shape[2] * value.shape[3])) ** 0.5
            assert abs(value.std() / expected - 1) < 0.03
            assert abs(value.mean()) < 0.03 * expected
        elif not name.startswith("fc"):
            assert np.all(value == (1 if name.endswith(("weight", "var")) else 0))
    assert 0.99 < np.abs(drawn["fc.weight"]).max() * 512**0.5 <= 1
    assert np.abs(drawn["fc.bias"]).max() * 512**0.5 <= 1


@pytest.mark.parametrize("side", [32, 64])
def test_evaluation_equals_plain_networks(side: int) -> None:
    members = [image_client(5, 5, side=side), image_client(3, 3, side=side)]
    model = ResNet18(members, CLASSES, RESNET)
    stack = random_stack(model, 2)
    before = {name: value.clone() for name, value in stack.items()}
    with torch.no_grad():
        logits, embedding = model.forward(stack, model.collate(members, CPU), None)
        assert embedding.shape == (2, 5, 512)
        for number, client in enumerate(members):
            expected = plain_copy(stack, number).eval()(normalised(client.features))
            torch.testing.assert_close(
                logits[number, : len(client.ids)],
                expected,
                rtol=1e-4,
                atol=1e-5 * float(expected.abs().max()),
            )
    assert all(torch.equal(stack[name], before[name]) for name in stack)


def test_a_training_step_equals_plain_networks() -> None:
    """Logits, gradients and running statistics; one client after the other and as groups of channels."""
    members = [image_client(7, 7, side=64), image_client(9, 9, side=64)]
    model = ResNet18(members, CLASSES, RESNET)
    start = random_stack(model, 2)
    inputs = model.collate(members, CPU).select(torch.tensor([[0, 3, 1, 5], [2, 7, 4, 0]]), torch.arange(2))
    labels = torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2]])
    names = [name for name in start if name not in model.buffers]
    pixels = inputs.pixels.view(2, 4, 3, 64, 64)
    for grouped in (False, True):
        stack = {name: value.clone() for name, value in start.items()}
        leaves = {name: stack[name].requires_grad_() for name in names}
        if grouped:  # the layout for accelerators
            logits = model.classify(stack, model.features(stack, pixels, True), inputs, keep_all)
        else:
            logits = model.forward(stack, inputs, keep_all).logits
        objective = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / 4
        gradients = dict(zip(names, torch.autograd.grad(objective, list(leaves.values())), strict=True))
        for number in range(2):
            network = plain_copy(start, number).train()
            expected = network(normalised(pixels[number].numpy()))
            functional.cross_entropy(expected, labels[number]).backward()
            torch.testing.assert_close(logits[number], expected, rtol=1e-4, atol=1e-4)
            for name, value in network.named_parameters():
                slope = value.grad
                assert slope is not None
                slope = slope.T if name == "fc.weight" else slope
                scale = float(slope.abs().max())
                torch.testing.assert_close(gradients[name][number], slope, rtol=1e-3, atol=1e-3 * scale)
            for name, value in network.named_buffers():
                if name in model.buffers:
                    torch.testing.assert_close(stack[name][number], value, rtol=1e-4, atol=1e-5)


def test_a_single_value_of_a_channel_is_normalised_by_running_statistics() -> None:
    """A batch of one image of 32 x 32 pixels has a map of one value in the last stage."""
    client = image_client(3, 3, side=32)
    model = ResNet18([client], CLASSES, RESNET)
    stack = random_stack(model, 1)
    before = {name: value.clone() for name, value in stack.items()}
    batch = model.collate([client], CPU).select(torch.tensor([[1]]), torch.arange(1))
    logits = model.forward(stack, batch, keep_all).logits
    assert torch.isfinite(logits).all()
    kept = {name for name in model.buffers if torch.equal(stack[name], before[name])}
    assert kept == {name for name in model.buffers if name.startswith("layer4")}


def test_rounds_run_and_images_below_the_smallest_are_refused() -> None:
    members = tuple(image_client(size, size, side=32) for size in (6, 11))
    toy = Federation("toy", "dirichlet0.1", "images", CLASSES, members, "toy")
    request = spec("fedavg", 2, rounds=1, epochs=1).model_copy(update={"client": RESNET})
    it = Run(request, toy)
    it.warm_up()
    it.step(0)
    assert np.isfinite(it.loss).all()
    assert set(it.own) == set(it.model.shapes)
    with pytest.raises(NotApplicableError, match="16 x 16 pixels or more, got 15 x 15"):
        ResNet18([image_client(2, 2, side=15)], CLASSES, RESNET)
