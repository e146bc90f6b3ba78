"""``bench check-gpu``."""

from __future__ import annotations

import time


def check_gpu(*, device: str = "cuda") -> int:
    """Run on a GPU what only a GPU can show, and print a table; says so where there is none.

    Stacked against sequential training for every client model, rounds at 10, 100 and 1,000 clients on Cora
    and at 20 on images, two runs at once, a run that is short of memory, one that is taken up again, one
    that is not finite. Takes some minutes. Exit code 1 if anything is not as it should be.

    Parameters
    ----------
    device:
        The GPU: cuda, or cuda:1 for the second one.
    """
    import torch

    if not torch.cuda.is_available():
        print("no GPU here: torch sees no CUDA device, and nothing was checked")
        return 0
    from rich.console import Console
    from rich.table import Table

    from bench.errors import unknown
    from bench.gpu import Finding, Sizes, parts
    from bench.paths import data_roots

    known = ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if device not in known:
        raise unknown("device", device, known)
    table = Table("part", "of", "what was seen", "", "seconds")
    broken = 0
    for part in parts(device, data_roots(), Sizes()):
        begin = time.perf_counter()
        try:
            finding = part()
        except Exception as error:  # the others are still to be seen
            name = getattr(part, "func", part).__name__.replace("_", " ")
            finding = Finding(name, "", f"{type(error).__name__}: {error}", False)
        broken += finding.well is False
        state = {True: "ok", False: "not ok", None: "-"}[finding.well]
        table.add_row(
            finding.part, finding.subject, finding.text, state, f"{time.perf_counter() - begin:.1f}"
        )
    console = Console()
    console.print(f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}")
    console.print(table)
    return 1 if broken else 0
