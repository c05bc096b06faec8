// Scopes of atomics, fences and locks: what these share with ScoR is the kinds of mistakes. 2 blocks of 64 threads; `a` has 4096
// numbers, `b` has 4096 zeros. After a kernel's name stands what is to be found: right or race.
#define K(name) extern "C" __global__ void name(int* a, int* b)
#define T threadIdx.x
#define B blockIdx.x
#define G (blockIdx.x * blockDim.x + threadIdx.x)
#define FIRST (threadIdx.x == 0)
#define FLAG b[64]
#define LOCK b[65]
#define LOOK(p) (*(volatile int*)&(p))

// -- a counter
K(counter) { atomicAdd(&b[0], 1); }  // right
K(counter_of_block_scope) { atomicAdd_block(&b[0], 1); }  // race
K(counter_of_each_block) { atomicAdd_block(&b[B], 1); }  // right
K(counter_of_two_scopes) { if (B) atomicAdd(&b[0], 1); else atomicAdd_block(&b[0], 1); }  // race
K(counter_of_two_scopes_in_one_block) { if (T & 32) atomicAdd(&b[B], 1); else atomicAdd_block(&b[B], 1); }  // right
K(counter_begun_plainly) { if (G == 0) b[0] = 5; else atomicAdd(&b[0], 1); }  // race
K(counter_begun_before_a_barrier) { if (FIRST) b[B] = 5; __syncthreads(); atomicAdd_block(&b[B], 1); }  // right
K(counter_read_plainly) { atomicAdd(&b[0], 1); b[100 + G] = b[0]; }  // race
K(counter_read_in_its_scope) { atomicAdd_block(&b[B], 1); __syncthreads(); b[100 + G] = b[B]; }  // right

// -- a message behind a flag
K(message) { if (G == 0) { b[0] = 7; __threadfence(); atomicExch(&FLAG, 1); }  // right
  if (G == 64) { while (atomicAdd(&FLAG, 0) == 0); __threadfence(); b[1] = b[0]; } }
K(message_block_fence) { if (G == 0) { b[0] = 7; __threadfence_block(); atomicExch(&FLAG, 1); }  // race
  if (G == 64) { while (atomicAdd(&FLAG, 0) == 0); __threadfence(); b[1] = b[0]; } }
K(message_block_fence_of_the_reader) { if (G == 0) { b[0] = 7; __threadfence(); atomicExch(&FLAG, 1); }  // race
  if (G == 64) { while (atomicAdd(&FLAG, 0) == 0); __threadfence_block(); b[1] = b[0]; } }
K(message_no_fence) { if (G == 0) { b[0] = 7; atomicExch(&FLAG, 1); }  // race
  if (G == 64) { while (atomicAdd(&FLAG, 0) == 0); __threadfence(); b[1] = b[0]; } }
K(message_no_fence_of_the_reader) { if (G == 0) { b[0] = 7; __threadfence(); atomicExch(&FLAG, 1); }  // race
  if (G == 64) { while (atomicAdd(&FLAG, 0) == 0); b[1] = b[0]; } }
K(message_block_flag) { if (G == 0) { b[0] = 7; __threadfence(); atomicExch_block(&FLAG, 1); }  // race
  if (G == 64) { while (atomicAdd(&FLAG, 0) == 0); __threadfence(); b[1] = b[0]; } }
K(message_within_a_block) { if (G == 0) { b[0] = 7; __threadfence_block(); atomicExch_block(&FLAG, 1); }  // right
  if (G == 32) { while (atomicAdd_block(&FLAG, 0) == 0); __threadfence_block(); b[1] = b[0]; } }
K(message_within_a_block_no_fence) { if (G == 0) { b[0] = 7; atomicExch_block(&FLAG, 1); }  // race
  if (G == 32) { while (atomicAdd_block(&FLAG, 0) == 0); __threadfence_block(); b[1] = b[0]; } }
K(message_after_the_flag) { if (G == 0) { atomicExch(&FLAG, 1); __threadfence(); b[0] = 7; }  // race
  if (G == 64) { while (atomicAdd(&FLAG, 0) == 0); __threadfence(); b[1] = b[0]; } }
K(message_passed_on) { if (G == 0) { b[0] = 7; __threadfence_block(); atomicExch_block(&FLAG, 1); }  // right
  if (G == 32) { while (atomicAdd_block(&FLAG, 0) == 0); __threadfence(); atomicExch(&b[66], 1); }
  if (G == 64) { while (atomicAdd(&b[66], 0) == 0); __threadfence(); b[1] = b[0]; } }
K(message_passed_on_in_block_scope) { if (G == 0) { b[0] = 7; __threadfence_block(); atomicExch_block(&FLAG, 1); }  // race
  if (G == 32) { while (atomicAdd_block(&FLAG, 0) == 0); __threadfence_block(); atomicExch(&b[66], 1); }
  if (G == 64) { while (atomicAdd(&b[66], 0) == 0); __threadfence(); b[1] = b[0]; } }

// -- a lock
K(lock) { if (FIRST) { while (atomicCAS(&LOCK, 0, 1)); __threadfence(); b[0]++; __threadfence(); atomicExch(&LOCK, 0); } }  // right
K(lock_of_block_scope) { if (FIRST) { while (atomicCAS_block(&LOCK, 0, 1)); __threadfence(); b[0]++; __threadfence(); atomicExch_block(&LOCK, 0); } }  // race
K(lock_block_fences) { if (FIRST) { while (atomicCAS(&LOCK, 0, 1)); __threadfence_block(); b[0]++; __threadfence_block(); atomicExch(&LOCK, 0); } }  // race
K(lock_no_fence_when_taken) { if (FIRST) { while (atomicCAS(&LOCK, 0, 1)); b[0]++; __threadfence(); atomicExch(&LOCK, 0); } }  // race
K(lock_no_fence_when_left) { if (FIRST) { while (atomicCAS(&LOCK, 0, 1)); __threadfence(); b[0]++; atomicExch(&LOCK, 0); } }  // race
K(lock_left_by_a_store) { if (FIRST) { while (atomicCAS(&LOCK, 0, 1)); __threadfence(); b[0]++; __threadfence(); LOCK = 0; } }  // race
K(lock_left_by_a_volatile_store) { if (FIRST) { while (atomicCAS(&LOCK, 0, 1)); __threadfence(); b[0]++; __threadfence(); LOOK(LOCK) = 0; } }  // right
K(lock_not_taken_by_one) { if (G == 0) { while (atomicCAS(&LOCK, 0, 1)); __threadfence(); b[0]++; __threadfence(); atomicExch(&LOCK, 0); } if (G == 64) b[0]++; }  // race
K(lock_of_another) { if (FIRST) { int* mine = &b[65 + B]; while (atomicCAS(mine, 0, 1)); __threadfence(); b[0]++; __threadfence(); atomicExch(mine, 0); } }  // race
K(lock_within_a_block) { if (T % 32 == 0) { int* mine = &b[65 + B]; while (atomicCAS_block(mine, 0, 1)); __threadfence_block(); b[B]++; __threadfence_block(); atomicExch_block(mine, 0); } }  // right
K(lock_within_a_block_no_fence) { if (T % 32 == 0) { int* mine = &b[65 + B]; while (atomicCAS_block(mine, 0, 1)); b[B]++; atomicExch_block(mine, 0); } }  // race
K(ticket_lock) { if (FIRST) { int mine = atomicAdd(&LOCK, 1); while (LOOK(b[66]) != mine); __threadfence(); b[0]++; __threadfence(); atomicAdd(&b[66], 1); } }  // right
K(ticket_lock_served_in_block_scope) { if (FIRST) { int mine = atomicAdd(&LOCK, 1); while (LOOK(b[66]) != mine); __threadfence(); b[0]++; __threadfence(); atomicAdd_block(&b[66], 1); } }  // race

// -- work that is stolen: queue q holds a[64 q] to a[64 q + 63], b[q] is its head
__device__ __forceinline__ void work(int* a, int* b, int at) { if (at < 64) b[1024 + at] = a[at] + 1; }
K(stolen) { int at; while ((at = atomicAdd(&b[B], 1)) < 32) work(a, b + 64 * B, at);  // right
  while ((at = atomicAdd(&b[1 - B], 1)) < 32) work(a, b + 64 * (1 - B), at); }
K(stolen_owner_in_block_scope) { int at; while ((at = atomicAdd_block(&b[B], 1)) < 32) work(a, b + 64 * B, at);  // race
  while ((at = atomicAdd(&b[1 - B], 1)) < 32) work(a, b + 64 * (1 - B), at); }
K(stolen_thief_in_block_scope) { int at; while ((at = atomicAdd(&b[B], 1)) < 32) work(a, b + 64 * B, at);  // race
  while ((at = atomicAdd_block(&b[1 - B], 1)) < 32) work(a, b + 64 * (1 - B), at); }
K(stolen_after_a_look) { int at; if (b[1 - B] < 32) { at = atomicAdd(&b[1 - B], 1); work(a, b + 64 * (1 - B), at); }  // race
  at = atomicAdd(&b[B], 1); work(a, b + 64 * B, at); }
K(stolen_item_put_there_late) { if (B == 0 && FIRST) { atomicAdd(&b[0], 1); b[128] = 9; }  // race
  if (B == 1 && FIRST) { while (atomicAdd(&b[0], 0) == 0); __threadfence(); b[1] = b[128]; } }
K(stolen_item_put_there_first) { if (B == 0 && FIRST) { b[128] = 9; __threadfence(); atomicAdd(&b[0], 1); }  // right
  if (B == 1 && FIRST) { while (atomicAdd(&b[0], 0) == 0); __threadfence(); b[1] = b[128]; } }

// -- parts that the last block adds up
#define LAST_BLOCK(fence, add) __shared__ int last; if (FIRST) { b[1 + B] = a[B] + 1; fence; last = add(&b[0], 1) == 1; } __syncthreads(); \
  if (last && FIRST) { __threadfence(); b[8] = b[1] + b[2]; }
K(last_block_adds) { LAST_BLOCK(__threadfence(), atomicAdd) }  // right
K(last_block_adds_block_fence) { LAST_BLOCK(__threadfence_block(), atomicAdd) }  // race
K(last_block_adds_no_fence) { LAST_BLOCK(, atomicAdd) }  // race
K(last_block_adds_block_counter) { LAST_BLOCK(__threadfence(), atomicAdd_block) }  // race

// -- neighbours step by step: a cell of the edge is handed from block to block
#define STEP(fence) for (int i = 1; i <= 3; i++) { if (FIRST) { b[8 * i + B] = b[8 * (i - 1) + B] + 1; fence; atomicAdd(&FLAG, 1); \
      while (atomicAdd(&FLAG, 0) < 2 * i); fence; b[128 + 8 * i + B] = b[8 * i + 1 - B]; } }
K(edges_handed_on) { STEP(__threadfence()) }  // right
K(edges_handed_on_block_fence) { STEP(__threadfence_block()) }  // race
K(edges_handed_on_no_fence) { STEP() }  // race
K(all_meet_by_hand) { b[G] = a[G]; __syncthreads(); if (FIRST) { __threadfence(); atomicAdd(&b[256], 1); while (LOOK(b[256]) < 2); __threadfence(); }  // right
  __syncthreads(); b[512 + G] = b[127 - G]; }
K(all_meet_by_hand_in_block_scope) { b[G] = a[G]; __syncthreads(); if (FIRST) { __threadfence(); atomicAdd_block(&b[256], 1); while (LOOK(b[256]) < 2); __threadfence(); }  // race
  __syncthreads(); b[512 + G] = b[127 - G]; }
K(all_meet_by_hand_without_their_block) { b[G] = a[G]; if (FIRST) { __threadfence(); atomicAdd(&b[256], 1); while (LOOK(b[256]) < 2); __threadfence(); }  // race
  __syncthreads(); b[512 + G] = b[127 - G]; }
