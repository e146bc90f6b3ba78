import pytest

from bench.errors import RequestError
from bench.selection import RULES
from bench.spec import STAGES
from bench.studies.settings import Reading


@pytest.mark.parametrize(
    ("stage", "rule", "said"),
    [
        ("traind", "best_val", "unknown stage 'traind': did you mean 'trained'"),
        ("trained", "best_vall", "unknown rule 'best_vall': did you mean 'best_val'"),
    ],
)
def test_a_stage_or_rule_that_there_is_not_is_refused_with_the_nearest(
    stage: str, rule: str, said: str
) -> None:
    with pytest.raises(RequestError, match=said) as error:
        Reading(stage, rule)
    assert "\n" not in str(error.value)


def test_every_stage_and_rule_of_stored_runs_can_be_read() -> None:
    assert len({Reading(stage, rule) for stage in STAGES for rule in RULES}) == 2 * 4
