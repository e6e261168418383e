"""Names for things: families, tasks, readers."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from weft.core.errors import ConfigError, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """A table from name to entry; an unknown name fails with the nearest known one."""

    def __init__(self, kind: str):
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under `name`."""

        def file(entry: T) -> T:
            if name in self._entries:
                raise ValueError(f"{self.kind} `{name}` is registered twice")
            self._entries[name] = entry
            return entry

        return file

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise ConfigError(f"There is no {self.kind} `{name}`.{nearest(str(name), self._entries)}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)
