/*
 * admit.c
 *	  admit, admit_many, preview: whether a job is accepted.
 *
 * An admission takes lock I of its tenant, then looks: everything that decides
 * is read in one look at the latest committed state.  It takes no lock that
 * dispatch or billing wants; what they do in the meantime mostly makes room,
 * and where it takes room the answer is that of "admission first", which the
 * intake row proves by the dispatch and billing numbers it decided on.
 *
 * Admission and dispatch cannot see each other's open work.  So that no
 * wake-up is lost, an admission tries P shared: with it, it puts the tenant on
 * the ring only if it is neither there nor saturated; without it (somebody is
 * taking the tenant off) it always does.
 *
 * A rejection releases what it locked.
 */
#include "admission.h"

#include "access/xact.h"
#include "commands/sequence.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "catalog/namespace.h"
#include "utils/resowner.h"

#include "amount.h"
#include "args.h"
#include "clock.h"
#include "fingerprint.h"
#include "gates.h"
#include "job.h"
#include "lane.h"
#include "locks.h"
#include "pool.h"
#include "price.h"
#include "ring.h"

PG_FUNCTION_INFO_V1(admission_admit);
PG_FUNCTION_INFO_V1(admission_admit_many);
PG_FUNCTION_INFO_V1(admission_preview);

/* one call's hold on a tenant's intake */
typedef struct IntakeDesk
{
	Store	   *s;
	int32		tenant_id;
	Standing	standing;		/* kept up to date as jobs are accepted */
	bool		writing;		/* admit, not preview */
	bool		presence;		/* P is held, shared */
	int32		stripe;			/* of the pool, that the last token came from */
	int32		jobs;
	int64		amount;
} IntakeDesk;

/* what an acceptance is made of */
typedef struct Acceptance
{
	const Request *request;
	Model		model;
	Quote		quote;
	bytea	   *fingerprint;
	TimestampTz rate_clock;		/* after the acceptance */
	bool		rate_refused;	/* in observe mode */
	PoolState	pool;
	GateResult	gates;
} Acceptance;

/* ---- telling ---- */

static void
tell_quote(Decision *d, const Standing *st, const char *unit, int64 quantity, int64 quote)
{
	details_open(&d->details, "quote", WJB_BEGIN_OBJECT);
	details_money(&d->details, NULL, quote, st->policy.credit_micro);
	details_text(&d->details, "unit", unit);
	details_int(&d->details, "quantity", quantity);
	details_close(&d->details, WJB_END_OBJECT);
}

static void
tell_limits(Decision *d, const Standing *st)
{
	d->has_limits = true;
	d->standing = *st;
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
	bool		same = VARSIZE(job->fingerprint) == VARSIZE(print) &&
		memcmp(job->fingerprint, print, VARSIZE(print)) == 0;

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
static bool
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

/* ---- accepting ---- */

/* A version 7 uuid: the time in milliseconds, then 74 random bits. */
static pg_uuid_t
new_job_id(void)
{
	pg_uuid_t	id;
	uint64		ms = (uint64) (GetCurrentTimestamp() / 1000 +
							   (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * INT64CONST(86400000));

	if (!pg_strong_random(id.data, UUID_LEN))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (int i = 0; i < 6; i++)
		id.data[i] = (unsigned char) (ms >> (40 - 8 * i));
	id.data[6] = (id.data[6] & 0x0f) | 0x70;
	id.data[8] = (id.data[8] & 0x3f) | 0x80;
	return id;
}

static void
insert_job(Store *s, const Standing *st, const Acceptance *a, const JobState *state)
{
	const Request *r = a->request;
	const Quote *q = &a->quote;
	Datum		values[JOB_WOULD_BE];
	bool		nulls[JOB_WOULD_BE] = {false};

	values[JOB_ID - 1] = UUIDPGetDatum(&state->job_id);
	values[JOB_TENANT_ID - 1] = Int32GetDatum(state->tenant_id);
	values[JOB_NO - 1] = Int64GetDatum(state->job_no);
	values[JOB_LANE_NO - 1] = Int32GetDatum(state->lane_no);
	values[JOB_MODEL_ID - 1] = Int32GetDatum(a->model.id);
	values[JOB_PRICE_ID - 1] = Int64GetDatum(q->price_id);
	values[JOB_PRIORITY - 1] = Int16GetDatum(r->priority);
	values[JOB_OPERATION_KEY - 1] = CStringGetTextDatum(r->operation_key);
	values[JOB_FINGERPRINT - 1] = PointerGetDatum(a->fingerprint);
	values[JOB_REQUEST - 1] = JsonbPGetDatum(q->request);
	values[JOB_CONTEXT - 1] = JsonbPGetDatum(r->context);
	values[JOB_CREATED_AT - 1] = TimestampTzGetDatum(st->now);
	values[JOB_START_BY - 1] = TimestampTzGetDatum(state->start_by);
	nulls[JOB_START_BY - 1] = !HAS_TIME(state->start_by);
	values[JOB_UNIT - 1] = CStringGetTextDatum(q->unit);
	values[JOB_QUANTITY - 1] = Int64GetDatum(q->quantity);
	values[JOB_UNIT_PRICE - 1] = Int64GetDatum(q->unit_price);
	values[JOB_QUOTE - 1] = Int64GetDatum(q->quote);
	values[JOB_HELD - 1] = Int64GetDatum(q->hold);
	values[JOB_CEILING - 1] = Int64GetDatum(q->ceiling);
	nulls[JOB_WOULD_BE - 1] = a->gates.would_be == CODE_ACCEPTED;
	values[JOB_WOULD_BE - 1] = nulls[JOB_WOULD_BE - 1] ? (Datum) 0 : CStringGetTextDatum(code_name(a->gates.would_be));
	store_insert(s, T_JOB, values, nulls);
}

static void
insert_deadline(Store *s, const JobState *state)
{
	Datum		values[DEADLINE_LANE_NO];
	bool		nulls[DEADLINE_LANE_NO] = {false};

	values[DEADLINE_START_BY - 1] = TimestampTzGetDatum(state->start_by);
	values[DEADLINE_TENANT_ID - 1] = Int32GetDatum(state->tenant_id);
	values[DEADLINE_JOB_NO - 1] = Int64GetDatum(state->job_no);
	values[DEADLINE_LANE_NO - 1] = Int32GetDatum(state->lane_no);
	store_insert(s, T_DEADLINE, values, nulls);
}

/* Counts an acceptance, so that what the decision shows is the state after it. */
static void
count(Standing *st, const Acceptance *a)
{
	st->intake.admitted++;
	st->intake.reserved = amount_add(st->intake.reserved, a->quote.hold);
	st->intake.rate_clock = a->rate_clock;
}

static void
tell_acceptance(Decision *d, const Standing *st, const Acceptance *a, Code code)
{
	decide(d, code);
	d->reserved = a->quote.hold;
	tell_quote(d, st, a->quote.unit, a->quote.quantity, a->quote.quote);
	if (a->gates.would_be != CODE_ACCEPTED)
		details_text(&d->details, "would_be", code_name(a->gates.would_be));
}

/* Writes an accepted job and its reservation.  Under lock I. */
static void
accept(IntakeDesk *desk, const Acceptance *a, Decision *d)
{
	Standing   *st = &desk->standing;
	const Request *r = a->request;
	int64		start_within = HAS_TIME(r->start_within) ? r->start_within : st->policy.default_start_within;
	JobState	state;

	count(st, a);
	desk->stripe = a->pool.taken_from;
	memset(&state, 0, sizeof(JobState));
	state.tenant_id = st->tenant.id;
	state.job_no = st->intake.admitted;
	state.job_id = new_job_id();
	state.lane_no = lane_for(desk->s, st->tenant.id, r->priority, a->model.id, true);
	state.start_by = HAS_TIME(start_within) ? clock_add(st->now, start_within) : NO_TIME;
	state.held = a->quote.hold;
	insert_job(desk->s, st, a, &state);
	job_enqueue(desk->s, &state);
	if (HAS_TIME(state.start_by))
		insert_deadline(desk->s, &state);
	desk->jobs++;
	desk->amount = amount_add(desk->amount, a->quote.hold);
	tell_acceptance(d, st, a, CODE_ACCEPTED);
	d->has_job = true;
	d->job_id = state.job_id;
}

/* Logs a refusal, where the policy wants it. */
static void
log_rejection(Store *s, const Standing *st, const Request *r, const Decision *d, int64 needed)
{
	Datum		values[REJECTION_NEEDED];
	bool		nulls[REJECTION_NEEDED] = {false};

	if (!st->policy.log_rejections)
		return;
	values[REJECTION_NO - 1] = Int64GetDatum(nextval_internal(get_relname_relid("rejection_rejection_no_seq",
																				 get_namespace_oid(ADMISSION_SCHEMA, false)), false));
	values[REJECTION_AT - 1] = TimestampTzGetDatum(st->now);
	values[REJECTION_TENANT_ID - 1] = Int32GetDatum(st->tenant.id);
	nulls[REJECTION_MODEL - 1] = r->model == NULL;
	values[REJECTION_MODEL - 1] = r->model ? CStringGetTextDatum(r->model) : (Datum) 0;
	values[REJECTION_CODE - 1] = CStringGetTextDatum(code_name(d->code));
	values[REJECTION_NEEDED - 1] = Int64GetDatum(needed);
	nulls[REJECTION_NEEDED - 1] = needed == 0;
	store_insert(s, T_REJECTION, values, nulls);
}

/* Decides on one request and writes what follows from it. */
static void
process(IntakeDesk *desk, const Request *r, Decision *d)
{
	Acceptance	a;
	GateInput	in;
	bool		accepted = consider(desk, r, &a, &in, d);

	if (accepted && desk->writing && !pool_take(desk->s, POOL_GLOBAL, desk->standing.tenant.observe, &a.pool))
	{
		/* the last token went between the look and the take */
		tell_pool(&in, &a.pool, true);
		accepted = pass_gates(desk, &a, &in, d);
	}
	if (accepted && desk->writing)
		accept(desk, &a, d);
	else if (accepted)
	{
		count(&desk->standing, &a);
		tell_acceptance(d, &desk->standing, &a, CODE_PREVIEW);
	}
	else if (desk->writing && !code_ok(d->code))
		log_rejection(desk->s, &desk->standing, r, d, a.quote.hold);
	tell_limits(d, &desk->standing);
}

/* ---- the desk ---- */

/* Takes lock I and, if it is to be had, P, then looks. */
static bool
open_desk(IntakeDesk *desk, Store *s, int32 tenant_id)
{
	memset(desk, 0, sizeof(IntakeDesk));
	desk->s = s;
	desk->tenant_id = tenant_id;
	desk->writing = true;
	lock_wait(LOCK_INTAKE, tenant_id);
	desk->presence = lock_try_shared(LOCK_PRESENCE, tenant_id);
	store_look_again(s);
	return standing_of_id(s, tenant_id, &desk->standing);
}

/* Writes the intake row and the wake-up of a call that accepted something; else gives the locks back. */
static void
close_desk(IntakeDesk *desk)
{
	const Standing *st = &desk->standing;
	int32		tenant_id = desk->tenant_id;

	if (desk->jobs > 0)
	{
		IntakeEntry entry = {
			.at = st->now, .jobs = desk->jobs, .amount = desk->amount,
			.dispatch_no = st->dispatch.no, .billing_no = st->billing.no,
			.concurrency_limit = st->limits.concurrency, .accepted_limit = st->limits.accepted,
			.overdraft = st->tenant.overdraft, .observed = st->tenant.observe
		};
		Intake		totals = st->intake;

		intake_append(desk->s, tenant_id, &totals, &entry);
		if (!desk->presence || (!st->dispatch.saturated && !ring_has(desk->s, tenant_id)))
			ring_add(desk->s, tenant_id);
		return;
	}
	if (desk->presence)
		lock_release_shared(LOCK_PRESENCE, tenant_id);
	lock_release(LOCK_INTAKE, tenant_id);
}

/* ---- SQL entries ---- */

/* admit(): see its COMMENT.  Lock I of the tenant. */
Datum
admission_admit(PG_FUNCTION_ARGS)
{
	Store	   *s;
	Request		request;
	Policy		policy;
	Tenant		tenant;
	IntakeDesk	desk;
	Decision	d;

	PreventCommandIfReadOnly("admission.admit()");
	s = store_open(STORE_LATEST);
	policy_read(s, &policy);
	if (request_from_call(fcinfo, &request, &d) &&
		request_key_fits(&request, &policy, true, &d) &&
		tenant_of_call(s, arg_text(fcinfo, 0), &tenant, &d))
	{
		if (open_desk(&desk, s, tenant.id))
			process(&desk, &request, &d);
		else
			decide(&d, CODE_UNKNOWN_TENANT);
		close_desk(&desk);
	}
	store_close(s);
	return decision_datum(fcinfo, &d);
}

/* preview(): the same decision from the caller's snapshot; no lock, nothing written. */
Datum
admission_preview(PG_FUNCTION_ARGS)
{
	Store	   *s = store_open(STORE_STATEMENT);
	Request		request;
	Policy		policy;
	Tenant		tenant;
	IntakeDesk	desk;
	Decision	d;

	memset(&desk, 0, sizeof(IntakeDesk));
	desk.s = s;
	policy_read(s, &policy);
	if (request_from_call(fcinfo, &request, &d) &&
		request_key_fits(&request, &policy, false, &d) &&
		tenant_of_call(s, arg_text(fcinfo, 0), &tenant, &d))
	{
		desk.standing.tenant = tenant;
		standing_refresh(s, &desk.standing);
		process(&desk, &request, &d);
	}
	store_close(s);
	return decision_datum(fcinfo, &d);
}

/* Decides on the items in order, each in memory of its own; false if one was refused. */
static bool
process_items(IntakeDesk *desk, Jsonb *items, Decision *decisions)
{
	JsonbIterator *iterator = JsonbIteratorInit(&items->root);
	JsonbValue	value;
	bool		all = true;
	int			n = 0;
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext inner = AllocSetContextCreate(outer, "admission item", ALLOCSET_DEFAULT_SIZES);

	(void) JsonbIteratorNext(&iterator, &value, true);
	while (JsonbIteratorNext(&iterator, &value, true) == WJB_ELEM)
	{
		Decision   *d = &decisions[n++];
		Request		request;

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(inner);
		store_look_again(desk->s);
		if (request_from_json(JsonbValueToJsonb(&value), desk->standing.tenant.name, &request, d) &&
			request_key_fits(&request, &desk->standing.policy, true, d))
			process(desk, &request, d);
		all = all && code_ok(d->code);
		MemoryContextSwitchTo(outer);
		decision_keep(d);
		MemoryContextReset(inner);
	}
	MemoryContextDelete(inner);
	return all;
}

/* In an all-or-nothing call that failed, what would have been accepted was not. */
static void
take_back(Decision *decisions, int count)
{
	for (int i = 0; i < count; i++)
	{
		Decision   *d = &decisions[i];

		if (d->code == CODE_ACCEPTED)
		{
			d->code = CODE_PREVIEW;
			d->has_job = false;
		}
	}
}

/* One batch, under lock I. */
static void
admit_batch(int32 tenant_id, Jsonb *items, Decision *decisions, bool *all)
{
	Store	   *s = store_open(STORE_LATEST);
	IntakeDesk	desk;

	if (!open_desk(&desk, s, tenant_id))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("the tenant was removed by another transaction"),
				 errhint("Retry the transaction.")));
	*all = process_items(&desk, items, decisions);
	close_desk(&desk);
	store_close(s);
}

/* The batch in a subtransaction, rolled back if an item is refused. */
static void
admit_whole_batch(int32 tenant_id, Jsonb *items, Decision *decisions, int count)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool		all = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		admit_batch(tenant_id, items, decisions, &all);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		RollbackAndReleaseCurrentSubTransaction();
		CurrentResourceOwner = owner;
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (all)
		ReleaseCurrentSubTransaction();
	else
	{
		RollbackAndReleaseCurrentSubTransaction();
		take_back(decisions, count);
	}
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
}

/* admit_many(): see its COMMENT.  Lock I of the tenant. */
Datum
admission_admit_many(PG_FUNCTION_ARGS)
{
	Jsonb	   *items = arg_jsonb(fcinfo, 1);
	Store	   *s;
	Tenant		tenant;
	Decision   *decisions;
	Decision	d;
	int			count = 1;
	bool		found,
				all;

	PreventCommandIfReadOnly("admission.admit_many()");
	InitMaterializedSRF(fcinfo, 0);
	s = store_open(STORE_LATEST);
	if (items == NULL || !JB_ROOT_IS_ARRAY(items) || JB_ROOT_IS_SCALAR(items))
	{
		decide_invalid(&d, "items", "an array of objects");
		found = false;
	}
	else
		found = tenant_of_call(s, arg_text(fcinfo, 0), &tenant, &d);
	store_close(s);
	decisions = &d;
	if (found)
	{
		count = JB_ROOT_COUNT(items);
		decisions = palloc0(sizeof(Decision) * Max(count, 1));
		if (!PG_ARGISNULL(2) && PG_GETARG_BOOL(2))
			admit_whole_batch(tenant.id, items, decisions, count);
		else
			admit_batch(tenant.id, items, decisions, &all);
	}
	for (int i = 0; i < count; i++)
		decision_put(fcinfo, &decisions[i]);
	return (Datum) 0;
}
