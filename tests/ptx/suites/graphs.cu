// Codes on graphs: what they share with Indigo is the kinds of patterns and of mistakes. Launched as 2 blocks of 64 threads on a
// graph of 100 vertices: the neighbours of v are to[from[v]] to to[from[v + 1] - 1]. `value` and `made` have n numbers, `list` has
// n + 1, of which the last counts. After a kernel's name stands what is to be found: right, race, or bounds.
#define K(name) extern "C" __global__ void name(const int* from, const int* to, int n, int* value, int* made, int* list)
#define V int(blockIdx.x * blockDim.x + threadIdx.x)
#define WARP int((blockIdx.x * blockDim.x + threadIdx.x) / 32)
#define LANE int(threadIdx.x % 32)
#define WARPS int(gridDim.x * blockDim.x / 32)
#define COUNT list[n]
#define NEIGHBOURS(v, u) for (int e = from[v], u; e < from[v + 1] && (u = to[e], true); e++)
__device__ __forceinline__ int now(int* p) { int v; asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ __forceinline__ void set(int* p, int v) { asm volatile("st.relaxed.gpu.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

// -- a condition of a vertex counts it
K(vertex_counted) { int v = V; if (v < n) { bool found = false; NEIGHBOURS(v, u) found |= value[u] > value[v]; if (found) atomicAdd(&COUNT, 1); } }  // right
K(vertex_counted_plainly) { int v = V; if (v < n) { bool found = false; NEIGHBOURS(v, u) found |= value[u] > value[v]; if (found) COUNT++; } }  // race
K(vertex_counted_one_too_far) { int v = V; if (v <= n) { bool found = false; NEIGHBOURS(v, u) found |= value[u] > 3; if (found) atomicAdd(&COUNT, 1); } }  // bounds
K(vertex_counted_until_first) { int v = V; if (v < n) NEIGHBOURS(v, u) if (value[u] > value[v]) { atomicAdd(&COUNT, 1); break; } }  // right
K(vertex_limit_guarded) { int v = V; if (v < n && COUNT < 1 << 20) atomicAdd(&COUNT, 1); }  // race
K(vertex_limit_guarded_strongly) { int v = V; if (v < n && now(&COUNT) < 1 << 20) atomicAdd(&COUNT, 1); }  // right

// -- a condition of an edge counts it
K(edge_counted) { int v = V; if (v < n) NEIGHBOURS(v, u) if (v < u && value[u] != value[v]) atomicAdd(&COUNT, 1); }  // right
K(edge_counted_plainly) { int v = V; if (v < n) NEIGHBOURS(v, u) if (v < u && value[u] != value[v]) COUNT += 1; }  // race
K(edge_counted_per_warp) {  // right
  for (int v = WARP; v < n; v += WARPS) { int mine = 0;
    for (int e = from[v] + LANE; e < from[v + 1]; e += 32) mine += value[to[e]] & 1;
    mine = __reduce_add_sync(~0u, mine); if (LANE == 0) made[v] = mine; } }
K(edge_counted_per_warp_by_all_lanes) {  // race
  for (int v = WARP; v < n; v += WARPS) { for (int e = from[v] + LANE; e < from[v + 1]; e += 32) made[v] += value[to[e]] & 1; } }
K(edge_counted_a_neighbour_too_far) { int v = V; if (v < n) for (int e = from[v]; e <= from[v + 1]; e++) if (value[to[e]] > 3) atomicAdd(&COUNT, 1); }  // bounds

// -- numbers are pulled from neighbours
K(pulled) { int v = V; if (v < n) { int most = value[v]; NEIGHBOURS(v, u) most = max(most, value[u]); made[v] = most; } }  // right
K(pulled_in_place) { int v = V; if (v < n) { int most = value[v]; NEIGHBOURS(v, u) most = max(most, value[u]); value[v] = most; } }  // race
K(pulled_in_place_relaxed) { int v = V; if (v < n) { int most = now(&value[v]); NEIGHBOURS(v, u) most = max(most, now(&value[u])); set(&value[v], most); } }  // right
K(pulled_half_relaxed) { int v = V; if (v < n) { int most = value[v]; NEIGHBOURS(v, u) most = max(most, value[u]); set(&value[v], most); } }  // race
K(pulled_one_too_far) { int v = V; if (v <= n) made[v] = value[v]; }  // bounds

// -- numbers are pushed to neighbours
K(pushed) { int v = V; if (v < n) NEIGHBOURS(v, u) atomicMax(&made[u], value[v]); }  // right
K(pushed_by_test_and_store) { int v = V; if (v < n) NEIGHBOURS(v, u) if (made[u] < value[v]) made[u] = value[v]; }  // race
K(pushed_guarded) { int v = V; if (v < n) NEIGHBOURS(v, u) if (made[u] < value[v]) atomicMax(&made[u], value[v]); }  // race
K(pushed_guarded_strongly) { int v = V; if (v < n) NEIGHBOURS(v, u) if (now(&made[u]) < value[v]) atomicMax(&made[u], value[v]); }  // right
K(pushed_sums) { int v = V; if (v < n) NEIGHBOURS(v, u) made[u] += 1; }  // race
K(pushed_sums_by_swaps) { int v = V; if (v < n) NEIGHBOURS(v, u) { int old = now(&made[u]), seen; while ((seen = atomicCAS(&made[u], old, old + 1)) != old) old = seen; } }  // right
K(pushed_and_changed_told) { int v = V; if (v < n) NEIGHBOURS(v, u) if (atomicMax(&made[u], value[v]) < value[v]) COUNT = 1; }  // race
K(pushed_and_changed_told_atomically) { int v = V; if (v < n) NEIGHBOURS(v, u) if (atomicMax(&made[u], value[v]) < value[v]) atomicExch(&COUNT, 1); }  // right

// -- a list of work is filled
K(listed) { int v = V; if (v < n && value[v] & 1) list[atomicAdd(&COUNT, 1)] = v; }  // right
K(listed_plainly) { int v = V; if (v < n && value[v] & 1) list[COUNT++] = v; }  // race
K(listed_a_place_late) { int v = V; if (v < n) { int at = atomicAdd(&COUNT, 1); list[at + 1] = v; } }  // race
K(listed_once) { int v = V; if (v < n) NEIGHBOURS(v, u) if (atomicExch(&made[u], 1) == 0) list[atomicAdd(&COUNT, 1)] = u; }  // right
K(listed_once_by_test) { int v = V; if (v < n) NEIGHBOURS(v, u) if (made[u] == 0) { made[u] = 1; atomicAdd(&COUNT, 1); } }  // race
K(listed_per_block) { __shared__ int mine, base; if (threadIdx.x == 0) mine = 0; __syncthreads();  // right
  int v = V, at = -1; if (v < n && value[v] & 1) at = atomicAdd(&mine, 1); __syncthreads();
  if (threadIdx.x == 0) base = atomicAdd(&COUNT, mine); __syncthreads(); if (at >= 0) list[base + at] = v; }
K(listed_per_block_base_too_early) { __shared__ int mine, base; if (threadIdx.x == 0) mine = 0; __syncthreads();  // race
  int v = V, at = -1; if (v < n && value[v] & 1) at = atomicAdd(&mine, 1); __syncthreads();
  if (threadIdx.x == 0) base = atomicAdd(&COUNT, mine); if (at >= 0) list[base + at] = v; }
K(listed_per_block_counted_too_early) { __shared__ int mine, base; if (threadIdx.x == 0) mine = 0; __syncthreads();  // race
  int v = V, at = -1; if (v < n && value[v] & 1) at = atomicAdd(&mine, 1);
  if (threadIdx.x == 0) base = atomicAdd(&COUNT, mine); __syncthreads(); if (at >= 0) list[base + at] = v; }

// -- paths to a root become shorter; made[v] is the parent of v, v itself at first
__device__ __forceinline__ int root_of(int* parent, int v) { int next; while ((next = now(&parent[v])) != v) v = next; return v; }
K(joined) { int v = V; if (v < n) { set(&made[v], v); } }  // right
K(joined_by_swaps) { int v = V; if (v < n) NEIGHBOURS(v, u) { int a = root_of(made, v), b = root_of(made, u);  // right
    while (a != b) { int low = min(a, b), high = max(a, b); if (atomicCAS(&made[high], high, low) == high) break; a = root_of(made, low); b = root_of(made, high); } } }
K(joined_by_stores) { int v = V; if (v < n) NEIGHBOURS(v, u) { int a = root_of(made, v), b = root_of(made, u);  // race
    if (a != b) made[max(a, b)] = min(a, b); } }
K(joined_reading_plainly) { int v = V; if (v < n) NEIGHBOURS(v, u) { int a = made[v], b = made[u];  // race
    if (a != b) atomicCAS(&made[max(a, b)], max(a, b), min(a, b)); } }
K(shortened) { int v = V; if (v < n) { int root = root_of(made, v); set(&made[v], root); } }  // right
K(shortened_plainly) { int v = V; if (v < n) { int at = v; while (made[at] != at) at = made[at]; made[v] = at; } }  // race

// -- a block works on a vertex, and its threads meet
#define OF_BLOCK(v) for (int v = blockIdx.x; v < n; v += gridDim.x)
__device__ __forceinline__ int some(const int* from, const int* to, const int* value, int v) {
  int sum = 0; for (int e = from[v] + threadIdx.x; e < from[v + 1]; e += blockDim.x) sum += value[to[e]]; return sum; }
K(block_summed) { __shared__ int part[2]; OF_BLOCK(v) {  // right
    int sum = __reduce_add_sync(~0u, some(from, to, value, v)); if (LANE == 0) part[threadIdx.x / 32] = sum;
    __syncthreads(); if (threadIdx.x == 0) made[v] = part[0] + part[1]; __syncthreads(); } }
K(block_summed_without_meeting) { __shared__ int part[2]; OF_BLOCK(v) {  // race
    int sum = __reduce_add_sync(~0u, some(from, to, value, v)); if (LANE == 0) part[threadIdx.x / 32] = sum;
    if (threadIdx.x == 0) made[v] = part[0] + part[1]; __syncthreads(); } }
K(block_summed_next_too_soon) { __shared__ int part[2]; OF_BLOCK(v) {  // race
    int sum = __reduce_add_sync(~0u, some(from, to, value, v)); if (LANE == 0) part[threadIdx.x / 32] = sum;
    __syncthreads(); if (threadIdx.x == 0) made[v] = part[0] + part[1]; } }
K(block_summed_two_buffers) { __shared__ int part[2][2]; int turn = 0; OF_BLOCK(v) { turn ^= 1;  // right
    int sum = __reduce_add_sync(~0u, some(from, to, value, v)); if (LANE == 0) part[turn][threadIdx.x / 32] = sum;
    __syncthreads(); if (threadIdx.x == 0) made[v] = part[turn][0] + part[turn][1]; } }
K(block_summed_atomically) { __shared__ int sum; OF_BLOCK(v) { if (threadIdx.x == 0) sum = 0; __syncthreads();  // right
    atomicAdd(&sum, some(from, to, value, v)); __syncthreads(); if (threadIdx.x == 0) made[v] = sum; __syncthreads(); } }
K(block_summed_zeroed_late) { __shared__ int sum; OF_BLOCK(v) { if (threadIdx.x == 0) sum = 0;  // race
    atomicAdd(&sum, some(from, to, value, v)); __syncthreads(); if (threadIdx.x == 0) made[v] = sum; __syncthreads(); } }
