from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_cnn import (
    CLASSES,
    HIDDEN,
    RATE,
    SETTINGS,
    image_client,
    normalised,
    of_module,
    plain_copy,
    random_stack,
    spec,
    turned,
)
from torch import Tensor
from torch.nn import functional

from bench.engine.execute import run
from bench.errors import RequestError
from bench.federation.types import Client, Federation
from bench.nn import images
from bench.nn.base import keep_all
from bench.nn.cnn import CNN, convolutions
from bench.nn.images import ImageInputs
from bench.nn.models import check_model

CPU = torch.device("cpu")


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture
def members() -> list[Client]:
    return [image_client(size, seed) for seed, size in enumerate((9, 23, 14))]


@pytest.fixture
def model(members: list[Client]) -> CNN:
    return CNN(members, CLASSES, SETTINGS)


@pytest.mark.parametrize(("classes", "expected"), [(10, 878_730), (100, 924_900)])
def test_parameters_for_cifar_are_those_of_the_released_network(classes: int, expected: int) -> None:
    image = Client(np.arange(1), np.zeros(1, int), np.zeros(1, np.int8), np.zeros((1, 3, 32, 32), np.uint8))
    model = CNN([image], classes, SETTINGS.model_copy(update={"hidden": 512}))
    sizes = {name: int(np.prod(shape)) for name, shape in model.shapes.items()}
    trained = [size for name, size in sizes.items() if name not in model.buffers]
    assert (len(trained), sum(trained)) == (12, expected)
    assert sum(sizes[name] for name in model.buffers) == 192
    assert sum(sizes[name] for name in model.head) == 513 * classes


def test_initial_weights_are_drawn_as_torch_draws_them(model: CNN) -> None:
    drawn = model.initial(np.random.default_rng(0))
    assert {name: value.shape for name, value in drawn.items()} == model.shapes
    for layer, fan_in in (("conv1", 75), ("conv2", 800), ("fc1", 64), ("fc", HIDDEN)):
        weight, bias = drawn[f"{layer}.weight"], drawn[f"{layer}.bias"]
        bound = fan_in**-0.5
        assert max(np.abs(weight).max(), np.abs(bias).max()) <= bound
        if weight.size > 500:
            assert np.abs(weight).max() > 0.99 * bound
            assert abs(weight.mean()) < 0.1 * bound
    for layer in ("bn1", "bn2"):
        assert np.all(drawn[f"{layer}.weight"] == 1)
        assert not drawn[f"{layer}.bias"].any()
        assert not drawn[f"{layer}.running_mean"].any()
        assert np.all(drawn[f"{layer}.running_var"] == 1)


def test_evaluation_equals_plain_networks_on_every_image(
    model: CNN, members: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PIECE", 6)  # whole pieces, a last short one, and a client of one and a half
    stack = random_stack(model, 3)
    before = {name: value.clone() for name, value in stack.items()}
    logits, embedding = model.forward(stack, model.collate(members, CPU), None)
    assert logits.shape == (3, 23, CLASSES)
    assert embedding.shape == (3, 23, HIDDEN)
    for number, client in enumerate(members):
        plain = plain_copy(stack, number).eval()
        pixels = normalised(client.features)
        close(logits[number, : len(client.ids)], plain(pixels))
        close(embedding[number, : len(client.ids)], plain[:11](pixels))
    assert all(torch.equal(stack[name], before[name]) for name in stack)


def test_training_steps_equal_plain_networks(model: CNN, members: list[Client]) -> None:
    """Logits, gradients and running statistics over several SGD steps."""
    stack = random_stack(model, 3)
    plain = [plain_copy(stack, number).train() for number in range(3)]
    inputs = model.collate(members, CPU)
    rng = np.random.default_rng(1)
    names = [name for name in stack if name not in model.buffers]
    for _ in range(4):
        chosen = np.stack([rng.permutation(len(client.ids))[:7] for client in members])
        labels = torch.from_numpy(np.stack([c.labels[row] for c, row in zip(members, chosen, strict=True)]))
        leaves = {name: stack[name].requires_grad_() for name in names}
        batch = inputs.select(torch.from_numpy(chosen), torch.arange(3))
        logits = model.forward(stack, batch, keep_all).logits
        objective = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / 7
        gradients = dict(zip(names, torch.autograd.grad(objective, list(leaves.values())), strict=True))
        for number, (network, client) in enumerate(zip(plain, members, strict=True)):
            network.zero_grad()
            expected = network(normalised(client.features[chosen[number]]))
            functional.cross_entropy(expected, labels[number]).backward()
            close(logits[number], expected)
            for name in names:
                gradient = of_module(network, name).grad
                assert gradient is not None
                close(gradients[name][number], turned(name, gradient))
            for name in model.buffers:
                close(stack[name][number], of_module(network, name))
            torch.optim.SGD(network.parameters(), lr=RATE).step()
        stack = {name: value.detach() for name, value in stack.items()}
        for name in names:
            stack[name] -= RATE * gradients[name]


def test_clients_as_groups_of_one_convolution_equal_each_client_alone(
    model: CNN, members: list[Client]
) -> None:
    """The layout for accelerators."""
    pixels = torch.from_numpy(np.stack([client.features[:9] for client in members]))
    stack = random_stack(model, 3)
    for name in ("conv1.weight", "conv2.weight", "bn1.bias"):
        stack[name].requires_grad_()
    alone = {
        name: value.detach().clone().requires_grad_(value.requires_grad) for name, value in stack.items()
    }
    grouped = convolutions(stack, pixels, True)
    each = torch.cat(
        [
            convolutions({name: value[c, None] for name, value in alone.items()}, pixels[c, None], True)
            for c in range(3)
        ]
    )
    close(grouped, each)
    slope = torch.randn(grouped.shape, generator=torch.Generator().manual_seed(0))
    grouped.backward(slope)
    each.backward(slope)
    for name, value in stack.items():
        close(value, alone[name])
        if value.requires_grad:
            torch.testing.assert_close(value.grad, alone[name].grad, rtol=1e-4, atol=1e-4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_a_batch_holds_the_chosen_images_of_the_chosen_clients(sizes: list[int], data: st.DataObject) -> None:
    """Every image is its own number, ten times its client's plus its place there."""
    numbers = [10 * client + place for client, size in enumerate(sizes) for place in range(size)]
    inputs = ImageInputs(torch.tensor(numbers, dtype=torch.uint8)[:, None, None, None], sizes)
    rows = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, unique=True))
    width = min(sizes[row] for row in rows)
    items = [
        data.draw(st.lists(st.integers(0, sizes[row] - 1), min_size=width, max_size=width)) for row in rows
    ]
    batch = inputs.select(torch.tensor(items), torch.tensor(rows))
    assert batch.items == width
    assert batch.lengths.tolist() == [width] * len(rows)
    expected = [10 * row + place for row, places in zip(rows, items, strict=True) for place in places]
    assert batch.pixels.flatten().tolist() == expected


def test_a_run_on_images_that_are_too_small_is_not_applicable() -> None:
    members = tuple(image_client(6, seed, side=15) for seed in (1, 2))
    small = Federation("toy", "dirichlet0.1", "images", CLASSES, members, "toy")
    result = run(spec("fedavg", 2), small)
    assert result.state == "not_applicable"
    assert "16 x 16 pixels or more, got 15 x 15" in result.reason


def test_training_on_all_items_together_is_refused() -> None:
    with pytest.raises(RequestError, match=r"set client\.batch_size=64"):
        check_model(SETTINGS.model_copy(update={"batch_size": None}), "toy", "images")
