/*
 * claim.c
 *	  claim_next: which jobs may start, and who gets them.
 *
 * A claim walks the ring of ready tenants from where the last one stopped and
 * visits a bounded number.  A visit tries lock D and walks on where another
 * worker has it, so no claim waits for another.  It reads limit, lanes and ring
 * entries in one look, takes what may start, and
 *
 *	 - takes a tenant that has no room left off the ring, marked saturated: the
 *	   settlement that frees a slot, or whatever raises the limit, puts it back;
 *	 - takes a tenant that has nothing to start off the ring only when it holds
 *	   P alone and finds, looking again, that nothing was admitted meanwhile.
 *
 * A visit that wrote nothing gives its locks back at once.
 *
 * At most weight jobs of a tenant start in one turn of the ring; how many have
 * is in its journal, whose turn it is in the ring's cursor.
 */
#include "admission.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "args.h"
#include "clock.h"
#include "lane.h"
#include "lease.h"
#include "locks.h"
#include "lookout.h"
#include "ring.h"
#include "step.h"
#include "tier.h"

PG_FUNCTION_INFO_V1(admission_claim_next);

#define MAX_VISITS			64	/* tenants that one walk looks at */
#define MAX_FILTERED_VISITS	1024	/* the same, for a worker that wants only some models */
#define DUE_VISITS			4	/* tenants whose leases one claim looks after */
#define DUE_LOOKS			256 /* among so many, where others are at work */
#define MAX_EXPIRED			100 /* jobs past their deadline that one visit ends */
#define BUSY_RETRIES		5	/* walks of a claim that met only busy tenants */
#define BUSY_PAUSE			1000L	/* microseconds before the second, doubled each time */
#define MAX_CLAIM			10000

typedef struct Claiming
{
	Store	   *s;
	ReturnSetInfo *result;
	Policy		policy;
	const char *worker;
	int64		lease;
	bool		begin;
	Catalogue	models;
	int			wanted;
	int			busy;			/* visits that found D taken */
	int			max_visits;
	int			visits;			/* of this walk, since the last that took a job */
	int32		visited;		/* the last tenant visited */
	int32		stopped;		/* where the ring's cursor should stand */
} Claiming;

/* one visit to a tenant */
typedef struct Call
{
	Desk		desk;
	int64		first_no;		/* the newest dispatch row before */
	RingEntries entries;
	Tenant		tenant;
	int32		limit;
	int64		admitted;
	Lookout		found;
	int			started;
	int			ended;			/* past their deadline */
} Call;

/* ---- starting ---- */

static void
put_claim(Claiming *c, const Tenant *tenant, const JobState *state)
{
	Job			job;
	Model	   *model = catalogue_model(&c->models, state->model_id);
	Datum		values[11];
	bool		nulls[11] = {false};

	if (!job_read(c->s, &state->job_id, &job))
		elog(ERROR, "a queued job of tenant %d has no record", state->tenant_id);
	values[0] = UUIDPGetDatum(&state->job_id);
	values[1] = CStringGetTextDatum(tenant->name);
	values[2] = Int32GetDatum(state->attempt);
	values[3] = CStringGetTextDatum("generation");
	values[4] = CStringGetTextDatum(model->name);
	values[5] = CStringGetTextDatum(model->provider);
	values[6] = JsonbPGetDatum(job.request);
	values[7] = JsonbPGetDatum(job.context);
	values[8] = Int64GetDatum(state->held);
	values[9] = TimestampTzGetDatum(state->start_by);
	nulls[9] = !HAS_TIME(state->start_by);
	values[10] = TimestampTzGetDatum(state->lease_expires_at);
	tuplestore_putvalues(c->result->setResult, c->result->setDesc, values, nulls);
}

/* Notes how far the lanes have been consumed, once per lane. */
static void
advance_lanes(Desk *desk, List *started)
{
	List	   *done = NIL;

	for (int i = list_length(started) - 1; i >= 0; i--)
	{
		JobState   *state = list_nth(started, i);

		if (!list_member_int(done, state->lane_no))
		{
			lane_advance(desk->s, desk->tenant_id, state->lane_no, state->job_no + 1);
			done = lappend_int(done, state->lane_no);
		}
	}
}

/* Starts what was found, up to most; a job past its deadline ends instead. */
static void
start_jobs(Claiming *c, Call *call, int most)
{
	Desk	   *desk = &call->desk;
	List	   *consumed = NIL;
	ListCell   *cell;

	foreach(cell, call->found.jobs)
	{
		JobState   *state = lfirst(cell);

		if (most == 0)
			break;
		consumed = lappend(consumed, state);
		if (HAS_TIME(state->start_by) && state->start_by <= desk->now)
		{
			expire_unstarted(desk, state);
			call->ended++;
			continue;
		}
		desk->totals.saturated = desk->totals.active + 1 >= call->limit;
		job_start(desk, state, c->worker, clock_add(desk->now, c->lease), c->begin, call->limit);
		put_claim(c, &call->tenant, state);
		call->started++;
		most--;
	}
	advance_lanes(desk, consumed);
}

/* ---- a visit ---- */

/* Whether the tenant may be taken off for want of jobs: P alone, and nothing admitted since the look. */
static bool
nothing_since(Desk *desk, int64 admitted, bool *presence)
{
	Intake		intake;

	*presence = lock_try(LOCK_PRESENCE, desk->tenant_id);
	if (!*presence)
		return false;
	store_look_again(desk->s);
	intake_newest(desk->s, desk->tenant_id, &intake);
	return intake.admitted == admitted;
}

static void
give_up_locks(Desk *desk, bool presence)
{
	if (presence)
		lock_release(LOCK_PRESENCE, desk->tenant_id);
	lock_release(LOCK_DISPATCH, desk->tenant_id);
}

/*
 * Reads what a visit decides on, in one look; false if the tenant is gone (one
 * without a history was deleted), and then its ring entries go too.
 */
static bool
look_at_tenant(Claiming *c, Call *call)
{
	Desk	   *desk = &call->desk;
	Limits		limits;
	Intake		intake;

	ring_entries(c->s, desk->tenant_id, &call->entries);
	if (!tenant_read(c->s, desk->tenant_id, &call->tenant))
	{
		ring_remove(c->s, &call->entries);
		return false;
	}
	limits_read(c->s, &c->policy, &call->tenant, desk->now, &limits);
	intake_newest(c->s, desk->tenant_id, &intake);
	call->admitted = intake.admitted;
	call->limit = call->tenant.suspended ? 0 : limits.concurrency;
	return true;
}

/* Takes up to room jobs; where some were past their deadline, looks again for others. */
static void
take_jobs(Claiming *c, Call *call, int room)
{
	int			ended_before;

	do
	{
		ended_before = call->ended;
		look_out(&c->models, &call->desk, call->admitted, room - call->started, &call->found);
		start_jobs(c, call, room - call->started);
		if (call->found.jobs)
			store_look_again(c->s);
	} while (call->ended > ended_before && call->ended < MAX_EXPIRED && call->started < room);
	c->wanted -= call->started;
}

/* Leaves the tenant on the ring or takes it off, as the file's head tells, and gives back locks that were not needed. */
static void
leave_tenant(Claiming *c, Call *call)
{
	Desk	   *desk = &call->desk;
	bool		presence = false;
	bool		off;

	desk->totals.saturated = desk->totals.active >= call->limit;
	off = desk->totals.saturated ||
		(call->started == 0 && call->found.jobs == NIL && !call->found.filtered &&
		 nothing_since(desk, call->admitted, &presence));
	if (off && !desk->totals.saturated)
		(void) due_note(c->s, desk->tenant_id, call->found.next, &desk->totals);
	if (desk->totals.saturated != desk->written.saturated || desk->totals.due_at != desk->written.due_at)
		desk_note(desk, desk->totals.saturated ? "no room" : "nothing to start");
	if (off)
		ring_remove(c->s, &call->entries);
	if (desk->totals.no == call->first_no && !(off && call->entries.count > 0))
		give_up_locks(desk, presence);
}

/*
 * Takes what may start of a tenant, as much as its weight allows in a turn, or
 * (not by weight) as is wanted.  its_turn: the ring's cursor stands at it, and
 * what it has had counts.  True if it had a job.
 */
static bool
visit(Claiming *c, int32 tenant_id, bool its_turn, bool by_weight)
{
	Call		call = {0};
	int64		room;

	if (!desk_try(&call.desk, c->s, tenant_id))
	{
		c->busy++;
		return false;
	}
	call.first_no = call.desk.totals.no;
	if (!look_at_tenant(c, &call))
		return false;
	if (!its_turn)
		call.desk.totals.served = 0;
	room = Min(call.limit - call.desk.totals.active, c->wanted);
	if (by_weight && room > 0)
	{
		room = Min(room, call.tenant.weight - call.desk.totals.served);
		if (room <= 0)
		{
			give_up_locks(&call.desk, false);	/* it has had its turn */
			return false;
		}
	}
	if (room > 0)
		take_jobs(c, &call, (int) room);
	leave_tenant(c, &call);
	return call.started > 0;
}

/* ---- the walk ---- */

/* Looks after leases and delays that have ended, of a few tenants. */
static void
look_after_due(Claiming *c)
{
	List	   *due = due_read(c->s, clock_now(), DUE_LOOKS);
	Lapsed		lapsed = {0};
	int			visits = 0;
	ListCell   *cell;

	foreach(cell, due)
	{
		if (lease_visit(c->s, &c->policy, lfirst(cell), &lapsed) && ++visits == DUE_VISITS)
			break;
	}
}

/* Visits the tenants of a stretch of the ring; true if one had a job. */
static bool
walk_stretch(Claiming *c, int32 after, int32 until)
{
	bool		progress = false;
	int32		tenant_id = after;

	while (c->wanted > 0 && c->visits < c->max_visits &&
		   ring_next(c->s, tenant_id, &tenant_id) && tenant_id <= until)
	{
		CHECK_FOR_INTERRUPTS();
		c->visits++;
		c->visited = tenant_id;
		if (visit(c, tenant_id, false, true))
		{
			progress = true;
			c->visits = 0;
			c->stopped = tenant_id;
		}
	}
	return progress;
}

/*
 * Walks the ring: goes on with the turn of the tenant where the last claim
 * stopped, then around, and around again while that starts jobs.
 */
static void
walk(Claiming *c)
{
	int32		start = ring_cursor();
	bool		progress;

	c->visits = 0;
	c->stopped = start;
	if (ring_has(c->s, start))
		(void) visit(c, start, true, true);
	progress = walk_stretch(c, start, PG_INT32_MAX);
	progress = walk_stretch(c, PG_INT32_MIN, start) || progress;
	while (progress)
		progress = walk_stretch(c, PG_INT32_MIN, PG_INT32_MAX);
	if (c->visits >= c->max_visits)
		c->stopped = c->visited;
	if (c->stopped != start)
		ring_set_cursor(c->stopped);
}

/* Visits tenants the worker named, in turn, until nothing is left that may start. */
static void
visit_named(Claiming *c, ArrayType *tenants)
{
	Datum	   *names;
	bool	   *nulls;
	int			count;
	bool		progress;

	deconstruct_array(tenants, TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls, &count);
	do
	{
		progress = false;
		for (int i = 0; i < count && c->wanted > 0; i++)
		{
			Tenant		tenant;

			if (!nulls[i] && tenant_find(c->s, TextDatumGetCString(names[i]), &tenant) &&
				visit(c, tenant.id, false, true))
				progress = true;
		}
	} while (progress && c->wanted > 0);
}

/* ---- SQL entry ---- */

static List *
names_of(ArrayType *array)
{
	Datum	   *names;
	bool	   *nulls;
	int			count;
	List	   *list = NIL;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls, &count);
	for (int i = 0; i < count; i++)
		if (!nulls[i])
			list = lappend(list, TextDatumGetCString(names[i]));
	/* an empty filter lets nothing through */
	if (list == NIL)
		list = list_make1(pstrdup(""));
	return list;
}

static void
check_arguments(FunctionCallInfo fcinfo, Claiming *c)
{
	const char *stage = arg_text(fcinfo, 3);

	if (c->worker && strlen(c->worker) > 255)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the worker's name is longer than 255 bytes"),
				 errhint("Use a shorter name.")));
	if (c->wanted < 1 || c->wanted > MAX_CLAIM)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_jobs %d is out of range", c->wanted),
				 errhint("Use 1 to %d.", MAX_CLAIM)));
	if (stage == NULL || strcmp(stage, "generation") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no stage \"%s\"", stage ? stage : "null"),
				 errhint("The stage is 'generation'.")));
	if (!arg_span(fcinfo, 2, &c->lease))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the lease is no positive duration"),
				 errhint("Use an interval such as '5 minutes', or null for policy.default_lease.")));
}

/* claim_next(): see its COMMENT.  Lock D of each tenant it took from, tried. */
Datum
admission_claim_next(PG_FUNCTION_ARGS)
{
	Claiming	c = {0};
	long		pause = BUSY_PAUSE;
	int			wanted;

	PreventCommandIfReadOnly("admission.claim_next()");
	c.worker = arg_text(fcinfo, 0);
	c.wanted = wanted = PG_ARGISNULL(1) ? 1 : PG_GETARG_INT32(1);
	c.begin = !PG_ARGISNULL(6) && PG_GETARG_BOOL(6);
	check_arguments(fcinfo, &c);
	InitMaterializedSRF(fcinfo, 0);
	c.result = (ReturnSetInfo *) fcinfo->resultinfo;
	if (!PG_ARGISNULL(5))
		c.models.wanted = names_of(PG_GETARG_ARRAYTYPE_P(5));
	c.max_visits = c.models.wanted ? MAX_FILTERED_VISITS : MAX_VISITS;
	c.s = c.models.s = store_open(STORE_LATEST);
	policy_read(c.s, &c.policy);
	if (!HAS_TIME(c.lease))
		c.lease = c.policy.default_lease;
	for (int i = 0; !c.policy.draining && c.wanted == wanted && i < BUSY_RETRIES; i++)
	{
		if (i > 0)
		{
			pg_usleep(pause);
			CHECK_FOR_INTERRUPTS();
			pause *= 2;
			store_look_again(c.s);
		}
		c.busy = 0;
		look_after_due(&c);
		if (PG_ARGISNULL(4))
			walk(&c);
		else
			visit_named(&c, PG_GETARG_ARRAYTYPE_P(4));
		if (c.busy == 0)
			break;
	}
	store_close(c.s);
	return (Datum) 0;
}
