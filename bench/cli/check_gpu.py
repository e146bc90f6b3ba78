"""``bench check-gpu``."""

from __future__ import annotations

from bench.cli.output import console, say, table


def check_gpu(*, devices: str = "cuda") -> int:
    """Run on a GPU what only a GPU can show, and print a table; says so where there is none.

    Stacked against sequential training for every client model, rounds at 10, 100 and 1,000 clients on Cora
    and at 20 on images, two runs at once, a run that is short of memory, one that is taken up again, one
    that is not finite. Takes some minutes. Exit code 1 if anything is not as it should be.

    Parameters
    ----------
    devices
        The GPU: cuda, or cuda:1 for the second one.
    """
    import torch

    if not torch.cuda.is_available():
        print("no GPU here: torch sees no CUDA device, and nothing was checked")
        return 0

    from bench.errors import unknown
    from bench.gpu import Sizes, examine
    from bench.paths import data_roots

    known = ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if devices not in known:
        raise unknown("device", devices, known)
    rows, broken = [], 0
    for finding, seconds in examine(devices, data_roots(), Sizes()):
        broken += finding.well is False
        state = {True: "ok", False: "not ok", None: "-"}[finding.well]
        rows.append((finding.part, finding.subject, finding.text, state, f"{seconds:.1f}"))
    say(f"{torch.cuda.get_device_name(devices)}, torch {torch.__version__}")
    console().print(table(("part", "of", "what was seen", "", "seconds"), rows, right={"seconds"}))
    return 1 if broken else 0
