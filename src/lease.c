/*
 * lease.c
 *	  What ends by time alone: leases, delays, deadlines.
 *
 * Claims look at a few tenants for which something is due, expire() at all of
 * them.  Both only try lock D, and pass by rows that somebody has locked.  A
 * lost lease proves nothing about the provider: before begin_submission the
 * job goes back in line, after it only evidence ends it.
 */
#include "admission.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"

#include "clock.h"
#include "lease.h"
#include "locks.h"
#include "ring.h"

PG_FUNCTION_INFO_V1(admission_expire);

#define MAX_DUE 1000			/* tenants that one expire() looks after */

/* Ends a job that did not start in time, queued or taken and not yet submitted. */
void
expire_unstarted(Desk *desk, JobState *state)
{
	Ending		ending = {
		.kind = "expire",
		.state = "expired",
		.cause = "expired"
	};

	job_end(desk, state, &ending);
}

static int32
attempts_allowed(Store *s, const Policy *policy, int32 model_id)
{
	Model		model;

	return model_read(s, model_id, &model) && model.max_attempts > 0 ? model.max_attempts : policy->max_attempts;
}

/* A lease that ran out before the provider was called. */
static void
lose_unsubmitted(Desk *desk, const Policy *policy, JobState *state, Lapsed *lapsed)
{
	state->lost++;
	if (state->lost >= attempts_allowed(desk->s, policy, state->model_id))
	{
		Ending		ending = {
			.kind = "exhausted",
			.state = "failed",
			.cause = "attempts_exhausted"
		};

		job_end(desk, state, &ending);
		lapsed->failed++;
	}
	else if (HAS_TIME(state->start_by) && state->start_by <= desk->now)
	{
		expire_unstarted(desk, state);
		lapsed->expired++;
	}
	else
	{
		job_return(desk, state, NO_TIME, "lost", "the lease ran out");
		lapsed->requeued++;
	}
}

/* A lease that ran out, of a job that is locked. */
static void
lose_lease(Desk *desk, const Policy *policy, JobState *state, Lapsed *lapsed)
{
	switch (state->submission)
	{
		case SUBMISSION_NONE:
			lose_unsubmitted(desk, policy, state, lapsed);
			break;
		case SUBMISSION_STARTED:
			state->submission = SUBMISSION_UNKNOWN;
			state->unknown_since = desk->now;
			state->unknown_reason = "the lease ran out";
			state->lease_expires_at = DT_NOEND;
			job_mark(desk, state, "unknown");
			lapsed->unknown++;
			break;
		default:
			state->lease_expires_at = DT_NOEND;
			job_mark(desk, state, "overdue");
			break;
	}
}

/* The processing rows whose lease has ended; next gets the earliest end of the others. */
static List *
ended_leases(Desk *desk, TimestampTz *next)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(desk->tenant_id))};
	List	   *ended = NIL;
	TupleTableSlot *row;

	store_seek(desk->s, I_PROCESSING, ForwardScanDirection, 1, key);
	while ((row = store_next(desk->s, I_PROCESSING)) != NULL)
	{
		JobState   *state = palloc(sizeof(JobState));

		job_read_processing(row, state);
		if (state->lease_expires_at <= desk->now)
			ended = lappend(ended, state);
		else
			*next = Min(*next, state->lease_expires_at);
	}
	return ended;
}

/* The delayed jobs whose time has come; next gets the time of the first other. */
static List *
ended_delays(Desk *desk, TimestampTz *next)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(desk->tenant_id))};
	List	   *ended = NIL;
	TupleTableSlot *row;

	store_seek(desk->s, I_DELAYED_AT, ForwardScanDirection, 1, key);
	while ((row = store_next(desk->s, I_DELAYED_AT)) != NULL)
	{
		JobState   *state = palloc(sizeof(JobState));

		job_read_delayed(row, state);
		if (state->available_at > desk->now)
		{
			*next = Min(*next, state->available_at);
			break;
		}
		ended = lappend(ended, state);
	}
	return ended;
}

/*
 * Looks at a tenant for which something is due, if nobody else is at it.  What
 * could not be done is due again in a second.
 */
bool
lease_visit(Store *s, const Policy *policy, DueTenant *due, Lapsed *lapsed)
{
	int32		tenant_id = due->tenant_id;
	Desk		desk;
	TimestampTz next = DT_NOEND;
	List	   *leases,
			   *delays;
	ListCell   *cell;
	Intake		intake;

	if (!desk_try(&desk, s, tenant_id))
		return false;
	due_remove(s, due);
	if (HAS_TIME(desk.totals.due_at) && desk.totals.due_at <= desk.now)
		desk.totals.due_at = NO_TIME;
	leases = ended_leases(&desk, &next);
	delays = ended_delays(&desk, &next);
	foreach(cell, leases)
	{
		JobState   *state = lfirst(cell);

		if (!job_lock(s, state, false))
		{
			lapsed->skipped++;
			next = Min(next, clock_add(desk.now, MICROS_PER_SECOND));
		}
		else if (state->lease_expires_at <= desk.now)
			lose_lease(&desk, policy, state, lapsed);
		else
			next = Min(next, state->lease_expires_at);
	}
	foreach(cell, delays)
		job_become_available(&desk, lfirst(cell));
	(void) due_note(s, tenant_id, next, &desk.totals);
	desk_note(&desk, "due");
	store_look_again(s);
	intake_newest(s, tenant_id, &intake);
	if (intake.admitted > desk.totals.departed && !ring_has(s, tenant_id))
		ring_add(s, tenant_id);
	return true;
}

/* ---- expire() ---- */

typedef struct Deadline
{
	ItemPointerData tid;
	Job			job;			/* what job_find needs of it */
} Deadline;

/* Whether lock D of a tenant is ours to have: tried once for each. */
static bool
have_desk(List **ours, List **others, int32 tenant_id)
{
	if (list_member_int(*ours, tenant_id))
		return true;
	if (list_member_int(*others, tenant_id))
		return false;
	if (lock_try(LOCK_DISPATCH, tenant_id))
	{
		*ours = lappend_int(*ours, tenant_id);
		return true;
	}
	*others = lappend_int(*others, tenant_id);
	return false;
}

/* Up to batch passed deadlines of tenants nobody else is at, whose locks are taken; skipped counts the others. */
static List *
passed_deadlines(Store *s, TimestampTz now, int32 batch, int32 *skipped)
{
	Bound		key[] = {AT_MOST(1, TimestampTzGetDatum(now))};
	List	   *passed = NIL;
	List	   *ours = NIL;
	List	   *others = NIL;
	TupleTableSlot *row;

	store_seek(s, I_DEADLINE, ForwardScanDirection, 1, key);
	while (list_length(passed) < batch && (row = store_next(s, I_DEADLINE)) != NULL)
	{
		Deadline   *deadline;

		if (!have_desk(&ours, &others, DatumGetInt32(COLUMN(row, DEADLINE_TENANT_ID))))
		{
			(*skipped)++;
			continue;
		}
		deadline = palloc0(sizeof(Deadline));
		deadline->tid = row->tts_tid;
		deadline->job.tenant_id = DatumGetInt32(COLUMN(row, DEADLINE_TENANT_ID));
		deadline->job.no = DatumGetInt64(COLUMN(row, DEADLINE_JOB_NO));
		deadline->job.lane_no = DatumGetInt32(COLUMN(row, DEADLINE_LANE_NO));
		passed = lappend(passed, deadline);
	}
	return passed;
}

/* Ends a job past its deadline, if it is still waiting; one that is processing expires when it comes back. */
static void
meet_deadline(Store *s, Deadline *deadline, Lapsed *lapsed)
{
	Desk		desk;
	JobState	state;

	desk_open(&desk, s, deadline->job.tenant_id);
	job_find(s, &deadline->job, &state);
	if (state.place == PLACE_QUEUED || state.place == PLACE_DELAYED)
	{
		expire_unstarted(&desk, &state);
		lapsed->expired++;
	}
	(void) store_delete(s, T_DEADLINE, &deadline->tid, false);
}

/* expire(): see its COMMENT.  Lock D of each tenant, tried. */
Datum
admission_expire(PG_FUNCTION_ARGS)
{
	int32		batch = PG_ARGISNULL(0) ? 1000 : PG_GETARG_INT32(0);
	Store	   *s;
	Policy		policy;
	Lapsed		lapsed = {0};
	TupleDesc	descriptor;
	Datum		values[5];
	bool		nulls[5] = {false};
	ListCell   *cell;

	PreventCommandIfReadOnly("admission.expire()");
	if (batch < 1 || batch > 100000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("batch %d is out of range", batch),
				 errhint("Use 1 to 100000.")));
	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "expire() must be called as a function that returns a row");
	s = store_open(STORE_LATEST);
	policy_read(s, &policy);
	foreach(cell, passed_deadlines(s, clock_now(), batch, &lapsed.skipped))
	{
		CHECK_FOR_INTERRUPTS();
		meet_deadline(s, lfirst(cell), &lapsed);
	}
	store_look_again(s);
	foreach(cell, due_read(s, clock_now(), Min(batch, MAX_DUE)))
	{
		CHECK_FOR_INTERRUPTS();
		if (!lease_visit(s, &policy, lfirst(cell), &lapsed))
			lapsed.skipped++;
	}
	store_close(s);
	values[0] = Int32GetDatum(lapsed.expired);
	values[1] = Int32GetDatum(lapsed.requeued);
	values[2] = Int32GetDatum(lapsed.failed);
	values[3] = Int32GetDatum(lapsed.unknown);
	values[4] = Int32GetDatum(lapsed.skipped);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}
