"""`Library`: what it takes, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

import ferrule as fe

CPU = "--target cpu"


@fe.jit
def doubled(value: fe.Int32) -> fe.Int32:
    return value + value


@fe.jit
def negated(value: fe.Int32) -> fe.Int32:
    return -value


JOB = fe.Job(doubled, [fe.Int32(0)], options=CPU)
WORD = fe.Job(doubled, [fe.Int32(0)], name="lambda")


def test_names_come_from_jobs_and_from_compiled_functions() -> None:
    compiled = fe.compile(negated, fe.Int32(0), options=CPU)
    library = fe.Library("numbers1", [JOB, compiled])
    assert library.names == ("doubled", "negated")
    assert list(library.jobs()) == [JOB]
    named = fe.Job(doubled, [fe.Int32(0)], options=CPU, name="twice")
    assert fe.Library("numbers1", [JOB, named]).names == ("doubled", "twice")


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (("two words", [JOB]), {}, ValueError, "the name of a Library is the name of a package"),
        (("class", [JOB]), {}, ValueError, "but got 'class'"),
        (("_hidden", [JOB]), {}, ValueError, "beginning with a letter"),
        (("käse", [JOB]), {}, ValueError, "letters, digits and _"),
        (("numpy", [JOB]), {}, ValueError, "would hide each other"),
        (("json", [JOB]), {}, ValueError, "would hide each other"),
        (("docs_", [JOB]), {}, ValueError, "not ending with _"),
        (("k", [JOB]), {"requires": ["a b c"]}, ValueError, "none of PEP 508"),
        (("k", [JOB]), {"requires": [""]}, ValueError, "none of PEP 508"),
        ((7, [JOB]), {}, TypeError, "must be a str, but got 7"),
        (("k", []), {}, ValueError, "has no functions"),
        (("k", [JOB, JOB]), {}, ValueError, "two functions named 'doubled'"),
        (("k", [doubled]), {}, TypeError, r"made of jobs .*, recipes .* and compiled functions"),
        (("k", [WORD]), {}, ValueError, "cannot have a function named 'lambda', a word of Python"),
        (("k", JOB), {}, TypeError, "must be a list"),
        (("k", "doubled"), {}, TypeError, "must be a list"),
        (("k", [JOB]), {"version": "one"}, ValueError, "must be one of PEP 440"),
        (("k", [JOB]), {"version": 1}, ValueError, "must be one of PEP 440"),
        (("k", [JOB]), {"summary": "two\nlines"}, ValueError, "the summary .* is one line"),
        (("k", [JOB]), {"requires": "numpy"}, TypeError, "must be a list of texts"),
        (("k", [JOB]), {"license": "my own"}, ValueError, "an expression of SPDX"),
        (("k", [JOB]), {"license": 1}, ValueError, "the license .* is one line"),
        (("k", [JOB]), {"readme": 1}, TypeError, "the readme .* must be a str"),
        (("k", [JOB]), {"readme": "\udc80"}, ValueError, "the readme .* is no text"),
        (("k", [JOB]), {"requires": [1]}, ValueError, "the requirement .* is one line"),
    ],
)
def test_what_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        fe.Library(*arguments, **options)


@pytest.mark.parametrize("version", ["1", "1.2.3", "1.0rc1", "1.0.post1", "2!1.0.dev3", "1+cu12.1"])
def test_versions_of_pep_440(version: str) -> None:
    assert fe.Library("k", [JOB], version=version).version == version


@pytest.mark.parametrize(
    "text", ["numpy", "numpy>=1.26", "torch[cpu] >=2 ; python_version<'3.13'", "a.b-c_d==1,<2"]
)
def test_requirements_of_pep_508(text: str) -> None:
    assert fe.Library("k", [JOB], requires=[text]).requires == (text,)
