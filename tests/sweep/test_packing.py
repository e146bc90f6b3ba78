"""What starts next, and where: never over memory, never for ever waiting, otherwise in order."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.sweep.packing import Demand, Device, place

demands = st.builds(Demand, st.none() | st.integers(0, 120), st.booleans())
machines = st.lists(
    st.tuples(st.integers(1, 4), st.none() | st.integers(1, 100)), min_size=1, max_size=3
).map(lambda sizes: [Device(f"d{i}", slots, memory) for i, (slots, memory) in enumerate(sizes)])


def simulate(waiting: list[Demand], devices: list[Device], ends: st.DataObject) -> list[tuple[int, str]]:
    """Run everything, one arbitrary run ending at a time; checks the state after every start."""
    by_name = {device.name: device for device in devices}
    left = list(range(len(waiting)))
    running: defaultdict[str, list[int]] = defaultdict(list)
    starts: list[tuple[int, str]] = []
    while left or any(running.values()):
        while True:
            at_work = {name: [waiting[run] for run in runs] for name, runs in running.items()}
            choice = place([waiting[run] for run in left], at_work, devices)
            if choice is None:
                break
            run, device = left.pop(choice[0]), by_name[choice[1]]
            running[device.name].append(run)
            starts.append((run, device.name))
            beside = [waiting[other] for other in running[device.name]]
            assert len(beside) <= device.slots
            if len(beside) > 1:
                assert not any(each.alone for each in beside)
                if device.memory is not None:
                    assert all(each.memory is not None for each in beside), "not measured yet: alone"
                    assert sum(each.memory or 0 for each in beside) <= device.memory
        busy = [name for name, runs in running.items() if runs]
        assert busy, "something waits and nothing runs"
        name = ends.draw(st.sampled_from(busy))
        running[name].pop(ends.draw(st.integers(0, len(running[name]) - 1)))
    return starts


@settings(max_examples=300, deadline=None)
@given(st.lists(demands, max_size=14), machines, st.data())
def test_everything_is_started_once_within_slots_and_memory(
    waiting: list[Demand], devices: list[Device], data: st.DataObject
) -> None:
    starts = simulate(waiting, devices, data)
    assert sorted(run for run, _ in starts) == list(range(len(waiting)))


@settings(max_examples=200, deadline=None)
@given(st.lists(demands, max_size=12), st.integers(1, 4), st.none() | st.integers(1, 100), st.data())
def test_on_one_device_runs_start_in_order(
    waiting: list[Demand], slots: int, memory: int | None, data: st.DataObject
) -> None:
    starts = simulate(waiting, [Device("d", slots, memory)], data)
    assert [run for run, _ in starts] == list(range(len(waiting)))


@settings(max_examples=200, deadline=None)
@given(demands, machines, st.integers(0, 2**32))
def test_a_run_that_fits_nowhere_yet_is_overtaken_only_for_as_long_as_its_device_drains(
    big: Demand, devices: list[Device], seed: int
) -> None:
    # Small runs keep coming for ever and end in any order, but none lasts for ever: each ends before as
    # many others as there are slots have ended. The one in front must start after a bounded time.
    import random

    chance = random.Random(seed)
    small, slots = Demand(1), sum(device.slots for device in devices)
    running: list[tuple[int, str]] = []  # when each was started, and where
    for moment in range(slots * slots + slots + 1):
        while True:
            at_work = {
                device.name: [small for _, name in running if name == device.name] for device in devices
            }
            choice = place([small if moment == 0 else big, *[small] * 5], at_work, devices)
            if choice is None:
                break
            if moment > 0 and choice[0] == 0:
                return
            running.append((moment, choice[1]))
        old = [each for each in running if moment - each[0] >= slots]
        running.remove(chance.choice(old or running))
    raise AssertionError("it never started")


def test_runs_go_to_the_device_with_the_fewest_and_fill_its_memory() -> None:
    devices = [Device("a", 3, 100), Device("b", 3, 50)]
    assert place([Demand(40)], {}, devices) == (0, "a")
    assert place([Demand(40)], {"a": [Demand(40)]}, devices) == (0, "b")
    assert place([Demand(40)], {"a": [Demand(40)], "b": [Demand(40)]}, devices) == (0, "a")
    assert place([Demand(40)], {"a": [Demand(40)] * 2, "b": [Demand(40)]}, devices) is None
    # What was never measured waits for an empty device; later ones may use the other device meanwhile.
    busy = {"a": [Demand(10)], "b": [Demand(10)] * 2}
    assert place([Demand(None), Demand(10)], busy, devices) == (1, "b")
    assert place([Demand(None)], {"b": [Demand(10)]}, devices) == (0, "a")
    assert place([Demand(101), Demand(1)], {"a": [Demand(10)], "b": []}, devices) == (0, "b")
    # Without known memory slots alone decide.
    assert place([Demand(None)], {"cpu": [Demand(None)]}, [Device("cpu", 2)]) == (0, "cpu")
    assert place([Demand(None, alone=True)], {"cpu": [Demand(None)]}, [Device("cpu", 2)]) is None
    assert place([Demand(None)], {"cpu": [Demand(None, alone=True)]}, [Device("cpu", 2)]) is None
