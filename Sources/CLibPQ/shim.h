#ifndef IEUM_CLIBPQ_SHIM_H
#define IEUM_CLIBPQ_SHIM_H

#include <libpq-fe.h>
#include <postgres_ext.h>

#endif
