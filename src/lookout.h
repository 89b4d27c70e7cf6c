#ifndef LOOKOUT_H
#define LOOKOUT_H

#include "nodes/pg_list.h"

#include "config.h"
#include "step.h"

/* the models of a claim */
typedef struct Catalogue
{
	Store	   *s;
	List	   *wanted;			/* names to claim from, NIL: all */
	List	   *known;			/* those read so far */
} Catalogue;

/* what a look at a tenant's lanes found */
typedef struct Lookout
{
	List	   *jobs;			/* JobStates that may start, in order */
	bool		filtered;		/* lanes were left out that another worker may claim from */
	TimestampTz next;			/* when a paused lane may go on */
} Lookout;

extern Model *catalogue_model(Catalogue *c, int32 model_id);
extern void look_out(Catalogue *c, Desk *desk, int64 admitted, int most, Lookout *found);

#endif
