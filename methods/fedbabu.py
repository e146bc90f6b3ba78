"""FedBABU: Toward Enhanced Representation for Federated Image Classification.

Oh et al., ICLR 2022, Algorithm 1; released code: jhoon-oh/FedBABU.
"""

from __future__ import annotations

from collections.abc import Collection

from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.stacks import part, prefixed
from bench.errors import NotApplicableError
from bench.hyper import tunable

from .fedavg import FedAvg

COMMON = "common."
"""Prefix of what a client keeps of the model that the federation trains."""


class FedBABU(FedAvg):
    """The body is trained and averaged below a head that nobody trains; clients then fine-tune a copy.

    The federation learns the body theta_ext alone: all clients hold one random head theta_cls, drawn once
    and frozen. In a round client i takes the averaged body and

    1. fine-tunes a copy of the whole model, body and head, for ``fine_tuning`` epochs with a new optimiser:
       its personal model, which predicts and never leaves;
    2. trains the body from where it was received for the local epochs, theta_cls frozen, and sends it.

    *Received* is the averaged body under the frozen head (the paper's initial accuracy), *trained* the
    personal model. Running statistics of batch normalisation are the clients', one set for each of the two.

    What paper and released code have otherwise, and what is done here:
    - Both fine-tune once, after the last round. Here in every round, so that validation can choose one: the
      federation does not notice, and ``fine_tuning`` passes over the data are counted on top.
    - The code chooses the round by test accuracy before fine-tuning; PFLlib reports the best test accuracy of
      all rounds and of the fine-tuned model together. Here validation chooses, as for all methods.
    - The code has head rate 0, PFLlib ``requires_grad`` off: neither decays the head. Nor is it done here.
    - The code's average is plain, PFLlib's by training items (``weights``); its schedule is 320 local epochs,
      divided into rounds in three ways, the protocol's here.
    """

    name = "fedbabu"
    title = "FedBABU"
    reference = "Oh et al., ICLR 2022"
    stage = "trained"

    class Hyper(FedAvg.Hyper):
        """The released default is 5 epochs."""

        fine_tuning: int = tunable(
            5, search=[1, 5, 10], ge=0, description="epochs that a client fine-tunes its copy of the model"
        )

    hyper: Hyper

    onboard = FedAvg.onboard  # the average fits the head that newcomers have, too

    def shared(self) -> Collection[str]:
        """Send the body."""
        return self.task.backbone

    def setup_server(self) -> None:
        """Start with one random body. The head that all share is drawn with it.

        Raises:
            NotApplicableError: the client model's head starts at zero, which lets no gradient through.
        """
        super().setup_server()
        if not any(bool(value.any()) for value in self.common_head().values() if value.dim() > 2):
            raise NotApplicableError(f"{self.name} never trains the head, and this one starts at zero")

    def common_head(self) -> Stack:
        """theta_cls, which is the same for all clients and in every round."""
        common = self.task.common()
        return {name: common[name] for name in self.task.head}

    def add_parameters(self, models: Stack) -> Stack:
        """Add theta_cls, and running statistics of the model that the federation trains."""
        clients = len(next(iter(models.values())))
        head = {
            name: value[:1].expand(clients, *value.shape[1:]) for name, value in self.common_head().items()
        }
        statistics = {name: value for name, value in models.items() if name not in self.task.parameters}
        return {**models, **prefixed(COMMON, {**head, **statistics})}

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Put the averaged body under theta_cls. Nothing of the last personal model is left."""
        return {**own, **part(COMMON, own), **message.model}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Fine-tune a copy, then train the body."""
        model = {name: value for name, value in received.items() if not name.startswith(COMMON)}
        personal = clients.fit(model, epochs=self.hyper.fine_tuning, new_optimiser=True)
        trained = clients.fit(model, trainable=self.shared(), copy="body")
        common = {name: trained[name] for name in part(COMMON, received)}
        upload = Message({name: trained[name] for name in self.shared()})
        return Update({**personal, **prefixed(COMMON, common)}, upload)
