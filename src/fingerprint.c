/*
 * fingerprint.c
 *	  What an operation key is bound to: SHA-256 over the model and the request
 *	  as sent.
 *
 * jsonb has sorted and unified the keys; numbers are hashed in their shortest
 * form, so 1 and 1.0 are the same.  Each token carries its kind and length, so
 * no two requests are written alike; null is written, an absent key is not.
 */
#include "admission.h"

#include "common/cryptohash.h"
#include "common/sha2.h"
#include "lib/stringinfo.h"
#include "utils/numeric.h"

#include "fingerprint.h"

static void
put(StringInfo to, char kind, const char *bytes, int32 length)
{
	appendStringInfoChar(to, kind);
	appendBinaryStringInfo(to, (const char *) &length, sizeof(length));
	appendBinaryStringInfo(to, bytes, length);
}

static void
put_scalar(StringInfo to, const JsonbValue *value)
{
	char	   *number;

	switch (value->type)
	{
		case jbvString:
			put(to, 's', value->val.string.val, value->val.string.len);
			break;
		case jbvNumeric:
			number = numeric_normalize(value->val.numeric);
			put(to, 'n', number, strlen(number));
			break;
		case jbvBool:
			appendStringInfoChar(to, value->val.boolean ? 't' : 'f');
			break;
		default:
			appendStringInfoChar(to, '0');
			break;
	}
}

static void
put_jsonb(StringInfo to, Jsonb *json)
{
	JsonbIterator *iterator = JsonbIteratorInit(&json->root);
	JsonbValue	value;
	JsonbIteratorToken token;

	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		switch (token)
		{
			case WJB_BEGIN_OBJECT:
				appendStringInfoChar(to, '{');
				break;
			case WJB_END_OBJECT:
				appendStringInfoChar(to, '}');
				break;
			case WJB_BEGIN_ARRAY:
				appendStringInfoChar(to, '[');
				break;
			case WJB_END_ARRAY:
				appendStringInfoChar(to, ']');
				break;
			default:
				put_scalar(to, &value);
				break;
		}
	}
}

/* The fingerprint, as a bytea in the caller's memory. */
bytea *
fingerprint(const char *model, Jsonb *request)
{
	StringInfoData text;
	bytea	   *digest = palloc(VARHDRSZ + PG_SHA256_DIGEST_LENGTH);
	pg_cryptohash_ctx *hash = pg_cryptohash_create(PG_SHA256);

	initStringInfo(&text);
	put(&text, 'm', model, strlen(model));
	put_jsonb(&text, request);
	SET_VARSIZE(digest, VARHDRSZ + PG_SHA256_DIGEST_LENGTH);
	if (hash == NULL || pg_cryptohash_init(hash) < 0 ||
		pg_cryptohash_update(hash, (uint8 *) text.data, text.len) < 0 ||
		pg_cryptohash_final(hash, (uint8 *) VARDATA(digest), PG_SHA256_DIGEST_LENGTH) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(hash));
	pg_cryptohash_free(hash);
	pfree(text.data);
	return digest;
}
