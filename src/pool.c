/*
 * pool.c
 *	  Counts shared by tenants: free tokens in stripes, so that takers and
 *	  givers need not wait for each other.
 *
 * A stripe is a series of versions, of which the lowest number is the newest.
 * To change it is to delete its newest version, which fails at once where
 * somebody else has done so in an open transaction, and to insert the next.
 * Versions are read dirty: what an open transaction holds is passed by and
 * counted as in doubt.
 *
 * Whether a pool is bounded stands in its stripes, so that a take decides on
 * the row it has in hand.  In an unbounded pool stripes go below zero: free
 * tokens + tokens held = capacity holds with a capacity of 0, and setting a
 * capacity is adding it.  A bounded pool can be in debt, after its capacity was
 * lowered or a tenant in observe mode took what was not there: debts are the
 * stripes numbered 0 and below.  While there is one, a take must find enough
 * to pay it off first, and what is given back goes there.
 *
 * Only who adds a stripe below zero to an unbounded pool takes a lock
 * (LOCK_POOL, shared, only tried); only who changes the capacity waits: for
 * that lock, and for the open transactions that hold stripes.
 */
#include "admission.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

#include "locks.h"
#include "pool.h"

PG_FUNCTION_INFO_V1(admission_apply_global_cap);

/* debts are numbered from here down */
#define LAST_DEBT 0

/* how many stripes a giver looks at for an empty one */
#define GIVER_LOOKS 8

typedef struct Stripe
{
	int32		no;
	int64		version;
	int64		tokens;
	bool		bounded;
	bool		held;			/* by an open transaction of somebody else */
	bool		newer;			/* than the caller's snapshot */
	ItemPointerData tid;
} Stripe;

/* a walk over the stripes of a pool, once around from a random one */
typedef struct Walk
{
	int32		pool_id;
	int64		from;
	int64		until;
	int64		again_from;
	int64		again_until;
} Walk;

/* The walk over the tokens, from a stripe on, or (0) from a random one so that takers spread. */
static Walk
walk_tokens(int32 pool_id, int32 from)
{
	int64		start = from > LAST_DEBT ? from : pg_prng_uint64_range(&pg_global_prng_state, LAST_DEBT + 1, PG_INT32_MAX);
	Walk		walk = {pool_id, start, PG_INT32_MAX, LAST_DEBT + 1, start - 1};

	return walk;
}

static Walk
walk_debts(int32 pool_id)
{
	Walk		walk = {pool_id, PG_INT32_MIN, LAST_DEBT, 0, -1};

	return walk;
}

static Walk
walk_all(int32 pool_id)
{
	Walk		walk = {pool_id, PG_INT32_MIN, PG_INT32_MAX, 0, -1};

	return walk;
}

/* The newest version of the next stripe, or false at the end of the walk. */
static bool
step(Store *s, Walk *walk, Stripe *stripe)
{
	RowState	state;
	TupleTableSlot *row = NULL;

	while (row == NULL)
	{
		if (walk->from <= walk->until)
		{
			Bound		key[] = {
				EQUAL(1, Int32GetDatum(walk->pool_id)),
				AT_LEAST(2, Int32GetDatum((int32) walk->from)), AT_MOST(2, Int32GetDatum((int32) walk->until))
			};

			row = store_first_dirty(s, I_STRIPE, ForwardScanDirection, 3, key, &state);
		}
		if (row == NULL)
		{
			if (walk->again_from > walk->again_until)
				return false;
			walk->from = walk->again_from;
			walk->until = walk->again_until;
			walk->again_until = walk->again_from - 1;
		}
	}
	stripe->no = DatumGetInt32(COLUMN(row, STRIPE_STRIPE));
	stripe->version = DatumGetInt64(COLUMN(row, STRIPE_VERSION));
	stripe->tokens = DatumGetInt64(COLUMN(row, STRIPE_TOKENS));
	stripe->bounded = DatumGetBool(COLUMN(row, STRIPE_BOUNDED));
	stripe->held = state == ROW_IN_PROGRESS;
	stripe->newer = store_newer_than_caller(row);
	stripe->tid = row->tts_tid;
	walk->from = (int64) stripe->no + 1;
	return true;
}

static void
insert_version(Store *s, int32 pool_id, int32 no, int64 version, int64 tokens, bool bounded)
{
	Datum		values[STRIPE_BOUNDED];
	bool		nulls[STRIPE_BOUNDED] = {false};

	values[STRIPE_POOL_ID - 1] = Int32GetDatum(pool_id);
	values[STRIPE_STRIPE - 1] = Int32GetDatum(no);
	values[STRIPE_VERSION - 1] = Int64GetDatum(version);
	values[STRIPE_TOKENS - 1] = Int64GetDatum(tokens);
	values[STRIPE_BOUNDED - 1] = BoolGetDatum(bounded);
	store_insert(s, T_STRIPE, values, nulls);
}

/*
 * Adds a stripe.  Its first version is the negative time, so that a stripe
 * laid out anew under an old number is newer than any version before.
 */
static void
insert_stripe(Store *s, int32 pool_id, int32 no, int64 tokens, bool bounded)
{
	insert_version(s, pool_id, no, -GetCurrentTimestamp(), tokens, bounded);
}

static void
insert_tokens(Store *s, int32 pool_id, int64 tokens, bool bounded)
{
	insert_stripe(s, pool_id, (int32) pg_prng_uint64_range(&pg_global_prng_state, LAST_DEBT + 1, PG_INT32_MAX), tokens, bounded);
}

static void
insert_debt(Store *s, int32 pool_id, int64 tokens)
{
	insert_stripe(s, pool_id, LAST_DEBT - (int32) pg_prng_uint64_range(&pg_global_prng_state, 1, PG_INT32_MAX), tokens, true);
}

/* The capacity in force; false if the pool has none. */
bool
pool_capacity(Store *s, int32 pool_id, int64 *capacity)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(pool_id))};
	TupleTableSlot *row = store_first(s, I_POOL, ForwardScanDirection, 1, key);
	bool		bounded = row && !COLUMN_NULL(row, POOL_CAPACITY);

	*capacity = bounded ? DatumGetInt64(COLUMN(row, POOL_CAPACITY)) : 0;
	return bounded;
}

/* Puts a new version in a stripe's place; false if somebody has it or was quicker. */
static bool
replace(Store *s, int32 pool_id, const Stripe *stripe, int64 tokens)
{
	ItemPointerData tid = stripe->tid;

	if (stripe->held || !store_delete(s, T_STRIPE, &tid, false))
		return false;
	insert_version(s, pool_id, stripe->no, stripe->version - 1, tokens, stripe->bounded);
	return true;
}

/* The same for a debt, of which nothing stays once it is paid. */
static bool
replace_debt(Store *s, int32 pool_id, const Stripe *debt, int64 tokens)
{
	ItemPointerData tid = debt->tid;

	if (tokens < 0)
		return replace(s, pool_id, debt, tokens);
	return !debt->held && store_delete(s, T_STRIPE, &tid, false);
}

/* The stripes of a walk, and what they come to; enough: stop at the first that one token can be taken from. */
static List *
survey(Store *s, Walk walk, bool enough, PoolState *state)
{
	List	   *stripes = NIL;
	Stripe		stripe;

	while (step(s, &walk, &stripe))
	{
		Stripe	   *copy = palloc(sizeof(Stripe));

		*copy = stripe;
		stripes = lappend(stripes, copy);
		state->newer = state->newer || stripe.newer;
		if (stripe.held)
			state->in_doubt += Max(stripe.tokens, 1);
		else
			state->free += Max(stripe.tokens, 0);
		if (enough && !stripe.held && (!stripe.bounded || stripe.tokens > 0))
			break;
	}
	return stripes;
}

/* The debts of a pool: their sum, 0 or below. */
static int64
survey_debts(Store *s, int32 pool_id, PoolState *state)
{
	Walk		walk = walk_debts(pool_id);
	Stripe		stripe;
	int64		debt = 0;

	while (step(s, &walk, &stripe))
	{
		Stripe	   *copy;

		if (stripe.tokens >= 0 && !stripe.held)
			continue;
		copy = palloc(sizeof(Stripe));
		*copy = stripe;
		state->debts = lappend(state->debts, copy);
		state->debt_held = state->debt_held || stripe.held;
		debt += Min(stripe.tokens, 0);
	}
	return debt;
}

/* A stripe at hand that may go below zero, or NULL. */
static Stripe *
unbounded_stripe(List *stripes)
{
	ListCell   *cell;

	foreach(cell, stripes)
	{
		Stripe	   *stripe = lfirst(cell);

		if (!stripe->held && !stripe->bounded)
			return stripe;
	}
	return NULL;
}

/* How a pool stands, without touching it; from: the stripe that this call took from before, or 0. */
void
pool_look(Store *s, int32 pool_id, int32 from, PoolState *state)
{
	memset(state, 0, sizeof(PoolState));
	state->debt = survey_debts(s, pool_id, state);
	state->stripes = survey(s, walk_tokens(pool_id, from), state->debt == 0, state);
	state->bounded = unbounded_stripe(state->stripes) == NULL && pool_capacity(s, pool_id, &state->capacity);
	state->free += state->debt;
	state->used = state->capacity - state->free;
	if (state->debt_held)
		state->free = 0;
}

/* Takes tokens from the stripes at hand; returns how many are still wanted. */
static int64
draw(Store *s, int32 pool_id, PoolState *state, int64 wanted)
{
	ListCell   *cell;

	foreach(cell, state->stripes)
	{
		Stripe	   *stripe = lfirst(cell);
		int64		part = Min(wanted, Max(stripe->tokens, 0));

		if (part > 0 && replace(s, pool_id, stripe, stripe->tokens - part))
		{
			wanted -= part;
			state->taken_from = stripe->no;
		}
	}
	return wanted;
}

/*
 * Adds a stripe below zero to a pool without a capacity.  False while the
 * capacity is being changed: the lock keeps us out of that, and its writer
 * from missing our stripe.
 */
static bool
take_below_zero(Store *s, int32 pool_id)
{
	int64		capacity;

	if (!lock_try_shared(LOCK_POOL, pool_id))
		return false;
	store_look_again(s);
	if (pool_capacity(s, pool_id, &capacity))
		return false;
	insert_tokens(s, pool_id, -1, false);
	return true;
}

/* One token of a bounded pool, after its debts: all or nothing. */
static bool
take_bounded(Store *s, int32 pool_id, PoolState *state)
{
	int64		wanted = 1;
	ListCell   *cell;

	foreach(cell, state->debts)
	{
		Stripe	   *stripe = lfirst(cell);

		if (replace_debt(s, pool_id, stripe, 0))
			wanted -= stripe->tokens;
	}
	if (wanted == 1 - state->debt)
		wanted = draw(s, pool_id, state, wanted);
	if (wanted > 1)
		insert_debt(s, pool_id, 1 - wanted);	/* another was quicker: the rest is owed as before */
	return wanted == 0;
}

/* One token more of debt. */
static void
take_into_debt(Store *s, int32 pool_id, const PoolState *state)
{
	ListCell   *cell;

	foreach(cell, state->debts)
	{
		Stripe	   *debt = lfirst(cell);

		if (replace(s, pool_id, debt, debt->tokens - 1))
			return;
	}
	insert_debt(s, pool_id, -1);
}

/*
 * Takes one token with what pool_look found just now; force takes it into debt
 * if need be.  False: none is to be had without waiting.
 */
bool
pool_take(Store *s, int32 pool_id, bool force, PoolState *state)
{
	Stripe	   *unbounded = unbounded_stripe(state->stripes);

	if (unbounded && replace(s, pool_id, unbounded, unbounded->tokens - 1))
	{
		state->taken_from = unbounded->no;
		return true;
	}
	if (unbounded)
	{
		store_look_again(s);	/* another was quicker */
		pool_look(s, pool_id, 0, state);
	}
	if (state->bounded ? state->free >= 1 && take_bounded(s, pool_id, state) : take_below_zero(s, pool_id))
		return true;
	state->free = 0;
	if (force)
	{
		store_look_again(s);
		pool_look(s, pool_id, 0, state);
		take_into_debt(s, pool_id, state);
	}
	return force;
}

/*
 * Gives one token back: to a debt, else to a stripe that nobody holds and that
 * has none (one token a row keeps small caps apart), else to any, else to a new
 * one.
 */
void
pool_give(Store *s, int32 pool_id)
{
	PoolState	state = {0};
	Walk		walk = walk_tokens(pool_id, 0);
	Stripe		stripe;
	Stripe		fullest = {.held = true};
	int			looks = 0;
	ListCell   *cell;

	store_look_again(s);
	(void) survey_debts(s, pool_id, &state);
	foreach(cell, state.debts)
	{
		Stripe	   *debt = lfirst(cell);

		if (debt->tokens < 0 && replace_debt(s, pool_id, debt, debt->tokens + 1))
			return;
	}
	while (looks++ < GIVER_LOOKS && step(s, &walk, &stripe))
	{
		if (stripe.tokens <= 0 && replace(s, pool_id, &stripe, stripe.tokens + 1))
			return;
		if (!stripe.held)
			fullest = stripe;
	}
	if (!fullest.held && replace(s, pool_id, &fullest, fullest.tokens + 1))
		return;
	insert_tokens(s, pool_id, 1, true);
}

/* Takes stripes out of the table, waiting for those that somebody holds, and returns their tokens. */
static int64
collect_stripes(Store *s, int32 pool_id, bool held_only)
{
	Walk		walk = walk_all(pool_id);
	Stripe		stripe;
	int64		tokens = 0;

	store_look_again(s);
	while (step(s, &walk, &stripe))
	{
		CHECK_FOR_INTERRUPTS();
		if (held_only && !stripe.held)
			continue;
		if (stripe.held)
			store_wait(s);
		if (!stripe.held && store_delete(s, T_STRIPE, &stripe.tid, false))
		{
			tokens += stripe.tokens;
			continue;
		}
		if (!stripe.held)
			pg_usleep(1000);	/* somebody locks the row without a change */
		walk.from = stripe.no;	/* look again */
	}
	return tokens;
}

/* Lays tokens out anew: one a row for small counts, as many rows as connections for large ones. */
static void
lay_out(Store *s, int32 pool_id, int64 tokens, bool bounded)
{
	int64		free = bounded ? Max(tokens, 0) : tokens;
	int32		rows = bounded ? (int32) Min(Max(free, 1), MaxConnections) : 1;

	if (free != tokens)
		insert_stripe(s, pool_id, LAST_DEBT, tokens, true);
	for (int32 i = 0; i < rows; i++)
	{
		int64		part = free / rows + (i < free % rows ? 1 : 0);

		insert_stripe(s, pool_id, 1 + (int32) ((int64) (PG_INT32_MAX - 1) * i / rows), part, bounded);
	}
}

/* Gives a pool another capacity.  Waits for LOCK_POOL, and for each open transaction that holds a stripe. */
static void
set_capacity(int32 pool_id, bool bounded, int64 capacity)
{
	Store	   *s = store_open(STORE_LATEST);
	Bound		key[] = {EQUAL(1, Int32GetDatum(pool_id))};
	Datum		values[POOL_CAPACITY];
	bool		nulls[POOL_CAPACITY] = {false, !bounded};
	TupleTableSlot *row;
	int64		tokens,
				before;

	/* those that somebody holds first: meanwhile others go on with the rest, and with new ones */
	tokens = collect_stripes(s, pool_id, true);
	lock_wait(LOCK_POOL, pool_id);
	tokens += collect_stripes(s, pool_id, false);
	store_look_again(s);
	(void) pool_capacity(s, pool_id, &before);
	tokens += capacity - before;
	row = store_first(s, I_POOL, ForwardScanDirection, 1, key);
	if (row)
	{
		ItemPointerData tid = row->tts_tid;

		(void) store_delete(s, T_POOL, &tid, true);
	}
	values[POOL_ID - 1] = Int32GetDatum(pool_id);
	values[POOL_CAPACITY - 1] = Int64GetDatum(capacity);
	store_insert(s, T_POOL, values, nulls);
	lay_out(s, pool_id, tokens, bounded);
	store_close(s);
}

/* Trigger of policy.global_outstanding_cap. */
Datum
admission_apply_global_cap(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Datum		cap;
	bool		none;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("apply_global_cap() can only be called as a row trigger of UPDATE")));
	cap = heap_getattr(trigger->tg_newtuple, POLICY_GLOBAL_CAP, RelationGetDescr(trigger->tg_relation), &none);
	set_capacity(POOL_GLOBAL, !none, none ? 0 : DatumGetInt32(cap));
	return PointerGetDatum(NULL);
}
