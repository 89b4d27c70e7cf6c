#ifndef PRICE_H
#define PRICE_H

#include "utils/jsonb.h"

#include "store.h"

typedef enum PriceVerdict
{
	PRICE_QUOTED,
	PRICE_UNMATCHED,			/* no price matches the request */
	PRICE_QUANTITY_REFUSED,		/* a quantity that is not offered */
	PRICE_QUANTITY_MALFORMED	/* no positive whole number, or missing */
} PriceVerdict;

typedef struct Quote
{
	int64		price_id;
	const char *unit;
	int64		unit_price;
	int64		quantity;
	int64		quote;
	int64		ceiling;
	int64		hold;
	Jsonb	   *request;		/* with the price's defaults filled in */
	const char *field;			/* where the quantity comes from, or NULL */
} Quote;

extern PriceVerdict quote_request(Store *s, const char *model, Jsonb *request, TimestampTz now, Quote *quote);

#endif
