"""The numbers of a thread in its block, as ops of the kernel IR."""

from __future__ import annotations

from ferrule.language.codegen.cpu.cooperate import warps
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.specs import Int32


class Numbering:
    """The ops for a thread's numbers: `uniform` ops once for a block, `own` ops anywhere.

    `flat`: blocks have one row of threads.
    """

    def __init__(self, *, flat: bool = False) -> None:
        b = Builder()
        with b.region() as uniform:
            self.width, self.height, depth = (b.special("block_dim", axis) for axis in range(3))
            self.count = b.binary("mul", b.binary("mul", self.width, self.height), depth)
        with b.region() as own:
            x, y, z = (b.special("thread_idx", axis) for axis in range(3))
            row = b.binary("add", b.binary("mul", z, self.height), y)
            self.thread = x if flat else b.binary("add", b.binary("mul", row, self.width), x)
            self.warp = warps.Warp.of(b, self.thread, self.count)
            self.present = self.warp.present(b)
        self.uniform: list[ops.Op] = uniform.ops
        self.own: list[ops.Op] = own.ops

    def ballots(self, given: ops.Value, ballots: ops.Value) -> list[ops.Op]:
        """Ops by which the first thread of each warp collects the Booleans of its lanes."""
        b = Builder()
        with b.region() as region:
            leads = b.compare("eq", self.warp.lane, b.constant(Int32, 0))
            with b.region() as then:
                bits = self.warp.gathered(b, self.present, lambda lane: b.load(given, (lane,)))
                b.store(ballots, (self.warp.first,), bits)
            b.if_(leads, then.freeze(), ops.Region(), ())
        return region.ops
