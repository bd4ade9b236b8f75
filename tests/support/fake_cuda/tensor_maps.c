/* Encodes tensor maps, by the rules of the driver's reference.
 *
 * A map of the stand-in is what it was made of, as `tensor_maps.py` reads it.  -DNO_TENSOR_MAPS
 * builds a driver that has none.
 */
#include "fake.h"

#include <string.h>

#ifndef NO_TENSOR_MAPS

enum { MAX_RANK = 5, MAGIC = 0x50414D54 };

struct map {
    uint32_t magic;
    uint8_t type, rank, interleave, swizzle, promotion, fill, steps[MAX_RANK], im2col;
    uint64_t address, sizes[MAX_RANK], strides[MAX_RANK - 1];
    uint16_t box[MAX_RANK];
    int16_t lower[MAX_RANK - 2], upper[MAX_RANK - 2];
};
_Static_assert(sizeof(struct map) <= 128, "the size of a CUtensorMap");

enum { PADDED = 14 }; /* CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B */

static const int itemsizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 1};
static const int spans[] = {1 << 30, 32, 64, 128, 128, 128, 128};

static bool are_dims_right(const struct map *map)
{
    uint64_t unit = map->interleave == 2 || map->type == PADDED ? 32 : 16;
    bool right = map->address % unit == 0;
    for (int i = 0; i < map->rank; i++) {
        right = right && map->sizes[i] && map->sizes[i] <= 1ull << 32;
        right = right && map->steps[i] && map->steps[i] <= 8;
    }
    for (int i = 0; i < (map->im2col ? 2 : map->rank); i++)
        right = right && map->box[i] && map->box[i] <= (map->im2col && i ? 1024 : 256);
    for (int i = 0; i < map->rank - 1; i++)
        right = right && map->strides[i] % unit == 0 && map->strides[i] < 1ull << 40;
    return right;
}

static bool is_right(const struct map *map)
{
    if (map->type >= COUNT(itemsizes) || !itemsizes[map->type] || map->swizzle >= COUNT(spans) || map->interleave > 2)
        return false;
    if (map->promotion > 3 || map->fill > 1 || (map->fill && map->type < 6))
        return false;
    if (!map->rank || map->rank > MAX_RANK || (map->interleave && map->rank < 3))
        return false;
    int inner = map->box[0] * itemsizes[map->type];
    if (map->interleave ? map->interleave == 2 && map->swizzle != 1 : inner % 16 != 0)
        return false;
    return are_dims_right(map) && (map->interleave || inner <= spans[map->swizzle]);
}

static bool is_image_right(const struct map *map)
{
    const int limits[] = {1 << 15, 1 << 7, 1 << 4};
    bool right = map->rank >= 3 && map->rank <= MAX_RANK;
    for (int i = 0; right && i < map->rank - 2; i++) {
        int low = map->lower[i], high = map->upper[i], limit = limits[map->rank - 3];
        right = low >= -limit && low < limit && high >= -limit && high < limit;
        right = right && (int64_t)map->sizes[i + 1] - 1 + high >= low;
    }
    return right;
}

static bool is_padding_right(const struct map *map)
{
    bool swizzled = map->swizzle == 0 || map->swizzle == 3 || map->swizzle == 4;
    bool whole = map->box[0] == 128 && map->sizes[0] % 128 == 0;
    return map->type != PADDED || (swizzled && whole && !map->interleave && !map->fill);
}

static CUresult put(void *out, const struct map *map)
{
    if (!is_right(map) || !is_padding_right(map) || (map->im2col && !is_image_right(map)))
        return INVALID_VALUE;
    memset(out, 0, 128);
    memcpy(out, map, sizeof *map);
    return SUCCESS;
}

#pragma GCC visibility push(default)

CUresult cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *address,
                                const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                                const uint32_t *steps, int interleave, int swizzle, int promotion,
                                int fill)
{
    CUresult result = begin(__func__, 3, NUMBER(type), NUMBER(rank), NUMBER(address));
    bool odd = (uintptr_t)out % 64 || !sizes || !box || !steps || (rank > 1 && !strides);
    if (!result && (odd || rank > MAX_RANK))
        result = INVALID_VALUE;
    if (result)
        return end(result);
    struct map map = {MAGIC, type, rank, interleave, swizzle, promotion, fill, {0}, 0,
                      (uintptr_t)address, {0}, {0}, {0}, {0}, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        map.sizes[i] = sizes[i];
        map.box[i] = box[i];
        map.steps[i] = steps[i];
        if (i + 1 < rank)
            map.strides[i] = strides[i];
    }
    return end(put(out, &map));
}

CUresult cuTensorMapEncodeIm2col(void *out, int type, uint32_t rank, void *address,
                                 const uint64_t *sizes, const uint64_t *strides, const int *lower,
                                 const int *upper, uint32_t channels, uint32_t pixels,
                                 const uint32_t *steps, int interleave, int swizzle, int promotion,
                                 int fill)
{
    CUresult result = begin(__func__, 3, NUMBER(type), NUMBER(rank), NUMBER(address));
    bool odd = (uintptr_t)out % 64 || !sizes || !strides || !lower || !upper || !steps;
    if (!result && (odd || rank < 3 || rank > MAX_RANK))
        result = INVALID_VALUE;
    if (result)
        return end(result);
    struct map map = {MAGIC, type, rank, interleave, swizzle, promotion, fill, {0}, 1,
                      (uintptr_t)address, {0}, {0}, {channels, pixels}, {0}, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        map.sizes[i] = sizes[i];
        map.steps[i] = steps[i];
        if (i + 1 < rank)
            map.strides[i] = strides[i];
        if (i + 2 < rank) {
            map.lower[i] = lower[i];
            map.upper[i] = upper[i];
        }
    }
    return end(put(out, &map));
}
#endif
