"""Checks a method against the contract, rule by rule, on a small federation that needs no data.

The contract does not say whether a method is good.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from bench.contract import Broken
from bench.contract.hooks import described
from bench.contract.rules import RULES, Rule
from bench.contract.subject import Subject, families
from bench.data import FAMILIES, Family
from bench.engine.methods import METHODS
from bench.errors import NotApplicableError, RequestError


@dataclass(frozen=True)
class Finding:
    """The outcome of a rule on a family of data. ``problem`` is empty if the rule is kept."""

    rule: str
    family: Family
    problem: str


def check(method: str) -> Iterator[Finding]:
    """Check every rule for a method, on every family of data that the method is checked on.

    Raises:
        RequestError: there is no such method, or there is no toy of its families.
    """
    kind = METHODS.named(method)
    checked_families = families(kind)
    if not checked_families:
        own_names, known_names = ", ".join(kind.families) or "no", ", ".join(FAMILIES[:-1])
        raise RequestError(
            f"{method} runs on {own_names} data: the contract is checked on {known_names} or {FAMILIES[-1]}"
        )
    for family in checked_families:
        subject = Subject(method, family)
        for rule in RULES:
            title = " ".join((rule.__doc__ or "").split()).rstrip(".").replace("``", "")
            yield Finding(title, family, _problem(rule, subject))


def _problem(rule: Rule, subject: Subject) -> str:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # toys are small: on a busy machine more threads take twenty times as long
    try:
        rule(subject)
    except Broken as failure:
        return str(failure)
    except NotApplicableError as refusal:
        return f"it refuses the toy federation: {refusal}"
    except Exception as error:
        return described(error, subject.kind)
    finally:
        torch.set_num_threads(threads)
    return ""
