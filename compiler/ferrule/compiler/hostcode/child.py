"""Reads and compiles LLVM code of others, in a process of its own: LLVM ends it on some of them.

Run as a program, without ferrule: `python child.py` reads JSON, `{"code": base64, "prefix": text,
"path": where llvmlite is, "triple": of another platform, or ""}`, and writes JSON: `{"error":
text}`, or

* `triple`, `layout`: what the code says that it is for; `target` and `target_layout`, what it was
  compiled for, this machine's platform by default;
* `text`: the module as LLVM prints it, each function and variable that others could see under a
  name with the prefix, or hidden where a linker may leave it out;
* `functions`: the LLVM types of the functions that it shows, by name;
* `promises`: by name, the attributes of each parameter of these, and `reads_first` for one through
  which memory is read before anything is written through it, as far as that is plain to see;
* `cpus`: what functions say that they are for, each `[target-cpu, target-features]` once;
* `needed`: the functions and variables that it declares;
* `object`: the machine code, base64.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from typing import Any

_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_KEPT = "llvm."
_NAME = re.compile(r'%(?:"[^"]*"|[-\w.$]+)')
_READS = ("load", "atomicrmw", "cmpxchg")


def _run(request: dict[str, str]) -> dict[str, Any]:
    sys.path.insert(0, request["path"])
    import llvmlite.binding as llvm

    _leave_no_core()
    host = llvm.get_process_triple()
    target = request["triple"] or host
    _initialize(llvm, target == host)
    code = base64.b64decode(request["code"])
    try:
        if code.startswith(_BITCODE):
            module = llvm.parse_bitcode(code)
        else:
            module = llvm.parse_assembly(code.decode())
        module.verify()
    except (RuntimeError, UnicodeDecodeError) as error:
        return {"error": str(error)}
    machine = llvm.Target.from_triple(target).create_target_machine(
        opt=2, reloc="pic", codemodel="default"
    )
    said = {"triple": module.triple, "layout": module.data_layout}
    functions = _rename(module, llvm, request["prefix"])
    types = {f"%{each.name}" for each in module.struct_types}
    promises = {
        name: _promises(module.get_function(request["prefix"] + name), types) for name in functions
    }
    cpus = sorted({_cpu(each) for each in module.functions if not each.is_declaration})
    symbols = (*module.functions, *module.global_variables)
    needed = [each.name for each in symbols if each.is_declaration]
    module.triple, module.data_layout = target, str(machine.target_data)
    text = str(module)
    compiled = _compiled(llvm, module, machine)
    for name, found in promises.items():
        _learn(module.get_function(request["prefix"] + name), found)
    return {
        **said,
        "promises": promises,
        "cpus": cpus,
        "target": target,
        "target_layout": str(machine.target_data),
        "functions": functions,
        "text": text,
        "needed": needed,
        "object": base64.b64encode(compiled).decode(),
    }


def _initialize(llvm: Any, native: bool) -> None:
    if native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


def _leave_no_core() -> None:
    """What ends here by a signal is not for a debugger."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _rename(module: Any, llvm: Any, prefix: str) -> dict[str, str]:
    hidden = (llvm.Linkage.internal, llvm.Linkage.private)
    spare = (llvm.Linkage.linkonce_any, llvm.Linkage.linkonce_odr)
    functions = {}
    for symbol in (*module.functions, *module.global_variables):
        if symbol.is_declaration or symbol.linkage in hidden or symbol.name.startswith(_KEPT):
            continue
        name, symbol.name = symbol.name, prefix + symbol.name
        if symbol.linkage in spare:
            symbol.linkage = llvm.Linkage.internal
            continue
        symbol.linkage = llvm.Linkage.external
        if symbol.is_function:
            functions[name] = str(symbol.global_value_type)
    return functions


def _promises(function: Any, types: set[str]) -> list[list[str]]:
    """The attributes of each parameter of a function; `types` are names that mean types, too."""
    given = list(function.arguments)
    names = [match[0] if (match := _NAME.search(str(each))) else "" for each in given]
    pointers = [
        name
        for name, each in zip(names, given, strict=True)
        if name not in types and each.type.is_pointer
    ]
    first = _first_accesses(str(function), pointers, types) if pointers else {}
    return [
        [*(word.decode() for word in each.attributes), *first.get(name, ())]
        for name, each in zip(names, given, strict=True)
    ]


def _learn(function: Any, found: list[list[str]]) -> None:
    """Add which parameters are not written through, as far as the optimiser has found out."""
    for argument, words in zip(function.arguments, found, strict=True):
        learnt = {word.decode() for word in argument.attributes} & {"readonly", "readnone"}
        words += sorted(learnt - set(words))


def _first_accesses(text: str, pointers: list[str], types: set[str]) -> dict[str, tuple[str, ...]]:
    """By parameter, whether the first access through it, in the order of the text, is a read.

    The text is read, for LLVM prints it a hundred times as fast as its values can be asked.
    """
    behind = {name: name for name in pointers}
    first: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines()[1:]:
        tokens = _NAME.findall(line)
        used = [behind[each] for each in tokens if each in behind]
        if not used or "#dbg" in line or "@llvm.dbg." in line:
            continue
        words = line.split(None, 3)
        opcode = words[2] if words[1] == "=" else words[0]
        if opcode in ("getelementptr", "bitcast", "addrspacecast"):
            if tokens[0] not in types:
                behind[tokens[0]] = used[0]
            continue
        for each in used:
            first.setdefault(each, ("reads_first",) if opcode in _READS else ())
        if len(first) == len(pointers):
            break
    return first


def _cpu(function: Any) -> tuple[str, str]:
    """The CPU and the features that a function says it is for; empty where it says nothing."""
    said = b" ".join(function.attributes).decode()
    found = (re.search(rf'"target-{word}"="([^"]*)"', said) for word in ("cpu", "features"))
    cpu, features = (match[1] if match else "" for match in found)
    return cpu, features


def _compiled(llvm: Any, module: Any, machine: Any) -> bytes:
    """The machine code, with the passes that a function's body gets."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = True
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


if __name__ == "__main__":
    json.dump(_run(json.load(sys.stdin)), sys.stdout)
