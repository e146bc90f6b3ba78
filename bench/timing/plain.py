"""Client models for one client, of torch's and torch-geometric's modules.

Stacked models are compared with them. Layers of image models are named as in the stacks of
``bench.nn.cnn`` and ``bench.nn.resnet``. A linear layer's weight is transposed here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv

from bench.nn.base import Drop


class PlainGCN(nn.Module):
    """The study's GCN for one client, from torch-geometric's layers."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv1 = GCNConv(features, hidden, cached=True)
        self.conv2 = GCNConv(hidden, hidden, cached=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> tuple[Tensor, Tensor]:
        """Logits and embeddings of all nodes."""
        hidden = drop(torch.relu(self.conv1(x, edges))[None], 0)[0]
        embedding = self.conv2(hidden, edges)
        logits = self.head(drop(torch.relu(embedding)[None], 1)[0])
        return logits, embedding


MODULE_NAMES = {
    "conv1.weight": "conv1.lin.weight",
    "conv1.bias": "conv1.bias",
    "conv2.weight": "conv2.lin.weight",
    "conv2.bias": "conv2.bias",
    "head.weight": "head.weight",
    "head.bias": "head.bias",
}
"""Name in a stack -> name in ``PlainGCN``; matrices are transposed there."""


class PlainCNN(nn.Module):
    """Two convolutions and two linear layers; the first of these reads ``flat_width`` values."""

    def __init__(self, channels: int, flat_width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, 32, 5), nn.BatchNorm2d(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 64, 5), nn.BatchNorm2d(64)
        self.fc1, self.fc = nn.Linear(flat_width, hidden), nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and embeddings of images ``[batch, channels, height, width]``."""
        hidden = functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        hidden = functional.max_pool2d(torch.relu(self.bn2(self.conv2(hidden))), 2)
        embedding = torch.relu(self.fc1(hidden.flatten(1)))
        return self.fc(embedding), embedding


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
        """``[batch, after, height / stride, width / stride]``."""
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

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and embeddings of images ``[batch, channels, height, width]``."""
        hidden = functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        embedding = functional.adaptive_avg_pool2d(hidden, 1).flatten(1)
        return self.fc(embedding), embedding
