/*
 * store.c
 *	  Typed reads and writes of our tables: the only file that opens relations
 *	  and indexes.
 *
 * A store lives for one call.  It opens what is asked for, keeps it open, and
 * reads with one registered snapshot until store_look_again(), which makes our
 * own writes and everything committed since visible.  Reads go by index and
 * never through the planner; writes go to the heap and its indexes.  The hot
 * tables have no triggers, defaults or checks that this would pass by.
 *
 * One scan per index at a time: collect what a scan returns before probing
 * the same index again.  A row is valid until the next read of its index.
 *
 * Relations are locked as any statement would lock them, until the end of the
 * transaction.  On an error the transaction's owners give everything back.
 */
#include "admission.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "store.h"

#define MAX_BOUNDS 4

typedef struct OpenTable
{
	Relation	rel;			/* for reading */
	ResultRelInfo *target;		/* for writing, with its indexes */
	TupleTableSlot *out;		/* what a write stores */
	TupleTableSlot *locked;		/* what store_lock found */
} OpenTable;

typedef struct OpenIndex
{
	Relation	rel;
	IndexScanDesc scan;
	ScanDirection direction;
	TupleTableSlot *row;
} OpenIndex;

struct Store
{
	StoreMode	mode;
	Snapshot	snapshot;
	EState	   *estate;
	MemoryContext context;
	TransactionId blocker;		/* who made the last dirty read find a row in progress */
	OpenTable	tables[TABLE_COUNT];
	OpenIndex	indexes[INDEX_COUNT];
};

static const struct
{
	const char *name;
	int			columns;
}			table_names[] = {
#define AS_ROW(id, name, columns) [id] = {name, columns},
	ADMISSION_TABLES(AS_ROW)
#undef AS_ROW
};

static const struct
{
	const char *name;
	TableId		table;
}			index_names[] = {
#define AS_ROW(id, name, table) [id] = {name, table},
	ADMISSION_INDEXES(AS_ROW)
#undef AS_ROW
};

/*
 * The oids of our relations, remembered for the session until the catalogue
 * says that one of them changed.
 */
static Oid	table_oids[TABLE_COUNT];
static Oid	index_oids[INDEX_COUNT];

static void
forget_oids(Datum argument, Oid relation)
{
	bool		ours = !OidIsValid(relation);

	for (int i = 0; !ours && i < TABLE_COUNT; i++)
		ours = table_oids[i] == relation;
	for (int i = 0; !ours && i < INDEX_COUNT; i++)
		ours = index_oids[i] == relation;
	if (ours)
	{
		memset(table_oids, 0, sizeof(table_oids));
		memset(index_oids, 0, sizeof(index_oids));
	}
}

/* Called once, when the library is loaded. */
void
store_init(void)
{
	CacheRegisterRelcacheCallback(forget_oids, (Datum) 0);
}

static Oid
relation_oid(Oid *known, const char *name)
{
	Oid			schema,
				oid;

	if (OidIsValid(*known))
		return *known;
	schema = get_namespace_oid(ADMISSION_SCHEMA, true);
	oid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("relation \"%s.%s\" does not exist", ADMISSION_SCHEMA, name),
				 errhint("The extension is not installed completely: DROP EXTENSION and CREATE EXTENSION it.")));
	return *known = oid;
}

/* The next number of a sequence of ours. */
int64
store_number(const char *sequence)
{
	return nextval_internal(get_relname_relid(sequence, get_namespace_oid(ADMISSION_SCHEMA, false)), false);
}

Datum
store_text(const char *value, bool *isnull)
{
	*isnull = value == NULL;
	return value ? CStringGetTextDatum(value) : (Datum) 0;
}

Datum
store_time(TimestampTz value, bool *isnull)
{
	*isnull = !HAS_TIME(value);
	return TimestampTzGetDatum(value);
}

/* Registers the snapshot that a store of this mode reads with. */
static void
take_snapshot(Store *s)
{
	switch (s->mode)
	{
		case STORE_LATEST:
			s->snapshot = RegisterSnapshot(GetLatestSnapshot());
			break;
		case STORE_STATEMENT:
			s->snapshot = RegisterSnapshot(GetActiveSnapshot());
			break;
		case STORE_TRANSACTION:
			s->snapshot = RegisterSnapshot(GetTransactionSnapshot());
			break;
	}
}

Store *
store_open(StoreMode mode)
{
	Store	   *s = palloc0(sizeof(Store));

	s->mode = mode;
	s->context = CurrentMemoryContext;
	take_snapshot(s);
	return s;
}

/* From here on the store sees our own writes and what has been committed since. */
void
store_look_again(Store *s)
{
	if (s->mode != STORE_LATEST)
		return;
	CommandCounterIncrement();
	UnregisterSnapshot(s->snapshot);
	take_snapshot(s);
}

bool
store_latest(Store *s)
{
	return s->mode == STORE_LATEST;
}

void
store_close(Store *s)
{
	int			i;

	for (i = 0; i < INDEX_COUNT; i++)
	{
		OpenIndex  *index = &s->indexes[i];

		if (index->rel == NULL)
			continue;
		if (index->scan)
			index_endscan(index->scan);
		ExecDropSingleTupleTableSlot(index->row);
		index_close(index->rel, NoLock);
	}
	for (i = 0; i < TABLE_COUNT; i++)
	{
		OpenTable  *table = &s->tables[i];

		if (table->locked)
			ExecDropSingleTupleTableSlot(table->locked);
		if (table->target)
		{
			ExecDropSingleTupleTableSlot(table->out);
			ExecCloseIndices(table->target);
			table_close(table->target->ri_RelationDesc, NoLock);
		}
		if (table->rel)
			table_close(table->rel, NoLock);
	}
	if (s->estate)
		FreeExecutorState(s->estate);
	UnregisterSnapshot(s->snapshot);
	if (s->mode == STORE_LATEST)
		CommandCounterIncrement();
	pfree(s);
}

/* Opens a table, checking that it has the columns this library knows. */
static Relation
open_relation(TableId table, LOCKMODE mode)
{
	Relation	rel = table_open(relation_oid(&table_oids[table], table_names[table].name), mode);

	if (RelationGetNumberOfAttributes(rel) < table_names[table].columns)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s.%s\" is older than the library", ADMISSION_SCHEMA, table_names[table].name),
				 errhint("Run ALTER EXTENSION admission UPDATE.")));
	return rel;
}

static OpenTable *
readable(Store *s, TableId id)
{
	OpenTable  *table = &s->tables[id];

	if (table->rel == NULL)
		table->rel = open_relation(id, AccessShareLock);
	return table;
}

static OpenTable *
writable(Store *s, TableId id)
{
	OpenTable  *table = &s->tables[id];
	MemoryContext old;

	if (table->target)
		return table;
	old = MemoryContextSwitchTo(s->context);
	if (s->estate == NULL)
		s->estate = CreateExecutorState();
	table->target = makeNode(ResultRelInfo);
	InitResultRelInfo(table->target, open_relation(id, RowExclusiveLock), 0, NULL, 0);
	ExecOpenIndices(table->target, false);
	table->out = MakeSingleTupleTableSlot(RelationGetDescr(table->target->ri_RelationDesc), &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
	return table;
}

static OpenIndex *
indexed(Store *s, IndexId id)
{
	OpenIndex  *index = &s->indexes[id];

	if (index->rel == NULL)
	{
		OpenTable  *table = readable(s, index_names[id].table);
		MemoryContext old = MemoryContextSwitchTo(s->context);

		index->rel = index_open(relation_oid(&index_oids[id], index_names[id].name), AccessShareLock);
		index->row = table_slot_create(table->rel, NULL);
		MemoryContextSwitchTo(old);
	}
	return index;
}

/* The comparison function of a type for a btree strategy. */
static RegProcedure
comparison(Oid type, StrategyNumber strategy)
{
	static const struct
	{
		Oid			type;
		RegProcedure by_strategy[6];
	}			functions[] = {
		{INT2OID, {0, F_INT2LT, F_INT2LE, F_INT2EQ, F_INT2GE, F_INT2GT}},
		{INT4OID, {0, F_INT4LT, F_INT4LE, F_INT4EQ, F_INT4GE, F_INT4GT}},
		{INT8OID, {0, F_INT8LT, F_INT8LE, F_INT8EQ, F_INT8GE, F_INT8GT}},
		{BOOLOID, {0, F_BOOLLT, F_BOOLLE, F_BOOLEQ, F_BOOLGE, F_BOOLGT}},
		{TEXTOID, {0, F_TEXT_LT, F_TEXT_LE, F_TEXTEQ, F_TEXT_GE, F_TEXT_GT}},
		{UUIDOID, {0, F_UUID_LT, F_UUID_LE, F_UUID_EQ, F_UUID_GE, F_UUID_GT}},
		{TIMESTAMPTZOID, {0, F_TIMESTAMPTZ_LT, F_TIMESTAMPTZ_LE, F_TIMESTAMPTZ_EQ, F_TIMESTAMPTZ_GE, F_TIMESTAMPTZ_GT}},
	};

	for (int i = 0; i < lengthof(functions); i++)
		if (functions[i].type == type)
			return functions[i].by_strategy[strategy];
	elog(ERROR, "no comparison for type %u", type);
}

/* Positions a scan of an index, to be read with this snapshot. */
static OpenIndex *
seek(Store *s, IndexId id, ScanDirection direction, int nbounds, const Bound *bounds, Snapshot snapshot)
{
	OpenIndex  *index = indexed(s, id);
	ScanKeyData keys[MAX_BOUNDS];

	Assert(nbounds <= MAX_BOUNDS);
	for (int i = 0; i < nbounds; i++)
	{
		int			column = bounds[i].column;
		Oid			type = TupleDescAttr(RelationGetDescr(index->rel), column - 1)->atttypid;

		ScanKeyEntryInitialize(&keys[i], 0, column, bounds[i].strategy, InvalidOid,
							   index->rel->rd_indcollation[column - 1],
							   comparison(type, bounds[i].strategy), bounds[i].value);
	}
	if (index->scan && index->scan->numberOfKeys != nbounds)
	{
		index_endscan(index->scan);
		index->scan = NULL;
	}
	if (index->scan == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(s->context);

		index->scan = index_beginscan(s->tables[index_names[id].table].rel, index->rel, snapshot,
#if PG_VERSION_NUM >= 180000
									  NULL,
#endif
									  nbounds, 0);
		MemoryContextSwitchTo(old);
	}
	index->scan->xs_snapshot = snapshot;
	index_rescan(index->scan, keys, nbounds, NULL, 0);
	index->direction = direction;
	return index;
}

/* The scan's own memory must live as long as the store, whatever the caller works in. */
static TupleTableSlot *
advance(Store *s, OpenIndex *index)
{
	MemoryContext old = MemoryContextSwitchTo(s->context);
	bool		found = index_getnext_slot(index->scan, index->direction, index->row);

	MemoryContextSwitchTo(old);
	if (!found)
	{
		ExecClearTuple(index->row);
		return NULL;
	}
	slot_getallattrs(index->row);
	return index->row;
}

void
store_seek(Store *s, IndexId id, ScanDirection direction, int nbounds, const Bound *bounds)
{
	(void) seek(s, id, direction, nbounds, bounds, s->snapshot);
}

/* The next row of the index's scan, or NULL. */
TupleTableSlot *
store_next(Store *s, IndexId id)
{
	TupleTableSlot *row = advance(s, &s->indexes[id]);

	if (row)
		store_check_age(s, row);
	return row;
}

/* The first row within the bounds, or NULL. */
TupleTableSlot *
store_first(Store *s, IndexId id, ScanDirection direction, int nbounds, const Bound *bounds)
{
	store_seek(s, id, direction, nbounds, bounds);
	return store_next(s, id);
}

/*
 * The first row within the bounds that is not dead, whoever wrote it; state
 * says whether an open transaction of somebody else inserted or deleted it.
 */
TupleTableSlot *
store_first_dirty(Store *s, IndexId id, ScanDirection direction, int nbounds, const Bound *bounds, RowState *state)
{
	SnapshotData dirty;
	OpenIndex  *index;
	TupleTableSlot *row;

	InitDirtySnapshot(dirty);
	index = seek(s, id, direction, nbounds, bounds, &dirty);
	row = advance(s, index);
	s->blocker = !row ? InvalidTransactionId : TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax;
	*state = TransactionIdIsValid(s->blocker) ? ROW_IN_PROGRESS : ROW_COMMITTED;
	index->scan->xs_snapshot = s->snapshot;
	return row;
}

/* Waits for the transaction because of which the last dirty read found a row in progress. */
void
store_wait(Store *s)
{
	if (TransactionIdIsValid(s->blocker))
		XactLockTableWait(s->blocker, NULL, NULL, XLTW_None);
}

/* Whether the store's snapshot sees a row found by a dirty read. */
bool
store_visible(Store *s, IndexId id, TupleTableSlot *row)
{
	return table_tuple_satisfies_snapshot(s->tables[index_names[id].table].rel, row, s->snapshot);
}

/* Whether a row was committed after the snapshot of the caller's REPEATABLE READ or SERIALIZABLE transaction. */
bool
store_newer_than_caller(TupleTableSlot *row)
{
	HeapTuple	tuple;
	TransactionId xmin;

	if (!IsolationUsesXactSnapshot())
		return false;
	tuple = ExecFetchSlotHeapTuple(row, false, NULL);
	if (HeapTupleHeaderXminFrozen(tuple->t_data))
		return false;
	xmin = HeapTupleHeaderGetXmin(tuple->t_data);
	return TransactionIdIsNormal(xmin) && !TransactionIdIsCurrentTransactionId(xmin) &&
		XidInMVCCSnapshot(xmin, GetTransactionSnapshot());
}

/* What decides must not be newer than what the caller can see. */
void
store_check_age(Store *s, TupleTableSlot *row)
{
	if (s->mode == STORE_LATEST && unlikely(store_newer_than_caller(row)))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent change of \"%s\"",
						get_rel_name(row->tts_tableOid)),
				 errhint("Retry the transaction, or call at READ COMMITTED.")));
}

/* Adds index entries for a row just written. */
static void
index_row(Store *s, OpenTable *table)
{
#if PG_VERSION_NUM >= 160000
	List	   *recheck = ExecInsertIndexTuples(table->target, table->out, s->estate, false, false, NULL, NIL, false);
#else
	List	   *recheck = ExecInsertIndexTuples(table->target, table->out, s->estate, false, false, NULL, NIL);
#endif

	list_free(recheck);
	ResetPerTupleExprContext(s->estate);
}

/* What a write stores; columns that a newer version of the extension added stay null. */
static void
fill(OpenTable *table, TableId id, Datum *values, bool *nulls)
{
	int			columns = table_names[id].columns;

	ExecClearTuple(table->out);
	memset(table->out->tts_isnull, true, table->out->tts_tupleDescriptor->natts * sizeof(bool));
	memcpy(table->out->tts_values, values, columns * sizeof(Datum));
	memcpy(table->out->tts_isnull, nulls, columns * sizeof(bool));
	ExecStoreVirtualTuple(table->out);
}

/* Inserts a row; nothing is filled in. */
void
store_insert(Store *s, TableId id, Datum *values, bool *nulls)
{
	OpenTable  *table = writable(s, id);

	fill(table, id, values, nulls);
	table_tuple_insert(table->target->ri_RelationDesc, table->out, GetCurrentCommandId(true), 0, NULL);
	index_row(s, table);
}

/* Deletes a row; false if an open transaction has it (and wait is off) or another has changed or deleted it. */
bool
store_delete(Store *s, TableId id, ItemPointer tid, bool wait)
{
	OpenTable  *table = writable(s, id);
	TM_FailureData failure;
	TM_Result	result;

	result = table_tuple_delete(table->target->ri_RelationDesc, tid, GetCurrentCommandId(true),
								s->snapshot, InvalidSnapshot, wait, &failure, false);
	if (result == TM_Invisible || result == TM_SelfModified)
		elog(ERROR, "row of \"%s\" was written or deleted within this call", table_names[id].name);
	return result == TM_Ok;
}

/* Locks the newest version of a row for a change, and returns it. */
LockResult
store_lock(Store *s, TableId id, ItemPointer tid, bool wait, TupleTableSlot **row)
{
	OpenTable  *table = writable(s, id);
	TM_FailureData failure;
	TM_Result	result;

	if (table->locked == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(s->context);

		table->locked = table_slot_create(table->target->ri_RelationDesc, NULL);
		MemoryContextSwitchTo(old);
	}
	result = table_tuple_lock(table->target->ri_RelationDesc, tid, s->snapshot, table->locked,
							  GetCurrentCommandId(false), LockTupleExclusive,
							  wait ? LockWaitBlock : LockWaitSkip,
							  TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
	switch (result)
	{
		case TM_Ok:
			slot_getallattrs(table->locked);
			store_check_age(s, table->locked);
			*row = table->locked;
			return ROW_LOCKED;
		case TM_WouldBlock:
			return ROW_BUSY;
		case TM_Deleted:
			return ROW_GONE;
		default:
			elog(ERROR, "unexpected result %d of locking a row of \"%s\"", result, table_names[id].name);
	}
}

/* Replaces a row that store_lock locked. */
void
store_update(Store *s, TableId id, ItemPointer tid, Datum *values, bool *nulls)
{
	OpenTable  *table = writable(s, id);
	TM_FailureData failure;
	LockTupleMode mode;
	ItemPointerData old_tid = *tid;
#if PG_VERSION_NUM >= 160000
	TU_UpdateIndexes indexes;
#else
	bool		indexes;
#endif

	fill(table, id, values, nulls);
	if (table_tuple_update(table->target->ri_RelationDesc, &old_tid, table->out, GetCurrentCommandId(true),
						   s->snapshot, InvalidSnapshot, true, &failure, &mode, &indexes) != TM_Ok)
		elog(ERROR, "a locked row of \"%s\" could not be replaced", table_names[id].name);
	if (indexes)
		index_row(s, table);
}
