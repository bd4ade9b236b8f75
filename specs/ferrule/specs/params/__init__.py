"""The description of one parameter: pure data, a closed union of frozen dataclasses.

`Param` lists the kinds.  Whoever treats kinds differently does it with `match` and
`assert_never`, so that a new kind makes the type checker list every place that must know it.  A
kind that is one `WithTraits` has a record of its facts, `traits`, which is all that most of these
places ask for.

Every kind has a `name` and a `default`: the value where a call gives none, REQUIRED where it must;
and `indices`, the type indices of the values that it takes.  Inside a tuple the name is the item's
position, or the field's name of a named tuple or dataclass.
"""

from __future__ import annotations

from ferrule.specs.params.addresses import AddressSpace, EnvStream, Pointer, Stream
from ferrule.specs.params.base import (
    BIG_INT,
    DYNAMIC,
    REQUIRED,
    Plain,
    Required,
    WithTraits,
    check_name,
    payload_of,
)
from ferrule.specs.params.compound import (
    Array,
    Dict,
    Elements,
    List,
    Map,
    Optional,
    Pairs,
    Param,
    Tuple,
    Union,
    type_indices,
)
from ferrule.specs.params.numbers import (
    SIGNED_KINDS,
    Constant,
    Scalar,
    Shape,
    TupleKind,
    check_scalar_dtype,
)
from ferrule.specs.params.tensors import (
    PACKED_NAME,
    Data,
    Tensor,
    check_alignment,
    check_dims,
    check_packed,
    compact_strides,
)
from ferrule.specs.params.traits import CArgument, Payload, Traits
from ferrule.specs.params.values import (
    AnyOrTuple,
    AnyValue,
    Bytes,
    DataType,
    Device,
    Function,
    Module,
    NoneValue,
    Object,
    String,
)

__all__ = [
    "AddressSpace",
    "AnyOrTuple",
    "AnyValue",
    "Array",
    "BIG_INT",
    "Bytes",
    "CArgument",
    "Constant",
    "DYNAMIC",
    "Data",
    "DataType",
    "Device",
    "Dict",
    "Elements",
    "EnvStream",
    "Function",
    "List",
    "Map",
    "Module",
    "NoneValue",
    "Object",
    "Optional",
    "PACKED_NAME",
    "Pairs",
    "Param",
    "Payload",
    "Plain",
    "Pointer",
    "REQUIRED",
    "Required",
    "SIGNED_KINDS",
    "Scalar",
    "Shape",
    "Stream",
    "String",
    "Tensor",
    "Tuple",
    "Traits",
    "TupleKind",
    "Union",
    "WithTraits",
    "check_alignment",
    "check_dims",
    "check_name",
    "check_packed",
    "check_scalar_dtype",
    "compact_strides",
    "payload_of",
    "type_indices",
]
