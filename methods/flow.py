"""Flow: Per-instance Personalized Federated Learning.

Panchal et al., NeurIPS 2023, ported from images and text to the nodes of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from bench import streams
from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import part, prefixed
from bench.hyper import tunable
from bench.nn.base import Drop
from bench.nn.gcn import GraphInputs, graphs

from .fedavg import FedAvg

LAYERS = ("conv1", "conv2", "head")
"""The gated layers, in order."""

GLOBAL, LOCAL = 0, 1
"""Columns of a gate."""

Halves = list[NDArray[np.int64]]

LOCAL_COPY = "local."
"""What the names of w_l begin with."""


class Flow(FedAvg):
    """Every node is routed, layer by layer, through a global or a local copy of the model.

    A client has the global copy w_g, a local copy w_l and a policy psi that maps a node's features
    to one probability pair p a layer. Layer k gives p_k0 w_gk(x) + p_k1 w_lk(x), activations
    follow the mixture; predictions use p rounded to 0 and 1. In every round a client, whose
    training nodes are cut once into random halves A and B,

    1. starts w_l from the received w_g and takes T_c steps on CE_A(w_l),
    2. T_c times steps psi on CE_B(mixture) + lambda mean_{B, k}(-log(p_k1^2 + 1e-6)), both copies
       frozen, and then w_g on CE_B(w_g), w_l and psi frozen.

    It sends w_g and psi, which the server averages; w_l is dropped after the round. Results are
    those of the routed model after this training. (The release, too, tests after local training,
    but trains w_g there on the mixture's loss together with psi.)

    The two steps of a pair are taken in one backward pass. The numbers are those of the alternation, except
    that both forward passes see the same dropout masks.

    What paper and code leave open for graphs, and what is done here:
    - A and B are halves, as in the release's EMNIST part; ``data = "all"`` uses all training nodes in
      both phases, as its CIFAR parts do. ``docs/evidence.md`` compares them.
    - An instance is a node, the gated layers are both convolutions and the head, and a message
      carries the mixed state of the neighbour that sends it. T_c steps in each of the phases.
    - psi has three hidden layers of ``policy_width``, exit k after hidden layer k; the released one
      (350, 150, 50 for images) has dropout 0.3 besides, this one has none.
    - The penalty pushes all layers towards the local copy, as in the released language model; the
      image code's index picks one layer's two columns instead and is not followed.
    - Everything is trained with the clients' optimiser (the release: SGD with momentum 0.9), whose
      state stays with its client over rounds for all three, as everywhere in this suite.

    Variants differ in where w_l starts a round: from the received w_g here, as the paper describes for
    devices that may never come back; ``flow_stateful``: from where its client left it; ``flow_released``:
    from the average of all clients' local copies, which are sent as well.
    """

    name = "flow"
    title = "Flow"
    reference = "Panchal et al., NeurIPS 2023"
    families = ("graph",)
    client_models = ("gcn",)
    stage = "trained"

    class Hyper(FedAvg.Hyper):
        """The released settings have 0.01 and 0.001 for the penalty."""

        penalty: float = tunable(
            0.01,
            search=[0.001, 0.01, 0.1],
            ge=0,
            description="lambda: weight of the penalty that pushes layers towards the local copy",
        )
        policy_width: int = Field(64, ge=1, description="width of the policy's hidden layers")
        data: Literal["halves", "all"] = Field(
            "halves", description="training nodes of the two phases: a half each, or all in both"
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with one w_g and one psi."""
        self.averaged = self.task.parameters
        super().setup_server()
        with self.task.seeded("policy"):
            policy = initial_policy(self.task.shapes["conv1.weight"][0], self.hyper.policy_width)
        self.model |= {name: value.to(self.task.device) for name, value in policy.items()}
        self.policy = tuple(policy)
        self.averaged = tuple(self.model)

    def shared(self) -> Collection[str]:
        """Send w_g and psi."""
        return self.averaged

    def add_parameters(self, models: Stack) -> Stack:
        """Add psi and w_l to every client. Both start as at the server."""
        common = self.broadcast().model
        return {**models, **{name: common[name] for name in self.policy}, **self.local_from(common)}

    def local_from(self, shared: Stack) -> dict[str, Tensor]:
        """A local copy that equals the global one."""
        return prefixed(LOCAL_COPY, {name: shared[name] for name in self.task.parameters})

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Set w_l := w_g."""
        return {**own, **message.model, **self.local_from(message.model)}

    def halves(self, clients: Clients) -> tuple[Halves, Halves]:
        """The positions of A and B for every client, the same in all rounds.

        The random stream is named by the number of nodes that are cut, not by the client's number: so the
        order of clients changes nothing. With ``data = "all"`` both are all training nodes.
        """
        if self.hyper.data == "all":
            return clients.training, clients.training
        seed = clients.spec.seed
        orders = [
            streams.generator(seed, "flow halves", len(nodes)).permutation(nodes)
            for nodes in clients.training
        ]
        return [nodes[: len(nodes) // 2] for nodes in orders], [nodes[len(nodes) // 2 :] for nodes in orders]

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train w_l on half A, then psi and w_g on half B."""
        first_half, second_half = self.halves(clients)
        personal = clients.fit(part(LOCAL_COPY, received), items=first_half, copy="local")

        def both_losses(models: Stack, batch: Batch) -> Tensor:
            logits = batch.forward(models).logits
            frozen_models = {name: models[name].detach() for name in self.task.parameters}
            inputs = graphs(batch.inputs)
            gates = soft_gates(models, inputs)
            mixture = routed_gcn(frozen_models, batch.of(personal), gates, inputs, batch.drop)
            penalty = self.hyper.penalty * local_penalty(gates, batch.weights)
            return batch.cross_entropy(logits) + (batch.cross_entropy(mixture) + penalty)

        names = (*self.task.parameters, *self.policy)
        trained = clients.fit(
            {name: received[name] for name in names}, items=second_half, objective=both_losses
        )
        return self.upload({**trained, **prefixed(LOCAL_COPY, personal)})

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predict with the likelier copy of each layer for every node."""
        inputs = graphs(batch.inputs)
        gates = hard_gates(soft_gates(models, inputs))
        return routed_gcn(models, part(LOCAL_COPY, models), gates, inputs, None)


def local_penalty(gates: Tensor, weights: Tensor) -> Tensor:
    """Mean of -log(p_local^2 + 1e-6) over layers and over nodes as weighted, ``[clients]``.

    ``gates`` ``[clients, nodes, layers, 2]``; ``weights`` ``[clients, nodes]`` sum to 1.
    """
    surprise = -(gates[..., LOCAL].square() + 1e-6).log()
    return (surprise.mean(dim=2) * weights).sum(dim=1)


class FlowStateful(Flow):
    """Flow whose local copies stay with their clients over rounds; they start from the common model."""

    name = "flow_stateful"
    title = "Flow (stateful)"

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Keep the client's own w_l."""
        return {**own, **message.model}


class FlowReleased(Flow):
    """Flow, stateless as released: clients keep nothing, the server averages the local copies, too.

    In the release the line that would reset w_l from w_g is commented out. Not taken over are faults that
    only its training loop has: frozen parameters that keep moving by momentum, and the image code's penalty.
    """

    name = "flow_released"
    title = "Flow (released code)"

    def setup_server(self) -> None:
        """Average w_l, too."""
        super().setup_server()
        self.model |= self.local_from(self.model)
        self.averaged = tuple(self.model)

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Set w_l to the average."""
        return {**own, **message.model}


def initial_policy(features: int, width: int) -> dict[str, Tensor]:
    """torch's default weights of one policy, drawn from the stream that the caller has set."""
    parameters = {}
    for layer in LAYERS:
        sizes = {"hidden": (features if layer == LAYERS[0] else width, width), "exit": (width, 2)}
        for name, (fan_in, fan_out) in sizes.items():
            linear = nn.Linear(fan_in, fan_out)
            parameters[f"policy.{layer}.{name}.weight"] = linear.weight.detach().t().contiguous()
            parameters[f"policy.{layer}.{name}.bias"] = linear.bias.detach()
    return parameters


def soft_gates(policy: Stack, inputs: GraphInputs) -> Tensor:
    """The probabilities of the global and the local copy, ``[clients, nodes, layers, 2]``."""
    products = inputs.first_layer(policy["policy.conv1.hidden.weight"])
    hidden = (
        products.view(len(inputs.lengths), inputs.items, -1) + policy["policy.conv1.hidden.bias"][:, None, :]
    )
    exits: list[Tensor] = []
    for layer in LAYERS:
        if exits:
            hidden = _linear(policy, f"policy.{layer}.hidden", hidden)
        hidden = torch.relu(hidden)
        exits.append(_linear(policy, f"policy.{layer}.exit", hidden))
    return torch.stack(exits, dim=2).softmax(dim=3)


def hard_gates(gates: Tensor) -> Tensor:
    """1 for the likelier copy and 0 for the other one, of the same shape. Ties go to the global copy."""
    local = (gates[..., LOCAL] > gates[..., GLOBAL]).to(gates.dtype)
    return torch.stack([1 - local, local], dim=-1)


def routed_gcn(
    shared: Stack, personal: Stack, gates: Tensor, inputs: GraphInputs, drop: Drop | None
) -> Tensor:
    """Logits ``[clients, nodes, classes]`` of the mixed model.

    Layer k maps x to ``g[k, 0] shared_k(x) + g[k, 1] personal_k(x)`` with the node's own gates g.
    Activation and dropout follow the mixture: so neighbours send mixed states.
    """
    clients, nodes = len(inputs.lengths), inputs.items

    def propagate(hidden: Tensor) -> Tensor:
        return inputs.propagate(hidden.reshape(clients * nodes, -1)).view(clients, nodes, -1)

    def mixed(layer: int, apply: Callable[[Stack], Tensor]) -> Tensor:
        gate = gates[:, :, layer]
        return gate[..., :1] * apply(shared) + gate[..., 1:] * apply(personal)

    hidden = mixed(
        0,
        lambda copy: propagate(inputs.first_layer(copy["conv1.weight"])) + copy["conv1.bias"][:, None, :],
    )
    hidden = torch.relu(hidden)
    messages = propagate(drop(hidden, 0) if drop else hidden)
    hidden = torch.relu(mixed(1, lambda copy: _linear(copy, "conv2", messages)))
    features = drop(hidden, 1) if drop else hidden
    return mixed(2, lambda copy: _linear(copy, "head", features))


def _linear(stack: Stack, name: str, x: Tensor) -> Tensor:
    return torch.baddbmm(stack[f"{name}.bias"][:, None, :], x, stack[f"{name}.weight"])
