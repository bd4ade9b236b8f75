"""An emulated GPU: memory, modules of PTX, and launches of their kernels.

    machine = Machine("sm_90a", checks=frozenset({"memory"}), schedule=None)
    module = machine.load(ptx)
    module.kernels["add"].launch((4, 1, 1), (256, 1, 1), smem=0, parameters=data)

A launch returns when the kernel has run, or raises `Fault` for the first thread that fails.
"""

from ferrule.emulator.machine.faults import Fault as Fault
from ferrule.emulator.machine.kernels import Kernel as Kernel
from ferrule.emulator.machine.kernels import Parameter as Parameter
from ferrule.emulator.machine.memory import Memory as Memory
from ferrule.emulator.machine.modules import LoadedModule as LoadedModule
from ferrule.emulator.machine.modules import Machine as Machine
from ferrule.emulator.ptx.module import PtxError as PtxError
