/*
 * lane.c
 *	  The lines of a tenant's jobs: those of one priority and model wait behind
 *	  each other, in order of admission, and behind nobody else.
 *
 * A lane is made under lock I at its first job and stays.  Its fresh jobs are
 * read from its head, below which everything is consumed; the head is noted
 * under lock D only now and then, so that consumed entries which an old
 * snapshot keeps from being cleaned are not scanned again and again.  Jobs
 * that were given back stand in a line of their own beside it.
 */
#include "admission.h"

#include "nodes/pg_list.h"

#include "config.h"
#include "lane.h"

/* how far the head may lag behind what is consumed, in job numbers */
#define HEAD_LAG 64

static int32
highest_lane(Store *s, int32 tenant_id)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id))};
	TupleTableSlot *row = store_first(s, I_LANE, BackwardScanDirection, 1, key);

	return row ? DatumGetInt32(COLUMN(row, LANE_NO)) : 0;
}

/* The number of a tenant's lane, made where it is missing (under lock I); 0 if there is none. */
int32
lane_for(Store *s, int32 tenant_id, int16 priority, int32 model_id, bool create)
{
	Bound		key[] = {
		EQUAL(1, Int32GetDatum(tenant_id)), EQUAL(2, Int16GetDatum(priority)), EQUAL(3, Int32GetDatum(model_id))
	};
	TupleTableSlot *row = store_first(s, I_LANE_IDENTITY, ForwardScanDirection, 3, key);
	Datum		values[LANE_MODEL_ID];
	bool		nulls[LANE_MODEL_ID] = {false};
	int32		lane_no;

	if (row)
		return DatumGetInt32(COLUMN(row, LANE_NO));
	if (!create)
		return 0;
	lane_no = highest_lane(s, tenant_id) + 1;
	values[LANE_TENANT_ID - 1] = Int32GetDatum(tenant_id);
	values[LANE_NO - 1] = Int32GetDatum(lane_no);
	values[LANE_PRIORITY - 1] = Int16GetDatum(priority);
	values[LANE_MODEL_ID - 1] = Int32GetDatum(model_id);
	store_insert(s, T_LANE, values, nulls);
	return lane_no;
}

/* The lanes of a tenant, highest priority first. */
List *
lanes_of(Store *s, int32 tenant_id)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id))};
	List	   *lanes = NIL;
	TupleTableSlot *row;

	store_seek(s, I_LANE_IDENTITY, BackwardScanDirection, 1, key);
	while ((row = store_next(s, I_LANE_IDENTITY)) != NULL)
	{
		Lane	   *lane = palloc(sizeof(Lane));

		lane->no = DatumGetInt32(COLUMN(row, LANE_NO));
		lane->priority = DatumGetInt16(COLUMN(row, LANE_PRIORITY));
		lane->model_id = DatumGetInt32(COLUMN(row, LANE_MODEL_ID));
		lanes = lappend(lanes, lane);
	}
	return lanes;
}

static TupleTableSlot *
newest_head(Store *s, int32 tenant_id, int32 lane_no)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id)), EQUAL(2, Int32GetDatum(lane_no))};

	return store_first(s, I_LANE_HEAD, BackwardScanDirection, 2, key);
}

/* The job number below which a lane has no live entry. */
int64
lane_head(Store *s, int32 tenant_id, int32 lane_no)
{
	TupleTableSlot *row = lane_no > 0 ? newest_head(s, tenant_id, lane_no) : NULL;

	return row ? DatumGetInt64(COLUMN(row, LANE_HEAD_HEAD)) : 0;
}

/* Everything of the lane below this job is consumed; noted if it is worth it.  Under lock D. */
void
lane_advance(Store *s, int32 tenant_id, int32 lane_no, int64 head)
{
	TupleTableSlot *row;
	Datum		values[LANE_HEAD_HEAD];
	bool		nulls[LANE_HEAD_HEAD] = {false};
	ItemPointerData old;

	if (lane_no < 0)
		return;
	row = newest_head(s, tenant_id, lane_no);
	if (head - (row ? DatumGetInt64(COLUMN(row, LANE_HEAD_HEAD)) : 0) < HEAD_LAG)
		return;
	values[LANE_HEAD_TENANT_ID - 1] = Int32GetDatum(tenant_id);
	values[LANE_HEAD_LANE_NO - 1] = Int32GetDatum(lane_no);
	values[LANE_HEAD_VERSION - 1] = Int64GetDatum(row ? DatumGetInt64(COLUMN(row, LANE_HEAD_VERSION)) + 1 : 1);
	values[LANE_HEAD_HEAD - 1] = Int64GetDatum(head);
	if (row)
	{
		old = row->tts_tid;
		(void) store_delete(s, T_LANE_HEAD, &old, false);
	}
	store_insert(s, T_LANE_HEAD, values, nulls);
}

static int64
count_entries(Store *s, int32 tenant_id, int32 lane_no, int64 most)
{
	Bound		key[] = {
		EQUAL(1, Int32GetDatum(tenant_id)), EQUAL(2, Int32GetDatum(lane_no)),
		AT_LEAST(3, Int64GetDatum(lane_head(s, tenant_id, lane_no)))
	};
	int64		count = 0;

	store_seek(s, I_QUEUED, ForwardScanDirection, 3, key);
	while (count < most && store_next(s, I_QUEUED))
		count++;
	return count;
}

/*
 * How many jobs that may run now a new one of this priority would stand
 * behind: all of its priority and above.  Exact up to most; where there are
 * more it is all that are queued.
 */
int64
lane_count_ahead(Store *s, int32 tenant_id, int16 priority, TimestampTz now, int64 queued, int64 most)
{
	int64		count = 0;
	ListCell   *cell;

	foreach(cell, lanes_of(s, tenant_id))
	{
		Lane	   *lane = lfirst(cell);
		Model		model;

		if (lane->priority < priority || count > most)
			break;
		if (!model_read(s, lane->model_id, &model) || !model_may_start(&model, now))
			continue;
		count += count_entries(s, tenant_id, RETURNED(lane->no), most + 1 - count);
		count += count_entries(s, tenant_id, lane->no, most + 1 - count);
	}
	return count > most ? Max(count, queued) : count;
}
