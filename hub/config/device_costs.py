"""The setting ``device_models``: price per device-hour and watts of each device model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

MOST = 1e9
"""The largest price or power; larger values are mistakes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceModelCost:
    """What an hour of one device of a model costs.

    Attributes:
        price_per_device_hour: in the site's currency; None without a price.
        watts: electric power of a device in use; None if it is not known.
    """

    price_per_device_hour: float | None = None
    watts: float | None = None


_KEYS = tuple(field.name for field in fields(DeviceModelCost))


def parse_device_costs(found: object) -> dict[str, DeviceModelCost]:
    """Check the table of models. Raises ValueError with the key and what it accepts."""
    if not isinstance(found, Mapping):
        raise ValueError("device_models must be a table of models")  # noqa: TRY004  # a setting
    return {str(model): _cost(str(model), values) for model, values in found.items()}


def _cost(model: str, values: object) -> DeviceModelCost:
    if not isinstance(values, Mapping) or not values.keys() <= set(_KEYS):
        raise ValueError(f"device_models.{model} accepts {' and '.join(_KEYS)}")
    return DeviceModelCost(
        **{key: _amount(f"device_models.{model}.{key}", value) for key, value in values.items()}
    )


def _amount(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST:
        return float(value)
    raise ValueError(f"{name} must be a number from 0 to {MOST:,.0f}")
