"""Places: latitude and longitude as kilometres in the plane, or in space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.base import (
    NOT_KNOWN,
    Column,
    Field,
    Reading,
    declared_range,
    middle,
    typical,
)
from cloakgp.columns.cells import Cells
from cloakgp.columns.numbers import read_together
from cloakgp.utils.arrays import Array

Projection = Literal["plane", "sphere"]
# Of the Earth's radius, the mean, in km.
RADIUS = 6371.0088
# Beyond so many degrees, the plane is too far from the sphere.
PLANE_DEGREES = 5.0
# What declared ranges are called in files.
DEGREES = ("latitudes", "longitudes")


@dataclass(frozen=True)
class Place(Column):
    """Latitude and longitude in degrees, in two columns of a table, as kilometres of one scale.

    In the plane: north and east of a centre, for places near each other. On the sphere: points in
    space, whose straight distances go with those along great circles.

    Attributes
    ----------
    latitude, longitude : str
        Names of the columns.
    projection : {"plane", "sphere"}
    centre : (float, float)
        Latitude and longitude; also what stands for missing ones.
    """

    latitude: str = ""
    longitude: str = ""
    projection: Projection = "plane"
    centre: tuple[float, float] = (0.0, 0.0)

    kind: ClassVar[str] = "place"
    field_type: ClassVar[str] = "geopoint"
    part_of: ClassVar[str] = "place"
    what: ClassVar[str] = "places"

    @property
    def sources(self) -> tuple[str, ...]:
        """Latitude and longitude."""
        return (self.latitude, self.longitude)

    @property
    def own_blocks(self) -> tuple[tuple[str, ...], ...]:
        """Kilometres, all of one scale."""
        axes = ("north", "east") if self.projection == "plane" else ("x", "y", "z")
        return (tuple(f"{self.name}: {axis}" for axis in axes),)

    @property
    def filling(self) -> tuple[float, ...]:
        """The centre."""
        return self.centre

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Read both in degrees; where either is missing, both are."""
        values, missing, strange = read_together(self.sources, cells, codes=codes)
        far: NDArray[np.bool_] = np.any(np.abs(values) > np.array([90.0, 360.0]), axis=1)
        values = np.where(far[:, None], np.nan, values)
        faults = {"is no latitude and longitude in degrees": (far | strange) & ~missing}
        return Reading(values=values, missing=missing, faults=faults)

    def expand(self, values: Array) -> Array:
        """Return kilometres."""
        latitude, longitude = np.radians(values).T
        if self.projection == "sphere":
            across = np.cos(latitude)
            space = (across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude))
            return RADIUS * np.column_stack(space)
        middle, meridian = np.radians(self.centre)
        turn = np.mod(longitude - meridian + np.pi, 2 * np.pi) - np.pi
        return RADIUS * np.column_stack([latitude - middle, np.cos(middle) * turn])

    def fill_from(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Take the centre, and the plane if places are near each other."""
        values = self.read(cells, codes=codes).values
        known = values[np.isfinite(values).all(axis=1)]
        near = not len(known) or bool((np.ptp(known, axis=0) <= PLANE_DEGREES).all())
        near = near and bool((np.abs(known) < 80.0)[:, 0].all())
        middle = typical(values)
        return replace(
            self, projection="plane" if near else "sphere", centre=(middle[0], middle[1])
        )

    def take_declared(self) -> Self:
        """Refuse it without ranges, whose middle is the centre if none is declared."""
        if len(self.ranges) != 2:
            raise self._needs_ranges("ranges of its degrees (latitudes and longitudes)")
        if np.isfinite(self.centre).all():
            return self
        latitude, longitude = middle(self.ranges)
        return replace(self, centre=(latitude, longitude))

    @property
    def own_ranges(self) -> tuple[tuple[float, float], ...]:
        """Kilometres that declared degrees become."""
        if self.projection == "sphere":
            return ((-RADIUS, RADIUS),) * 3
        ends = self.expand(np.array(self.ranges).T)
        return tuple((float(lo), float(hi)) for lo, hi in ends.T)

    def validate(self) -> None:
        """Refuse places without coordinates."""
        super().validate()
        if not self.latitude or not self.longitude or self.latitude == self.longitude:
            raise ValueError(f"place {self.name!r} needs columns of latitude and longitude")
        if self.projection not in ("plane", "sphere"):
            raise ValueError(f"place {self.name!r}: its projection is plane or sphere")
        if not (abs(self.centre[0]) <= 90.0 and abs(self.centre[1]) <= 360.0):
            raise ValueError(f"place {self.name!r}: its centre is no latitude and longitude")

    def to_field(self) -> Field:
        """Return where its coordinates are."""
        return {
            "latitude": self.latitude,
            "longitude": self.longitude,
            "projection": self.projection,
            "centre": list(self.centre),
            **dict(zip(DEGREES, map(list, self.ranges), strict=False)),
        }

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the place of a field."""
        north, east = field.get("centre", (NOT_KNOWN, NOT_KNOWN))
        ranges = [declared_range(*field.get(name, (None, None))) for name in DEGREES]
        return cls(
            **common,
            ranges=(*ranges[0], *ranges[1]) if all(ranges) else (),
            latitude=field.get("latitude", ""),
            longitude=field.get("longitude", ""),
            projection=field.get("projection", "plane"),
            centre=(float(north), float(east)),
        )

    def describe_middle(self, numbers: Array) -> str:
        """Return latitude and longitude in degrees."""
        if self.projection == "plane":
            middle, meridian = self.centre
            north, east = np.degrees(numbers / RADIUS)
            latitude, longitude = middle + north, meridian + east / np.cos(np.radians(middle))
        else:
            x, y, z = numbers
            latitude, longitude = np.degrees([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)])
        return f"{self.name} {latitude:.4g}, {longitude:.4g}"

    def describe(self) -> str:
        """Return where its coordinates are."""
        return f"places, from {self.latitude} and {self.longitude}"
