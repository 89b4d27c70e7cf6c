/*
 * ring.c
 *	  Which tenants may have a job to start, and when to look at one because
 *	  time has passed.
 *
 * The ring is a multiset of tenants: anyone may add an entry, only the holder
 * of lock D takes off entries, and only those it saw.  A claim walks it by
 * tenant id from where the last one stopped; that place is a sequence, outside
 * of transactions, so service is fair over connections.  Who adds and removes
 * when is told in claim.c, admit.c and step.c, and proved by the Spin model of
 * doc/ready-ring.pml.
 *
 * Due entries work alike: under D, a tenant has one at or before the earliest
 * moment at which time alone can change something for it.
 */
#include "admission.h"

#include "catalog/namespace.h"
#include "commands/sequence.h"
#include "common/pg_prng.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "ring.h"

static int64
random_entry(void)
{
	return (int64) (pg_prng_uint64(&pg_global_prng_state) >> 1);
}

bool
ring_has(Store *s, int32 tenant_id)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id))};

	return store_first(s, I_RING, ForwardScanDirection, 1, key) != NULL;
}

void
ring_add(Store *s, int32 tenant_id)
{
	Datum		values[RING_ENTRY] = {Int32GetDatum(tenant_id), Int64GetDatum(random_entry())};
	bool		nulls[RING_ENTRY] = {false};

	store_insert(s, T_RING, values, nulls);
}

static void
remember(RingEntries *entries, ItemPointer tid)
{
	if (entries->count == entries->room)
	{
		entries->room = Max(8, entries->room * 2);
		entries->tids = entries->tids ? repalloc(entries->tids, entries->room * sizeof(ItemPointerData)) :
			palloc(entries->room * sizeof(ItemPointerData));
	}
	entries->tids[entries->count++] = *tid;
}

/* The entries of a tenant that the store sees. */
void
ring_entries(Store *s, int32 tenant_id, RingEntries *entries)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id))};
	TupleTableSlot *row;

	memset(entries, 0, sizeof(RingEntries));
	store_seek(s, I_RING, ForwardScanDirection, 1, key);
	while ((row = store_next(s, I_RING)) != NULL)
		remember(entries, &row->tts_tid);
}

/* Takes entries off.  Under lock D of their tenant. */
void
ring_remove(Store *s, RingEntries *entries)
{
	for (int i = 0; i < entries->count; i++)
		(void) store_delete(s, T_RING, &entries->tids[i], false);
}

/* The next tenant on the ring after a tenant id. */
bool
ring_next(Store *s, int32 after, int32 *tenant_id)
{
	Bound		key[] = {ABOVE(1, Int32GetDatum(after))};
	TupleTableSlot *row = store_first(s, I_RING, ForwardScanDirection, 1, key);

	if (row)
		*tenant_id = DatumGetInt32(COLUMN(row, RING_TENANT_ID));
	return row != NULL;
}

static Datum
cursor_sequence(void)
{
	return ObjectIdGetDatum(get_relname_relid("ring_cursor", get_namespace_oid(ADMISSION_SCHEMA, false)));
}

/* Where the last claim stopped; read outside of transactions. */
int32
ring_cursor(void)
{
	LOCAL_FCINFO(call, 1);
	Datum		value;

	InitFunctionCallInfoData(*call, NULL, 1, InvalidOid, NULL, NULL);
	call->args[0].value = cursor_sequence();
	call->args[0].isnull = false;
	value = pg_sequence_last_value(call);
	return call->isnull ? 0 : (int32) DatumGetInt64(value);
}

void
ring_set_cursor(int32 tenant_id)
{
	(void) DirectFunctionCall2(setval_oid, cursor_sequence(), Int64GetDatum(tenant_id));
}

/*
 * Sees to a due entry at or before a moment; true if one was written, and then
 * the totals say so and must be appended.  Under lock D.
 */
bool
due_note(Store *s, int32 tenant_id, TimestampTz at, Dispatch *totals)
{
	Datum		values[DUE_ENTRY] = {TimestampTzGetDatum(at), Int32GetDatum(tenant_id), Int64GetDatum(random_entry())};
	bool		nulls[DUE_ENTRY] = {false};

	if (TIMESTAMP_NOT_FINITE(at) || (HAS_TIME(totals->due_at) && totals->due_at <= at))
		return false;
	store_insert(s, T_DUE, values, nulls);
	totals->due_at = at;
	return true;
}

/* The tenants that something is due for, up to most, each with the entries that say so. */
List *
due_read(Store *s, TimestampTz now, int most)
{
	Bound		key[] = {AT_MOST(1, TimestampTzGetDatum(now))};
	List	   *due = NIL;
	TupleTableSlot *row;

	store_seek(s, I_DUE, ForwardScanDirection, 1, key);
	while ((row = store_next(s, I_DUE)) != NULL)
	{
		int32		tenant_id = DatumGetInt32(COLUMN(row, DUE_TENANT_ID));
		DueTenant  *tenant = NULL;
		ListCell   *cell;

		foreach(cell, due)
		{
			if (((DueTenant *) lfirst(cell))->tenant_id == tenant_id)
				tenant = lfirst(cell);
		}
		if (tenant == NULL)
		{
			if (list_length(due) == most)
				break;
			tenant = palloc0(sizeof(DueTenant));
			tenant->tenant_id = tenant_id;
			due = lappend(due, tenant);
		}
		remember(&tenant->entries, &row->tts_tid);
	}
	return due;
}

/* Removes what was due for a tenant.  Under its lock D. */
void
due_remove(Store *s, DueTenant *tenant)
{
	for (int i = 0; i < tenant->entries.count; i++)
		(void) store_delete(s, T_DUE, &tenant->entries.tids[i], false);
}
