"""The catalogue of images: choice for a request, views for users, and pins of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from ..errors import Forbidden, InvalidInput, NotFound
from ..groups.calendar import day
from ..interfaces.clock import Clock
from ..interfaces.files import Files
from ..interfaces.images import ImageSource
from ..interfaces.store import Store
from ..messages import units
from ..records.audit import AuditAction, AuditEntry
from ..records.identity import Identity
from ..records.images import ACCEPTED, Image, Pin, Reference, newest
from ..records.json_value import Json
from ..runtime.context import Context
from ..scheduling.model.snapshot import Device
from ..scheduling.quota.tree import GroupTree
from ..schemas.images import ImageOut, ImagesOut, NeededOut, NeedsOut, PinIn, PinOut


@dataclass(frozen=True, slots=True)
class ImageCatalogue:
    """Chooses, lists and pins images."""

    source: ImageSource
    store: Store
    clock: Clock

    @classmethod
    def of(cls, context: Context) -> ImageCatalogue:
        return cls(context.backend, context.store, context.clock)

    # -- choice ---------------------------------------------------------------------------

    def choose(self, group: str, wanted: str, devices: int = 0) -> Image | None:
        """Return the build for a request of this group; None on an engine without images.

        Args:
            devices: number of requested devices.

        Raises:
            InvalidInput: no engine has the image, or none with enough devices; the message lists
                the available images.
            Unavailable: no engine has reported its images yet.
        """
        images = self.source.images()
        if images is None:
            if wanted:
                raise InvalidInput(
                    "Requests run directly on this machine, not in images.",
                    accepted="Omit 'image'.",
                    field="image",
                )
            return None
        found = self._found(images, self._chain(group), wanted)
        if devices:
            _check_devices(found, images, self.store.devices(), devices)
        return found

    def build(self, wanted: str) -> Image | None:
        """Return a build regardless of pins; None on an engine without images.

        Args:
            wanted: a reference, a bare digest, or a name for its newest build.

        Raises:
            InvalidInput: no engine has the build; the message lists the available images.
            Unavailable: no engine has reported its images yet.
        """
        images = self.source.images()
        if images is None:
            return self.choose("", wanted)
        digest = wanted if wanted.startswith("sha256:") else ""
        matching = [each for each in images if digest and each.digest.startswith(digest)]
        return self._found(images, (), matching[0].reference if len(matching) == 1 else wanted)

    def _found(self, images: tuple[Image, ...], groups: Sequence[str], wanted: str) -> Image:
        reference = Reference.read(wanted) if wanted else Reference(name=_default(images))
        if reference is None:
            raise InvalidInput(
                f"{wanted[:80]!r} is not the name of an image.",
                accepted=f"{ACCEPTED}.",
                field="image",
            )
        pin = None if reference.digest else self._pin(groups, reference.name)
        exact = Reference(name=reference.name, digest=pin.digest) if pin else reference
        if exact.digest:
            builds = [image for image in images if exact.fits(image)]
            found = builds[0] if len(builds) == 1 else None
        else:
            found = newest(images, reference.name)
        if found is None:
            raise _missing(images, reference, pin)
        return found

    def _pin(self, groups: Sequence[str], image: str) -> Pin | None:
        """Return the pin of the group, else that of its nearest ancestor."""
        now = self.clock()
        held = {p.group: p for p in self.store.pins() if p.image == image and p.holds(now)}
        return next((held[name] for name in groups if name in held), None)

    def _chain(self, group: str) -> tuple[str, ...]:
        return tuple(found.name for found in GroupTree(self.store.groups()).ancestry(group))

    # -- views ----------------------------------------------------------------------------

    def shown(self, who: Identity, groups: Collection[str]) -> ImagesOut:
        """Return the images and pins that the user may see, as a member of these groups."""
        images = self.source.images()
        if images is None:
            return ImagesOut(choice=False, images=[], pins=[])
        tree = GroupTree(self.store.groups())
        taught = self.store.taught_by(who.name)
        visible = {group.name for name in {*groups, *taught} for group in tree.ancestry(name)}
        pins = [
            _pin_out(pin, images, self.clock())
            for pin in self.store.pins()
            if who.admin or pin.group in visible
        ]
        return ImagesOut(
            choice=True,
            images=[_image_out(image, images, pins) for image in images],
            pins=pins,
            may_pin=sorted(tree.names if who.admin else taught),
        )

    # -- pins -----------------------------------------------------------------------------

    def pin(self, who: Identity, group: str, name: str, body: PinIn) -> PinOut:
        """Pin a group to a build: the given one, else the newest one.

        Raises:
            Forbidden: the caller is neither a teacher of the group nor an administrator.
            InvalidInput: no engine has the build, or the end date is past.
        """
        self._check_rights(who, group)
        images = self.source.images()
        if images is None:
            raise InvalidInput(
                "There are no images to pin here.",
                accepted='An installation with `engine = "docker"`.',
                field="image",
            )
        wanted = f"{name}@{body.digest}" if body.digest else name
        found = self._found(images, (), wanted)
        pin = Pin(
            group=group,
            image=found.name,
            digest=found.digest,
            until=self._until(body.until) if body.until else None,
            set_by=who.name,
            set_at=self.clock(),
        )
        before = self._known(group, found.name)
        change = self._change(who, AuditAction.PIN, group, _values(before), _values(pin))
        self.store.put_pin(pin, change=change)
        return _pin_out(pin, images, self.clock())

    def unpin(self, who: Identity, group: str, name: str) -> None:
        """Delete a pin. Raises Forbidden or NotFound."""
        self._check_rights(who, group)
        change = self._change(who, AuditAction.UNPIN, group, {"image": name}, {})
        self.store.check_unchanged(change)
        before = self._known(group, name)
        if before is None:
            known = ", ".join(p.image for p in self.store.pins() if p.group == group)
            raise NotFound(
                f"{group} has not pinned {name[:80]}.", accepted=f"Pinned: {known or 'none yet'}."
            )
        change = self._change(who, AuditAction.UNPIN, group, _values(before), {})
        self.store.remove_pin(group, name, change=change)

    def _check_rights(self, who: Identity, group: str) -> None:
        if not who.admin and group not in self.store.taught_by(who.name):
            raise Forbidden(
                f"Only teachers of {group[:80]} and administrators may change its pins.",
                accepted="Ask one of them.",
            )
        self.store.group(group)

    def _until(self, text: str) -> date:
        until = day(text, "until")
        if until < datetime.fromtimestamp(self.clock(), UTC).date():
            raise InvalidInput(
                f"{until.isoformat()} is over.", accepted="Today or a later day.", field="until"
            )
        return until

    def _known(self, group: str, image: str) -> Pin | None:
        found = (p for p in self.store.pins() if (p.group, p.image) == (group, image))
        return next(found, None)

    def _change(
        self,
        who: Identity,
        action: AuditAction,
        group: str,
        before: Mapping[str, Json],
        after: Mapping[str, Json],
    ) -> AuditEntry:
        return AuditEntry(
            at=self.clock(),
            who=who.name,
            action=action,
            target=group,
            before=before,
            after=after,
        )

    # -- builds in use --------------------------------------------------------------------

    def needed(self, files: Files) -> NeedsOut:
        """Return the builds that must not be removed, with the first reason found."""
        reasons: dict[str, str] = {}
        for reference, why in self._reasons(files):
            reasons.setdefault(reference, why)
        needed = [NeededOut(image=name, why=why) for name, why in sorted(reasons.items())]
        return NeedsOut(needed=needed)

    def _reasons(self, files: Files) -> Iterator[tuple[str, str]]:
        now = self.clock()
        for pin in self.store.pins():
            if pin.holds(now):
                yield pin.reference, f"Pinned for {pin.group}{_until_words(pin.until)}."
        for reference, uses in self.store.image_uses().items():
            living = next((use.request_id for use in uses if not use.ended), None)
            if living is not None:
                yield reference, f"{living} is queued or running in it."
                continue
            kept = next((use.request_id for use in uses if files.keeps(use.request_id)), None)
            if kept is not None:
                yield reference, f"The output of {kept} is kept, and names it."


def _check_devices(
    image: Image, images: Sequence[Image], pool: Collection[Device], wanted: int
) -> None:
    """Raise InvalidInput if no node with enough devices has the image."""
    able = {node for node, count in Counter(d.node for d in pool).items() if count >= wanted}
    if not able or able.intersection(image.nodes):
        return
    others = sorted({other.name for other in images if able.intersection(other.nodes)})
    there = " and ".join(sorted(able))
    raise InvalidInput(
        f"{units.short_reference(image.reference)} is not on {there}, where "
        f"{units.devices(wanted)} can be had.",
        accepted=f"Images there: {', '.join(others) or 'none yet'}. An administrator can load it "
        "there.",
        field="image",
    )


def _default(images: tuple[Image, ...]) -> str:
    """Return the default image; of several, one that all nodes have."""
    chosen = {image.name: newest(images, image.name) for image in images if image.default}
    machines = {node for image in images for node in image.nodes}
    everywhere = [name for name, image in chosen.items() if image and machines <= set(image.nodes)]
    found = next(iter(everywhere or chosen), None)
    if found is None:
        known = ", ".join(sorted({image.name for image in images}))
        raise InvalidInput(
            "There is no default image.",
            accepted=f"One of: {known}." if known else _BUILD_ONE,
            field="image",
        )
    return found


_BUILD_ONE = "An administrator builds the first one with `carrel images build base`."


def _missing(images: Sequence[Image], asked: Reference, pin: Pin | None) -> InvalidInput:
    """Return the error for an image that no engine has, with the alternatives."""
    if not images:
        return InvalidInput("There is no image yet.", accepted=_BUILD_ONE, field="image")
    builds = [image for image in images if image.name == asked.name]
    names = ", ".join(sorted({image.name for image in images}))
    there = "; ".join(
        f"{image.reference}, built {units.day_of(image.built_at)}" for image in builds[:3]
    )
    accepted = f"{there}." if builds else f"One of: {names}."
    if pin is not None:
        message = (
            f"{pin.group} has pinned {units.short_reference(pin.reference)}, "
            "but no engine has that build any more."
        )
        return InvalidInput(message, accepted=accepted, field="image")
    if asked.digest:
        short = units.short_reference(f"{asked.name}@{asked.digest}")
        return InvalidInput(f"No engine has {short}.", accepted=accepted, field="image")
    return InvalidInput(f"There is no image {asked.name!r}.", accepted=accepted, field="image")


def _image_out(image: Image, images: tuple[Image, ...], pins: Sequence[PinOut]) -> ImageOut:
    return ImageOut(
        name=image.name,
        digest=image.digest,
        reference=image.reference,
        title=image.title,
        summary=image.summary,
        size_bytes=image.size_bytes,
        built_at=image.built_at,
        kernels=list(image.kernels),
        packages=list(image.packages),
        nodes=list(image.nodes),
        newest=newest(images, image.name) is image,
        default=image.default,
        pinned=[pin.sentence for pin in pins if pin.holds and pin.reference == image.reference],
    )


def _pin_out(pin: Pin, images: Sequence[Image], now: float) -> PinOut:
    holds = pin.holds(now)
    there = any(image.reference == pin.reference for image in images)
    words = f"pinned for {pin.group}{_until_words(pin.until)}"
    return PinOut(
        group=pin.group,
        image=pin.image,
        digest=pin.digest,
        reference=pin.reference,
        until=pin.until.isoformat() if pin.until else None,
        set_by=pin.set_by,
        set_at=pin.set_at,
        holds=holds,
        there=there,
        sentence=words if there else f"{words}; no engine has it",
    )


def _until_words(until: date | None) -> str:
    return f" until {units.day(until)}" if until else ""


def _values(pin: Pin | None) -> dict[str, Json]:
    if pin is None:
        return {}
    until = pin.until.isoformat() if pin.until else None
    return {"image": pin.image, "digest": pin.digest, "until": until}
