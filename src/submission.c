/*
 * submission.c
 *	  begin_submission, submitted, report_unknown, heartbeat, requeue: what a
 *	  worker says of a claim between taking the job and its end.
 *
 * All but requeue touch only the job's own processing row, under its row lock
 * and no other, so an open settlement or claim of the tenant does not hold
 * them up.  The attempt is the fence: one that is not current is answered
 * stale_claim and changes nothing.
 */
#include "admission.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "clock.h"
#include "evidence.h"
#include "lease.h"
#include "provider.h"

PG_FUNCTION_INFO_V1(admission_begin_submission);
PG_FUNCTION_INFO_V1(admission_submitted);
PG_FUNCTION_INFO_V1(admission_report_unknown);
PG_FUNCTION_INFO_V1(admission_heartbeat);
PG_FUNCTION_INFO_V1(admission_requeue);

/* a call of a worker about its claim */
typedef struct Claimed
{
	Store	   *s;
	Job			job;
	JobState	state;
	Report		report;
} Claimed;

static void
tell_job(Decision *d, Code code, const Claimed *c)
{
	decide(d, code);
	d->has_job = true;
	d->job_id = c->job.id;
	details_text(&d->details, "state", place_name(&c->state));
	if (c->state.place == PLACE_PROCESSING)
		details_text(&d->details, "submission", submission_name(c->state.submission));
	details_int(&d->details, "attempt", c->state.attempt);
}

/* Finds the job of a call's first two arguments; false, and a decision, if there is none. */
static bool
find_job(FunctionCallInfo fcinfo, Claimed *c, Decision *d)
{
	memset(c, 0, sizeof(Claimed));
	c->s = store_open(STORE_LATEST);
	c->report.actual = NO_AMOUNT;
	c->report.attempt = PG_ARGISNULL(1) ? NO_ATTEMPT : PG_GETARG_INT32(1);
	if (PG_ARGISNULL(0))
		decide_invalid(d, "job_id", "a job's id");
	else if (PG_ARGISNULL(1))
		decide_invalid(d, "attempt", "the attempt of the claim");
	else if (!job_read(c->s, PG_GETARG_UUID_P(0), &c->job))
		decide(d, CODE_NOT_FOUND);
	else
		return true;
	return false;
}

/* Whether the attempt of the call is the current one; if not, that is the decision. */
static bool
is_current(Claimed *c, Decision *d)
{
	if (c->state.place == PLACE_PROCESSING && c->state.attempt == c->report.attempt)
		return true;
	tell_job(d, CODE_STALE_CLAIM, c);
	return false;
}

/* Finds the job and locks its processing row, waiting for whoever has it. */
static bool
lock_claim(FunctionCallInfo fcinfo, Claimed *c, Decision *d)
{
	if (!find_job(fcinfo, c, d))
		return false;
	do
	{
		store_look_again(c->s);
		job_find(c->s, &c->job, &c->state);
	} while (c->state.place == PLACE_PROCESSING && !job_lock(c->s, &c->state, true));
	return is_current(c, d);
}

/* begin_submission(): see its COMMENT.  The job's row lock. */
Datum
admission_begin_submission(PG_FUNCTION_ARGS)
{
	Claimed		c;
	Decision	d;

	PreventCommandIfReadOnly("admission.begin_submission()");
	if (lock_claim(fcinfo, &c, &d))
	{
		bool		repeated = c.state.submission == SUBMISSION_STARTED;

		if (c.state.submission == SUBMISSION_NONE)
		{
			c.state.submission = SUBMISSION_STARTED;
			c.state.begun_at = clock_now();
			job_replace(c.s, &c.state);
		}
		tell_job(&d, c.state.submission == SUBMISSION_STARTED ? CODE_SUBMISSION_STARTED : CODE_ALREADY_STARTED, &c);
		if (repeated)
			details_bool(&d.details, "repeated", true);
	}
	store_close(c.s);
	return decision_datum(fcinfo, &d);
}

/* submitted(): see its COMMENT.  The job's row lock. */
Datum
admission_submitted(PG_FUNCTION_ARGS)
{
	Claimed		c;
	Decision	d;
	const char *id = arg_text(fcinfo, 2);

	PreventCommandIfReadOnly("admission.submitted()");
	if (!text_fits(id, 255))
	{
		decide_invalid(&d, "provider_job_id", "1 to 255 bytes");
		return decision_datum(fcinfo, &d);
	}
	if (lock_claim(fcinfo, &c, &d))
	{
		bool		known = c.state.provider_job_id != NULL;

		c.report.provider_job_id = id;
		if (known ? strcmp(c.state.provider_job_id, id) != 0 : !provider_bind(c.s, &c.job, id))
		{
			tell_job(&d, CODE_SETTLEMENT_CONFLICT, &c);
			evidence_keep(c.s, &c.job, clock_now(), CODE_SETTLEMENT_CONFLICT, &c.report);
		}
		else
		{
			if (!known)
			{
				c.state.submission = SUBMISSION_ACKNOWLEDGED;
				c.state.submitted_at = clock_now();
				c.state.provider_job_id = id;
				if (!HAS_TIME(c.state.begun_at))
					c.state.begun_at = c.state.submitted_at;
				job_replace(c.s, &c.state);
			}
			tell_job(&d, CODE_SUBMITTED, &c);
		}
	}
	else if (d.code == CODE_STALE_CLAIM)
	{
		c.report.provider_job_id = id;
		evidence_keep(c.s, &c.job, clock_now(), CODE_STALE_CLAIM, &c.report);
	}
	store_close(c.s);
	return decision_datum(fcinfo, &d);
}

/* report_unknown(): see its COMMENT.  The job's row lock. */
Datum
admission_report_unknown(PG_FUNCTION_ARGS)
{
	Claimed		c;
	Decision	d;

	PreventCommandIfReadOnly("admission.report_unknown()");
	if (lock_claim(fcinfo, &c, &d))
	{
		switch (c.state.submission)
		{
			case SUBMISSION_STARTED:
				c.state.submission = SUBMISSION_UNKNOWN;
				c.state.unknown_since = clock_now();
				c.state.unknown_reason = arg_text(fcinfo, 2);
				c.state.lease_expires_at = DT_NOEND;
				job_replace(c.s, &c.state);
				/* FALLTHROUGH */
			case SUBMISSION_UNKNOWN:
				tell_job(&d, CODE_UNKNOWN_RECORDED, &c);
				break;
			case SUBMISSION_NONE:
				tell_job(&d, CODE_STALE_CLAIM, &c);
				details_text(&d.details, "reason", "begin_submission has not been called");
				break;
			case SUBMISSION_ACKNOWLEDGED:
				tell_job(&d, CODE_SUBMITTED, &c);
				break;
		}
	}
	store_close(c.s);
	return decision_datum(fcinfo, &d);
}

/* heartbeat(): see its COMMENT.  The job's row lock.  Never shortens a lease: its due entry stands. */
Datum
admission_heartbeat(PG_FUNCTION_ARGS)
{
	Claimed		c;
	Decision	d;
	Policy		policy;
	int64		lease;

	PreventCommandIfReadOnly("admission.heartbeat()");
	if (!arg_span(fcinfo, 2, &lease))
	{
		decide_invalid(&d, "lease", "a duration above zero");
		return decision_datum(fcinfo, &d);
	}
	if (lock_claim(fcinfo, &c, &d))
	{
		policy_read(c.s, &policy);
		c.state.lease_expires_at = Max(c.state.lease_expires_at,
									   clock_add(clock_now(), HAS_TIME(lease) ? lease : policy.default_lease));
		job_replace(c.s, &c.state);
		tell_job(&d, CODE_LEASE_EXTENDED, &c);
		details_time(&d.details, "lease_expires_at", c.state.lease_expires_at);
	}
	store_close(c.s);
	return decision_datum(fcinfo, &d);
}

/* Keeps what was known of a submission that never reached the provider, which the next attempt will overwrite. */
static void
keep_refuted(Desk *desk, Claimed *c, const char *reason)
{
	Details		known = {0};

	details_text(&known, "submission", submission_name(c->state.submission));
	details_time(&known, "begun_at", c->state.begun_at);
	if (HAS_TIME(c->state.unknown_since))
	{
		details_time(&known, "unknown_since", c->state.unknown_since);
		details_text(&known, "unknown_reason", c->state.unknown_reason);
	}
	details_text(&known, "not_received", reason);
	c->report.result = details_jsonb(&known);
	evidence_keep(desk->s, &c->job, desk->now, CODE_REQUEUED, &c->report);
}

/* Gives a claim back, at the tenant's desk. */
static void
give_back(Desk *desk, Claimed *c, int64 delay, const char *reason, Decision *d)
{
	if (c->state.submission != SUBMISSION_NONE)
		keep_refuted(desk, c, reason);
	if (HAS_TIME(c->state.start_by) && c->state.start_by <= desk->now)
		expire_unstarted(desk, &c->state);
	else
		job_return(desk, &c->state, HAS_TIME(delay) ? clock_add(desk->now, delay) : NO_TIME, "requeue", reason);
	tell_job(d, CODE_REQUEUED, c);
	if (c->state.place == PLACE_DELAYED)
		details_time(&d->details, "available_at", c->state.available_at);
}

/* requeue(): see its COMMENT.  Lock D of the tenant, then the job's row. */
Datum
admission_requeue(PG_FUNCTION_ARGS)
{
	Claimed		c;
	Decision	d;
	Desk		desk;
	int64		delay;
	bool		not_received = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);

	PreventCommandIfReadOnly("admission.requeue()");
	if (!arg_span(fcinfo, 2, &delay) && delay != 0)
	{
		decide_invalid(&d, "delay", "a duration from zero");
		return decision_datum(fcinfo, &d);
	}
	if (delay == 0)
		delay = NO_TIME;
	if (find_job(fcinfo, &c, &d))
	{
		desk_open(&desk, c.s, c.job.tenant_id);
		job_find(c.s, &c.job, &c.state);
		if (c.state.place == PLACE_PROCESSING && !job_lock(c.s, &c.state, true))
			elog(ERROR, "a processing row left without lock D");
		if (is_current(&c, &d))
		{
			bool		unproven = c.state.submission == SUBMISSION_STARTED || c.state.submission == SUBMISSION_UNKNOWN;

			if (c.state.submission == SUBMISSION_NONE || (unproven && not_received))
				give_back(&desk, &c, delay, arg_text(fcinfo, 3), &d);
			else
				tell_job(&d, CODE_ALREADY_STARTED, &c);
		}
	}
	store_close(c.s);
	return decision_datum(fcinfo, &d);
}
