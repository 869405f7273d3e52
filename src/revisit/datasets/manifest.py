"""The manifest line, the only input contract of the folder suite, and the case that it makes."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from revisit.core import Case, Clip, Target
from revisit.core.cases import case_id


class TargetEntry(BaseModel):
    """The thing to remember, as a box in the first frame."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(default="target", max_length=200)
    box: tuple[float, float, float, float]

    @field_validator("box")
    @classmethod
    def _require_valid_box(cls, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        x0, y0, x1, y1 = box
        if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
            raise ValueError("a box is [x0, y0, x1, y1] as fractions of the first frame, with x0 < x1 and y0 < y1")
        return box


class ManifestEntry(BaseModel):
    """One clip to judge."""

    model_config = ConfigDict(extra="forbid")
    id: str = Field(default="", max_length=300)
    model: str = Field(default="model", min_length=1, max_length=200)
    video: str = Field(min_length=1, max_length=4096)
    reference: str | None = Field(default=None, max_length=4096)
    prompt: str = Field(default="", max_length=20_000)
    target: TargetEntry | None = None
    camera: str = Field(default="", max_length=2000)
    phases: tuple[int, int] | None = None
    group: str = Field(default="", max_length=300)
    subset: str = Field(default="", max_length=200)
    condition: str = Field(default="", max_length=200)
    seed: int = 0
    fps: float | None = Field(default=None, gt=0, le=1000)
    annotations: dict[str, Any] = Field(default_factory=dict)

    @field_validator("id", "model", "group", "subset", "condition")
    @classmethod
    def _require_printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("a name may contain only printable characters")
        return name

    @field_validator("phases")
    @classmethod
    def _require_ordered_phases(cls, phases: tuple[int, int] | None) -> tuple[int, int] | None:
        if phases is not None and not 0 < phases[0] < phases[1]:
            raise ValueError("phases are [first hidden frame, first returned frame], both positive and in this order")
        return phases

    def make_case(self, name: str, clip: Clip, reference: Clip | None, camera: str) -> Case:
        """The case of a clip that is called so."""
        return Case(
            id=case_id(name, self.model, self.seed),
            suite="folder",
            model=self.model,
            sample=self.group or name,
            clip=clip,
            reference=reference,
            subset=self.subset,
            condition=self.condition,
            seed=self.seed,
            prompt=self.prompt,
            camera=camera,
            target=None if self.target is None else Target(self.target.name, self.target.box),
            phases=self.phases,
            annotations=self.annotations,
        )


def first_validation_problem_and_input(error: ValidationError) -> tuple[str, str]:
    """What is wrong with the first field that does not fit, and the beginning of what stands there."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg'].removeprefix('Value error, ')}", str(first["input"])[:80]
