"""Reads and compiles foreign LLVM code, in a separate process: LLVM aborts on some of it.

Run as a program, without ferrule, `python child.py` answers requests until its input ends.  A
request and an answer are a line with a number of bytes, and as many bytes of JSON.  A request is
`{"codes": list of base64, "prefix": text, "path": folder of llvmlite, "triple": of another
platform, or "", "seconds": of the processor's time}`.  The codes are linked to one module.  The
answer is `{"error": text, "at": position of the code}`, `{"clash": "twice" or two types, "symbol":
name, "of": positions of two codes}`, or

* `said`: the triple and the layout that each code names; `target` and `target_layout`, the actual
  target, this machine's platform by default;
* `text`: the module as LLVM prints it; functions and variables that were visible get a name with
  the prefix, or are hidden if a linker may drop them;
* `functions`: the LLVM types of its visible functions, by name;
* `promises`: by name, the attributes of each parameter of these, and `reads_first` for one through
  which memory is read before it is written, as far as the analysis sees; `writes` for one that is
  written through, `assumes N` for one that the body assumes to be a multiple of N bytes, `apart N`
  for one that the body assumes not to alias the one at position N;
* `cpus`: the target CPUs of functions, each `[target-cpu, target-features]` once;
* `needed`: the functions and variables that it declares;
* `object`: the machine code, base64.

A code that ends the process ends nothing else, and one that takes longer than its seconds ends it,
even if nobody waits for the answer any more.  After much memory was used it leaves with status 0.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import signal
import sys
from typing import Any

# Plain bitcode, and the wrapper that Apple's tools put around it (LLVM Bitcode File Format).
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_KEPT = "llvm."
_NAME = re.compile(r'%(?:"[^"]*"|[-\w.$]+)')
_READS = ("load", "atomicrmw", "cmpxchg")
_SPARE = (
    *("internal", "private", "linkonce_any", "linkonce_odr", "weak_any", "weak_odr"),
    *("common", "appending", "available_externally"),
)
"""The linkages of which two modules may have a symbol of one name."""
_PASSED = ("byval", "sret", "inreg", "inalloca", "preallocated", "nest", "swift")
_EXTENDED = ("signext", "zeroext")
"""The attributes that say how an argument is passed."""
_CONVENTION = re.compile(r"\b(?:cc ?\d+|\w+cc)(?= )")
_PLACE = re.compile(r"\bthread_local\b|\baddrspace\(\d+\)")
_MOST_REQUESTS = 1000
_MOST_MEMORY = 1 << 30


def _run(request: dict[str, Any]) -> dict[str, Any]:
    if request["path"] not in sys.path:
        sys.path.insert(0, request["path"])
    import llvmlite.binding as llvm

    host = llvm.get_process_triple()
    target = request["triple"] or host
    _initialize(llvm, target == host)
    modules = []
    for at, code in enumerate(request["codes"]):
        try:
            modules.append(_read(llvm, base64.b64decode(code)))
        except (RuntimeError, UnicodeDecodeError) as error:
            return {"error": str(error), "at": at}
    said = [[each.triple, each.data_layout] for each in modules]
    if found := _clash(llvm, modules, target):
        return found
    module = modules[0]
    for at, other in enumerate(modules[1:], 1):
        try:
            module.link_in(other)
        except RuntimeError as error:
            return {"error": str(error), "at": at}
    return {"said": said, **_made(llvm, module, request["prefix"], target)}


def _read(llvm: Any, code: bytes) -> Any:
    is_bitcode = code.startswith(_BITCODE)
    if not is_bitcode and b"\0" in code.rstrip(b"\0"):
        raise RuntimeError("LLVM IR parsing error: the text goes on behind a null byte")
    module = llvm.parse_bitcode(code) if is_bitcode else llvm.parse_assembly(code.decode())
    module.verify()
    return module


def _clash(llvm: Any, modules: list[Any], target: str) -> dict[str, Any] | None:
    """A symbol that two modules define, or that one has with another type than its definition."""
    found: dict[str, list[tuple[int, Any]]] = {}
    hidden = (llvm.Linkage.internal, llvm.Linkage.private)
    for at, module in enumerate(modules):
        for symbol in (*module.functions, *module.global_variables):
            if symbol.linkage not in hidden and not symbol.name.startswith(_KEPT):
                found.setdefault(symbol.name, []).append((at, symbol))
    aside = {llvm.Linkage[each] for each in _SPARE}
    for name, all_of in found.items():
        given = [each for each in all_of if not each[1].is_declaration]
        strong = [each for each in given if each[1].linkage not in aside]
        if len(strong) > 1:
            return {"clash": "twice", "symbol": name, "of": [each[0] for each in strong[:2]]}
        if len(all_of) > 1 and given:
            shapes = _Shapes(llvm, target)
            there, symbol = (strong or [max(given, key=lambda each: shapes.size(each[1]))])[0]
            for at, other in all_of:
                if at != there and (said := shapes.difference(other, symbol)):
                    return {"clash": said, "symbol": name, "of": [at, there]}
    return None


class _Shapes:
    """Compares the type and alignment that code assumes of a symbol with its definition."""

    def __init__(self, llvm: Any, target: str) -> None:
        machine = llvm.Target.from_triple(target).create_target_machine()
        self._layout = machine.target_data

    def difference(self, one: Any, other: Any) -> str:
        """What the first has and the second, the definition, has not; empty if they fit."""
        both = (one, other)
        if one.is_function and other.is_function:
            fits = _is_called_as(one, other)
        else:
            fits = one.is_function == other.is_function and self._is_within(one, other)
        words = (_called_as(each) if each.is_function else self._shown(each) for each in both)
        return "" if fits else ", ".join(words)

    def _is_within(self, one: Any, other: Any) -> bool:
        """Whether a variable has the properties that this declaration of it promises."""
        sizes, aligns = ([get(one), get(other)] for get in (self.size, self._align))
        is_less = sizes[0] <= sizes[1] and aligns[0] <= aligns[1]
        return is_less and _place(one) == _place(other)

    def _shown(self, variable: Any) -> str:
        size, align = self.size(variable), self._align(variable)
        kind = f"{variable.global_value_type}{_place(variable)}"
        return f"a variable {kind} of {size} bytes, align {align}"

    def size(self, symbol: Any) -> int:
        """The bytes of a variable; 0 for a function, and for a type without a size."""
        kind = symbol.global_value_type
        if symbol.is_function or _is_opaque(kind):
            return 0
        return int(self._layout.get_abi_size(kind))

    def _align(self, symbol: Any) -> int:
        """The alignment that a module assumes, or has: by default that of the type."""
        if said := re.search(r", align (\d+)", re.sub(r'"[^"]*"', "", str(symbol))):
            return int(said[1])
        kind = symbol.global_value_type
        return 1 if _is_opaque(kind) else int(self._layout.get_abi_alignment(kind))


def _is_called_as(one: Any, other: Any) -> bool:
    """Whether calls of a function as the first are right for the second, its definition.

    What is extended for nothing does no harm.
    """
    types = [str(each.global_value_type) for each in (one, other)]
    passed, wanted = _passed(one), _passed(other)
    extended = {each for each in passed ^ wanted if each.endswith(_EXTENDED)}
    if types[0].endswith("(...)"):
        return _convention(one) == _convention(other)
    same = types[0] == types[1] and _convention(one) == _convention(other)
    return same and passed ^ wanted == extended and not extended - passed


def _called_as(function: Any) -> str:
    """The type of a function with what decides about registers: `fastcc i8 (i8) #0 signext`."""
    words = (_convention(function), str(function.global_value_type), *sorted(_passed(function)))
    return " ".join(filter(None, words))


def _convention(function: Any) -> str:
    lines = str(function).splitlines()
    head = next(line for line in lines if line.startswith(("define", "declare")))
    found = _CONVENTION.search(head.partition("@")[0])
    return found[0] if found else ""


def _passed(function: Any) -> set[str]:
    """The attributes that say how arguments are passed, with their positions."""
    return {
        f"#{at} {word.decode()}"
        for at, each in enumerate(function.arguments)
        for word in each.attributes
        if word.decode().startswith((*_PASSED, *_EXTENDED))
    }


def _is_opaque(kind: Any) -> bool:
    return bool(kind.is_struct and kind.is_opaque_struct)


def _place(variable: Any) -> str:
    """The words for thread-local data, and for another address space."""
    head = str(variable).partition(str(variable.global_value_type))[0]
    return "".join(f" {each[0]}" for each in _PLACE.finditer(head.rpartition("=")[2]))


def _made(llvm: Any, module: Any, prefix: str, target: str) -> dict[str, Any]:
    """The answer for one module, except what its codes name."""
    machine = llvm.Target.from_triple(target).create_target_machine(
        opt=2, reloc="pic", codemodel="default"
    )
    functions = _rename(module, llvm, prefix)
    types = {f"%{each.name}" for each in module.struct_types}
    callees = _Callees(module)
    promises = {
        name: _promises(module.get_function(prefix + name), types, callees) for name in functions
    }
    cpus = sorted({_cpu(each) for each in module.functions if not each.is_declaration})
    symbols = (*module.functions, *module.global_variables)
    needed = [each.name for each in symbols if each.is_declaration]
    module.triple, module.data_layout = target, str(machine.target_data)
    text = str(module)
    # After the text was taken: the optimiser changes the module.
    compiled = _compiled(llvm, module, machine)
    for name, found in promises.items():
        _learn(module.get_function(prefix + name), found)
    return {
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


def _prepare() -> None:
    """Leave nothing behind and hold nothing of the user's.

    There are no core dumps, because a crash here is expected and not for a debugger.  An interrupt
    is for the parent.  If memory is exhausted, the system ends this process first.
    """
    # Ctrl-C goes to all of a terminal's processes; the parent decides what happens with this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A disk on which a process stands cannot be unmounted.
    os.chdir(os.path.abspath(os.sep))
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/oom_score_adj", "w") as score:
            # Where memory runs out, this process ends first, not the user's program.
            score.write("1000")
    except (ImportError, OSError):
        return


def _limit(seconds: int) -> None:
    """End this process after so much more time of the processor."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # RLIMIT_CPU counts from the start of the process, which has answered other requests.
    soft = math.ceil(used.ru_utime + used.ru_stime) + seconds
    soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _is_large() -> bool:
    """Whether this process has used much memory."""
    try:
        import resource
    except ImportError:
        return False
    # macOS counts ru_maxrss in bytes, Linux in KiB.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > _MOST_MEMORY


def _rename(module: Any, llvm: Any, prefix: str) -> dict[str, str]:
    hidden = (llvm.Linkage.internal, llvm.Linkage.private)
    spare = (llvm.Linkage.linkonce_any, llvm.Linkage.linkonce_odr)
    functions = {}
    for symbol in (*module.functions, *module.global_variables):
        if symbol.is_declaration or symbol.linkage in hidden or symbol.name.startswith(_KEPT):
            continue
        name, symbol.name = symbol.name, prefix + symbol.name
        # Nobody else chooses among several definitions: the name is this code's own.
        if symbol.linkage in spare:
            symbol.linkage = llvm.Linkage.internal
            continue
        symbol.linkage = llvm.Linkage.external
        if symbol.is_function:
            functions[name] = str(symbol.global_value_type)
    return functions


def _promises(function: Any, types: set[str], callees: _Callees) -> list[list[str]]:
    """The attributes of each parameter of a function; `types` are names that are also types."""
    given = list(function.arguments)
    names = [match[0] if (match := _NAME.search(str(each))) else "" for each in given]
    pointers = [
        name
        for name, each in zip(names, given, strict=True)
        if name not in types and each.type.is_pointer
    ]
    first = _first_accesses(str(function), pointers, types) if pointers else {}
    uses = _Uses(function, callees=callees)
    return [
        [*(word.decode() for word in each.attributes), *first.get(name, ()), *uses.words(at)]
        for at, (name, each) in enumerate(zip(names, given, strict=True))
    ]


def _learn(function: Any, found: list[list[str]]) -> None:
    """Add the parameters that are not written through, and other facts that the optimised code
    shows."""
    asks = frozenset(at for at, words in enumerate(found) if "asks" in words)
    uses = _Uses(function, asks)
    for at, (argument, words) in enumerate(zip(function.arguments, found, strict=True)):
        words += uses.words(at)
        learnt = {word.decode() for word in argument.attributes} & {"readonly", "readnone"}
        words += sorted(learnt - set(words))


def _first_accesses(text: str, pointers: list[str], types: set[str]) -> dict[str, tuple[str, ...]]:
    """For each parameter, whether the first access through it, in the order of the text, is a read.

    This parses the text, because LLVM prints it a hundred times as fast as llvmlite walks its
    values.
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


_VALUE = r'%("[^"]*"|[-\w.$]+)'
_DEFINED = re.compile(rf"{_VALUE} = (.*)")
_MOVED = re.compile(
    rf"getelementptr (?:(?:inbounds|nuw|nusw) )*(.+?), ptr {_VALUE}((?:, i\d+ -?\d+)*)(, .*)?$"
)
_SAME = re.compile(rf"(?:freeze|bitcast) ptr {_VALUE}")
_CHOSEN = re.compile(r"(?:phi ptr|(?:fast )?select i1) ")
_POINTERS = re.compile(rf"ptr {_VALUE}|\[ {_VALUE}, ")
_ACCESS = re.compile(rf"(load|store) (?:.*, )?ptr {_VALUE}(?: [^%]*)?, align (\d+)")
_ATOMIC = re.compile(
    rf"(?:atomicrmw (?:volatile )?\w+|cmpxchg(?: weak)?(?: volatile)?) ptr {_VALUE},.*, align (\d+)"
)
_SAID = re.compile(
    rf"\bptr (?:[\w]+(?:\([^()]*\))? )*?align (\d+) (?:[a-z]\w*(?:\([^()]*\))? )*{_VALUE}"
)
_MASKED = re.compile(rf"@llvm\.masked\.(?:load|store)\..*?ptr {_VALUE}, i32 (\d+),")
_ASSUMED = re.compile(rf'"align"\(ptr {_VALUE}, i\d+ (\d+)(?:, i\d+ (-?\d+))?\)')
_FILLED = re.compile(rf"@llvm\.mem(?:cpy|move|set)\.[^(]*\(ptr (?:[^%,]* )?{_VALUE},")
_MASKED_STORE = re.compile(
    rf"@llvm\.masked\.(?:store|compressstore)\..*?, ptr (?:[^%,]* )?{_VALUE}"
)
_ASKED = re.compile(
    rf"ptrto(?:int|addr) ptr {_VALUE}|@llvm\.ptrmask\.[^(]*\(ptr (?:[^%,]* )?{_VALUE}"
)
_CALLED = re.compile(r'(?:call|invoke) [^@]*@("[^"]*"|[-\w.$]+)\(')
_GIVEN = re.compile(rf"ptr (.*?){_VALUE}$")
_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


class _Callees:
    """The assumptions of a module's functions about their parameters: the ones that must not alias,
    and their alignments, by position.

    Assumptions of their callees count, too.  The attributes of LLVM's own functions do not: memcpy
    may copy memory to itself.
    """

    def __init__(self, module: Any) -> None:
        self._functions = {each.name: each for each in module.functions}
        self._known: dict[str, tuple[set[tuple[int, int]], dict[int, int]]] = {}

    def promises(self, name: str) -> tuple[set[tuple[int, int]], dict[int, int]]:
        """The pairs of parameters that must not alias, and the alignments."""
        function = self._functions.get(name)
        if function is None or name.startswith(_KEPT):
            return set(), {}
        if name not in self._known:
            self._known[name] = found = _declared(function)
            if not function.is_declaration:
                found[0].update(_Uses(function, callees=self).apart)
        return self._known[name]


def _declared(function: Any) -> tuple[set[tuple[int, int]], dict[int, int]]:
    """The attributes of a function's parameters, in the form of `_Callees.promises`."""
    pointers = {at: each for at, each in enumerate(function.arguments) if each.type.is_pointer}
    words = {at: [word.decode() for word in each.attributes] for at, each in pointers.items()}
    pairs = {(at, other) for at in words if "noalias" in words[at] for other in words}
    aligns = {
        at: int(found[1])
        for at, said in words.items()
        if (found := re.search(r"\balign[ (](\d+)", " ".join(said)))
    }
    return {(at, other) for at, other in pairs if at != other}, aligns


def _arguments(text: str) -> list[str]:
    """The arguments of a call, from the text after its opening parenthesis."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if depth == 0 and letter in ",)":
            found.append(text[start:at].strip())
            start = at + 1
            if letter == ")":
                break
        depth += (letter in "([{<") - (letter in ")]}>")
    return found


class _Uses:
    """The uses of memory through each parameter, by position: through the pointer itself, and
    through pointers derived from it.

    An alignment counts at known distances.  After a branch it does not count if the function
    computes with the address, because the branch may depend on it.
    """

    def __init__(
        self,
        function: Any,
        asks: frozenset[int] = frozenset(),
        callees: _Callees | None = None,
    ) -> None:
        self._callees = callees
        self.apart: set[tuple[int, int]] = set()
        self._behind: dict[str, set[tuple[int, int | None]]] = {}
        self._assumed: dict[int, int] = {}
        self._later: dict[int, int] = {}
        self._writes: set[int] = set()
        self._asks = set(asks)
        unnamed = 0
        for at, each in enumerate(function.arguments):
            self._behind[each.name or str(unnamed)] = {(at, 0)}
            unnamed += not each.name
        lines = str(function).partition("{\n")[2].splitlines()
        lines = [re.sub(r", ![\w.]+ !.*$", "", each) for each in lines]
        for _ in range(2):  # Values that a loop carries are used before they are defined.
            for line in lines:
                self._define(line.strip())
        is_first = True
        for number, line in enumerate(lines):
            is_first = is_first and (number == 0 or line.startswith(" ") or not line)
            self._look(line.strip(), self._assumed if is_first else self._later)

    def words(self, at: int) -> list[str]:
        """The words to add to the attributes of the parameter at a position."""
        found = self._assumed.get(at, 1)
        if at not in self._asks:
            found = max(found, self._later.get(at, 1))
        said = [f"assumes {found}"] if found > 1 else []
        said += ["writes"] if at in self._writes else []
        said += [f"apart {other}" for one, other in sorted(self.apart) if one == at]
        return said + (["asks"] if at in self._asks else [])

    def _define(self, line: str) -> None:
        match = _DEFINED.match(line)
        if match is None:
            return
        name, how = match[1].strip('"'), match[2]
        if moved := _MOVED.match(how):
            by = None if moved[4] else _distance(moved[1], moved[3])
            found = {
                (at, None if by is None or base is None else base + by)
                for at, base in self._of(moved[2])
            }
        elif same := _SAME.match(how):
            found = self._of(same[1])
        elif _CHOSEN.match(how):
            names = [each[0] or each[1] for each in _POINTERS.findall(how)]
            found = {(at, None) for each in names for at, _ in self._of(each)}
        else:
            return
        self._behind.setdefault(name, set()).update(found)

    def _of(self, name: str) -> set[tuple[int, int | None]]:
        return self._behind.get(name.strip('"'), set())

    def _look(self, line: str, assumed: dict[int, int]) -> None:
        how = match[2] if (match := _DEFINED.match(line)) else line
        if access := _ACCESS.match(how):
            self._assume(access[2], int(access[3]), assumed)
            self._write(access[2] if access[1] == "store" else "")
        elif atomic := _ATOMIC.match(how):
            self._assume(atomic[1], int(atomic[2]), assumed)
            self._write(atomic[1])
        elif "call " in how or how.startswith("invoke "):
            self._look_at_call(how, assumed)
        for each in _ASKED.findall(how):
            self._asks |= {at for at, _ in self._of(each[0] or each[1])}

    def _look_at_call(self, how: str, assumed: dict[int, int]) -> None:
        for number, name in _SAID.findall(how):
            self._assume(name, int(number), assumed)
        for name, number in _MASKED.findall(how):
            self._assume(name, int(number), assumed)
        for name, number, offset in _ASSUMED.findall(how):
            self._assume(name, int(number), assumed, -int(offset or 0))
        for name in (*_FILLED.findall(how), *_MASKED_STORE.findall(how)):
            self._write(name)
        self._look_at_callee(how, assumed)

    def _look_at_callee(self, how: str, assumed: dict[int, int]) -> None:
        """Record the assumptions of the called function, or the attributes of the call."""
        called = _CALLED.search(how)
        if self._callees is None or called is None:
            return
        name = called[1].strip('"')
        given = [_GIVEN.search(each) for each in _arguments(how[called.end() :])]
        named = {at: (each[1], each[2]) for at, each in enumerate(given) if each is not None}
        pairs, aligns = self._callees.promises(name)
        said = {at for at, (words, _) in named.items() if "noalias" in words.split()}
        if not name.startswith(_KEPT):
            pairs = pairs | {(at, other) for at in said for other in named if at != other}
        for one, other in pairs:
            if one in named and other in named:
                self._set_apart(named[one][1], named[other][1])
        for at, align in aligns.items():
            if at in named:
                self._assume(named[at][1], align, assumed)

    def _set_apart(self, one: str, other: str) -> None:
        """Record that two values do not alias; parts of one parameter are skipped, because only the
        function knows how they are apart."""
        for left, _ in self._of(one):
            for right, _ in self._of(other):
                if left != right:
                    self.apart |= {(left, right), (right, left)}

    def _assume(self, name: str, align: int, assumed: dict[int, int], by: int = 0) -> None:
        for at, base in self._of(name):
            if base is not None:
                assumed[at] = max(assumed.get(at, 1), math.gcd(align, base + by))

    def _write(self, name: str) -> None:
        self._writes |= {at for at, _ in self._of(name)}


def _distance(kind: str, indices: str) -> int | None:
    """The distance in bytes of constant indices into a type; None if it is not obvious."""
    steps = [int(each) for each in re.findall(r" (-?\d+)(?:,|$)", indices)]
    if not any(steps):
        return 0
    size = _size(kind)
    return steps[0] * size if size is not None and len(steps) == 1 else None


def _size(kind: str) -> int | None:
    if vector := re.fullmatch(r"([<\[])(\d+) x (.*)[>\]]", kind):
        each = _size(vector[3])
        count = int(vector[2])
        # Vectors of another number of elements have padding behind them.
        is_whole = vector[1] == "[" or count & (count - 1) == 0
        return each * count if each is not None and is_whole else None
    if kind in ("i8", "i16", "i32", "i64"):
        return int(kind[1:]) // 8
    return _BYTES.get(kind)


def _cpu(function: Any) -> tuple[str, str]:
    """The CPU and the features in a function's attributes; empty if there are none."""
    said = b" ".join(function.attributes).decode()
    found = (re.search(rf'"target-{word}"="([^"]*)"', said) for word in ("cpu", "features"))
    cpu, features = (match[1] if match else "" for match in found)
    return cpu, features


def _compiled(llvm: Any, module: Any, machine: Any) -> bytes:
    """The machine code, after the passes for a body."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = True
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def _serve() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Keep LLVM's output out of the answers.
    # LLVM prints to file descriptor 1, which no assignment to sys.stdout changes.
    os.dup2(2, 1)
    _prepare()
    for _ in range(_MOST_REQUESTS):
        line = requests.readline()
        if not line:
            return
        request = json.loads(requests.read(int(line)))
        _limit(request["seconds"])
        answer = json.dumps(_run(request)).encode()
        answers.write(b"%d\n" % len(answer) + answer)
        answers.flush()
        if _is_large():
            return


if __name__ == "__main__":
    _serve()
