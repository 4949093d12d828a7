"""What the comparing process gets on its standard input: a line of JSON, then both contents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as validated

from ...comparison.facts import RunFacts
from ...comparison.schemas import Part
from ...comparison.tolerance import Tolerance


@validated(frozen=True, slots=True, kw_only=True, config=ConfigDict(ser_json_inf_nan="constants"))
class ComparisonOrder:
    """Two runs to compare.

    Attributes:
        size: bytes of the content of ``a``; the rest is that of ``b``.
        form: what the contents are.
        notes: sentences about what is not compared.
    """

    a: RunFacts
    b: RunFacts
    size: int
    form: Literal["notebook", "log"]
    tolerance: Tolerance
    ignored: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()


_ORDERS = TypeAdapter(ComparisonOrder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonInput:
    """An order with the contents of both runs."""

    order: ComparisonOrder
    a: bytes
    b: bytes

    def written(self) -> bytes:
        return b"".join((_ORDERS.dump_json(self.order), b"\n", self.a, self.b))

    @classmethod
    def read(cls, given: bytes) -> ComparisonInput:
        head, _, rest = given.partition(b"\n")
        order = _ORDERS.validate_json(head)
        return cls(order=order, a=rest[: order.size], b=rest[order.size :])
