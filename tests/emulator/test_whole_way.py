"""A program with an emulated GPU from beginning to end, in processes of its own, and from C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tvm_ffi import libinfo

SUPPORT = Path(__file__).parents[1] / "support"
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\n"
RUN = "from emulated_program import main; main()"


def run(code: str, *, gpu: str = "", torch: bool = False) -> str:
    """What a process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code if torch else WITHOUT_TORCH + code],
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]),
            "FERRULE_GPU": gpu,
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parts_of_a_program_on_each_architecture() -> None:
    code = """
import ferrule as fe
for arch in "sm_50", "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120":
    with fe.emulated_gpu(arch, schedule="random:17"):
        from emulated_program import main
        main()
"""
    assert run(code) == "cuda:0 right\n" * 6


@pytest.mark.nightly
@pytest.mark.needs_torch
def test_beside_pytorch() -> None:
    """PyTorch loads libcuda where there is one, and tensors know its current stream."""
    assert run("import torch\n" + RUN, gpu="emulated:sm_80", torch=True) == "cuda:0 right\n"


CALLS = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <tvm/ffi/c_api.h>

typedef int (*call)(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);

/* What add_one of an exported library leaves of 1.5; below 0 if something fails. */
float run(const char *path)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *library = dlopen(path, RTLD_NOW);
    if (!cuda || !library)
        return -1;
    int (*allocate)(uint64_t *, size_t) = dlsym(cuda, "cuMemAlloc_v2");
    int (*to)(uint64_t, const void *, size_t) = dlsym(cuda, "cuMemcpyHtoD_v2");
    int (*from)(void *, uint64_t, size_t) = dlsym(cuda, "cuMemcpyDtoH_v2");
    int (*retain)(void **, int) = dlsym(cuda, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = dlsym(cuda, "cuCtxSetCurrent");
    int (*init)(unsigned) = dlsym(cuda, "cuInit");
    call add_one = (call)dlsym(library, "__tvm_ffi_add_one");
    void *context;
    uint64_t places[2];
    float values[300] = {0}, found = 0;
    values[299] = 1.5;
    if (init(0) || retain(&context, 0) || set(context))
        return -2;
    for (int i = 0; i < 2; i++)
        if (allocate(&places[i], sizeof values) || to(places[i], values, sizeof values))
            return -3;
    int64_t size = 300, stride = 1;
    DLTensor tensors[2];
    TVMFFIAny arguments[2], result = {.type_index = kTVMFFINone};
    for (int i = 0; i < 2; i++) {
        tensors[i] = (DLTensor){(void *)places[i], {kDLCUDA, 0}, 1, {kDLFloat, 32, 1},
                                &size, &stride, 0};
        arguments[i] = (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = &tensors[i]};
    }
    if (add_one(0, arguments, 2, &result) || from(&found, places[1] + 299 * 4, 4))
        return -4;
    return found;
}
"""


@pytest.mark.needs_cc
def test_c_calls_an_exported_library(tmp_path: Path) -> None:
    source, caller, exported = (tmp_path / name for name in ("run.c", "run.so", "add_one.so"))
    source.write_text(CALLS)
    include = [f"-I{path}" for path in libinfo.include_paths()]
    command = ["cc", "-shared", "-fPIC", *include, "-o", str(caller), str(source)]
    subprocess.run(command, check=True)
    making = f"""
import ferrule as fe
from emulated_program import add_one, fake
add_one = fe.compile(add_one, fake, fake, options="--target cuda --gpu-arch sm_80")
fe.Module([add_one]).write_to_file({str(exported)!r})
"""
    run(making)
    calling = f"""
import ctypes, ferrule as fe
fe.runtime.load_module({str(exported)!r})
library = ctypes.CDLL({str(caller)!r})
library.run.restype, library.run.argtypes = ctypes.c_float, [ctypes.c_char_p]
print(library.run({str(exported)!r}.encode()))
"""
    assert run(calling, gpu="emulated:sm_90a") == "2.5\n"
