/*
 * job.c
 *	  What a job is and where it is: its wide record, and the narrow row that
 *	  says its state.
 *
 * The record never changes.  The narrow row stands in queued, delayed,
 * processing or ended, and is moved by the steps of step.c.  Strings and jsonb
 * live in the caller's memory.
 */
#include "admission.h"

#include "utils/builtins.h"

#include "job.h"

static const char *const submission_names[] = {
	[SUBMISSION_NONE] = "none",
	[SUBMISSION_STARTED] = "started",
	[SUBMISSION_ACKNOWLEDGED] = "acknowledged",
	[SUBMISSION_UNKNOWN] = "unknown",
};

const char *
submission_name(Submission submission)
{
	return submission_names[submission];
}

/* The public state of a job. */
const char *
place_name(const JobState *state)
{
	switch (state->place)
	{
		case PLACE_PROCESSING:
			return "processing";
		case PLACE_ENDED:
			return state->state;
		default:
			return "queued";
	}
}

static const char *
text_of(TupleTableSlot *row, int column)
{
	return COLUMN_NULL(row, column) ? NULL : TextDatumGetCString(COLUMN(row, column));
}

static bool
fill_job(TupleTableSlot *row, Job *job)
{
	if (row == NULL)
		return false;
	job->id = *DatumGetUUIDP(COLUMN(row, JOB_ID));
	job->tenant_id = DatumGetInt32(COLUMN(row, JOB_TENANT_ID));
	job->no = DatumGetInt64(COLUMN(row, JOB_NO));
	job->lane_no = DatumGetInt32(COLUMN(row, JOB_LANE_NO));
	job->model_id = DatumGetInt32(COLUMN(row, JOB_MODEL_ID));
	job->fingerprint = DatumGetByteaPCopy(COLUMN(row, JOB_FINGERPRINT));
	job->unit = text_of(row, JOB_UNIT);
	job->quantity = DatumGetInt64(COLUMN(row, JOB_QUANTITY));
	job->quote = DatumGetInt64(COLUMN(row, JOB_QUOTE));
	job->held = DatumGetInt64(COLUMN(row, JOB_HELD));
	job->request = DatumGetJsonbPCopy(COLUMN(row, JOB_REQUEST));
	job->context = DatumGetJsonbPCopy(COLUMN(row, JOB_CONTEXT));
	return true;
}

bool
job_read(Store *s, const pg_uuid_t *job_id, Job *job)
{
	Bound		key[] = {EQUAL(1, UUIDPGetDatum(job_id))};

	return fill_job(store_first(s, I_JOB, ForwardScanDirection, 1, key), job);
}

/* The job that an operation key of a tenant is bound to. */
bool
job_of_key(Store *s, int32 tenant_id, const char *operation_key, Job *job)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id)), EQUAL(2, CStringGetTextDatum(operation_key))};

	return fill_job(store_first(s, I_JOB_KEY, ForwardScanDirection, 2, key), job);
}

void
job_read_queued(TupleTableSlot *row, JobState *state)
{
	memset(state, 0, sizeof(JobState));
	state->place = PLACE_QUEUED;
	state->tid = row->tts_tid;
	state->tenant_id = DatumGetInt32(COLUMN(row, QUEUED_TENANT_ID));
	state->lane_no = DatumGetInt32(COLUMN(row, QUEUED_LANE_NO));
	state->job_no = DatumGetInt64(COLUMN(row, QUEUED_JOB_NO));
	state->job_id = *DatumGetUUIDP(COLUMN(row, QUEUED_JOB_ID));
	state->attempt = DatumGetInt32(COLUMN(row, QUEUED_ATTEMPT));
	state->lost = DatumGetInt32(COLUMN(row, QUEUED_LOST));
	state->previous_no = DatumGetInt64(COLUMN(row, QUEUED_PREVIOUS_NO));
	state->start_by = COLUMN_TIME(row, QUEUED_START_BY);
	state->held = DatumGetInt64(COLUMN(row, QUEUED_HELD));
	state->submitted = DatumGetBool(COLUMN(row, QUEUED_SUBMITTED));
}

void
job_read_delayed(TupleTableSlot *row, JobState *state)
{
	memset(state, 0, sizeof(JobState));
	state->place = PLACE_DELAYED;
	state->tid = row->tts_tid;
	state->tenant_id = DatumGetInt32(COLUMN(row, DELAYED_TENANT_ID));
	state->job_no = DatumGetInt64(COLUMN(row, DELAYED_JOB_NO));
	state->available_at = DatumGetTimestampTz(COLUMN(row, DELAYED_AVAILABLE_AT));
	state->lane_no = DatumGetInt32(COLUMN(row, DELAYED_LANE_NO));
	state->job_id = *DatumGetUUIDP(COLUMN(row, DELAYED_JOB_ID));
	state->attempt = DatumGetInt32(COLUMN(row, DELAYED_ATTEMPT));
	state->lost = DatumGetInt32(COLUMN(row, DELAYED_LOST));
	state->previous_no = DatumGetInt64(COLUMN(row, DELAYED_PREVIOUS_NO));
	state->start_by = COLUMN_TIME(row, DELAYED_START_BY);
	state->held = DatumGetInt64(COLUMN(row, DELAYED_HELD));
	state->submitted = DatumGetBool(COLUMN(row, DELAYED_SUBMITTED));
}

static Submission
submission_of(const char *name)
{
	int			i = 0;

	while (strcmp(submission_names[i], name) != 0)
		i++;
	return (Submission) i;
}

void
job_read_processing(TupleTableSlot *row, JobState *state)
{
	memset(state, 0, sizeof(JobState));
	state->place = PLACE_PROCESSING;
	state->tid = row->tts_tid;
	state->tenant_id = DatumGetInt32(COLUMN(row, PROCESSING_TENANT_ID));
	state->job_no = DatumGetInt64(COLUMN(row, PROCESSING_JOB_NO));
	state->job_id = *DatumGetUUIDP(COLUMN(row, PROCESSING_JOB_ID));
	state->lane_no = DatumGetInt32(COLUMN(row, PROCESSING_LANE_NO));
	state->model_id = DatumGetInt32(COLUMN(row, PROCESSING_MODEL_ID));
	state->attempt = DatumGetInt32(COLUMN(row, PROCESSING_ATTEMPT));
	state->lost = DatumGetInt32(COLUMN(row, PROCESSING_LOST));
	state->previous_no = DatumGetInt64(COLUMN(row, PROCESSING_PREVIOUS_NO));
	state->start_by = COLUMN_TIME(row, PROCESSING_START_BY);
	state->held = DatumGetInt64(COLUMN(row, PROCESSING_HELD));
	state->submission = submission_of(text_of(row, PROCESSING_SUBMISSION));
	state->worker = text_of(row, PROCESSING_WORKER);
	state->claimed_at = DatumGetTimestampTz(COLUMN(row, PROCESSING_CLAIMED_AT));
	state->lease_expires_at = DatumGetTimestampTz(COLUMN(row, PROCESSING_LEASE_EXPIRES_AT));
	state->begun_at = COLUMN_TIME(row, PROCESSING_BEGUN_AT);
	state->submitted_at = COLUMN_TIME(row, PROCESSING_SUBMITTED_AT);
	state->unknown_since = COLUMN_TIME(row, PROCESSING_UNKNOWN_SINCE);
	state->unknown_reason = text_of(row, PROCESSING_UNKNOWN_REASON);
	state->provider_job_id = text_of(row, PROCESSING_PROVIDER_JOB_ID);
}

static void
read_ended(TupleTableSlot *row, JobState *state)
{
	memset(state, 0, sizeof(JobState));
	state->place = PLACE_ENDED;
	state->tid = row->tts_tid;
	state->tenant_id = DatumGetInt32(COLUMN(row, ENDED_TENANT_ID));
	state->job_no = DatumGetInt64(COLUMN(row, ENDED_JOB_NO));
	state->job_id = *DatumGetUUIDP(COLUMN(row, ENDED_JOB_ID));
	state->state = text_of(row, ENDED_STATE);
	state->cause = text_of(row, ENDED_CAUSE);
	state->finished_at = DatumGetTimestampTz(COLUMN(row, ENDED_FINISHED_AT));
	state->attempt = DatumGetInt32(COLUMN(row, ENDED_ATTEMPT));
	state->previous_no = DatumGetInt64(COLUMN(row, ENDED_PREVIOUS_NO));
	state->submission = submission_of(text_of(row, ENDED_SUBMISSION));
	state->claimed_at = COLUMN_TIME(row, ENDED_STARTED_AT);
	state->begun_at = COLUMN_TIME(row, ENDED_BEGUN_AT);
	state->submitted_at = COLUMN_TIME(row, ENDED_SUBMITTED_AT);
	state->unknown_since = COLUMN_TIME(row, ENDED_UNKNOWN_SINCE);
	state->provider_job_id = text_of(row, ENDED_PROVIDER_JOB_ID);
	state->captured = DatumGetInt64(COLUMN(row, ENDED_CAPTURED));
	state->released = DatumGetInt64(COLUMN(row, ENDED_RELEASED));
	state->overage = DatumGetInt64(COLUMN(row, ENDED_OVERAGE));
	state->unpriced = DatumGetBool(COLUMN(row, ENDED_UNPRICED));
	state->late = DatumGetBool(COLUMN(row, ENDED_LATE));
	state->late_micro = DatumGetInt64(COLUMN(row, ENDED_LATE_MICRO));
	state->settlement_key = text_of(row, ENDED_SETTLEMENT_KEY);
	state->result = COLUMN_NULL(row, ENDED_RESULT) ? NULL : DatumGetJsonbPCopy(COLUMN(row, ENDED_RESULT));
}

static TupleTableSlot *
queued_row(Store *s, const Job *job, int32 lane_no)
{
	Bound		key[] = {
		EQUAL(1, Int32GetDatum(job->tenant_id)), EQUAL(2, Int32GetDatum(lane_no)), EQUAL(3, Int64GetDatum(job->no))
	};

	return store_first(s, I_QUEUED, ForwardScanDirection, 3, key);
}

/* Finds the narrow row of a job; PLACE_NONE if the store sees none. */
void
job_find(Store *s, const Job *job, JobState *state)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(job->tenant_id)), EQUAL(2, Int64GetDatum(job->no))};
	TupleTableSlot *row;

	if ((row = store_first(s, I_PROCESSING, ForwardScanDirection, 2, key)) != NULL)
		job_read_processing(row, state);
	else if ((row = store_first(s, I_ENDED, ForwardScanDirection, 2, key)) != NULL)
		read_ended(row, state);
	else if ((row = queued_row(s, job, job->lane_no)) != NULL ||
			 (row = queued_row(s, job, -job->lane_no)) != NULL)
		job_read_queued(row, state);
	else if ((row = store_first(s, I_DELAYED, ForwardScanDirection, 2, key)) != NULL)
		job_read_delayed(row, state);
	else
		memset(state, 0, sizeof(JobState));
}

/* Locks the row of a processing job for a change and reads it anew; false if it is gone, or busy and wait is off. */
bool
job_lock(Store *s, JobState *state, bool wait)
{
	TupleTableSlot *row;

	if (store_lock(s, T_PROCESSING, &state->tid, wait, &row) != ROW_LOCKED)
		return false;
	job_read_processing(row, state);
	return true;
}
