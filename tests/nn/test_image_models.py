"""The client models of images against plain networks, one client at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from plain_cnn import (
    CLASSES,
    HIDDEN,
    SETTINGS,
    image_client,
    normalised,
    of_module,
    random_stack,
    spec,
    turned,
)
from plain_cnn import plain_copy as plain_cnn
from torch import Tensor, nn
from torch.nn import functional

from bench.engine.execute import run
from bench.engine.method import Task
from bench.errors import RequestError
from bench.federation.types import Client, Federation
from bench.nn import images
from bench.nn.base import keep_all
from bench.nn.cnn import CNN
from bench.nn.images import ImageModel
from bench.nn.models import check_model
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


def plain_resnet(stack: Mapping[str, Tensor], client: int) -> PlainResNet18:
    """A plain network with one client's weights and running statistics."""
    network = PlainResNet18(3, stack["fc.bias"].shape[1])
    of_client = {name: value[client] for name, value in stack.items()}
    of_client["fc.weight"] = of_client["fc.weight"].T
    missing, unknown = network.load_state_dict(of_client, strict=False)
    assert not unknown
    assert all(name.endswith("num_batches_tracked") for name in missing)
    return network


def plain_copy(model: ImageModel, stack: Mapping[str, Tensor], client: int) -> nn.Module:
    return plain_cnn(stack, client) if isinstance(model, CNN) else plain_resnet(stack, client)


def named(network: nn.Module, name: str) -> Tensor:
    """The tensor of a plain network that a stack calls ``name``."""
    if isinstance(network, nn.Sequential):
        return of_module(network, name)
    tensor: Tensor = network.get_parameter(name) if "running" not in name else network.get_buffer(name)
    return tensor


def members(side: int) -> list[Client]:
    return [image_client(size, seed, side=side) for seed, size in enumerate((9, 13, 6))]


MODELS = [(CNN, SETTINGS, 16), (ResNet18, RESNET, 32), (ResNet18, RESNET, 64)]


def close(found: Tensor, expected: Tensor, rtol: float = 1e-4) -> None:
    torch.testing.assert_close(found, expected, rtol=rtol, atol=rtol * max(1.0, float(expected.abs().max())))


@pytest.mark.parametrize(("kind", "settings", "side"), MODELS[:2])
def test_evaluation_equals_plain_networks_on_every_image(
    kind: type[ImageModel], settings: object, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PIECE", 6)  # whole pieces, a last short one, and a client of one and a half
    clients = members(side)
    model = kind(clients, CLASSES, settings)  # type: ignore[arg-type]
    stack = random_stack(model, 3)
    before = {name: value.clone() for name, value in stack.items()}
    with torch.no_grad():
        logits, embedding = model.forward(stack, model.collate(clients, CPU), None)
        assert logits.shape == (3, 13, CLASSES)
        assert embedding.shape == (3, 13, HIDDEN if kind is CNN else 512)
        for number, client in enumerate(clients):
            plain, pixels = plain_copy(model, stack, number).eval(), normalised(client.features)
            close(logits[number, : len(client.ids)], plain(pixels))
            if isinstance(plain, nn.Sequential):
                close(embedding[number, : len(client.ids)], plain[:11](pixels))
    assert all(torch.equal(stack[name], before[name]) for name in stack)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("kind", "settings", "side"), [MODELS[0], MODELS[2]])
def test_a_training_step_equals_plain_networks(
    kind: type[ImageModel], settings: object, side: int, grouped: bool
) -> None:
    """Logits, gradients and running statistics; one client after the other and as groups of channels."""
    clients = [image_client(size, size, side=side) for size in (7, 9)]
    model = kind(clients, CLASSES, settings)  # type: ignore[arg-type]
    start = random_stack(model, 2)
    stack = {name: value.clone() for name, value in start.items()}
    chosen = np.array([[0, 3, 1, 5], [2, 7, 4, 0]])
    labels = torch.from_numpy(np.stack([c.labels[row] for c, row in zip(clients, chosen, strict=True)]))
    batch = model.collate(clients, CPU).select(torch.from_numpy(chosen), torch.arange(2))
    leaves = {name: stack[name].requires_grad_() for name in stack if name not in model.buffers}
    if grouped:  # the layout for accelerators
        pixels = batch.pixels.view(2, 4, 3, side, side)
        logits = model.classify(stack, model.features(stack, pixels, True), batch, keep_all)
    else:
        logits = model.forward(stack, batch, keep_all).logits
    objective = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / 4
    gradients = dict(zip(leaves, torch.autograd.grad(objective, list(leaves.values())), strict=True))
    for number, client in enumerate(clients):
        network = plain_copy(model, start, number).train()
        expected = network(normalised(client.features[chosen[number]]))
        functional.cross_entropy(expected, labels[number]).backward()
        close(logits[number], expected)
        for name, gradient in gradients.items():
            slope = named(network, name).grad
            assert slope is not None
            slope = turned(name, slope)
            least = max(1e-5, 1e-3 * float(slope.abs().max()))  # that of a bias before normalisation is 0
            torch.testing.assert_close(gradient[number], slope, rtol=1e-3, atol=least)
        for name in model.buffers:
            close(stack[name][number], named(network, name), rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "hidden", "classes", "layers", "parameters", "buffers"),
    [
        (CNN, 512, 10, 12, 878_730, 192),
        (CNN, 512, 100, 12, 924_900, 192),
        (ResNet18, 12, 100, 62, 11_227_812, 9600),
        (ResNet18, 12, 200, 62, 11_279_112, 9600),
    ],
)
def test_parameters_are_those_of_the_study(
    kind: type[ImageModel], hidden: int, classes: int, layers: int, parameters: int, buffers: int
) -> None:
    client = image_client(3, 3, side=32)
    model = kind([client], classes, SETTINGS.model_copy(update={"hidden": hidden}))
    sizes = {name: int(np.prod(shape)) for name, shape in model.shapes.items()}
    trained = {name: size for name, size in sizes.items() if name not in model.buffers}
    assert (len(trained), sum(trained.values())) == (layers, parameters)
    assert sum(sizes[name] for name in model.buffers) == buffers
    assert sum(sizes[name] for name in model.head) == 513 * classes


def test_layers_of_the_resnet_are_those_of_the_plain_network() -> None:
    model = ResNet18([image_client(3, 3, side=32)], CLASSES, RESNET)
    task = Task(spec("local", 2), model, torch.ones(2), CPU)
    plain = PlainResNet18(3, CLASSES)
    modules = [name for name, part in plain.named_modules() if list(part.parameters(recurse=False))]
    assert len(modules) == 41
    assert list(task.layers) == modules
    assert task.layers["fc"] == task.head


@pytest.mark.parametrize(("kind", "settings", "side"), MODELS[:2])
def test_initial_weights_are_drawn_as_torch_draws_them(
    kind: type[ImageModel], settings: object, side: int
) -> None:
    """ResNet's convolutions are He's by fan out, all other layers uniform within 1 / sqrt(fan in)."""
    model = kind(members(side), CLASSES, settings)  # type: ignore[arg-type]
    drawn = model.initial(np.random.default_rng(0))
    assert {name: value.shape for name, value in drawn.items()} == model.shapes
    for name, value in drawn.items():
        layer = name.partition(".")[0]
        if kind is ResNet18 and value.ndim == 4:
            expected = (2 / (value.shape[0] * value.shape[2] * value.shape[3])) ** 0.5
            assert abs(value.std() / expected - 1) < 0.03
            assert abs(value.mean()) < 0.03 * expected
        elif layer in ("fc", "fc1") or (kind is CNN and layer.startswith("conv")):
            weight = drawn[f"{layer}.weight"]
            fan_in = int(np.prod(weight.shape[1:])) if weight.ndim == 4 else weight.shape[0]
            largest = float(np.abs(value).max()) * fan_in**0.5
            assert (0.99 if value.size > 500 else 0.3) < largest <= 1
        else:
            assert np.all(value == (1 if name.endswith(("weight", "var")) else 0))


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


def test_images_that_are_too_small_and_training_on_all_items_together_are_refused() -> None:
    clients = tuple(image_client(6, seed, side=15) for seed in (1, 2))
    result = run(spec("fedavg", 2), Federation("toy", "dirichlet0.1", "images", CLASSES, clients, "toy"))
    assert result.state == "not_applicable"
    assert "16 x 16 pixels or more, got 15 x 15" in result.reason
    with pytest.raises(RequestError, match=r"set client\.batch_size=64"):
        check_model(SETTINGS.model_copy(update={"batch_size": None}), "toy", "images")
