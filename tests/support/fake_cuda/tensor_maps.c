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
    uint8_t type, rank, interleave, swizzle, promotion, fill, steps[MAX_RANK], unused;
    uint64_t address, sizes[MAX_RANK], strides[MAX_RANK - 1];
    uint16_t box[MAX_RANK];
};
_Static_assert(sizeof(struct map) <= 128, "the size of a CUtensorMap");

static const int itemsizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
static const int spans[] = {1 << 30, 32, 64, 128, 128, 128, 128};

static bool are_dims_right(const struct map *map)
{
    uint64_t unit = map->interleave == 2 ? 32 : 16;
    bool right = map->address % unit == 0;
    for (int i = 0; i < map->rank; i++) {
        right = right && map->sizes[i] && map->sizes[i] <= 1ull << 32;
        right = right && map->box[i] && map->box[i] <= 256 && map->steps[i] && map->steps[i] <= 8;
    }
    for (int i = 0; i < map->rank - 1; i++)
        right = right && map->strides[i] % unit == 0 && map->strides[i] < 1ull << 40;
    return right;
}

static bool is_right(const struct map *map)
{
    if (map->type >= COUNT(itemsizes) || map->swizzle >= COUNT(spans) || map->interleave > 2)
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
                      (uintptr_t)address, {0}, {0}, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        map.sizes[i] = sizes[i];
        map.box[i] = box[i];
        map.steps[i] = steps[i];
        if (i + 1 < rank)
            map.strides[i] = strides[i];
    }
    if (is_right(&map)) {
        memset(out, 0, 128);
        memcpy(out, &map, sizeof map);
    }
    return end(is_right(&map) ? SUCCESS : INVALID_VALUE);
}
#endif
