/*
 * tier.c
 *	  Effective limits: a function of top-ups, tiers, overrides and the time.
 *
 * Nothing is cached: the top-ups of the window are summed newest first, and
 * only until the highest tier is reached.
 */
#include "admission.h"

#include "amount.h"
#include "clock.h"
#include "tier.h"

/* The sum of the top-ups with now - window < at <= now, less what was reversed; no need to go beyond enough. */
static int64
window_sum(Store *s, const Policy *policy, int32 tenant_id, TimestampTz now, int64 enough)
{
	Bound		window[] = {
		EQUAL(1, Int32GetDatum(tenant_id)),
		ABOVE(2, TimestampTzGetDatum(clock_add(now, -policy->top_up_window))),
		AT_MOST(2, TimestampTzGetDatum(now))
	};
	int64		sum = 0;
	TupleTableSlot *row;

	store_seek(s, I_TOP_UP_AT, BackwardScanDirection, 3, window);
	while (sum < enough && (row = store_next(s, I_TOP_UP_AT)) != NULL)
		sum = amount_add(sum, DatumGetInt64(COLUMN(row, TOP_UP_AMOUNT)) - DatumGetInt64(COLUMN(row, TOP_UP_REVERSED)));
	return sum;
}

/* The concurrency of the highest tier that the top-ups of the window reach; 0 below the lowest. */
static int32
purchased_concurrency(Store *s, const Policy *policy, int32 tenant_id, TimestampTz now)
{
	TupleTableSlot *row = store_first(s, I_TIER, BackwardScanDirection, 0, NULL);
	int64		sum;

	if (row == NULL)
		return 0;
	sum = window_sum(s, policy, tenant_id, now, DatumGetInt64(COLUMN(row, TIER_MIN)));
	while (row && DatumGetInt64(COLUMN(row, TIER_MIN)) > sum)
		row = store_next(s, I_TIER);
	return row ? DatumGetInt32(COLUMN(row, TIER_CONCURRENCY)) : 0;
}

void
limits_read(Store *s, const Policy *policy, const Tenant *tenant, TimestampTz now, Limits *limits)
{
	bool		live = !HAS_TIME(tenant->override_expires_at) || tenant->override_expires_at > now;
	int64		queued;

	limits->purchased = purchased_concurrency(s, policy, tenant->id, now);
	limits->overridden = live && tenant->concurrency_override > limits->purchased;
	limits->concurrency = limits->overridden ? tenant->concurrency_override : limits->purchased;
	if (live && tenant->queued_override >= 0)
		queued = tenant->queued_override;
	else
		queued = Max((int64) policy->queue_minimum, (int64) policy->queue_factor * limits->concurrency);
	limits->queued = (int32) Min(queued, (int64) PG_INT32_MAX - limits->concurrency);
	limits->accepted = limits->concurrency + limits->queued;
}
