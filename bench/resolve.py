"""Turns a request (names and overrides) into a complete, valid ``RunSpec``, and a spec into a command line.

Defaults come from the data set. If the data set has none for a hyper-parameter, the method's default is
used. The grid's settings and ``--set`` replace defaults.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from bench.dataset import DATASETS, Dataset
from bench.engine.methods import METHODS
from bench.errors import RequestError, first_problem, unknown
from bench.federation import scenarios
from bench.federation.splits import check_split
from bench.spec import SECTIONS, Attack, ClientSettings, Newcomers, Protocol, RunSpec

if TYPE_CHECKING:
    from bench.engine.method import Method  # imports torch, which is slow and not needed for names

Overrides = Mapping[str, Any]
"""Dotted keys (``protocol.rounds``, ``client.dropout``, ``method.mu``) and their values."""

Part = TypeVar("Part", Attack, Newcomers)


def parse_overrides(pairs: Sequence[str]) -> dict[str, Any]:
    """Turn ``--set KEY=VALUE`` texts into overrides; values are read as TOML, else as text."""
    overrides: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or "." not in key:
            raise RequestError(f"--set expects SECTION.KEY=VALUE such as protocol.rounds=8, got '{pair}'")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except ValueError:
            value = text
        overrides[key.strip()] = value
    return overrides


def _section(model: type[BaseModel], defaults: Mapping[str, Any], section: str, overrides: Overrides) -> Any:
    """Make ``model`` from ``defaults`` and the overrides of its section."""
    values = dict(defaults)
    for key, value in overrides.items():
        head, _, name = key.partition(".")
        if head != section:
            continue
        if name not in model.model_fields:
            raise unknown(f"key '{section}.{name}':", name, model.model_fields)
        values[name] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RequestError(first_problem(error, section, with_input=True)) from None


def _client_part(model: type[Part], section: str, clients: int, overrides: Overrides) -> Part | None:
    """The attack or the newcomers of a run; None if their ratio is 0."""
    part: Part = _section(model, {}, section, overrides)
    given_keys = [key for key in overrides if key.startswith(f"{section}.")]
    if given_keys and f"{section}.ratio" not in given_keys:
        raise RequestError(f"{section}.ratio: expected beside {given_keys[0]}, which says nothing without it")
    if part.ratio == 0:
        return None
    if not 1 <= part.count(clients) < clients:
        share = f"{part.ratio:g} of {clients} clients"
        raise RequestError(f"{section}.ratio: {share} is no client, or all of them")
    return part


def default_hyper(data: type[Dataset], kind: type[Method]) -> dict[str, Any]:
    """The default hyper-parameters of a method on a data set."""
    return {**kind.Hyper().model_dump(), **data.hyper.get(run_of(kind), {})}


def run_of(kind: type[Method]) -> str:
    """Name of the method whose runs hold the models: the base if ``kind`` only shows its other stage."""
    own_names = {name for name in vars(kind) if not name.startswith("__")}
    base, *others = kind.__bases__
    is_reading = own_names == {"name", "title", "stage"} and not others
    return vars(base).get("name", kind.name) if is_reading else kind.name


def resolve(
    dataset: str, scenario: str, clients: int, method: str, seed: int, overrides: Overrides | None = None
) -> RunSpec:
    """The complete spec of one run. An unknown name or key, or a wrong value, raises ``RequestError``.

    If a method only reads another method's runs (``fedavg_ft``), the spec is the other method's run.
    """
    from bench.nn.models import check_model  # imports torch, which names do not need

    overrides = overrides or {}
    for key in overrides:
        section = key.partition(".")[0]
        if section not in SECTIONS:
            raise unknown(f"section of the key '{key}':", section, SECTIONS)
    data = DATASETS.named(dataset)
    kind = METHODS.named(method)
    hyper = _section(kind.Hyper, default_hyper(data, kind), "method", overrides)
    if data.family in kind.families:  # else the run ends as not applicable
        overrides = {**kind.settings, **overrides}
    protocol = _section(Protocol, data.protocol.model_dump(), "protocol", overrides)
    if not kind.trains:
        protocol = protocol.model_copy(update={"rounds": 1})
    scenarios.find(scenario, dataset, data.family)
    check_split(protocol.split)
    settings = _section(ClientSettings, data.client.model_dump(), "client", overrides)
    check_model(settings, dataset, data.family)
    try:
        spec = RunSpec(
            dataset=dataset,
            scenario=scenario,
            clients=clients,
            method=run_of(kind),
            seed=seed,
            protocol=protocol,
            client=settings,
            hyper=hyper.model_dump(),
            attack=_client_part(Attack, "attack", clients, overrides),
            newcomers=_client_part(Newcomers, "newcomers", clients, overrides),
        )
    except ValidationError as error:
        raise RequestError(first_problem(error, with_input=True)) from None
    if spec.attack and spec.newcomers:
        raise RequestError("attack and newcomers are two experiments: set the ratio of one of them to 0")
    trained_clients = clients - (spec.newcomers.count(clients) if spec.newcomers else 0)
    if protocol.participants(trained_clients) < 1:
        share = f"{protocol.participation:g} of {trained_clients} clients"
        raise RequestError(f"protocol.participation: {share} is not one client")
    return spec


def command(spec: RunSpec, seeds: Sequence[int] = ()) -> str:
    """The ``bench sweep`` line that makes a run, with the settings that differ from the defaults. If the
    method or the data set is unknown here, the line has all settings.

    ``seeds`` replace the spec's seed.
    """
    words = ["bench", "sweep", "-d", spec.dataset, "-s", spec.scenario, "-k", str(spec.clients)]
    words += ["-m", spec.method, "--seed", ",".join(map(str, seeds or (spec.seed,)))]
    settings = spec.settings()
    with suppress(RequestError):
        usual = resolve(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed).settings()
        settings = {key: value for key, value in settings.items() if value != usual.get(key)}
    for key, value in settings.items():
        # JSON writes numbers, truth values, lists and quoted texts as TOML does.
        words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)
