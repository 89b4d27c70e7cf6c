/*
 * journal.c
 *	  The three journals of a tenant: their newest rows are its counters.
 *
 * Intake is appended to under lock I, dispatch under D, billing under B; each
 * is read by the others without a lock.  Rows are numbered from 1 without a
 * gap and commit as a prefix, since the lock is held to the end of the
 * transaction; so a reader that finds the newest row still open gallops down
 * by number instead of stepping over open rows one by one.
 */
#include "admission.h"

#include "utils/builtins.h"

#include "journal.h"

/* all three journals begin with these two columns, which are their primary key */
#define KEY_TENANT_ID	1
#define KEY_NO			2

static TupleTableSlot *
numbered(Store *s, IndexId index, int32 tenant_id, int64 no)
{
	Bound		key[] = {EQUAL(KEY_TENANT_ID, Int32GetDatum(tenant_id)), EQUAL(KEY_NO, Int64GetDatum(no))};

	return store_first(s, index, ForwardScanDirection, 2, key);
}

/* The last visible row below an invisible one: rows are visible as a prefix. */
static TupleTableSlot *
last_visible_below(Store *s, IndexId index, int32 tenant_id, int64 invisible)
{
	int64		step = 1;
	int64		visible;

	while (invisible - step >= 1 && numbered(s, index, tenant_id, invisible - step) == NULL)
	{
		invisible -= step;
		step *= 2;
	}
	visible = Max(invisible - step, 0);
	while (invisible - visible > 1)
	{
		int64		middle = visible + (invisible - visible) / 2;

		if (numbered(s, index, tenant_id, middle))
			visible = middle;
		else
			invisible = middle;
	}
	return visible >= 1 ? numbered(s, index, tenant_id, visible) : NULL;
}

/* The newest row of a journal that the store may see, or NULL. */
static TupleTableSlot *
newest(Store *s, IndexId index, int32 tenant_id)
{
	Bound		key[] = {EQUAL(KEY_TENANT_ID, Int32GetDatum(tenant_id))};
	RowState	state;
	TupleTableSlot *row = store_first_dirty(s, index, BackwardScanDirection, 1, key, &state);

	if (row == NULL)
		return NULL;
	if (store_visible(s, index, row))
	{
		store_check_age(s, row);
		return row;
	}
	return last_visible_below(s, index, tenant_id, DatumGetInt64(COLUMN(row, KEY_NO)));
}

void
intake_newest(Store *s, int32 tenant_id, Intake *totals)
{
	TupleTableSlot *row = newest(s, I_INTAKE, tenant_id);

	memset(totals, 0, sizeof(Intake));
	totals->rate_clock = NO_TIME;
	if (row == NULL)
		return;
	totals->no = DatumGetInt64(COLUMN(row, INTAKE_NO));
	totals->admitted = DatumGetInt64(COLUMN(row, INTAKE_ADMITTED));
	totals->reserved = DatumGetInt64(COLUMN(row, INTAKE_RESERVED));
	totals->rate_clock = COLUMN_TIME(row, INTAKE_RATE_CLOCK);
}

static void
read_dispatch(TupleTableSlot *row, Dispatch *totals)
{
	totals->no = DatumGetInt64(COLUMN(row, DISPATCH_NO));
	totals->at = DatumGetTimestampTz(COLUMN(row, DISPATCH_AT));
	totals->departed = DatumGetInt64(COLUMN(row, DISPATCH_DEPARTED));
	totals->concluded = DatumGetInt64(COLUMN(row, DISPATCH_CONCLUDED));
	totals->active = DatumGetInt64(COLUMN(row, DISPATCH_ACTIVE));
	totals->unreserved = DatumGetInt64(COLUMN(row, DISPATCH_UNRESERVED));
	totals->captured = DatumGetInt64(COLUMN(row, DISPATCH_CAPTURED));
	totals->saturated = DatumGetBool(COLUMN(row, DISPATCH_SATURATED));
	totals->served = DatumGetInt32(COLUMN(row, DISPATCH_SERVED));
	totals->due_at = COLUMN_TIME(row, DISPATCH_DUE_AT);
}

void
dispatch_newest(Store *s, int32 tenant_id, Dispatch *totals)
{
	TupleTableSlot *row = newest(s, I_DISPATCH, tenant_id);

	memset(totals, 0, sizeof(Dispatch));
	totals->due_at = NO_TIME;
	if (row)
		read_dispatch(row, totals);
}

/* The dispatch row of a number; false if the store sees none. */
bool
dispatch_numbered(Store *s, int32 tenant_id, int64 no, Dispatch *totals)
{
	TupleTableSlot *row = numbered(s, I_DISPATCH, tenant_id, no);

	if (row)
		read_dispatch(row, totals);
	return row != NULL;
}

void
billing_newest(Store *s, int32 tenant_id, Billing *totals)
{
	TupleTableSlot *row = newest(s, I_BILLING, tenant_id);

	memset(totals, 0, sizeof(Billing));
	if (row == NULL)
		return;
	totals->no = DatumGetInt64(COLUMN(row, BILLING_NO));
	totals->credited = DatumGetInt64(COLUMN(row, BILLING_CREDITED));
}

/* Appends an intake row; totals has the new totals and gets the new number.  Under lock I. */
void
intake_append(Store *s, int32 tenant_id, Intake *totals, const IntakeEntry *entry)
{
	Datum		values[INTAKE_OBSERVED];
	bool		nulls[INTAKE_OBSERVED] = {false};

	totals->no++;
	values[INTAKE_TENANT_ID - 1] = Int32GetDatum(tenant_id);
	values[INTAKE_NO - 1] = Int64GetDatum(totals->no);
	values[INTAKE_AT - 1] = TimestampTzGetDatum(entry->at);
	values[INTAKE_JOBS - 1] = Int32GetDatum(entry->jobs);
	values[INTAKE_AMOUNT - 1] = Int64GetDatum(entry->amount);
	values[INTAKE_ADMITTED - 1] = Int64GetDatum(totals->admitted);
	values[INTAKE_RESERVED - 1] = Int64GetDatum(totals->reserved);
	values[INTAKE_RATE_CLOCK - 1] = store_time(totals->rate_clock, &nulls[INTAKE_RATE_CLOCK - 1]);
	values[INTAKE_DISPATCH_NO - 1] = Int64GetDatum(entry->dispatch_no);
	values[INTAKE_BILLING_NO - 1] = Int64GetDatum(entry->billing_no);
	values[INTAKE_CONCURRENCY_LIMIT - 1] = Int32GetDatum(entry->concurrency_limit);
	values[INTAKE_ACCEPTED_LIMIT - 1] = Int32GetDatum(entry->accepted_limit);
	values[INTAKE_OVERDRAFT - 1] = Int64GetDatum(entry->overdraft);
	values[INTAKE_OBSERVED - 1] = BoolGetDatum(entry->observed);
	store_insert(s, T_INTAKE, values, nulls);
}

/* Appends a dispatch row; totals has the new totals and gets the new number.  Under lock D. */
void
dispatch_append(Store *s, int32 tenant_id, Dispatch *totals, TimestampTz at, const DispatchEntry *entry)
{
	Datum		values[DISPATCH_REASON];
	bool		nulls[DISPATCH_REASON] = {false};
	bool		jobless = entry->job_no == 0;

	totals->no++;
	totals->at = at;
	values[DISPATCH_TENANT_ID - 1] = Int32GetDatum(tenant_id);
	values[DISPATCH_NO - 1] = Int64GetDatum(totals->no);
	values[DISPATCH_AT - 1] = TimestampTzGetDatum(at);
	values[DISPATCH_KIND - 1] = CStringGetTextDatum(entry->kind);
	values[DISPATCH_JOB_NO - 1] = Int64GetDatum(entry->job_no);
	values[DISPATCH_JOB_ID - 1] = UUIDPGetDatum(&entry->job_id);
	values[DISPATCH_ATTEMPT - 1] = Int32GetDatum(entry->attempt);
	values[DISPATCH_PREVIOUS_NO - 1] = Int64GetDatum(entry->previous_no);
	nulls[DISPATCH_JOB_NO - 1] = nulls[DISPATCH_JOB_ID - 1] = jobless;
	nulls[DISPATCH_ATTEMPT - 1] = nulls[DISPATCH_PREVIOUS_NO - 1] = jobless;
	values[DISPATCH_DEPARTED - 1] = Int64GetDatum(totals->departed);
	values[DISPATCH_CONCLUDED - 1] = Int64GetDatum(totals->concluded);
	values[DISPATCH_ACTIVE - 1] = Int64GetDatum(totals->active);
	values[DISPATCH_UNRESERVED - 1] = Int64GetDatum(totals->unreserved);
	values[DISPATCH_CAPTURED - 1] = Int64GetDatum(totals->captured);
	values[DISPATCH_CONCURRENCY_LIMIT - 1] = Int32GetDatum(entry->concurrency_limit);
	nulls[DISPATCH_CONCURRENCY_LIMIT - 1] = entry->concurrency_limit < 0;
	values[DISPATCH_SATURATED - 1] = BoolGetDatum(totals->saturated);
	values[DISPATCH_SERVED - 1] = Int32GetDatum(totals->served);
	values[DISPATCH_DUE_AT - 1] = store_time(totals->due_at, &nulls[DISPATCH_DUE_AT - 1]);
	values[DISPATCH_WORKER - 1] = store_text(entry->worker, &nulls[DISPATCH_WORKER - 1]);
	values[DISPATCH_REASON - 1] = store_text(entry->reason, &nulls[DISPATCH_REASON - 1]);
	store_insert(s, T_DISPATCH, values, nulls);
}
