"""The budget: how many calls, tokens and how much money may be spent; calls are counted before they are sent.

It holds for one invocation of a command. What a call will cost is estimated before it is sent and replaced by
what the server counted, so that many calls at a time cannot overrun it by more than the error of the estimate.
"""

from __future__ import annotations

import math
import threading

from pydantic import BaseModel, ConfigDict, Field

from revisit.judges.protocol import Frames, Stopped, Usage
from revisit.judges.questions import JsonObject, Many, Question, Schema, Text

CHARACTERS_PER_TOKEN = 4  # of English prose
PIXELS_PER_TOKEN = 28 * 28  # Qwen-VL's patches; other models differ, and `tokens_per_image` overrides it
OVERHEAD = 260  # tokens of the rules and of the frame of a message


class TokenPrice(BaseModel):
    """What a million tokens cost."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(default=0.0, ge=0)
    output: float = Field(default=0.0, ge=0)
    currency: str = "USD"

    def cost_of_usage(self, usage: Usage) -> float:
        return (usage.tokens_in * self.input + usage.tokens_out * self.output) / 1e6


class JudgeLimit(BaseModel):
    """What may be spent; None for as much as it takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    money: float | None = Field(default=None, ge=0)


def estimate_call_usage(frames: Frames, question: Question, tokens_per_image: int | None = None) -> Usage:
    """What one call is expected to use: a rough figure, for plans and for calls under way."""
    width, height = frames.size
    image = tokens_per_image or max(1, math.ceil(width * height / PIXELS_PER_TOKEN))
    text = (len(question.text) + len(question.schema.says())) // CHARACTERS_PER_TOKEN + OVERHEAD
    return Usage(1, text + image * len(frames.jpegs), estimate_answer_tokens(question.schema))


def estimate_answer_tokens(schema: Schema) -> int:
    """Tokens that a typical answer of this schema takes."""
    if isinstance(schema, JsonObject):
        return 4 + sum(4 + estimate_answer_tokens(field) for field in schema.fields.values())
    if isinstance(schema, Many):
        return 4 + (schema.at_least + schema.at_most) // 2 * estimate_answer_tokens(schema.item)
    return schema.at_most // (2 * CHARACTERS_PER_TOKEN) if isinstance(schema, Text) else 4


class Budget:
    """Counts what is spent and says when to stop."""

    def __init__(self, limit: JudgeLimit | None = None, price: TokenPrice | None = None) -> None:
        self.limit, self.price = limit or JudgeLimit(), price or TokenPrice()
        self.spent = Usage()
        self._under_way = Usage()
        self._lock = threading.Lock()

    def reserve_or_stop(self, usage: Usage) -> None:
        """Set aside what a call may use, or raise Stopped where that is more than is left."""
        with self._lock:
            after = self.spent + self._under_way + usage
            limit, money = self.limit, self.price.cost_of_usage(after)
            for name, value, most in (
                ("calls", after.calls, limit.calls),
                ("tokens", after.tokens_in + after.tokens_out, limit.tokens),
                (self.price.currency, money, limit.money),
            ):
                if most is not None and value > most:
                    spent = self.spent
                    used = f"{spent.calls} calls, {spent.tokens_in + spent.tokens_out} tokens"
                    used += f", {self.price.cost_of_usage(spent):.4g} {self.price.currency}"
                    raise Stopped(
                        f"the judge's budget of {most:g} {name} is used up ({used}); raise it in the "
                        "judge file and run the same command again: answers already paid for are kept"
                    )
            self._under_way += usage

    def replace_reserved_with_used(self, reserved: Usage, used: Usage) -> None:
        """Replace what was set aside by what the call used."""
        with self._lock:
            self._under_way += Usage(-reserved.calls, -reserved.tokens_in, -reserved.tokens_out)
            self.spent += used
