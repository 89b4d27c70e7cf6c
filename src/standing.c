/*
 * standing.c
 *	  How a tenant stands: limits, totals, and what they leave.
 *
 * Whoever decides reads it under the lock of the decision, in one look.
 */
#include "admission.h"

#include <math.h>

#include "amount.h"
#include "clock.h"
#include "decision.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(admission_generation_limits);

/* Reads all but the tenant's own row. */
void
standing_refresh(Store *s, Standing *standing)
{
	int32		id = standing->tenant.id;

	standing->now = clock_now();
	policy_read(s, &standing->policy);
	limits_read(s, &standing->policy, &standing->tenant, standing->now, &standing->limits);
	intake_newest(s, id, &standing->intake);
	dispatch_newest(s, id, &standing->dispatch);
	billing_newest(s, id, &standing->billing);
}

bool
standing_of_name(Store *s, const char *name, Standing *standing)
{
	if (!tenant_find(s, name, &standing->tenant))
		return false;
	standing_refresh(s, standing);
	return true;
}

bool
standing_of_id(Store *s, int32 tenant_id, Standing *standing)
{
	if (!tenant_read(s, tenant_id, &standing->tenant))
		return false;
	standing_refresh(s, standing);
	return true;
}

static int32
clamp(int64 n)
{
	return (int32) Min(Max(n, 0), PG_INT32_MAX);
}

Capacity
standing_capacity(const Standing *st)
{
	Capacity	c;

	c.active = clamp(st->dispatch.active);
	c.queued = clamp(st->intake.admitted - st->dispatch.departed);
	c.outstanding = st->intake.admitted - st->dispatch.concluded;
	c.remaining = clamp(st->limits.accepted - c.outstanding);
	c.wave = (int32) floor(st->policy.wave_fraction * c.remaining + 1e-9);
	c.budget = clamp(Min((int64) st->limits.concurrency - c.active - c.queued, c.remaining));
	c.held = amount_sub(st->intake.reserved, st->dispatch.unreserved);
	c.balance = amount_sub(st->billing.credited, st->dispatch.captured);
	c.available = amount_sub(c.balance, c.held);
	return c;
}

/*
 * The usual time between two conclusions of the tenant, from its last rows of
 * dispatch; 10 seconds where there is nothing to learn from.
 */
int64
standing_turnover(Store *s, const Standing *st)
{
	const int64 look_back = 64;
	Dispatch	earlier;
	int64		concluded,
				micros;

	if (st->dispatch.no < 2 ||
		!dispatch_numbered(s, st->tenant.id, Max(st->dispatch.no - look_back, 1), &earlier))
		return 10 * MICROS_PER_SECOND;
	concluded = st->dispatch.concluded - earlier.concluded;
	micros = st->dispatch.at - earlier.at;
	if (concluded <= 0 || micros <= 0)
		return 10 * MICROS_PER_SECOND;
	return Min(Max(micros / concluded, MICROS_PER_SECOND / 10), 600 * MICROS_PER_SECOND);
}

/* generation_limits(tenant): reads the caller's snapshot, takes no lock. */
Datum
admission_generation_limits(PG_FUNCTION_ARGS)
{
	Store	   *s;
	Standing	standing;
	bool		found;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	s = store_open(STORE_STATEMENT);
	found = standing_of_name(s, TextDatumGetCString(PG_GETARG_DATUM(0)), &standing);
	store_close(s);
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(limits_datum(get_func_rettype(fcinfo->flinfo->fn_oid), &standing));
}
