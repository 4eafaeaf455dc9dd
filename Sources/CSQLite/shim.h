#ifndef IEUM_CSQLITE_SHIM_H
#define IEUM_CSQLITE_SHIM_H

#include <sqlite3.h>

// SQLITE_TRANSIENT is a macro with a cast, which Swift does not import: SQLite copies what is bound with it.
static inline sqlite3_destructor_type ieum_sqlite_transient(void) { return SQLITE_TRANSIENT; }

#endif
