"""FedBABU as a stranger adds it: docs/add_a_method.md says why every line is there.

bench check-method docs/examples/fedbabu/fedbabu.py
"""

from __future__ import annotations

from collections.abc import Collection

from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.stacks import repeated
from bench.hyper import tunable
from bench.methods.fedavg import FedAvg


class OwnFedBABU(FedAvg):
    """The body is trained and averaged under a head that nobody trains; clients fine-tune a copy of both."""

    name = "own_fedbabu"
    title = "FedBABU (example)"
    reference = "Oh et al., ICLR 2022"
    families = ("graph",)
    stage = "trained"

    class Hyper(FedAvg.Hyper):
        """``fine_tuning``: epochs on the copy."""

        fine_tuning: int = tunable(
            5, search=[1, 5, 10], ge=0, description="epochs that a client fine-tunes its copy of the model"
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """The average of bodies, and the head that all share."""
        super().setup_server()
        common = self.task.common()
        self.head = {name: common[name][0] for name in self.task.head}

    def shared(self) -> Collection[str]:
        """The body."""
        return self.task.backbone

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """The averaged body under the common head: nothing of the last fine-tuning is left."""
        return {**own, **repeated(self.head, clients.count), **message.model}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Fine-tune a copy, which predicts; then train the body, which is sent."""
        personal = clients.fit(received, epochs=self.hyper.fine_tuning, new_optimiser=True)
        trained = clients.fit(received, trainable=self.shared(), copy="body")
        return Update(personal, Message({name: trained[name] for name in self.shared()}))
