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
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/resowner.h"

#include "amount.h"
#include "clock.h"
#include "consider.h"
#include "lane.h"
#include "locks.h"
#include "ring.h"
#include "step.h"

PG_FUNCTION_INFO_V1(admission_admit);
PG_FUNCTION_INFO_V1(admission_admit_many);
PG_FUNCTION_INFO_V1(admission_preview);

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
	values[JOB_START_BY - 1] = store_time(state->start_by, &nulls[JOB_START_BY - 1]);
	values[JOB_UNIT - 1] = CStringGetTextDatum(q->unit);
	values[JOB_QUANTITY - 1] = Int64GetDatum(q->quantity);
	values[JOB_UNIT_PRICE - 1] = Int64GetDatum(q->unit_price);
	values[JOB_QUOTE - 1] = Int64GetDatum(q->quote);
	values[JOB_HELD - 1] = Int64GetDatum(q->hold);
	values[JOB_CEILING - 1] = Int64GetDatum(q->ceiling);
	values[JOB_WOULD_BE - 1] = store_text(a->gates.would_be == CODE_ACCEPTED ? NULL : code_name(a->gates.would_be),
										  &nulls[JOB_WOULD_BE - 1]);
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
	if (!a->rate_refused)
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
	values[REJECTION_NO - 1] = Int64GetDatum(store_number("rejection_rejection_no_seq"));
	values[REJECTION_AT - 1] = TimestampTzGetDatum(st->now);
	values[REJECTION_TENANT_ID - 1] = Int32GetDatum(st->tenant.id);
	values[REJECTION_MODEL - 1] = store_text(r->model, &nulls[REJECTION_MODEL - 1]);
	values[REJECTION_CODE - 1] = CStringGetTextDatum(code_name(d->code));
	values[REJECTION_NEEDED - 1] = Int64GetDatum(needed);
	nulls[REJECTION_NEEDED - 1] = needed == 0;
	store_insert(s, T_REJECTION, values, nulls);
}

/*
 * In REPEATABLE READ and SERIALIZABLE a refusal must be one that the caller's
 * own snapshot confirms.  Rows that are newer raised 40001 where they were
 * read; this meets what was deleted since.
 */
static void
confirm_refusal(IntakeDesk *desk, const Request *r, const Decision *d)
{
	IntakeDesk	before;
	Acceptance	a;
	GateInput	in;
	Decision	decision;

	if (!IsolationUsesXactSnapshot())
		return;
	memset(&before, 0, sizeof(IntakeDesk));
	before.s = store_open(STORE_TRANSACTION);
	before.standing.tenant = desk->standing.tenant;
	standing_refresh(before.s, &before.standing);
	before.standing.intake = desk->standing.intake; /* with what this call accepted so far */
	decide(&decision, CODE_ACCEPTED);
	(void) consider(&before, r, &a, &in, &decision);
	store_close(before.s);
	if (decision.code != d->code)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent deletion"),
				 errhint("Retry the transaction, or call at READ COMMITTED.")));
}

/* Decides on one request and writes what follows from it. */
static void
process(IntakeDesk *desk, const Request *r, Decision *d)
{
	Acceptance	a;
	GateInput	in;
	bool		accepted = consider(desk, r, &a, &in, d);

	if (accepted && desk->writing && !pool_take(desk->s, POOL_GLOBAL, desk->standing.tenant.observe, &a.pool))
		accepted = reconsider_full(desk, &a, &in, d);
	if (accepted && desk->writing)
		accept(desk, &a, d);
	else if (accepted)
	{
		count(&desk->standing, &a);
		tell_acceptance(d, &desk->standing, &a, CODE_PREVIEW);
	}
	else if (desk->writing && !code_ok(d->code))
	{
		confirm_refusal(desk, r, d);
		log_rejection(desk->s, &desk->standing, r, d, a.quote.hold);
	}
	d->has_limits = true;
	d->standing = desk->standing;
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
			.at = st->now,
			.jobs = desk->jobs,
			.amount = desk->amount,
			.dispatch_no = st->dispatch.no,
			.billing_no = st->billing.no,
			.concurrency_limit = st->limits.concurrency,
			.accepted_limit = st->limits.accepted,
			.overdraft = st->tenant.overdraft,
			.observed = st->tenant.observe
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
