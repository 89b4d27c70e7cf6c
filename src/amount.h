/*
 * amount.h
 *	  int64 sums and products that refuse to wrap (SQLSTATE 22003).
 */
#ifndef AMOUNT_H
#define AMOUNT_H

#include "common/int.h"

extern void amount_overflow(const char *what);	/* does not return */

static inline int64
amount_add(int64 a, int64 b)
{
	int64		sum;

	if (unlikely(pg_add_s64_overflow(a, b, &sum)))
		amount_overflow("sum of amounts");
	return sum;
}

static inline int64
amount_sub(int64 a, int64 b)
{
	int64		difference;

	if (unlikely(pg_sub_s64_overflow(a, b, &difference)))
		amount_overflow("difference of amounts");
	return difference;
}

static inline int64
amount_mul(int64 a, int64 b)
{
	int64		product;

	if (unlikely(pg_mul_s64_overflow(a, b, &product)))
		amount_overflow("product of price and quantity");
	return product;
}

#endif
