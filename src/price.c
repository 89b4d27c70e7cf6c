/*
 * price.c
 *	  The quote of one request, from the catalogue and never from the caller.
 *
 * Of the prices whose match the request contains, the most specific counts
 * (entry triggers see to it that one contains the others), and of those with
 * one match the latest that is not in the future.
 */
#include "admission.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "amount.h"
#include "args.h"
#include "price.h"

typedef struct Price
{
	int64		id;
	Jsonb	   *match;
	const char *unit;
	int64		unit_price;
	const char *field;
	int64		default_quantity;	/* 0: none, as below */
	int64		min_quantity;
	int64		max_quantity;
	ArrayType  *allowed;		/* NULL: all */
	bool		hold_ceiling;
} Price;

static bool
contains(Jsonb *outer, Jsonb *inner)
{
	return DatumGetBool(DirectFunctionCall2(jsonb_contains, JsonbPGetDatum(outer), JsonbPGetDatum(inner)));
}

static int64
int_or_zero(TupleTableSlot *row, int column)
{
	return COLUMN_NULL(row, column) ? 0 : DatumGetInt64(COLUMN(row, column));
}

static void
read_price(TupleTableSlot *row, Jsonb *match, Price *price)
{
	price->id = DatumGetInt64(COLUMN(row, PRICE_ID));
	price->match = match;
	price->unit = TextDatumGetCString(COLUMN(row, PRICE_UNIT));
	price->unit_price = DatumGetInt64(COLUMN(row, PRICE_UNIT_PRICE));
	price->field = COLUMN_NULL(row, PRICE_QUANTITY_FIELD) ? NULL : TextDatumGetCString(COLUMN(row, PRICE_QUANTITY_FIELD));
	price->default_quantity = int_or_zero(row, PRICE_DEFAULT_QUANTITY);
	price->min_quantity = int_or_zero(row, PRICE_MIN_QUANTITY);
	price->max_quantity = int_or_zero(row, PRICE_MAX_QUANTITY);
	price->allowed = COLUMN_NULL(row, PRICE_ALLOWED) ? NULL : DatumGetArrayTypePCopy(COLUMN(row, PRICE_ALLOWED));
	price->hold_ceiling = strcmp(TextDatumGetCString(COLUMN(row, PRICE_HOLD)), "ceiling") == 0;
}

/* The price that counts for a request; prices of one match come with effective_from ascending. */
static bool
find_price(Store *s, const char *model, Jsonb *request, TimestampTz now, Price *price)
{
	Bound		key[] = {EQUAL(1, CStringGetTextDatum(model))};
	bool		found = false;
	TupleTableSlot *row;

	store_seek(s, I_PRICE, ForwardScanDirection, 1, key);
	while ((row = store_next(s, I_PRICE)) != NULL)
	{
		Jsonb	   *match = DatumGetJsonbPCopy(COLUMN(row, PRICE_MATCH));

		if (DatumGetTimestampTz(COLUMN(row, PRICE_EFFECTIVE_FROM)) <= now &&
			contains(request, match) &&
			(!found || contains(match, price->match)))
		{
			read_price(row, match, price);
			found = true;
		}
	}
	return found;
}

static bool
quantity_offered(const Price *price, int64 quantity)
{
	Datum	   *allowed;
	int			count;

	if ((price->min_quantity && quantity < price->min_quantity) ||
		(price->max_quantity && quantity > price->max_quantity))
		return false;
	if (price->allowed == NULL)
		return true;
	deconstruct_array(price->allowed, INT8OID, 8, true, TYPALIGN_DOUBLE, &allowed, NULL, &count);
	for (int i = 0; i < count; i++)
		if (DatumGetInt64(allowed[i]) == quantity)
			return true;
	return false;
}

/* The request with a quantity the client left out. */
static Jsonb *
with_quantity(Jsonb *request, const char *field, int64 quantity)
{
	JsonbParseState *state = NULL;
	JsonbValue	key = {.type = jbvString},
				value = {.type = jbvNumeric};
	JsonbValue *object;

	key.val.string.val = pstrdup(field);
	key.val.string.len = strlen(field);
	value.val.numeric = int64_to_numeric(quantity);
	(void) pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	(void) pushJsonbValue(&state, WJB_KEY, &key);
	(void) pushJsonbValue(&state, WJB_VALUE, &value);
	object = pushJsonbValue(&state, WJB_END_OBJECT, NULL);
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(request), JsonbPGetDatum(JsonbValueToJsonb(object))));
}

PriceVerdict
quote_request(Store *s, const char *model, Jsonb *request, TimestampTz now, Quote *quote)
{
	Price		price = {0};
	JsonbValue	key = {.type = jbvString};
	JsonbValue *stated = NULL;

	memset(quote, 0, sizeof(Quote));
	if (!find_price(s, model, request, now, &price))
		return PRICE_UNMATCHED;
	quote->price_id = price.id;
	quote->unit = price.unit;
	quote->unit_price = price.unit_price;
	quote->field = price.field;
	quote->request = request;
	quote->quantity = Max(price.default_quantity, 1);
	if (price.field)
	{
		key.val.string.val = unconstify(char *, price.field);
		key.val.string.len = strlen(price.field);
		stated = findJsonbValueFromContainer(&request->root, JB_FOBJECT, &key);
		if (stated == NULL && price.default_quantity == 0)
			return PRICE_QUANTITY_MALFORMED;
		if (stated && !json_whole(stated, 1, PG_INT64_MAX, &quote->quantity))
			return PRICE_QUANTITY_MALFORMED;
		if (!quantity_offered(&price, quote->quantity))
			return PRICE_QUANTITY_REFUSED;
		if (stated == NULL)
			quote->request = with_quantity(request, price.field, quote->quantity);
	}
	quote->quote = amount_mul(price.unit_price, quote->quantity);
	quote->ceiling = price.field && price.max_quantity ? amount_mul(price.unit_price, price.max_quantity) : quote->quote;
	quote->hold = price.hold_ceiling ? quote->ceiling : quote->quote;
	return PRICE_QUOTED;
}
