/*
 * lookout.c
 *	  Which jobs of a tenant may start now, and in which order.
 *
 * Under lock D.  The heads of the tenant's lanes are merged: highest priority
 * first, then order of admission, those given back at their old places.  Lanes
 * of models that are paused or disabled rest; lanes of models that the worker
 * does not want are left to others.
 */
#include "admission.h"

#include "lane.h"
#include "lookout.h"

/* A model by its number, read once. */
Model *
catalogue_model(Catalogue *c, int32 model_id)
{
	ListCell   *cell;
	Model	   *model;

	foreach(cell, c->known)
	{
		if (((Model *) lfirst(cell))->id == model_id)
			return lfirst(cell);
	}
	model = palloc0(sizeof(Model));
	if (!model_read(c->s, model_id, model))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("model number %d has jobs but no row in admission.model", model_id),
				 errhint("Restore its row.")));
	c->known = lappend(c->known, model);
	return model;
}

static bool
named(List *names, const char *name)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		if (strcmp(lfirst(cell), name) == 0)
			return true;
	}
	return false;
}

static int
by_job_no(const ListCell *a, const ListCell *b)
{
	int64		left = ((JobState *) lfirst(a))->job_no;
	int64		right = ((JobState *) lfirst(b))->job_no;

	return left < right ? -1 : left > right;
}

/* Appends the first jobs of a line; entries of open admissions are numbered above admitted. */
static void
read_line(Desk *desk, int32 lane_no, int64 admitted, int most, int32 model_id, List **jobs)
{
	Bound		key[] = {
		EQUAL(1, Int32GetDatum(desk->tenant_id)), EQUAL(2, Int32GetDatum(lane_no)),
		AT_LEAST(3, Int64GetDatum(lane_head(desk->s, desk->tenant_id, lane_no))),
		AT_MOST(3, Int64GetDatum(admitted))
	};
	TupleTableSlot *row;

	store_seek(desk->s, I_QUEUED, ForwardScanDirection, 4, key);
	while (most-- > 0 && (row = store_next(desk->s, I_QUEUED)) != NULL)
	{
		JobState   *state = palloc(sizeof(JobState));

		job_read_queued(row, state);
		state->model_id = model_id;
		*jobs = lappend(*jobs, state);
	}
}

/* Up to most jobs that may start now, highest priority first, then in order of admission. */
void
look_out(Catalogue *c, Desk *desk, int64 admitted, int most, Lookout *found)
{
	List	   *lanes = lanes_of(c->s, desk->tenant_id);
	List	   *level = NIL;
	int			n = list_length(lanes);

	memset(found, 0, sizeof(Lookout));
	found->next = DT_NOEND;
	for (int i = 0; i < n; i++)
	{
		Lane	   *lane = list_nth(lanes, i);
		Model	   *model = catalogue_model(c, lane->model_id);

		if (c->wanted && !named(c->wanted, model->name))
			found->filtered = true;
		else if (!model_may_start(model, desk->now))
			found->next = model_paused(model, desk->now) ? Min(found->next, model->paused_until) : found->next;
		else
		{
			read_line(desk, RETURNED(lane->no), admitted, most, lane->model_id, &level);
			read_line(desk, lane->no, admitted, most, lane->model_id, &level);
		}
		if (i == n - 1 || ((Lane *) list_nth(lanes, i + 1))->priority != lane->priority)
		{
			list_sort(level, by_job_no);
			found->jobs = list_concat(found->jobs, level);
			level = NIL;
			if (list_length(found->jobs) >= most)
				return;
		}
	}
}
