"""PeFLL: Personalized Federated Learning by Learning to Learn.

Scott, Zakerinia and Lampert, ICLR 2024; released code: pefllauthors/PeFLL.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from bench.engine.method import Batch, Clients, Message, Method, Stack, Update
from bench.engine.stacks import repeated, replaced
from bench.federation.traffic import TrafficMeter
from bench.hyper import HyperParameters, tunable
from bench.nn.gcn import graphs
from bench.nn.hypernetwork import Hypernetwork, clip_gradients

WIDTH = 100
"""Of the hidden layers of both networks."""

INITIAL_SCALE = 0.1
"""Of the output layers' first weights: all clients start near one random model."""

SMALLEST_SCALE = 1e-3
"""Of descriptions: below that clients differ by rounding alone, which is not to be enlarged."""


class PeFLL(Method):
    """A network describes a client by its data; a second one writes a model from the description.

    v_i, the mean over training nodes of e(A^ x, y), is an MLP on a node's neighbourhood and its label, scaled
    by two numbers that the first descriptions fix. theta_i = h(v_i) is the client's whole model. After local
    training to theta~_i both networks descend along (d theta_i / d(h, e))^T (theta_i - theta~_i), the mean
    over clients.

    e runs where the data are, h at the server. In a round the server sends theta_i, e and dL/dv_i of the last
    round; the client trains theta_i, and sends theta~_i, the gradient of e that dL/dv_i makes, and v_i anew.
    So v_i and the gradient of e are one round old: one exchange a round instead of the paper's three.
    A client that the server has never seen gets a model by one pass through e and h.

    What paper and released code have otherwise, and what is done here:
    - For images e is a LeNet with a plane for every class; this is a port to graphs.
    - The code divides a sum over a batch by 2, the length of a tuple; v_i is a mean here.
    - It takes the two numbers from one client; here from all.
    - Its output layers start as torch has them; here so that all models are near one random model.
    - It trains 5 of 90 clients in each of 5000 steps at a rate of 2e-4, a client by 50 steps of SGD; here
      all of a round, by the protocol's local epochs and optimiser.
    - It multiplies logits of absent classes by zero at evaluation. Not done here.
    """

    name = "pefll"
    title = "PeFLL"
    reference = "Scott et al., ICLR 2024"
    families = ("graph",)
    client_models = ("gcn",)
    stage = "trained"

    class Hyper(HyperParameters):
        learning_rate: float = tunable(
            1e-3, search=[2e-4, 1e-3, 5e-3], gt=0, description="learning rate of both networks"
        )
        clip: float = Field(50.0, gt=0, description="largest norm of a step's gradients")

    hyper: Hyper

    def setup_server(self) -> None:
        """Set up e and h. Nothing is known of the clients."""
        task = self.task
        width = int(1 + task.clients / 4)
        features, classes = task.shapes["conv1.weight"][0], task.shapes["head.weight"][1]
        with task.seeded("networks"):
            self.embedder = nn.Sequential(
                nn.Linear(features + classes, WIDTH), nn.ReLU(), nn.Linear(WIDTH, width)
            ).to(task.device)
            network = Hypernetwork([width, *[WIDTH] * 4], task.shapes, dropout_rate=0.0, linear_end=True)
        self.network = network.to(task.device)
        common = task.common()
        self.network.start_from({name: common[name][0] for name in task.shapes}, INITIAL_SCALE)
        self.parameters = [*self.embedder.parameters(), *self.network.parameters()]
        self.optimiser = torch.optim.Adam(self.parameters, lr=self.hyper.learning_rate)
        self.descriptions = torch.zeros(task.clients, width, device=task.device)
        self.slopes = torch.zeros_like(self.descriptions)
        self.scale = (0.0, 1.0)

    def embedder_rows(self, clients: int) -> dict[str, Tensor]:
        """e with one row for every client."""
        return repeated({name: value.detach() for name, value in self.embedder.named_parameters()}, clients)

    def first_upload(self, clients: Clients, models: Stack, traffic: TrafficMeter) -> Update:
        """Send every client e, and let it describe its data."""
        e = Message(extras=self.embedder_rows(clients.count))
        traffic.bytes_down += e.bytes
        return Update(models, Message(extras={"description": clients.reduce(e.extras, describe)}))

    def receive_first(self, message: Message) -> None:
        """Keep the descriptions. All later ones are scaled like these."""
        self.descriptions = message.extras["description"]
        self.scale = (float(self.descriptions.mean()), max(float(self.descriptions.std()), SMALLEST_SCALE))

    def scaled(self, descriptions: Tensor) -> Tensor:
        """The input of h."""
        mean, deviation = self.scale
        return (descriptions - mean) / deviation

    def broadcast(self) -> Message:
        """Send theta_i, and e and dL/dv_i for the client's part of the gradient."""
        models = self.network.emit(self.network.features(self.scaled(self.descriptions), None))
        return Message(models, {**self.embedder_rows(self.task.clients), "slope": self.slopes})

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """Generate a model for every newcomer by one pass. They have no part in training e and h."""
        v = message.extras["description"]
        models = self.network.emit(self.network.features(self.scaled(v), None))
        return Message(models, {**self.embedder_rows(newcomers.count), "slope": torch.zeros_like(v)})

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train for the local epochs. Send the gradient of e and the description anew."""
        trained = clients.fit(received)
        gradients = clients.reduce(message.extras, embedder_gradient)
        return self.upload(trained, description=clients.reduce(message.extras, describe), gradient=gradients)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Take a step of both networks, and keep dL/dv_i for the next round."""
        count = len(participants)
        difference = {name: (received[name] - value) / count for name, value in upload.model.items()}
        v = self.descriptions[participants].clone().requires_grad_()
        with torch.enable_grad():
            features = self.network.features(self.scaled(v), None)
        for parameter in self.network.body.parameters():
            parameter.grad = None
        features.backward(self.network.pull_back(features.detach(), difference))
        assert v.grad is not None
        parts = upload.extras["gradient"].sum(dim=0).split([p.numel() for p in self.embedder.parameters()])
        for parameter, part in zip(self.embedder.parameters(), parts, strict=True):
            parameter.grad = part.view_as(parameter).clone()
        clip_gradients(self.parameters, self.hyper.clip)
        self.optimiser.step()
        self.slopes = torch.zeros_like(self.slopes).index_copy(0, participants, v.grad)
        self.descriptions = replaced(self.descriptions, participants, upload.extras["description"])


def describe(e: Mapping[str, Tensor], batch: Batch) -> Tensor:
    """v ``[c, width]``, the mean of every client's e over its training nodes."""
    inputs = graphs(batch.inputs)
    weight = e["0.weight"].transpose(1, 2)
    words, labels = weight[:, : inputs.width].contiguous(), weight[:, inputs.width :]
    graph_part = inputs.propagate(inputs.first_layer(words)).view(*batch.labels.shape, -1)
    one_hot = functional.one_hot(batch.labels.clamp_min(0), labels.shape[1]).float()
    hidden = torch.relu(graph_part + torch.bmm(one_hot, labels) + e["0.bias"][:, None, :])
    v = torch.baddbmm(e["2.bias"][:, None, :], hidden, e["2.weight"].transpose(1, 2))
    return torch.bmm(batch.weights[:, None, :], v).squeeze(1)


def embedder_gradient(e: Mapping[str, Tensor], batch: Batch) -> Tensor:
    """(d v / d e)^T slope of every client, with e's tensors one after the other, ``[c, numbers]``."""
    leaves = {name: value.clone().requires_grad_() for name, value in e.items() if name != "slope"}
    with torch.enable_grad():
        value = (describe(leaves, batch) * e["slope"]).sum()
    return torch.cat([slope.flatten(1) for slope in torch.autograd.grad(value, list(leaves.values()))], dim=1)
