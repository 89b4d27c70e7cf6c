#ifndef POOL_H
#define POOL_H

#include "nodes/pg_list.h"

#include "store.h"

#define POOL_GLOBAL	1			/* policy.global_outstanding_cap */

/* what a look at a pool found */
typedef struct PoolState
{
	bool		bounded;
	int64		capacity;
	int64		free;			/* tokens that nobody holds, less the debt */
	int64		used;			/* tokens taken, those in doubt included */
	int64		in_doubt;		/* tokens in pieces that open transactions hold */
	bool		newer;			/* a piece is newer than the caller's snapshot */
	int64		debt;			/* 0 or below */
	bool		debt_held;
	List	   *stripes;		/* those looked at */
	List	   *debts;
	int32		taken_from;		/* the stripe of a take, 0: a new one */
} PoolState;

extern bool pool_take(Store *s, int32 pool_id, bool force, PoolState *state);
extern void pool_give(Store *s, int32 pool_id);
extern void pool_look(Store *s, int32 pool_id, int32 from, PoolState *state);
extern bool pool_capacity(Store *s, int32 pool_id, int64 *capacity);

#endif
