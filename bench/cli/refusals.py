"""What a command line that cannot be read is told: the option that is meant, where that can be guessed."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from contextlib import suppress

import cyclopts

from bench.errors import RequestError

NEAR = 0.8
"""How alike an option that is meant is to what was typed: a slip of the finger, and no other word."""


def refusal(error: cyclopts.CycloptsError) -> str:
    """What is wrong with the words of a command, in a line."""
    if isinstance(error, cyclopts.UnknownOptionError):
        return _unknown_option(error)
    if isinstance(error, cyclopts.UnusedCliTokensError):
        return _unexpected_word(error)
    return str(error)


def _unknown_option(error: cyclopts.UnknownOptionError) -> str:
    """That a command has no such option, with the option that is meant or the setting of that name."""
    option = (error.token.keyword or error.token.value).partition("=")[0]
    names = [name for argument in error.argument_collection if argument.parse for name in argument.names]
    longer = [name for name in names if name.startswith(f"{option}-")]
    if matches := longer or difflib.get_close_matches(option, names, n=1, cutoff=NEAR):
        return f"unknown option {option}: did you mean {matches[0]}?"
    word = option.removeprefix("--").replace("-", "_")
    if "--set" in names:
        from bench.spec import ClientSettings, Protocol

        for section, settings in (("protocol", Protocol), ("client", ClientSettings)):
            if word in settings.model_fields:
                return f"unknown option {option}: it is a setting, --set {section}.{word}=VALUE"
    return f"unknown option {option}: {_help(error)} lists all"


def _unexpected_word(error: cyclopts.UnusedCliTokensError) -> str:
    """That a command takes no such word, with the option for which it is a value."""
    word = (error.unused_tokens or [""])[0]
    arguments = error.app.assemble_argument_collection() if error.app else ()
    options = {name for argument in arguments for name in argument.names}
    with suppress(RequestError):  # of a plug-in that cannot be imported: the word is wrong with it as well
        for option, values in _named_things():
            if option in options and word in values:
                return f"unexpected word '{word}': did you mean {option} {word}?"
    return f"unexpected word '{word}': {_help(error)} lists the options"


def _named_things() -> Iterator[tuple[str, Collection[str]]]:
    """Options with the names that they take, those that are quickly known first."""
    from bench.grids import grid_names

    yield "--grid", grid_names()
    from bench.dataset import DATASETS
    from bench.federation.scenario import SCENARIOS

    yield "--dataset", DATASETS.all()
    yield "--scenario", SCENARIOS.all()
    from bench.studies.study import STUDIES

    yield "--study", STUDIES.all()  # before methods: papers are named like their own
    from bench.engine.methods import METHODS

    yield "--method", METHODS.all()


def _help(error: cyclopts.CycloptsError) -> str:
    return f"'{' '.join(('bench', *(error.command_chain or ()), '--help'))}'"
