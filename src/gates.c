/*
 * gates.c
 *	  The decision of an admission, as a pure function of numbers: no reads, no
 *	  locks, no clock.  admit and preview both go through it.
 *
 * The gates stand in their order; the first that refuses gives the code, and
 * every capacity and money gate that refuses is listed.
 */
#include "admission.h"

#include <math.h>

#include "amount.h"
#include "gates.h"

/* when to ask again about a pause without an end */
#define PAUSED_FOR_GOOD (24 * MICROS_PER_HOUR)

/* Notes a gate that refuses; waived: observe mode lets it pass. */
static void
refuse(GateResult *out, Code gate, int64 retry_after, bool waived)
{
	if (waived)
	{
		if (out->would_be == CODE_ACCEPTED)
			out->would_be = gate;
	}
	else if (out->code == CODE_ACCEPTED)
	{
		out->code = gate;
		out->retry_after = retry_after;
	}
}

static void
refuse_count(const GateInput *in, GateResult *out, Code gate, int64 limit, int64 used, int64 needed, int64 changes_in)
{
	GateFailure *failure = &out->failed[out->failures++];

	failure->gate = gate;
	failure->limit = limit;
	failure->used = used;
	failure->needed = needed;
	failure->changes_in = changes_in;
	refuse(out, gate, changes_in, in->observe);
}

/*
 * The generic cell rate algorithm: the bucket, which drains at the rate, is
 * empty at rate_clock.  Says whether one more may come now, when the bucket is
 * empty after it, and how long to wait if not.
 */
bool
gates_rate(TimestampTz now, double rate, int32 burst, TimestampTz rate_clock, TimestampTz *after, int64 *retry_after)
{
	int64		interval;
	TimestampTz filled;

	*after = rate_clock;
	*retry_after = 0;
	if (rate <= 0)
		return true;
	interval = (int64) Min(ceil(MICROS_PER_SECOND / rate), (double) (PG_INT64_MAX / 8 / burst));
	/* no further ahead than a full bucket: the rate may have been raised, or the clock set back */
	filled = HAS_TIME(rate_clock) ? Max(Min(rate_clock, now + interval * burst), now) : now;
	*after = filled + interval;
	*retry_after = Max(filled - now - interval * (burst - 1), 0);
	return *retry_after == 0;
}

static void
capacity_gates(const GateInput *in, GateResult *out)
{
	if (in->pool_full)
		refuse_count(in, out, CODE_GLOBAL_CAPACITY, in->pool_capacity, in->pool_used, 1, in->turnover);
	if (in->outstanding + 1 > in->accepted_limit)
		refuse_count(in, out, CODE_QUEUE_FULL, in->accepted_limit, in->outstanding, 1, in->turnover);
	if (in->max_ahead >= 0 && in->ahead > in->max_ahead)
		refuse_count(in, out, CODE_QUEUE_TOO_LONG, in->max_ahead, in->ahead, 0,
					 in->turnover * Min(in->ahead - in->max_ahead, 1000));
}

/* A job that costs nothing passes. */
static void
money_gates(const GateInput *in, GateResult *out)
{
	if (in->hold == 0)
		return;
	if (in->at_risk >= 0 && amount_add(in->held, in->hold) > in->at_risk)
		refuse_count(in, out, CODE_BUDGET_EXHAUSTED, in->at_risk, in->held, in->hold, in->turnover);
	if (amount_sub(in->available, in->hold) < -in->overdraft)
		refuse_count(in, out, CODE_INSUFFICIENT_CREDITS, amount_add(amount_add(in->available, in->held), in->overdraft),
					 in->held, in->hold, 0);
}

void
gates_decide(const GateInput *in, GateResult *out)
{
	memset(out, 0, sizeof(GateResult));
	out->code = CODE_ACCEPTED;
	out->would_be = CODE_ACCEPTED;
	if (in->rate_refused)
		refuse(out, CODE_RATE_LIMITED, 0, true);
	if (in->max_cost != NO_AMOUNT && in->quote > in->max_cost)
		refuse(out, CODE_COST_TOO_HIGH, 0, false);
	if (HAS_TIME(in->paused_until))
		refuse(out, CODE_PROVIDER_CAPACITY_EXCEEDED,
			   TIMESTAMP_NOT_FINITE(in->paused_until) ? PAUSED_FOR_GOOD : in->paused_until - in->now, false);
	capacity_gates(in, out);
	money_gates(in, out);
}
