"""Writes the GPU code of a compilation to files, for inspection."""

from __future__ import annotations

from pathlib import Path

from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError
from ferrule.compiler.options import Options


def keep(name: str, code: DeviceCode, options: Options) -> None:
    """Writes `<name>.<arch>.ptx` and `.cubin` into the folder of the options.

    With only a folder, it writes the PTX.  Raises CompileError if that is impossible.
    """
    wants_ptx = options.keep_ptx or (options.dump_dir is not None and not options.keep_cubin)
    if not (wants_ptx or options.keep_cubin):
        return
    folder = Path(options.dump_dir or ".")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for image in code.images:
            if wants_ptx:
                (folder / f"{name}.{image.arch}.ptx").write_text(image.ptx, encoding="utf-8")
            for number, cubin in enumerate(image.cubins if options.keep_cubin else ()):
                part = f".{number}" if number else ""
                (folder / f"{name}.{image.arch}{part}.cubin").write_bytes(cubin)
    except OSError as error:
        raise CompileError(f"what --dump-dir keeps cannot be written: {error}") from None
