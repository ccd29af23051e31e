#!/bin/sh
# Creates or updates the two databases. Safe to run at each start: each step leaves alone what is there already.
set -eu

export SQL_PLUGIN="$DB" SQL_HOST="$POSTGRES_SEEDS" SQL_PORT="$DB_PORT" SQL_USER="$POSTGRES_USER" SQL_PASSWORD="$POSTGRES_PWD"
: "${SCHEMA_FOLDER:=/etc/temporal/schema/postgresql/v12}"

set_up() {
  temporal-sql-tool --database "$1" create
  temporal-sql-tool --database "$1" setup-schema --version 0.0
  temporal-sql-tool --database "$1" update-schema --schema-dir "$SCHEMA_FOLDER/$2/versioned"
}

set_up temporal temporal
set_up temporal_visibility visibility
