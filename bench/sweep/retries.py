"""What is tried again when a run ends without a result of its own making."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.engine.result import RunResult

LOSSES = 3
"""How often a run is tried again whose worker was killed, through no fault of its own."""


@dataclass(frozen=True)
class Attempt:
    """How a run is tried: ``alone`` on its device, in blocks of clients ``shrink`` times smaller than
    usual, of ``block`` clients as far as a worker has said (0: none has); and what was tried before, how
    often it was lost, and the most memory it reached.
    """

    alone: bool = False
    shrink: int = 1
    block: int = 0
    lost: int = 0
    tried: tuple[str, ...] = ()
    peak: int = 0

    @property
    def number(self) -> int:
        """1 for the first attempt."""
        return 1 + self.lost + len(self.tried)

    @property
    def how(self) -> str:
        """The attempt in words."""
        if self.shrink > 1:
            known = f"{self.block} client{'s' if self.block > 1 else ''}"
            return f"in blocks of {known if self.block else f'1/{self.shrink}'}"
        return "alone on the device" if self.alone else "beside other runs"


def after_loss(attempt: Attempt) -> Attempt | None:
    """The next attempt for a run whose worker was lost; None where it was tried often enough."""
    return replace(attempt, lost=attempt.lost + 1) if attempt.lost < LOSSES else None


def noted(attempt: Attempt, result: RunResult) -> Attempt:
    """The attempt with its failure for want of memory noted: how it was tried, and the peak."""
    known = replace(attempt, block=result.block or attempt.block)
    return replace(known, tried=(*known.tried, known.how), peak=max(known.peak, result.peak_memory))


def after_memory(attempt: Attempt, clients: int) -> Attempt | None:
    """The next attempt for a run that ran out of memory: alone, then in blocks of clients half as
    large each time; None where the blocks were of one client already. No number depends on blocks.
    """
    if not attempt.alone:
        return replace(attempt, alone=True)
    smallest = attempt.block == 1 if attempt.block else attempt.shrink >= clients
    return None if smallest else replace(attempt, shrink=2 * attempt.shrink, block=attempt.block // 2)


def out_of_memory(attempt: Attempt, result: RunResult) -> RunResult:
    """The result to store for a run that does not fit: what was tried, and the peak."""
    peak = f"peak {attempt.peak / 2**30:.2f} GiB" if attempt.peak else "peak unknown"
    result.reason = f"{result.reason}; {peak}; tried {', '.join(attempt.tried)}"
    result.peak_memory = attempt.peak
    return result
