#ifndef RING_H
#define RING_H

#include "nodes/pg_list.h"

#include "journal.h"

typedef struct RingEntries
{
	int			count;
	int			room;
	ItemPointerData *tids;
} RingEntries;

/* a tenant for which the time of some entries has come */
typedef struct DueTenant
{
	int32		tenant_id;
	RingEntries entries;
} DueTenant;

extern bool ring_has(Store *s, int32 tenant_id);
extern void ring_add(Store *s, int32 tenant_id);
extern void ring_entries(Store *s, int32 tenant_id, RingEntries *entries);
extern void ring_remove(Store *s, RingEntries *entries);
extern bool ring_next(Store *s, int32 after, int32 *tenant_id);
extern int32 ring_cursor(void);
extern void ring_set_cursor(int32 tenant_id);

extern bool due_note(Store *s, int32 tenant_id, TimestampTz at, Dispatch *totals);
extern List *due_read(Store *s, TimestampTz now, int most);
extern void due_remove(Store *s, DueTenant *tenant);

#endif
