/*
 * consider.c
 *	  From a request to a decision: everything that admit and preview have in
 *	  common, in the order of the gates.
 *
 * Reads with the store of its caller, which for admit looked after lock I was
 * taken; writes nothing and takes no lock.
 */
#include "admission.h"

#include "common/hashfn.h"

#include "amount.h"
#include "clock.h"
#include "consider.h"
#include "fingerprint.h"
#include "job.h"
#include "lane.h"

/* ---- telling ---- */

void
tell_quote(Decision *d, const Standing *st, const char *unit, int64 quantity, int64 quote)
{
	details_open(&d->details, "quote", WJB_BEGIN_OBJECT);
	details_money(&d->details, NULL, quote, st->policy.credit_micro);
	details_text(&d->details, "unit", unit);
	details_int(&d->details, "quantity", quantity);
	details_close(&d->details, WJB_END_OBJECT);
}

/* Lets clients that were refused together come back apart: up to a quarter more, the same for one key. */
static int64
jitter(int64 micros, const Standing *st, const Request *r)
{
	const char *key = r->operation_key ? r->operation_key : r->model;
	uint32		hash = hash_bytes_extended((const unsigned char *) key, strlen(key), st->tenant.id) % 1024;

	return micros + micros / 4096 * hash;
}

static void
tell_failures(Decision *d, const Standing *st, const GateResult *gates)
{
	if (gates->failures == 0)
		return;
	details_open(&d->details, "failed", WJB_BEGIN_ARRAY);
	for (int i = 0; i < gates->failures; i++)
	{
		const GateFailure *failure = &gates->failed[i];

		details_open(&d->details, NULL, WJB_BEGIN_OBJECT);
		details_text(&d->details, "gate", code_name(failure->gate));
		details_int(&d->details, "limit", failure->limit);
		details_int(&d->details, "used", failure->used);
		details_int(&d->details, "needed", failure->needed);
		if (failure->changes_in > 0)
			details_time(&d->details, "changes_at", clock_add(st->now, failure->changes_in));
		details_close(&d->details, WJB_END_OBJECT);
	}
	details_close(&d->details, WJB_END_ARRAY);
}

/* The decision that the gates refuse, with what its code needs to say. */
static void
tell_refusal(Decision *d, const Standing *st, const Acceptance *a, const GateInput *in)
{
	Details    *details = &d->details;

	decide(d, a->gates.code);
	switch (a->gates.code)
	{
		case CODE_COST_TOO_HIGH:
			details_int(details, "max_cost_micro", in->max_cost);
			break;
		case CODE_PROVIDER_CAPACITY_EXCEEDED:
			d->retry_after = a->gates.retry_after;
			details_time(details, "paused_until", in->paused_until);
			break;
		case CODE_GLOBAL_CAPACITY:
			details_int(details, "in_doubt", in->pool_in_doubt);
			d->retry_after = jitter(a->gates.retry_after, st, a->request);
			break;
		case CODE_BUDGET_EXHAUSTED:
			details_text(details, "period", "at_risk");
			details_int(details, "limit", in->at_risk);
			details_int(details, "spent", 0);
			details_int(details, "held", in->held);
			details_text(details, "resets_at", NULL);
			break;
		case CODE_INSUFFICIENT_CREDITS:
			details_money(details, "required", in->hold, st->policy.credit_micro);
			details_money(details, "available", amount_add(in->available, in->overdraft), st->policy.credit_micro);
			break;
		default:
			d->retry_after = jitter(a->gates.retry_after, st, a->request);
			break;
	}
	tell_failures(d, st, &a->gates);
	tell_quote(d, st, a->quote.unit, a->quote.quantity, a->quote.quote);
}

/* ---- deciding ---- */

/* The answer of a key that has been used: the same job, or a conflict. */
static void
decide_repeat(Decision *d, const Standing *st, const Job *job, const bytea *print)
{
	bool		same = memcmp(job->fingerprint, print, VARSIZE(print)) == 0;

	decide(d, same ? CODE_ALREADY_ACCEPTED : CODE_IDEMPOTENCY_CONFLICT);
	if (same)
	{
		d->has_job = true;
		d->job_id = job->id;
		d->reserved = job->held;
		tell_quote(d, st, job->unit, job->quantity, job->quote);
	}
}

static void
tell_pool(GateInput *in, const PoolState *pool, bool full)
{
	in->pool_full = full;
	in->pool_capacity = pool->capacity;
	in->pool_used = pool->used;
	in->pool_in_doubt = pool->in_doubt;
}

/* Reads what the gates need beyond the standing. */
static void
gather(IntakeDesk *desk, Acceptance *a, GateInput *in)
{
	const Standing *st = &desk->standing;
	const Request *r = a->request;
	Capacity	capacity = standing_capacity(st);
	PoolState  *pool = &a->pool;

	memset(in, 0, sizeof(GateInput));
	in->observe = st->tenant.observe;
	in->now = st->now;
	in->rate_refused = a->rate_refused;
	in->quote = a->quote.quote;
	in->hold = a->quote.hold;
	in->max_cost = r->max_cost;
	in->paused_until = model_paused(&a->model, st->now) && !a->model.queue_while_paused ? a->model.paused_until : NO_TIME;
	in->outstanding = capacity.outstanding;
	in->accepted_limit = st->limits.accepted;
	in->max_ahead = r->max_ahead;
	if (r->max_ahead >= 0)
		in->ahead = lane_count_ahead(desk->s, st->tenant.id, r->priority, st->now, capacity.queued, Min(r->max_ahead, 1000));
	in->held = capacity.held;
	in->at_risk = st->tenant.at_risk;
	in->available = capacity.available;
	in->overdraft = st->tenant.overdraft;
	pool_look(desk->s, POOL_GLOBAL, desk->stripe, pool);
	tell_pool(in, pool, pool->bounded && pool->free < 1);
	if (in->pool_full && pool->newer && store_latest(desk->s))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent change of the global capacity"),
				 errhint("Retry the transaction, or call at READ COMMITTED.")));
}

/* Runs the gates; a refusal is told with an estimate of when to retry. */
static bool
pass_gates(IntakeDesk *desk, Acceptance *a, GateInput *in, Decision *d)
{
	gates_decide(in, &a->gates);
	if (a->gates.code == CODE_ACCEPTED)
		return true;
	in->turnover = standing_turnover(desk->s, &desk->standing);
	gates_decide(in, &a->gates);
	tell_refusal(d, &desk->standing, a, in);
	return false;
}

/* The submit rate, which stands before all that needs a quote. */
static bool
pass_rate(IntakeDesk *desk, Acceptance *a, Decision *d)
{
	const Standing *st = &desk->standing;
	int64		retry_after;

	a->rate_refused = !gates_rate(st->now, st->tenant.submit_rate, st->tenant.submit_burst, st->intake.rate_clock,
								  &a->rate_clock, &retry_after);
	if (!a->rate_refused || st->tenant.observe)
		return true;
	decide(d, CODE_RATE_LIMITED);
	d->retry_after = retry_after;
	return false;
}

/* The model and the quote. */
static bool
pass_catalogue(IntakeDesk *desk, Acceptance *a, Decision *d)
{
	const Request *r = a->request;
	const Standing *st = &desk->standing;

	if (!model_find(desk->s, r->model, &a->model) || !model_open_to(desk->s, &a->model, &st->tenant))
	{
		decide(d, CODE_MODEL_NOT_FOUND);
		details_text(&d->details, "model", r->model);
		return false;
	}
	switch (quote_request(desk->s, r->model, r->request, st->now, &a->quote))
	{
		case PRICE_UNMATCHED:
			decide(d, CODE_UNSUPPORTED_CONFIGURATION);
			return false;
		case PRICE_QUANTITY_REFUSED:
			decide(d, CODE_UNSUPPORTED_CONFIGURATION);
			details_text(&d->details, "field", a->quote.field);
			details_int(&d->details, "quantity", a->quote.quantity);
			return false;
		case PRICE_QUANTITY_MALFORMED:
			decide_invalid(d, a->quote.field, "a whole number from 1");
			return false;
		case PRICE_QUOTED:
			break;
	}
	return true;
}

/*
 * Decides on one request, gate by gate: true if it may be accepted, and then
 * the acceptance is complete; else the decision is told.
 */
bool
consider(IntakeDesk *desk, const Request *r, Acceptance *a, GateInput *in, Decision *d)
{
	const Standing *st = &desk->standing;
	Job			job;

	memset(a, 0, sizeof(Acceptance));
	a->request = r;
	if (st->tenant.suspended)
	{
		decide(d, CODE_TENANT_SUSPENDED);
		return false;
	}
	a->fingerprint = fingerprint(r->model, r->request);
	if (r->operation_key && job_of_key(desk->s, st->tenant.id, r->operation_key, &job))
	{
		decide_repeat(d, st, &job, a->fingerprint);
		return false;
	}
	if (!pass_rate(desk, a, d) || !pass_catalogue(desk, a, d))
		return false;
	gather(desk, a, in);
	return pass_gates(desk, a, in, d);
}

/* The answer where the last token went between the look and the take; true if it is waived. */
bool
reconsider_full(IntakeDesk *desk, Acceptance *a, GateInput *in, Decision *d)
{
	tell_pool(in, &a->pool, true);
	return pass_gates(desk, a, in, d);
}
