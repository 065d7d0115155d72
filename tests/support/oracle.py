"""The result that a client must reach from a script of faults, by the documented policy alone.

The policy: at most five requests for reasons of transport, and one more that asks to repair an unusable answer;
a request that the server refuses for good, and an answer that declines, are final at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat

from faults import Fault, Faults
from metricsmith.records import Status

__all__ = ["GOOD", "HOPELESS", "PASSING", "REFUSED", "UNUSABLE", "End", "expected", "expected_of_n", "plan_of"]

TRIES = 5
LONGEST = TRIES + 1  # requests for one answer

GOOD = frozenset({None, Fault.SLOW, Fault.PROSE, Fault.GIGANTIC, Fault.TWO_CHOICES})  # of two, the first is read
PASSING = frozenset(
    {
        Fault.THROTTLED, Fault.RETRY_AFTER, Fault.ERROR_500, Fault.ERROR_502, Fault.ERROR_503, Fault.HANG,
        Fault.CUT_BEFORE, Fault.CUT_WITHIN, Fault.TRUNCATED, Fault.EMPTY_BODY, Fault.HTML,
    }
)  # fmt: skip
HOPELESS = frozenset({Fault.BAD_REQUEST, Fault.WRONG_KEY, Fault.FORBIDDEN, Fault.UNKNOWN})
REFUSED = frozenset({Fault.REFUSAL, Fault.REFUSAL_FIELD, Fault.FILTERED})
UNUSABLE = {
    Fault.WRONG_NAMES: Status.UNPARSABLE,
    Fault.WRONG_CASE: Status.UNPARSABLE,
    Fault.NAN: Status.UNPARSABLE,  # a whole number is asked for, and this is none
    Fault.INFINITE: Status.UNPARSABLE,
    Fault.GIGANTIC_NUMBER: Status.UNPARSABLE,  # Python reads no more than 4,300 digits
    Fault.EMPTY: Status.UNPARSABLE,
    Fault.NULL: Status.UNPARSABLE,
    Fault.NO_CHOICES: Status.UNPARSABLE,  # a well-formed response without an answer in it
    Fault.CHATTER: Status.UNPARSABLE,
    Fault.CUT_OFF: Status.UNPARSABLE,  # what can be read of it may be half a number, or half of a list
    Fault.OUT_OF_RANGE: Status.OUT_OF_RANGE,
}


@dataclass(frozen=True)
class End:
    """The end that a judgement must come to, and the number of its requests."""

    status: Status
    requests: int


def expected(plan: Iterable[Fault | None], *, tries: int = TRIES, repaired: bool = False) -> End:
    """The end of one judgement whose requests meet `plan`, and no fault after its end.

    `repaired` says that the first of them is a repair.
    """
    allowed = tries
    for requests, fault in enumerate(chain(plan, repeat(None)), 1):
        if fault in GOOD:
            return End(Status.OK, requests)
        if fault in HOPELESS:
            return End(Status.TRANSPORT, requests)
        if fault in REFUSED:
            return End(Status.REFUSED, requests)
        if fault in PASSING:
            if requests == allowed:
                return End(Status.TRANSPORT, requests)
        elif repaired:
            return End(UNUSABLE[fault], requests)
        else:
            repaired, allowed = True, allowed + 1
    raise AssertionError("a plan without end has an end")


def expected_of_n(plan: Sequence[Fault | None], n: int) -> list[End]:
    """The ends of n judgements that one request carries, in the order of their numbers.

    The requests that carry all stand with the first of them. What is asked again alone meets what is left of
    the plan, and is the same in every order only if that is nothing or always the same.
    """
    for shared, fault in enumerate(islice(chain(plan, repeat(None)), TRIES), 1):
        rest = plan[shared:]
        if fault in PASSING:
            continue
        if fault in HOPELESS:
            return [End(Status.TRANSPORT, shared)] + [End(Status.TRANSPORT, 0)] * (n - 1)
        if fault in REFUSED:
            return [End(Status.REFUSED, shared)] + [End(Status.REFUSED, 0)] * (n - 1)
        alone: set[int] = set()
        if fault is Fault.FEWER_CHOICES:
            alone = set(range(max(1, n // 2), n))
        elif fault is Fault.ONE_MALFORMED:
            alone = {n // 2}
        elif fault in UNUSABLE:
            alone = set(range(n))
        mend = fault is not Fault.FEWER_CHOICES
        ends = [expected(rest, repaired=mend) if run in alone else End(Status.OK, 0) for run in range(n)]
        return [End(ends[0].status, ends[0].requests + shared), *ends[1:]]
    return [End(Status.TRANSPORT, TRIES)] + [End(Status.TRANSPORT, 0)] * (n - 1)


def plan_of(faults: Faults, prompt: str, seed: int) -> list[Fault | None]:
    """The faults that the requests for a prompt will meet, as far as a client may go."""
    return [faults.pick(prompt, attempt, seed) for attempt in range(LONGEST)]
