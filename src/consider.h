#ifndef CONSIDER_H
#define CONSIDER_H

#include "args.h"
#include "gates.h"
#include "pool.h"
#include "price.h"

/* one call's hold on a tenant's intake */
typedef struct IntakeDesk
{
	Store	   *s;
	int32		tenant_id;
	Standing	standing;		/* kept up to date as jobs are accepted */
	bool		writing;		/* admit, not preview */
	bool		presence;		/* P is held, shared */
	int32		stripe;			/* of the pool, that the last token came from */
	int32		jobs;
	int64		amount;
} IntakeDesk;

/* what an acceptance is made of */
typedef struct Acceptance
{
	const Request *request;
	Model		model;
	Quote		quote;
	bytea	   *fingerprint;
	TimestampTz rate_clock;		/* after the acceptance */
	bool		rate_refused;	/* in observe mode */
	PoolState	pool;
	GateResult	gates;
} Acceptance;

extern bool consider(IntakeDesk *desk, const Request *r, Acceptance *a, GateInput *in, Decision *d);
extern bool reconsider_full(IntakeDesk *desk, Acceptance *a, GateInput *in, Decision *d);
extern void tell_quote(Decision *d, const Standing *st, const char *unit, int64 quantity, int64 quote);

#endif
