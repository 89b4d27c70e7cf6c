/*
 * step.c
 *	  Every step a job can take: each moves its narrow row and appends the
 *	  dispatch row that says so.
 *
 * A step runs at a desk: lock D of the tenant is held, the newest dispatch row
 * has been read after that, and the clock too.  A row in processing is locked
 * before it is changed, since heartbeat, begin_submission, submitted and
 * report_unknown change it without D.
 *
 * Wake-ups, as in the Spin model: what frees a slot of a saturated tenant puts
 * it back on the ring, unless it holds P alone and sees an empty queue; what
 * puts a job into a queue adds an entry unless it sees one.
 */
#include "admission.h"

#include "utils/builtins.h"

#include "amount.h"
#include "clock.h"
#include "locks.h"
#include "pool.h"
#include "ring.h"
#include "step.h"

static void
sit_down(Desk *desk, Store *s, int32 tenant_id)
{
	desk->s = s;
	desk->tenant_id = tenant_id;
	store_look_again(s);
	desk->now = clock_now();
	dispatch_newest(s, tenant_id, &desk->totals);
	desk->written = desk->totals;
}

/* Waits for lock D of a tenant, then looks. */
void
desk_open(Desk *desk, Store *s, int32 tenant_id)
{
	lock_wait(LOCK_DISPATCH, tenant_id);
	sit_down(desk, s, tenant_id);
}

/* The same without waiting: false if somebody else is at it. */
bool
desk_try(Desk *desk, Store *s, int32 tenant_id)
{
	if (!lock_try(LOCK_DISPATCH, tenant_id))
		return false;
	sit_down(desk, s, tenant_id);
	return true;
}

static void
append(Desk *desk, const DispatchEntry *entry)
{
	dispatch_append(desk->s, desk->tenant_id, &desk->totals, desk->now, entry);
	desk->written = desk->totals;
}

/* Appends a dispatch row that concerns no job. */
void
desk_note(Desk *desk, const char *reason)
{
	DispatchEntry entry = {
		.kind = "parked",
		.concurrency_limit = -1,
		.reason = reason
	};

	append(desk, &entry);
}

static void
append_step(Desk *desk, JobState *state, const char *kind, int32 limit, const char *reason)
{
	DispatchEntry entry = {
		.kind = kind,
		.job_no = state->job_no,
		.job_id = state->job_id,
		.attempt = state->attempt,
		.previous_no = state->previous_no,
		.concurrency_limit = limit,
		.worker = state->worker,
		.reason = reason
	};

	append(desk, &entry);
}

/* A slot of the tenant becomes free: see the file's head. */
static void
wake_after_room(Desk *desk)
{
	Intake		intake;
	bool		alone;

	if (!desk->totals.saturated)
		return;
	desk->totals.saturated = false;
	alone = lock_try(LOCK_PRESENCE, desk->tenant_id);
	if (alone)
	{
		store_look_again(desk->s);
		intake_newest(desk->s, desk->tenant_id, &intake);
		if (intake.admitted == desk->totals.departed)
			return;
	}
	ring_add(desk->s, desk->tenant_id);
}

/* ---- writing narrow rows ---- */

/* Puts a job in line, under the lane number that its state has. */
void
job_enqueue(Store *s, const JobState *state)
{
	Datum		values[QUEUED_SUBMITTED];
	bool		nulls[QUEUED_SUBMITTED] = {false};

	values[QUEUED_TENANT_ID - 1] = Int32GetDatum(state->tenant_id);
	values[QUEUED_LANE_NO - 1] = Int32GetDatum(state->lane_no);
	values[QUEUED_JOB_NO - 1] = Int64GetDatum(state->job_no);
	values[QUEUED_JOB_ID - 1] = UUIDPGetDatum(&state->job_id);
	values[QUEUED_ATTEMPT - 1] = Int32GetDatum(state->attempt);
	values[QUEUED_LOST - 1] = Int32GetDatum(state->lost);
	values[QUEUED_PREVIOUS_NO - 1] = Int64GetDatum(state->previous_no);
	values[QUEUED_START_BY - 1] = store_time(state->start_by, &nulls[QUEUED_START_BY - 1]);
	values[QUEUED_HELD - 1] = Int64GetDatum(state->held);
	values[QUEUED_SUBMITTED - 1] = BoolGetDatum(state->submitted);
	store_insert(s, T_QUEUED, values, nulls);
}

static void
insert_delayed(Store *s, const JobState *state)
{
	Datum		values[DELAYED_SUBMITTED];
	bool		nulls[DELAYED_SUBMITTED] = {false};

	values[DELAYED_TENANT_ID - 1] = Int32GetDatum(state->tenant_id);
	values[DELAYED_JOB_NO - 1] = Int64GetDatum(state->job_no);
	values[DELAYED_AVAILABLE_AT - 1] = TimestampTzGetDatum(state->available_at);
	values[DELAYED_LANE_NO - 1] = Int32GetDatum(state->lane_no);
	values[DELAYED_JOB_ID - 1] = UUIDPGetDatum(&state->job_id);
	values[DELAYED_ATTEMPT - 1] = Int32GetDatum(state->attempt);
	values[DELAYED_LOST - 1] = Int32GetDatum(state->lost);
	values[DELAYED_PREVIOUS_NO - 1] = Int64GetDatum(state->previous_no);
	values[DELAYED_START_BY - 1] = store_time(state->start_by, &nulls[DELAYED_START_BY - 1]);
	values[DELAYED_HELD - 1] = Int64GetDatum(state->held);
	values[DELAYED_SUBMITTED - 1] = BoolGetDatum(state->submitted);
	store_insert(s, T_DELAYED, values, nulls);
}

static void
fill_processing(const JobState *state, Datum *values, bool *nulls)
{
	memset(nulls, false, PROCESSING_PROVIDER_JOB_ID * sizeof(bool));
	values[PROCESSING_TENANT_ID - 1] = Int32GetDatum(state->tenant_id);
	values[PROCESSING_JOB_NO - 1] = Int64GetDatum(state->job_no);
	values[PROCESSING_JOB_ID - 1] = UUIDPGetDatum(&state->job_id);
	values[PROCESSING_LANE_NO - 1] = Int32GetDatum(state->lane_no);
	values[PROCESSING_MODEL_ID - 1] = Int32GetDatum(state->model_id);
	values[PROCESSING_ATTEMPT - 1] = Int32GetDatum(state->attempt);
	values[PROCESSING_LOST - 1] = Int32GetDatum(state->lost);
	values[PROCESSING_PREVIOUS_NO - 1] = Int64GetDatum(state->previous_no);
	values[PROCESSING_START_BY - 1] = store_time(state->start_by, &nulls[PROCESSING_START_BY - 1]);
	values[PROCESSING_HELD - 1] = Int64GetDatum(state->held);
	values[PROCESSING_SUBMISSION - 1] = CStringGetTextDatum(submission_name(state->submission));
	values[PROCESSING_WORKER - 1] = store_text(state->worker, &nulls[PROCESSING_WORKER - 1]);
	values[PROCESSING_CLAIMED_AT - 1] = TimestampTzGetDatum(state->claimed_at);
	values[PROCESSING_LEASE_EXPIRES_AT - 1] = TimestampTzGetDatum(state->lease_expires_at);
	values[PROCESSING_BEGUN_AT - 1] = store_time(state->begun_at, &nulls[PROCESSING_BEGUN_AT - 1]);
	values[PROCESSING_SUBMITTED_AT - 1] = store_time(state->submitted_at, &nulls[PROCESSING_SUBMITTED_AT - 1]);
	values[PROCESSING_UNKNOWN_SINCE - 1] = store_time(state->unknown_since, &nulls[PROCESSING_UNKNOWN_SINCE - 1]);
	values[PROCESSING_UNKNOWN_REASON - 1] = store_text(state->unknown_reason, &nulls[PROCESSING_UNKNOWN_REASON - 1]);
	values[PROCESSING_PROVIDER_JOB_ID - 1] = store_text(state->provider_job_id, &nulls[PROCESSING_PROVIDER_JOB_ID - 1]);
}

/* Writes back a processing row that job_lock locked. */
void
job_replace(Store *s, JobState *state)
{
	Datum		values[PROCESSING_PROVIDER_JOB_ID];
	bool		nulls[PROCESSING_PROVIDER_JOB_ID];

	fill_processing(state, values, nulls);
	store_update(s, T_PROCESSING, &state->tid, values, nulls);
}

static void
fill_ended(const JobState *state, Datum *values, bool *nulls)
{
	memset(nulls, false, ENDED_RESULT * sizeof(bool));
	values[ENDED_TENANT_ID - 1] = Int32GetDatum(state->tenant_id);
	values[ENDED_JOB_NO - 1] = Int64GetDatum(state->job_no);
	values[ENDED_JOB_ID - 1] = UUIDPGetDatum(&state->job_id);
	values[ENDED_STATE - 1] = CStringGetTextDatum(state->state);
	values[ENDED_CAUSE - 1] = CStringGetTextDatum(state->cause);
	values[ENDED_FINISHED_AT - 1] = TimestampTzGetDatum(state->finished_at);
	values[ENDED_ATTEMPT - 1] = Int32GetDatum(state->attempt);
	values[ENDED_PREVIOUS_NO - 1] = Int64GetDatum(state->previous_no);
	values[ENDED_SUBMISSION - 1] = CStringGetTextDatum(submission_name(state->submission));
	values[ENDED_STARTED_AT - 1] = store_time(state->claimed_at, &nulls[ENDED_STARTED_AT - 1]);
	values[ENDED_BEGUN_AT - 1] = store_time(state->begun_at, &nulls[ENDED_BEGUN_AT - 1]);
	values[ENDED_SUBMITTED_AT - 1] = store_time(state->submitted_at, &nulls[ENDED_SUBMITTED_AT - 1]);
	values[ENDED_UNKNOWN_SINCE - 1] = store_time(state->unknown_since, &nulls[ENDED_UNKNOWN_SINCE - 1]);
	values[ENDED_PROVIDER_JOB_ID - 1] = store_text(state->provider_job_id, &nulls[ENDED_PROVIDER_JOB_ID - 1]);
	values[ENDED_CAPTURED - 1] = Int64GetDatum(state->captured);
	values[ENDED_RELEASED - 1] = Int64GetDatum(state->released);
	values[ENDED_OVERAGE - 1] = Int64GetDatum(state->overage);
	values[ENDED_UNPRICED - 1] = BoolGetDatum(state->unpriced);
	values[ENDED_LATE - 1] = BoolGetDatum(state->late);
	values[ENDED_LATE_MICRO - 1] = Int64GetDatum(state->late_micro);
	values[ENDED_SETTLEMENT_KEY - 1] = store_text(state->settlement_key, &nulls[ENDED_SETTLEMENT_KEY - 1]);
	values[ENDED_RESULT - 1] = JsonbPGetDatum(state->result);
	nulls[ENDED_RESULT - 1] = state->result == NULL;
}

static void
remove_row(Store *s, JobState *state)
{
	TableId		table = T_QUEUED;

	if (state->place == PLACE_PROCESSING)
		table = T_PROCESSING;
	else if (state->place == PLACE_DELAYED)
		table = T_DELAYED;
	if (!store_delete(s, table, &state->tid, true))
		elog(ERROR, "a row of job " INT64_FORMAT " of tenant %d was changed by another", state->job_no, state->tenant_id);
}

/* ---- steps ---- */

/* queued -> processing: the next attempt, under a lease. */
void
job_start(Desk *desk, JobState *state, const char *worker, TimestampTz lease_expires_at, bool begin, int32 limit)
{
	Datum		values[PROCESSING_PROVIDER_JOB_ID];
	bool		nulls[PROCESSING_PROVIDER_JOB_ID];

	remove_row(desk->s, state);
	desk->totals.departed++;
	desk->totals.active++;
	desk->totals.served++;
	(void) due_note(desk->s, desk->tenant_id, lease_expires_at, &desk->totals);
	state->place = PLACE_PROCESSING;
	state->attempt++;
	state->submission = begin ? SUBMISSION_STARTED : SUBMISSION_NONE;
	state->worker = worker;
	state->claimed_at = desk->now;
	state->lease_expires_at = lease_expires_at;
	state->begun_at = begin ? desk->now : NO_TIME;
	state->submitted_at = state->unknown_since = NO_TIME;
	append_step(desk, state, "claim", limit, NULL);
	state->previous_no = desk->totals.no;
	fill_processing(state, values, nulls);
	store_insert(desk->s, T_PROCESSING, values, nulls);
}

/* processing -> queued at its old place, at once or not before a time (NO_TIME: at once). */
void
job_return(Desk *desk, JobState *state, TimestampTz available_at, const char *kind, const char *reason)
{
	remove_row(desk->s, state);
	desk->totals.departed--;
	desk->totals.active--;
	desk->totals.saturated = false;
	state->submitted = state->submitted || state->submission != SUBMISSION_NONE;
	state->lane_no = -abs(state->lane_no);
	state->available_at = available_at;
	if (HAS_TIME(available_at))
		(void) due_note(desk->s, desk->tenant_id, available_at, &desk->totals);
	append_step(desk, state, kind, -1, reason);
	state->previous_no = desk->totals.no;
	state->place = HAS_TIME(available_at) ? PLACE_DELAYED : PLACE_QUEUED;
	if (state->place == PLACE_DELAYED)
		insert_delayed(desk->s, state);
	else
		job_enqueue(desk->s, state);
	store_look_again(desk->s);
	if (!ring_has(desk->s, desk->tenant_id))
		ring_add(desk->s, desk->tenant_id);
}

/* delayed -> in line, its time having come. */
void
job_become_available(Desk *desk, JobState *state)
{
	remove_row(desk->s, state);
	state->place = PLACE_QUEUED;
	job_enqueue(desk->s, state);
}

/* A processing job, locked, changes its submission at a desk. */
void
job_mark(Desk *desk, JobState *state, const char *kind)
{
	append_step(desk, state, kind, -1, NULL);
	state->previous_no = desk->totals.no;
	job_replace(desk->s, state);
}

/* Anything open -> ended, with its money captured or released. */
void
job_end(Desk *desk, JobState *state, const Ending *ending)
{
	Datum		values[ENDED_RESULT];
	bool		nulls[ENDED_RESULT];
	bool		was_processing = state->place == PLACE_PROCESSING;

	remove_row(desk->s, state);
	desk->totals.concluded++;
	desk->totals.unreserved = amount_add(desk->totals.unreserved, state->held);
	desk->totals.captured = amount_add(desk->totals.captured, ending->captured);
	if (was_processing)
	{
		desk->totals.active--;
		wake_after_room(desk);
	}
	else
	{
		desk->totals.departed++;
		state->submission = SUBMISSION_NONE;
		state->claimed_at = state->begun_at = state->submitted_at = state->unknown_since = NO_TIME;
	}
	append_step(desk, state, ending->kind, -1, ending->reason);
	state->previous_no = desk->totals.no;
	state->place = PLACE_ENDED;
	state->state = ending->state;
	state->cause = ending->cause;
	state->finished_at = desk->now;
	state->captured = ending->captured;
	state->overage = Max(ending->captured - state->held, 0);
	state->released = state->held - (ending->captured - state->overage);
	state->unpriced = ending->unpriced;
	state->late = false;
	state->late_micro = 0;
	state->settlement_key = ending->settlement_key;
	state->result = ending->result;
	if (ending->provider_job_id)
		state->provider_job_id = ending->provider_job_id;
	fill_ended(state, values, nulls);
	store_insert(desk->s, T_ENDED, values, nulls);
	pool_give(desk->s, POOL_GLOBAL);
}

/* A success reported for a job that ended by force: once, charged or not; its state stays. */
void
job_end_late(Desk *desk, JobState *state, int64 charged)
{
	Datum		values[ENDED_RESULT];
	bool		nulls[ENDED_RESULT];
	TupleTableSlot *row;

	if (store_lock(desk->s, T_ENDED, &state->tid, true, &row) != ROW_LOCKED)
		elog(ERROR, "the end of job " INT64_FORMAT " of tenant %d was changed by another", state->job_no, state->tenant_id);
	desk->totals.captured = amount_add(desk->totals.captured, charged);
	append_step(desk, state, "late", -1, NULL);
	state->previous_no = desk->totals.no;
	state->late = true;
	state->late_micro = charged;
	fill_ended(state, values, nulls);
	store_update(desk->s, T_ENDED, &state->tid, values, nulls);
}
