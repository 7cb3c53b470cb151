"""Plans by their shapes: the tap tells each once, and it is read once."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.listeners.capture.batch.shapes import ShapeOfWrite, shape_of, shape_of_reading
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.register import register
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.streaming.watermarks import with_watermarks

_LOG = logging.getLogger(__name__)
_SHAPES: Final = 2_000
"""Twice as many as the tap takes for told."""


@dataclass(frozen=True)
class Known:
    """What is known of a shape. A fault is told each time a statement has it, not looked for each time."""

    plan: Plan
    node: Node
    command: Command | None
    shape: ShapeOfWrite | None
    fault: str | None


class Plans:
    """For one thread."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._shapes: OrderedDict[str, Known] = OrderedDict()

    def known(self, record: Mapping[str, Any]) -> Known:
        """What is known of the plan that a record has, or refers to."""
        shape = record["shape"]
        if "plan" in record:
            reading = bool(record.get("reading"))
            self._shapes[shape] = self._read(Plan.parse(record["plan"]), reading=reading)
            self._shapes.move_to_end(shape)
            if len(self._shapes) > _SHAPES:
                self._shapes.popitem(last=False)
        return self._shapes[shape]

    def _read(self, plan: Plan, *, reading: bool) -> Known:
        node = plan.top if reading else _command(plan)
        command = None if reading else register().get(node.name)
        if not reading and (command is None or command.write is None):
            return Known(plan, node, command, None, None)
        try:
            shape = self._shape(plan, node, command)
        except Exception as e:  # noqa: BLE001 - a plan can be anything; the statement is told as a Gap
            _LOG.debug("a plan couldn't be read", exc_info=True)
            return Known(plan, node, command, None, f"{node.name} can't be read: {type(e).__name__}: {e}")
        return Known(plan, node, command, shape, None)

    def _shape(self, plan: Plan, node: Node, command: Command | None) -> ShapeOfWrite | None:
        if command is None or command.write is None:
            return shape_of_reading(plan, self._scene)
        write = command.write(node, plan, self._scene)
        return None if write is None else with_watermarks(shape_of(write, plan, self._scene), plan)


def _command(plan: Plan) -> Node:
    """The command of a plan: its top, or what stands right below what only wraps it."""
    for index in (plan.root, *plan.top.inputs):
        if plan.nodes[index].name in register():
            return plan.nodes[index]
    return plan.top
