/*
 * amount.c
 *	  The one error of money arithmetic.
 */
#include "admission.h"

#include "amount.h"

void
amount_overflow(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("%s is out of range", what),
			 errdetail("Amounts are 64-bit counts of micro-USD."),
			 errhint("Use smaller amounts or quantities.")));
}
