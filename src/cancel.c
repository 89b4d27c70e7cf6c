/*
 * cancel.c
 *	  cancel, cancel_queued: taking back what has not started.
 *
 * Under lock D of the tenant, so a cancel and a claim of one job cannot both
 * win, and the loser gets one definite answer.
 */
#include "admission.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "args.h"
#include "lane.h"
#include "step.h"

PG_FUNCTION_INFO_V1(admission_cancel);
PG_FUNCTION_INFO_V1(admission_cancel_queued);

static void
end_canceled(Desk *desk, JobState *state)
{
	Ending		ending = {
		.kind = "cancel",
		.state = "canceled",
		.cause = "canceled"
	};

	job_end(desk, state, &ending);
}

static void
tell(Decision *d, Code code, const JobState *state)
{
	decide(d, code);
	d->has_job = true;
	d->job_id = state->job_id;
	details_text(&d->details, "state", place_name(state));
	if (code == CODE_ALREADY_STARTED)
		details_bool(&d->details, "cancelable", false);
	else
		details_int(&d->details, "released_micro", state->released);
}

/* Cancels a job where it is, or says why it cannot be. */
static void
cancel_at(Desk *desk, JobState *state, Decision *d)
{
	if (state->place == PLACE_QUEUED || state->place == PLACE_DELAYED)
	{
		end_canceled(desk, state);
		tell(d, CODE_CANCELED, state);
	}
	else if (state->place == PLACE_ENDED && strcmp(state->state, "canceled") == 0)
		tell(d, CODE_ALREADY_CANCELED, state);
	else
		tell(d, CODE_ALREADY_STARTED, state);
}

static void
tell_limits(Store *s, const Tenant *tenant, Decision *d)
{
	store_look_again(s);
	d->has_limits = true;
	d->standing.tenant = *tenant;
	standing_refresh(s, &d->standing);
}

/* cancel(): see its COMMENT.  Lock D of the tenant. */
Datum
admission_cancel(PG_FUNCTION_ARGS)
{
	Store	   *s;
	Tenant		tenant;
	Job			job;
	JobState	state;
	Desk		desk;
	Decision	d;

	PreventCommandIfReadOnly("admission.cancel()");
	s = store_open(STORE_LATEST);
	if (tenant_of_call(s, arg_text(fcinfo, 0), &tenant, &d))
	{
		if (PG_ARGISNULL(1))
			decide_invalid(&d, "job_id", "a job's id");
		else if (!job_read(s, PG_GETARG_UUID_P(1), &job) || job.tenant_id != tenant.id)
			decide(&d, CODE_NOT_FOUND);
		else
		{
			desk_open(&desk, s, tenant.id);
			job_find(s, &job, &state);
			cancel_at(&desk, &state, &d);
			tell_limits(s, &tenant, &d);
		}
	}
	store_close(s);
	return decision_datum(fcinfo, &d);
}

/* The jobs that a scan of a queue finds, appended. */
static List *
append_waiting(Store *s, IndexId index, List *jobs)
{
	TupleTableSlot *row;

	while ((row = store_next(s, index)) != NULL)
	{
		JobState   *state = palloc(sizeof(JobState));

		if (index == I_QUEUED)
			job_read_queued(row, state);
		else
			job_read_delayed(row, state);
		jobs = lappend(jobs, state);
	}
	return jobs;
}

/* All jobs of a tenant that wait, lane by lane from its head. */
static List *
waiting_jobs(Store *s, int32 tenant_id)
{
	Bound		of_tenant[] = {EQUAL(1, Int32GetDatum(tenant_id))};
	List	   *jobs = NIL;
	ListCell   *cell;

	foreach(cell, lanes_of(s, tenant_id))
	{
		Lane	   *lane = lfirst(cell);

		for (int returned = 0; returned < 2; returned++)
		{
			int32		no = returned ? RETURNED(lane->no) : lane->no;
			Bound		of_lane[] = {
				EQUAL(1, Int32GetDatum(tenant_id)), EQUAL(2, Int32GetDatum(no)),
				AT_LEAST(3, Int64GetDatum(lane_head(s, tenant_id, no)))
			};

			store_seek(s, I_QUEUED, ForwardScanDirection, 3, of_lane);
			jobs = append_waiting(s, I_QUEUED, jobs);
		}
	}
	store_seek(s, I_DELAYED, ForwardScanDirection, 1, of_tenant);
	return append_waiting(s, I_DELAYED, jobs);
}

/* cancel_queued(): see its COMMENT.  Lock D of the tenant. */
Datum
admission_cancel_queued(PG_FUNCTION_ARGS)
{
	Jsonb	   *context = arg_jsonb(fcinfo, 1);
	Store	   *s;
	Tenant		tenant;
	Desk		desk;
	Decision	d;
	ListCell   *cell;

	PreventCommandIfReadOnly("admission.cancel_queued()");
	InitMaterializedSRF(fcinfo, 0);
	s = store_open(STORE_LATEST);
	if (context && !is_object(context))
	{
		decide_invalid(&d, "context", "an object");
		decision_put(fcinfo, &d);
	}
	else if (!tenant_of_call(s, arg_text(fcinfo, 0), &tenant, &d))
		decision_put(fcinfo, &d);
	else
	{
		desk_open(&desk, s, tenant.id);
		foreach(cell, waiting_jobs(s, tenant.id))
		{
			JobState   *state = lfirst(cell);
			Job			job;

			CHECK_FOR_INTERRUPTS();
			if (!job_read(s, &state->job_id, &job) ||
				(context && !DatumGetBool(DirectFunctionCall2(jsonb_contains, JsonbPGetDatum(job.context), JsonbPGetDatum(context)))))
				continue;
			cancel_at(&desk, state, &d);
			decision_put(fcinfo, &d);
		}
	}
	store_close(s);
	return (Datum) 0;
}
