/* C functions for memory with its checks: loads, stores, updates, copies.

   Shared memory has a mark for each byte that was written. */

#pragma once
#include "warp.h"

/* -- memory: addresses and values are arrays over the lanes -- */

#define SHARED_WINDOW (1ull << 60)
#define LOCAL_WINDOW (1ull << 61)
#define ACTIVE(l, m) for (uint32_t r_ = (m), l; r_ && (l = __builtin_ctz(r_), 1); r_ &= r_ - 1)

/* of each word of a region: 1, this core touched it; 2, it wrote there */
INLINE void touch(uint8_t *map, uint64_t from, uint64_t span, int writes) {
  uint64_t first = from / 4, last = (from + span - 1) / 4, eight, all = 0x0101010101010101ull;
  all *= writes ? 3 : 1;
  for (; first + 7 <= last; first += 8) {
    memcpy(&eight, map + first, 8);
    if ((eight & all) != all) { eight |= all; memcpy(map + first, &eight, 8); }
  }
  for (; first <= last; first++) map[first] |= (uint8_t)all;
}

static uint8_t *found(Launch *L, Warp *S, uint64_t at, uint64_t span, uint64_t spaces, int writes) {
  Region *r = &L->region[S->last];
  if (at - r->base >= r->size) {
    uint64_t k = 0;
    while (k < L->regions && at - L->region[k].base >= L->region[k].size) k++;
    if (k == L->regions) return 0;
    S->last = k;
    r = &L->region[k];
  }
  if (span > r->size || at - r->base > r->size - span) return 0;
  if (!(r->kind & spaces) || (writes && (r->kind & READ_ONLY))) return 0;
  if (r->touched) touch(r->touched, at - r->base, span, writes);
  return r->data + (at - r->base);
}

/* of the eight lanes from g on: 1, one after the other; 2, all the same; 0, anyhow. Blocks are often
   16 or 8 threads wide, so that a warp has several rows. */
#define GROUP 8
#define GROUPS for (int g = 0; g < LANES; g += GROUP)
#define EIGHT for (int l = g; l < g + GROUP; l++)
INLINE int pattern(const uint64_t *a, int g, uint32_t m, uint64_t step) {
  if (((m >> g) & 255) != 255 || (a[g] & (step - 1))) return 0;
  uint64_t row = 0, same = 0;
  EIGHT { uint64_t d = a[l] - a[g]; row |= d ^ (uint64_t)(l - g) * step; same |= d; }
  return row == 0 ? 1 : same == 0 ? 2 : 0;
}

/* where the bytes of a lane lie, among generic addresses; 0 if it may not be there */
static uint8_t *place(Launch *L, Warp *S, uint64_t at, int l, uint64_t width, uint64_t spaces,
                      int writes) {
  if (at & (width - 1)) return 0;
  if (at < SHARED_WINDOW) return found(L, S, at, width, spaces, writes);
  at -= LOCAL_WINDOW;  /* shared memory by a generic address: its marks are not kept here */
  if (!(spaces & CONST_SPACE) || width > L->local_size || at > L->local_size - width) return 0;
  return S->local + l * L->local_stride + at;
}

INLINE uint8_t *own_place(Launch *L, Warp *S, uint64_t at, int l, uint64_t width) {
  if ((at & (width - 1)) || width > L->local_size || at > L->local_size - width) return 0;
  return S->local + l * L->local_stride + at;
}

INLINE int in_shared(Launch *L, uint64_t at, uint64_t width) {
  return !(at & (width - 1)) && width <= L->shared_size && at <= L->shared_size - width;
}

#define MARKED 0x0101010101010101ull  /* of eight bytes that were written */
#define ACCESS(bits, T)                                                            \
  enum { ROW_##bits = GROUP * sizeof(T) };                                         \
  INLINE int is_marked_##bits(Launch *L, uint64_t at) {                            \
    T k; memcpy(&k, L->marks + at, sizeof k);                                      \
    return k == (T)MARKED || !L->check;                                             \
  }                                                                                \
  INLINE void spread_##bits(T *o, const uint8_t *p) {                              \
    T x; memcpy(&x, p, sizeof x);                                                  \
    for (int l = 0; l < GROUP; l++) o[l] = x;                                      \
  }                                                                                \
  APART int load_##bits(Launch *L, Warp *S, const uint64_t *restrict a, uint32_t m, \
                        uint64_t spaces, T *restrict o) {                          \
    uint8_t *p;                                                                    \
    GROUPS {                                                                       \
      int how = a[g] < SHARED_WINDOW ? pattern(a, g, m, sizeof(T)) : 0;            \
      if (how) {                                                                   \
        if (!(p = found(L, S, a[g], how == 1 ? ROW_##bits : sizeof(T), spaces, 0))) return 0; \
        if (how == 1) memcpy(o + g, p, ROW_##bits); else spread_##bits(o + g, p);  \
        continue;                                                                  \
      }                                                                            \
      EIGHT if ((m >> l) & 1) {                                                    \
        if (!(p = place(L, S, a[l], l, sizeof(T), spaces, 0))) return 0;           \
        memcpy(&o[l], p, sizeof(T));                                               \
      }                                                                            \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int store_##bits(Launch *L, Warp *S, const uint64_t *restrict a, uint32_t m, \
                         uint64_t spaces, const T *restrict x) {                   \
    uint8_t *p;                                                                    \
    GROUPS {                                                                       \
      if (a[g] < SHARED_WINDOW && pattern(a, g, m, sizeof(T)) == 1) {              \
        if (!(p = found(L, S, a[g], ROW_##bits, spaces, 1))) return 0;             \
        memcpy(p, x + g, ROW_##bits);                                              \
        continue;                                                                  \
      }                                                                            \
      EIGHT if ((m >> l) & 1) {                                                    \
        if (!(p = place(L, S, a[l], l, sizeof(T), spaces, 1))) return 0;           \
        memcpy(p, &x[l], sizeof(T));                                               \
      }                                                                            \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  INLINE uint64_t marks_##bits(Launch *L, uint64_t at, uint64_t size) {            \
    uint64_t all = MARKED, some;                                                   \
    for (uint64_t n = 0; n < size; n += 8) { memcpy(&some, L->marks + at + n, 8); all &= some; } \
    return all;                                                                    \
  }                                                                                \
  APART void shape_##bits(const uint64_t *restrict a, uint32_t m, uint8_t *restrict how) { \
    GROUPS how[g / GROUP] = pattern(a, g, m, sizeof(T));                           \
  }                                                                                \
  /* how the addresses lie is known; all are `far` bytes further */                \
  APART int load_shared_##bits(Launch *L, const uint64_t *restrict a,              \
                               const uint8_t *restrict how, uint64_t far, uint32_t m, T *restrict o) { \
    const uint8_t *data = L->shared; uint64_t all = MARKED, size = L->shared_size; \
    GROUPS {                                                                       \
      uint64_t at = a[g] + far;                                                    \
      if (how[g / GROUP] == 1 && size >= ROW_##bits && at <= size - ROW_##bits) {  \
        memcpy(o + g, data + at, ROW_##bits);                                      \
        all &= marks_##bits(L, at, ROW_##bits);                                    \
      } else if (how[g / GROUP] == 2 && in_shared(L, at, sizeof(T))) {             \
        spread_##bits(o + g, data + at);                                           \
        all &= is_marked_##bits(L, at) ? MARKED : 0;                               \
      } else {                                                                     \
        EIGHT if ((m >> l) & 1) {                                                  \
          at = a[l] + far;                                                         \
          if (!in_shared(L, at, sizeof(T))) return 0;                              \
          all &= is_marked_##bits(L, at) ? MARKED : 0;                             \
          memcpy(&o[l], data + at, sizeof(T));                                     \
        }                                                                          \
      }                                                                            \
    }                                                                              \
    return all == MARKED || !L->check || WATCHED || nobody_gave(L);                \
  }                                                                                \
  APART int store_shared_##bits(Launch *L, const uint64_t *restrict a, uint32_t m, \
                                const T *restrict x) {                             \
    GROUPS {                                                                       \
      if (pattern(a, g, m, sizeof(T)) == 1 && in_shared(L, a[g], sizeof(T))        \
          && in_shared(L, a[g + GROUP - 1], sizeof(T))) {                          \
        memcpy(L->shared + a[g], x + g, ROW_##bits);                               \
        memset(L->marks + a[g], 1, ROW_##bits);                                    \
        continue;                                                                  \
      }                                                                            \
      EIGHT if ((m >> l) & 1) {                                                    \
        if (!in_shared(L, a[l], sizeof(T))) return 0;                              \
        memcpy(L->shared + a[l], &x[l], sizeof(T));                                \
        memset(L->marks + a[l], 1, sizeof(T));                                     \
      }                                                                            \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int load_local_##bits(Launch *L, Warp *S, const uint64_t *a, uint32_t m, T *o) { \
    ACTIVE(l, m) {                                                                 \
      uint8_t *p = own_place(L, S, a[l], l, sizeof(T));                            \
      if (!p) return 0;                                                            \
      memcpy(&o[l], p, sizeof(T));                                                 \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int store_local_##bits(Launch *L, Warp *S, const uint64_t *a, uint32_t m, const T *x) { \
    ACTIVE(l, m) {                                                                 \
      uint8_t *p = own_place(L, S, a[l], l, sizeof(T));                            \
      if (!p) return 0;                                                            \
      memcpy(p, &x[l], sizeof(T));                                                 \
    }                                                                              \
    return 1;                                                                      \
  }
ACCESS(8, uint8_t)
ACCESS(16, uint16_t)
ACCESS(32, uint32_t)
ACCESS(64, uint64_t)

/* the alignment of a whole vector access; its parts are then as good as the whole */
INLINE int aligned(const uint64_t *a, uint32_t m, uint64_t width) {
  uint64_t all = 0;
  ACTIVE(l, m) all |= a[l];
  return !(all & (width - 1));
}

#define UPDATE(name, T, expression)                                                \
  APART int name(Launch *L, Warp *S, const uint64_t *a, uint32_t m, const T *x) {  \
    ACTIVE(l, m) {                                                                 \
      uint8_t *p = place(L, S, a[l], l, sizeof(T), GLOBAL_SPACE, 1);               \
      if (!p) return 0;                                                            \
      T old, now = x[l]; memcpy(&old, p, sizeof old);                              \
      old = (T)(expression); memcpy(p, &old, sizeof old);                          \
    }                                                                              \
    return 1;                                                                      \
  }                                                                                \
  APART int name##_shared(Launch *L, const uint64_t *a, uint32_t m, const T *x) {  \
    ACTIVE(l, m) {                                                                 \
      T old, k, now = x[l];                                                        \
      if (!in_shared(L, a[l], sizeof(T))) return 0;                                \
      memcpy(&k, L->marks + a[l], sizeof k);                                       \
      if (k != (T)0x0101010101010101ull && L->check) return 0;                     \
      memcpy(&old, L->shared + a[l], sizeof old);                                  \
      old = (T)(expression); memcpy(L->shared + a[l], &old, sizeof old);           \
    }                                                                              \
    return 1;                                                                      \
  }
#define UPDATES(K, T)                                                              \
  UPDATE(red_add_##K, T, old + now) UPDATE(red_min_##K, T, now < old ? now : old)  \
  UPDATE(red_max_##K, T, now > old ? now : old) UPDATE(red_and_##K, T, old & now)  \
  UPDATE(red_or_##K, T, old | now) UPDATE(red_xor_##K, T, old ^ now)
UPDATES(u32, uint32_t)
UPDATES(s32, int32_t)
UPDATES(u64, uint64_t)
UPDATES(s64, int64_t)

/* a copy of 4, 8 or 16 bytes from global to shared memory; what is not kept of it is zero */
APART int copied(Launch *L, Warp *S, const uint64_t *to, const uint64_t *from, const uint32_t *kept,
                 uint32_t m, uint64_t width) {
  ACTIVE(l, m) {
    uint8_t buffer[16] = {0};
    uint64_t size = kept[l];
    if (size > width) return 0;
    if (size) {
      if (from[l] & (width - 1)) return 0;
      uint8_t *p = from[l] < SHARED_WINDOW ? found(L, S, from[l], size, GLOBAL_SPACE | PARAM_SPACE, 0) : 0;
      if (!p) return 0;
      memcpy(buffer, p, size);
    }
    if (!in_shared(L, to[l], width)) return 0;
    memcpy(L->shared + to[l], buffer, width);
    memset(L->marks + to[l], 1, width);
  }
  return 1;
}

/* lanes that read uninitialised bytes; and, of a store, those whose value is none */
APART int unmarked(Launch *L, const uint64_t *a, uint64_t far, uint64_t width, uint32_t m,
                   uint32_t *none) {
  EACH none[l] = 0;
  if (L->check) ACTIVE(l, m) {
    for (uint64_t n = 0; n < width; n++) none[l] |= !L->marks[a[l] + far + n];
  }
  return 1;
}
APART int unmark(Launch *L, const uint64_t *a, uint64_t width, uint32_t m, const uint32_t *none) {
  ACTIVE(l, m) if (none[l]) memset(L->marks + a[l], 0, width);
  return 1;
}
