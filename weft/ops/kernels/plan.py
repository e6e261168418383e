"""How a recurrence is cut into blocks, warps and tiles: the constants of `recurrence.cu`."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

REGISTERS = 65536  # of a multiprocessor, 32 bits each


class Problem(NamedTuple):
    """What decides the constants: one direction of one layer, and the device."""

    cell: str
    backward: bool
    dtype: int  # 0 bf16, 1 fp16, 2 fp32 multiplied as tf32
    units: int
    batch: int
    directions: int
    multiprocessors: int
    shared_bytes: int  # that a block may have


class Cell(NamedTuple):
    """A cell's number in the source, its gates, and those whose gradients meet W_hh at a step's end."""

    code: int
    gates: int
    told: int


CELLS = {
    "tanh": Cell(0, 1, 1),
    "relu": Cell(1, 1, 1),
    "lstm": Cell(2, 4, 4),
    "gru_after": Cell(3, 3, 3),
    "gru_before": Cell(4, 3, 2),
}


class Tiles(NamedTuple):
    """The constants. A group of `blocks` owns 8 * nt * chunks rows; a block owns `uc` units of them."""

    uc: int
    blocks: int
    nt: int
    chunks: int
    mw: int
    kw: int
    kreg: int
    window: int

    @property
    def rows(self) -> int:
        return 8 * self.nt * self.chunks

    @property
    def threads(self) -> int:
        return 32 * self.mw * self.kw


def padded(units: int) -> int:
    """Return the units of a row in memory: a multiple of 8, so that rows are read 16 bytes at a time."""
    return -(-units // 8) * 8


def rounded(batch: int) -> int:
    """Return the rows a batch is planned for: batches of many sizes share few plans and compiled kernels."""
    grain = 8 if batch <= 128 else 64 if batch <= 1024 else 1024
    return -(-batch // grain) * grain


def constants(problem: Problem, tiles: Tiles) -> tuple[tuple[str, int], ...]:
    """Return what the source is compiled with."""
    values = {
        "CELL": CELLS[problem.cell].code,
        "BACKWARD": int(problem.backward),
        "DTYPE": problem.dtype,
        "UNITS": problem.units,
        "UC": tiles.uc,
        "BLOCKS": tiles.blocks,
        "NT": tiles.nt,
        "CHUNKS": tiles.chunks,
        "MW": tiles.mw,
        "KW": tiles.kw,
        "KREG": tiles.kreg,
        "WINDOW": tiles.window,
    }
    return tuple(values.items())


def groups_and_passes(problem: Problem, tiles: Tiles) -> tuple[int, int]:
    """Return how many groups of rows run side by side, and how often they take new rows."""
    needed = -(-problem.batch // tiles.rows)
    room = problem.multiprocessors // (tiles.blocks * problem.directions)
    groups = min(needed, room)
    return groups, -(-needed // max(groups, 1))


class Product(NamedTuple):
    """The shape of one product of a block, as the source derives it."""

    tiles: int  # of 16 rows, a warp
    blocks: int  # of 64 bytes of the inner dimension, a warp
    inner: int

    def words(self, threads: int, kreg: int) -> int:
        return max(self.blocks - kreg, 0) * self.tiles * 8 * threads


def products(problem: Problem, tiles: Tiles) -> list[Product]:
    """Return a step's products: two where the reset gate comes first, else one."""
    gates = [2, 1] if problem.cell == "gru_before" else [CELLS[problem.cell].gates]
    size, made = padded(problem.units), []
    for count in gates:
        m, k = (tiles.uc, count * size) if problem.backward else (count * tiles.uc, size)
        block = 64 // element_bytes(problem)
        made.append(Product(-(-m // (16 * tiles.mw)), -(-k // (block * tiles.kw)), k))
    return made


def element_bytes(problem: Problem) -> int:
    return 4 if problem.dtype == 2 else 2


def shared_bytes(problem: Problem, tiles: Tiles) -> int:
    """Return a block's shared memory: weights beyond the registers, partial sums, a lone block's states."""
    parts, rows = products(problem, tiles), 8 * tiles.nt
    words = sum(part.words(tiles.threads, tiles.kreg) for part in parts)
    sums = tiles.kw * rows * (tiles.mw * max(part.tiles for part in parts) * 16 + 4)
    slots = sum(rows * ((part.inner * element_bytes(problem) + 63) // 128 * 128 + 64) for part in parts)
    if tiles.blocks > 1:
        return 4 * (words + 2 * sums)
    return 4 * (words + sums) + 2 * tiles.chunks * slots


def registers(problem: Problem, tiles: Tiles) -> int:
    """Estimate the registers of a thread."""
    cell, parts = CELLS[problem.cell], products(problem, tiles)
    held = sum(min(tiles.kreg, part.blocks) * part.tiles * 8 for part in parts)
    most = max(part.tiles for part in parts)
    sums = most * tiles.nt * 4 * (2 if most * tiles.nt <= 4 else 1)
    windows = max(-(-part.blocks // tiles.window) for part in parts)
    loads = min(windows, 2) * tiles.window * tiles.nt * 4
    each, wide = -(-tiles.uc // 2 * 8 * tiles.nt // tiles.threads), 2 if problem.dtype == 2 else 1
    if problem.backward:
        ahead = cell.gates * wide + 2 + (4 if problem.cell == "lstm" else 3 * wide)
    else:
        ahead = cell.gates * wide + 2 * cell.gates
    lasting = each * (tiles.chunks * 7 + ahead)
    passing = each * ahead + max(sums + loads, each * 4 * cell.gates)
    return 24 + held + lasting + passing


def fits(problem: Problem, tiles: Tiles) -> bool:
    """Tell whether these tiles can run: blocks at once, registers, shared memory."""
    if tiles.threads > 1024 or tiles.uc % 2 or tiles.blocks * tiles.uc < padded(problem.units):
        return False
    if tiles.blocks * problem.directions > problem.multiprocessors:
        return False
    most = min(255, REGISTERS // tiles.threads)
    return registers(problem, tiles) <= most and shared_bytes(problem, tiles) <= problem.shared_bytes


def candidates(problem: Problem) -> Iterator[Tiles]:
    """Yield every cut worth a thought."""
    size = padded(problem.units)
    for uc in (8, 16, 24, 32, 48, 64, 96, 128, 192, 256):
        blocks = -(-size // uc)
        if uc > max(size, 8) or blocks * problem.directions > problem.multiprocessors:
            continue
        for nt in (1, 2, 4, 8):
            for chunks in (1, 2):
                if (nt * chunks > 1) and 4 * nt * chunks >= 8 * -(-problem.batch // 8):
                    continue
                for warps in (4, 8, 16):
                    yield from _warped(problem, uc, blocks, nt, chunks, warps)


def _warped(problem: Problem, uc: int, blocks: int, nt: int, chunks: int, warps: int) -> Iterator[Tiles]:
    for mw in (1, 2, 4, 8, 16):
        if warps % mw:
            continue
        kw = warps // mw
        for window in (1, 2, 3, 4, 6, 8):
            bare = Tiles(uc, blocks, nt, chunks, mw, kw, 0, window)
            parts = products(problem, bare)
            if mw > 1 and max(part.tiles * mw * 16 for part in parts) >= 2 * _rows_of(problem, uc):
                continue
            if window > max(part.blocks for part in parts):
                continue
            tiles = bare._replace(kreg=_most_held(problem, bare, parts))
            if tiles.kreg >= 0 and fits(problem, tiles):
                yield tiles


def _most_held(problem: Problem, bare: Tiles, parts: list[Product]) -> int:
    """Return how many k-blocks of each product fit into the registers; negative if not even none does."""
    spare = min(255, REGISTERS // bare.threads) - registers(problem, bare)
    most = max(part.blocks for part in parts)
    return min(most, spare // (8 * sum(part.tiles for part in parts)))


def _rows_of(problem: Problem, uc: int) -> int:
    return uc if problem.backward else uc * (2 if problem.cell == "gru_before" else CELLS[problem.cell].gates)


def microseconds(problem: Problem, tiles: Tiles) -> float:
    """Estimate a step's time: what is told travels, products, sums and gates."""
    parts = products(problem, tiles)
    clock = 1.75e3  # cycles a microsecond
    rows = 8 * tiles.nt
    alone = tiles.blocks == 1
    total = 0.0
    for part in parts:
        loads = rows * part.inner * element_bytes(problem) * tiles.mw
        # one takes as long in tf32 as in half precision: at half the rate it multiplies half as much
        mma = 8 * part.tiles * part.blocks * 2 * tiles.nt * tiles.mw * tiles.kw / 4
        shared = 4 * part.words(tiles.threads, tiles.kreg) / 128
        sums = 2 * tiles.kw * rows * part.tiles * tiles.mw * 16 * 4 / 128
        windows = -(-part.blocks // tiles.window)
        total += loads / (128 if alone else 48) + max(mma, shared) + sums + 150
        total += 40 * part.blocks if alone else 350 * (windows - 1)
    pairs = tiles.uc / 2 * rows
    total += math.ceil(pairs / tiles.threads) * 120 + 100
    latency = 0.0 if alone else 1500.0 * len(parts)
    step = max(total * tiles.chunks, total + latency)
    return step * groups_and_passes(problem, tiles)[1] / clock


@functools.cache
def choose(problem: Problem) -> Tiles | None:
    """Return the tiles estimated fastest, None if none fit."""
    made = [tiles for tiles in candidates(problem) if groups_and_passes(problem, tiles)[0]]
    return min(made, key=lambda tiles: microseconds(problem, tiles), default=None)
