"""The names of support code: the cold functions that bodies and wrappers call, of each part.

Objects are compiled with these names alone where the code is there as files; what emits a part says
what its functions take and do.
"""

from __future__ import annotations

from typing import Final

# ---- `allocation`: tensors of a body ----

ALLOCATE: Final = "ferrule_allocate"
ALIGNED: Final = "ferrule_allocate_aligned"
SHRINK: Final = "ferrule_shrink"
VIEW: Final = "ferrule_view"
KEEP: Final = "ferrule_keep"
LET_GO: Final = "ferrule_let_go"
ALLOCATION: Final = (ALLOCATE, ALIGNED, SHRINK, VIEW, KEEP, LET_GO)

ALIGNMENT: Final = 64
"""The alignment of new tensors, in bytes."""

# ---- `values`: results ----

CONSTRUCT: Final = "ferrule_construct"
UNSIGNED: Final = "ferrule_unsigned"
OWN: Final = "ferrule_own"
RELEASE: Final = "ferrule_release_values"
VALUES: Final = (CONSTRUCT, UNSIGNED, OWN, RELEASE)

# ---- `calling`: functions of tvm-ffi ----

FIND: Final = "ferrule_find"
FIND_IMPORTED: Final = "ferrule_find_imported"
PASS_TEXT: Final = "ferrule_pass_text"
PASS_TENSOR: Final = "ferrule_pass_tensor"
PASS_OBJECT: Final = "ferrule_pass_object"
INVOKE: Final = "ferrule_invoke"
TAKE: Final = "ferrule_take"
CALLING: Final = (FIND, FIND_IMPORTED, PASS_TEXT, PASS_TENSOR, PASS_OBJECT, INVOKE, TAKE)

# ---- `objects`: containers, fields and methods ----

ITEM: Final = "ferrule_item"
METHOD: Final = "ferrule_method"
FIELD: Final = "ferrule_field"
SET_FIELD: Final = "ferrule_set_field"
ELEMENTS_FIT: Final = "ferrule_elements_fit"
IS_INSTANCE: Final = "ferrule_is_instance"
OBJECTS: Final = (ELEMENTS_FIT, ITEM, METHOD, FIELD, SET_FIELD, IS_INSTANCE)

# ---- `refusals`: overloads ----

REFUSE: Final = "ferrule_refuse"
REFUSE_ONE: Final = "ferrule_refuse_one"
REFUSALS: Final = (REFUSE, REFUSE_ONE)
