#ifndef FINGERPRINT_H
#define FINGERPRINT_H

#include "utils/jsonb.h"

extern bytea *fingerprint(const char *model, Jsonb *request);

#endif
