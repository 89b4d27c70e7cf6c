#ifndef LANE_H
#define LANE_H

#include "store.h"

typedef struct Lane
{
	int32		no;
	int16		priority;
	int32		model_id;
} Lane;

/* a lane's entries are looked for from its head; given-back entries have no head */
#define RETURNED(lane_no)	(-(lane_no))

extern int32 lane_for(Store *s, int32 tenant_id, int16 priority, int32 model_id, bool create);
extern List *lanes_of(Store *s, int32 tenant_id);
extern int64 lane_head(Store *s, int32 tenant_id, int32 lane_no);
extern void lane_advance(Store *s, int32 tenant_id, int32 lane_no, int64 head);
extern int64 lane_count_ahead(Store *s, int32 tenant_id, int16 priority, TimestampTz now, int64 queued, int64 most);

#endif
