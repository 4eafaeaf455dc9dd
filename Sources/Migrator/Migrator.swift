// Migrator
