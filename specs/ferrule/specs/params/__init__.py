"""The description of one parameter: pure data, a closed union of frozen dataclasses.

`Param` lists the kinds.  Code that distinguishes kinds uses `match` and `assert_never`, so that
the type checker lists each place that must handle a new kind.  A kind that derives from
`WithTraits` has one record of its facts, `traits`, and most of these places read only that.

Every kind has a `name`, a `default` and `indices`.  `default` is the value for a call that gives no
argument, or REQUIRED if each call must give one.  `indices` are the type indices of the values that
the parameter accepts.  Inside a tuple, the name is the position of the item; inside a named tuple
or dataclass, it is the name of the field.
"""

from __future__ import annotations

from ferrule.specs.params.addresses import AddressSpace, EnvStream, Pointer, Stream
from ferrule.specs.params.base import (
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
    row_major_strides,
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
from ferrule.specs.typeindex import BIG_INT, DYNAMIC

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
    "row_major_strides",
    "type_indices",
]
