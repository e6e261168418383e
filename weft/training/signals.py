"""SIGTERM and SIGINT as a wish the loop asks about, not as a sudden end."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from weft.core.errors import Interrupted

_WATCHED = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Notes the first signal inside the block; a second one has its ordinary effect at once."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # elsewhere signals cannot be caught
            self._previous = {number: signal.signal(number, self._note) for number in _WATCHED}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def leave(self, saved: str) -> None:
        """Raise Interrupted if a signal came; `saved` says what was saved."""
        if self.received is not None:
            raise Interrupted(f"{signal.Signals(self.received).name}: {saved}", self.received)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
