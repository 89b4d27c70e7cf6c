/*
 * settle.c
 *	  settle, settle_many: the evidence that ends a job, and what it costs.
 *
 * Under lock D of the tenant.  The first settlement counts.  The same again is
 * a replay with its numbers; another is a conflict, changes nothing and is
 * kept.  Evidence about a job that is back in line ends it too.  A success
 * reported for a job that ended without evidence is late: recorded once.
 */
#include "admission.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"

#include "amount.h"
#include "args.h"
#include "clock.h"
#include "evidence.h"
#include "provider.h"
#include "step.h"

PG_FUNCTION_INFO_V1(admission_settle);
PG_FUNCTION_INFO_V1(admission_settle_many);

/* one settlement, as it was called */
typedef struct Settlement
{
	bool		has_job_id;
	pg_uuid_t	job_id;
	Report		report;
	int			n;				/* its place among the items */
	bool		found;
	Job			job;
} Settlement;

/* ---- arguments ---- */

static bool
well_formed(const Settlement *s, Decision *d)
{
	const Report *r = &s->report;

	if (!s->has_job_id && r->provider_job_id == NULL)
		decide_invalid(d, "job_id", "a job's id, or a provider_job_id");
	else if (r->outcome == NULL || (strcmp(r->outcome, "completed") != 0 && strcmp(r->outcome, "failed") != 0))
		decide_invalid(d, "outcome", "completed or failed");
	else if (r->actual != NO_AMOUNT && r->actual < 0)
		decide_invalid(d, "actual_micro", "a number from 0");
	else if (r->settlement_key && !text_fits(r->settlement_key, 255))
		decide_invalid(d, "settlement_key", "1 to 255 bytes");
	else if (r->provider_job_id && !text_fits(r->provider_job_id, 255))
		decide_invalid(d, "provider_job_id", "1 to 255 bytes");
	else if (r->result && !is_object(r->result))
		decide_invalid(d, "result", "an object");
	else
		return true;
	return false;
}

static void
from_call(FunctionCallInfo fcinfo, Settlement *s)
{
	memset(s, 0, sizeof(Settlement));
	s->has_job_id = !PG_ARGISNULL(0);
	if (s->has_job_id)
		s->job_id = *PG_GETARG_UUID_P(0);
	s->report.outcome = arg_text(fcinfo, 1);
	s->report.actual = PG_ARGISNULL(2) ? NO_AMOUNT : Max(PG_GETARG_INT64(2), -1);
	s->report.settlement_key = arg_text(fcinfo, 3);
	s->report.attempt = PG_ARGISNULL(4) ? NO_ATTEMPT : PG_GETARG_INT32(4);
	s->report.result = arg_jsonb(fcinfo, 5);
	s->report.provider_job_id = arg_text(fcinfo, 6);
}

/* One field of an item of settle_many; what is expected of it if it is malformed, else NULL. */
static const char *
settlement_field(const char *name, const JsonbValue *value, void *into)
{
	Settlement *s = into;
	int64		number;

	if (value->type == jbvNull)
		return NULL;
	if (strcmp(name, "job_id") == 0)
	{
		s->has_job_id = true;
		return json_uuid(value, &s->job_id) ? NULL : "a job's id";
	}
	if (strcmp(name, "outcome") == 0)
		return json_text(value, &s->report.outcome) ? NULL : "completed or failed";
	if (strcmp(name, "actual_micro") == 0)
		return json_whole(value, 0, PG_INT64_MAX, &s->report.actual) ? NULL : "a number from 0";
	if (strcmp(name, "settlement_key") == 0)
		return json_text(value, &s->report.settlement_key) ? NULL : "a text";
	if (strcmp(name, "provider_job_id") == 0)
		return json_text(value, &s->report.provider_job_id) ? NULL : "a text";
	if (strcmp(name, "attempt") == 0)
	{
		if (!json_whole(value, 1, PG_INT32_MAX, &number))
			return "the attempt of the claim";
		s->report.attempt = (int32) number;
		return NULL;
	}
	if (strcmp(name, "result") == 0)
	{
		if (value->type != jbvBinary)
			return "an object";
		s->report.result = JsonbValueToJsonb(unconstify(JsonbValue *, value));
		return NULL;
	}
	return "an argument name of settle";
}

static bool
from_json(Jsonb *item, Settlement *s, Decision *d)
{
	memset(s, 0, sizeof(Settlement));
	s->report.actual = NO_AMOUNT;
	s->report.attempt = NO_ATTEMPT;
	return fields_from_json(item, settlement_field, s, d) && well_formed(s, d);
}

/* ---- which job ---- */

static bool
find_job(Store *s, Settlement *settlement, Decision *d)
{
	settlement->found = settlement->has_job_id ? job_read(s, &settlement->job_id, &settlement->job) :
		provider_find(s, settlement->report.provider_job_id, &settlement->job);
	if (!settlement->found)
		decide(d, CODE_NOT_FOUND);
	return settlement->found;
}

/* ---- deciding ---- */

static void
tell(Decision *d, Code code, const Settlement *s, const JobState *state)
{
	decide(d, code);
	d->has_job = true;
	d->job_id = s->job.id;
	details_text(&d->details, "state", place_name(state));
	if (state->place == PLACE_ENDED)
	{
		details_text(&d->details, "cause", state->cause);
		details_int(&d->details, "held_micro", s->job.held);
		details_int(&d->details, "captured_micro", state->captured);
		details_int(&d->details, "released_micro", state->released);
		details_int(&d->details, "overage_micro", state->overage);
		details_bool(&d->details, "unpriced", state->unpriced);
		if (state->late)
			details_int(&d->details, "late_micro", state->late_micro);
	}
	else
		details_int(&d->details, "attempt", state->attempt);
}

/* Tells a report that changes nothing, and keeps it. */
static void
tell_and_keep(Desk *desk, Decision *d, Code code, const Settlement *s, const JobState *state)
{
	tell(d, code, s, state);
	evidence_keep(desk->s, &s->job, desk->now, code, &s->report);
}

/* What a report captures of a hold. */
static int64
capture(const Settlement *s)
{
	if (s->report.actual != NO_AMOUNT)
		return s->report.actual;
	return strcmp(s->report.outcome, "completed") == 0 ? s->job.held : 0;
}

/* A success for a job that had ended without evidence. */
static void
settle_late(Desk *desk, Settlement *s, JobState *state, Decision *d)
{
	Policy		policy;

	if (state->late && state->late_micro > 0 && capture(s) != state->late_micro)
	{
		tell_and_keep(desk, d, CODE_SETTLEMENT_CONFLICT, s, state);
		return;
	}
	if (state->late)
	{
		tell(d, CODE_LATE_COMPLETION, s, state);
		return;
	}
	policy_read(desk->s, &policy);
	job_end_late(desk, state, policy.charge_late ? capture(s) : 0);
	tell_and_keep(desk, d, CODE_LATE_COMPLETION, s, state);
}

/* A report about a job that is over. */
static void
settle_again(Desk *desk, Settlement *s, JobState *state, Decision *d)
{
	bool		same_state = strcmp(state->state, s->report.outcome) == 0;
	bool		by_evidence = strcmp(state->cause, "settled") == 0;

	if (!by_evidence && strcmp(s->report.outcome, "completed") == 0)
		settle_late(desk, s, state, d);
	else if (same_state && capture(s) == state->captured)
		tell(d, CODE_ALREADY_SETTLED, s, state);
	else
		tell_and_keep(desk, d, CODE_SETTLEMENT_CONFLICT, s, state);
}

/* The first evidence of an end. */
static void
settle_first(Desk *desk, Settlement *s, JobState *state, Decision *d)
{
	Ending		ending = {
		.kind = "settle",
		.state = s->report.outcome,
		.cause = "settled",
		.captured = capture(s),
		.unpriced = s->report.actual == NO_AMOUNT && strcmp(s->report.outcome, "completed") == 0,
		.settlement_key = s->report.settlement_key,
		.provider_job_id = s->report.provider_job_id,
		.result = s->report.result
	};

	job_end(desk, state, &ending);
	tell(d, CODE_SETTLED, s, state);
}

/* Whether the provider's id of a report, if it has one, is this job's; an id not known yet is bound to it. */
static bool
names_this_job(Desk *desk, const Settlement *s, const JobState *state)
{
	const char *id = s->report.provider_job_id;

	if (id == NULL || (state->provider_job_id && strcmp(state->provider_job_id, id) == 0))
		return true;
	return state->provider_job_id == NULL && provider_bind(desk->s, &s->job, id);
}

/* Decides on a report, at the desk of the job's tenant. */
static void
settle_at(Desk *desk, Settlement *s, Decision *d)
{
	JobState	state;
	bool		stale;

	job_find(desk->s, &s->job, &state);
	if (state.place == PLACE_PROCESSING && !job_lock(desk->s, &state, true))
		elog(ERROR, "a processing row left without lock D");
	stale = s->report.attempt != NO_ATTEMPT && s->report.attempt != state.attempt;
	if (state.place == PLACE_ENDED)
	{
		if (stale && strcmp(state.cause, "settled") == 0 && strcmp(state.state, s->report.outcome) != 0)
			tell_and_keep(desk, d, CODE_STALE_CLAIM, s, &state);
		else
			settle_again(desk, s, &state, d);
	}
	else if (state.place == PLACE_NONE)
		decide(d, CODE_NOT_FOUND);
	else if (stale || (state.place != PLACE_PROCESSING && !state.submitted))
		tell_and_keep(desk, d, CODE_STALE_CLAIM, s, &state);
	else if (!names_this_job(desk, s, &state))
		tell_and_keep(desk, d, CODE_SETTLEMENT_CONFLICT, s, &state);
	else
		settle_first(desk, s, &state, d);
}

/* ---- SQL entries ---- */

/* settle(): see its COMMENT.  Lock D of the tenant, then the job's row. */
Datum
admission_settle(PG_FUNCTION_ARGS)
{
	Store	   *s;
	Settlement	settlement;
	Desk		desk;
	Decision	d;

	PreventCommandIfReadOnly("admission.settle()");
	from_call(fcinfo, &settlement);
	s = store_open(STORE_LATEST);
	if (well_formed(&settlement, &d) && find_job(s, &settlement, &d))
	{
		desk_open(&desk, s, settlement.job.tenant_id);
		settle_at(&desk, &settlement, &d);
	}
	store_close(s);
	return decision_datum(fcinfo, &d);
}

static int
by_tenant(const ListCell *a, const ListCell *b)
{
	const Settlement *left = lfirst(a);
	const Settlement *right = lfirst(b);

	if (left->job.tenant_id != right->job.tenant_id)
		return left->job.tenant_id < right->job.tenant_id ? -1 : 1;
	return left->n - right->n;
}

/* settle_many(): see its COMMENT.  Lock D of each tenant, ascending. */
Datum
admission_settle_many(PG_FUNCTION_ARGS)
{
	Jsonb	   *items = arg_jsonb(fcinfo, 0);
	Store	   *s;
	Decision   *decisions;
	List	   *found = NIL;
	JsonbIterator *iterator;
	JsonbValue	value;
	ListCell   *cell;
	int			n = 0;

	PreventCommandIfReadOnly("admission.settle_many()");
	InitMaterializedSRF(fcinfo, 0);
	if (items == NULL || !JB_ROOT_IS_ARRAY(items) || JB_ROOT_IS_SCALAR(items))
	{
		Decision	d;

		decide_invalid(&d, "items", "an array of objects");
		decision_put(fcinfo, &d);
		return (Datum) 0;
	}
	decisions = palloc0(sizeof(Decision) * Max(JB_ROOT_COUNT(items), 1));
	s = store_open(STORE_LATEST);
	iterator = JsonbIteratorInit(&items->root);
	(void) JsonbIteratorNext(&iterator, &value, true);
	while (JsonbIteratorNext(&iterator, &value, true) == WJB_ELEM)
	{
		Settlement *settlement = palloc(sizeof(Settlement));

		if (from_json(JsonbValueToJsonb(&value), settlement, &decisions[n]) && find_job(s, settlement, &decisions[n]))
			found = lappend(found, settlement);
		settlement->n = n++;
	}
	list_sort(found, by_tenant);
	foreach(cell, found)
	{
		Settlement *settlement = lfirst(cell);
		Desk		desk;

		CHECK_FOR_INTERRUPTS();
		desk_open(&desk, s, settlement->job.tenant_id);
		settle_at(&desk, settlement, &decisions[settlement->n]);
	}
	store_close(s);
	for (int i = 0; i < n; i++)
		decision_put(fcinfo, &decisions[i]);
	return (Datum) 0;
}
