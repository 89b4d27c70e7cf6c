#ifndef STORE_H
#define STORE_H

#include "access/sdir.h"
#include "access/stratnum.h"
#include "executor/tuptable.h"
#include "storage/itemptr.h"

#include "tables.h"

typedef struct Store Store;

/*
 * Which state a store reads.  LATEST: what is committed now, at every
 * isolation level; a row newer than the snapshot of a REPEATABLE READ or
 * SERIALIZABLE transaction raises 40001.  STATEMENT: the caller's snapshot,
 * for readers.  TRANSACTION: the same at these levels, with our own writes,
 * to confirm what was decided.
 */
typedef enum StoreMode
{
	STORE_LATEST,
	STORE_STATEMENT,
	STORE_TRANSACTION
} StoreMode;

/* a condition on an index column, numbered as in the index */
typedef struct Bound
{
	int			column;
	StrategyNumber strategy;
	Datum		value;
} Bound;

#define EQUAL(c, v)			{(c), BTEqualStrategyNumber, (v)}
#define ABOVE(c, v)			{(c), BTGreaterStrategyNumber, (v)}
#define AT_LEAST(c, v)		{(c), BTGreaterEqualStrategyNumber, (v)}
#define AT_MOST(c, v)		{(c), BTLessEqualStrategyNumber, (v)}
#define BELOW(c, v)			{(c), BTLessStrategyNumber, (v)}

/* how a row was found by a dirty read */
typedef enum RowState
{
	ROW_COMMITTED,				/* or our own */
	ROW_IN_PROGRESS				/* inserted or deleted by an open transaction */
} RowState;

extern void store_init(void);
extern Store *store_open(StoreMode mode);
extern void store_close(Store *s);
extern void store_look_again(Store *s);
extern bool store_latest(Store *s);

extern void store_seek(Store *s, IndexId index, ScanDirection direction, int nbounds, const Bound *bounds);
extern TupleTableSlot *store_next(Store *s, IndexId index);
extern TupleTableSlot *store_first(Store *s, IndexId index, ScanDirection direction, int nbounds, const Bound *bounds);
extern TupleTableSlot *store_first_dirty(Store *s, IndexId index, ScanDirection direction, int nbounds, const Bound *bounds,
										 RowState *state);
extern void store_wait(Store *s);
extern bool store_visible(Store *s, IndexId index, TupleTableSlot *row);
extern void store_check_age(Store *s, TupleTableSlot *row);
extern bool store_newer_than_caller(TupleTableSlot *row);

extern void store_insert(Store *s, TableId table, Datum *values, bool *nulls);
extern bool store_delete(Store *s, TableId table, ItemPointer tid, bool wait);

typedef enum LockResult
{
	ROW_LOCKED,
	ROW_GONE,
	ROW_BUSY
} LockResult;

extern LockResult store_lock(Store *s, TableId table, ItemPointer tid, bool wait, TupleTableSlot **row);
extern void store_update(Store *s, TableId table, ItemPointer tid, Datum *values, bool *nulls);

/* values of columns that may be null, to be written */
extern Datum store_text(const char *value, bool *isnull);
extern Datum store_time(TimestampTz value, bool *isnull);
extern int64 store_number(const char *sequence);

/* columns of a row just read */
#define COLUMN(row, c)			((row)->tts_values[(c) - 1])
#define COLUMN_NULL(row, c)		((row)->tts_isnull[(c) - 1])
#define COLUMN_TIME(row, c)		(COLUMN_NULL(row, c) ? NO_TIME : DatumGetTimestampTz(COLUMN(row, c)))

#endif
