"""Constants as sums of floats, so that they are more precise than one float.

Written by `tests/maths/fit.py`.
"""

from __future__ import annotations

from typing import Final

from ferrule.specs import DType, Float32, Float64

Parts = dict[DType, tuple[float, ...]]

LN2: Final[Parts] = {
    Float32: (0.693145751953125, 1.428606765330187e-06),
    Float64: (0.6931471805601177, -1.7239444525614835e-13),
}
"""ln 2; times an exponent the first part is exact."""

LN2_FULL: Final[Parts] = {
    Float32: (0.6931471824645996, -1.9046542121259336e-09),
    Float64: (0.6931471805599453, 2.3190468138462996e-17),
}
"""ln 2."""

LOG2_E_FULL: Final[Parts] = {
    Float32: (1.4426950216293335, 1.925963033500011e-08),
    Float64: (1.4426950408889634, 2.0355273740931033e-17),
}
"""1 / ln 2."""

LOG2_E: Final[Parts] = {
    Float32: (1.44287109375, -0.00017605285393074155),
    Float64: (1.4426950514316559, -1.0542692476429138e-08),
}
"""1 / ln 2; the first is half a float."""

LOG10_E: Final[Parts] = {
    Float32: (0.434326171875, -3.168997136526741e-05),
    Float64: (0.4342944845557213, -2.6524694553078553e-09),
}
"""1 / ln 10; the first is half a float."""

LOG10_2: Final[Parts] = {
    Float32: (0.301025390625, 4.605039066518657e-06),
    Float64: (0.3010299956640665, -8.532344317057107e-14),
}
"""log10 2; times an exponent the first part is exact."""

TWO_THIRDS: Final[Parts] = {
    Float32: (0.6666666865348816, -1.9868215517249155e-08),
    Float64: (0.6666666666666666, 3.700743415417188e-17),
}
"""2 / 3."""

QUARTER_PI: Final[Parts] = {
    Float32: (0.785398006439209, 1.5695823663008923e-07),
    Float64: (0.7853981633974483, 3.061616997868383e-17),
}
"""pi / 4; up to 4 times the first is exact."""

HALF_PI: Final[Parts] = {
    Float32: (1.5707963705062866, -4.371138828673793e-08),
    Float64: (1.5707963267948966, 6.123233995736766e-17),
}
"""pi / 2."""

HALF_PI_THREE: Final[Parts] = {
    Float32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    Float64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
"""pi / 2 in three floats."""

HALF_PI_PARTS: Final[Parts] = {
    Float32: (1.5707963267923333, 2.563344151594519e-12),
    Float64: (
        1.5707963267341256,
        6.077100506303966e-11,
        2.0222662487111665e-21,
        8.4784276603689e-32,
    ),
}
"""pi / 2 in float64s; times the quadrants of a reduction all but the last are exact."""

TWO_OVER_PI: Final = (
    0xA2F9836E,
    0x4E441529,
    0xFC2757D1,
    0xF534DDC0,
    0xDB629599,
    0x3C439041,
    0xFE5163AB,
    0xDEBBC561,
    0xB7246E3A,
    0x424DD2E0,
    0x06492EEA,
    0x09D1921C,
    0xFE1DEB1C,
    0xB129A73E,
    0xE88235F5,
    0x2EBB4484,
    0xE99C7026,
    0xB45F7E41,
    0x3991D639,
    0x835339F4,
    0x9C845F8B,
    0xBDF9283B,
    0x1FF897FF,
    0xDE05980F,
    0xEF2F118B,
    0x5A0A6D1F,
    0x6D367ECF,
    0x27CB09B7,
    0x4F463F66,
    0x9E5FEA2D,
    0x7527BAC7,
    0xEBE5F17B,
    0x3D0739F7,
    0x8A5292EA,
    0x6BFB5FB1,
    0x1F8D5D08,
    0x56033046,
    0xFC7B6BAB,
    0xF0CFBC20,
    0x9AF4361D,
    0xA9E39161,
    0x5EE61B08,
)
"""The fraction of 2 / pi in words of 32 bits, the first one first."""
