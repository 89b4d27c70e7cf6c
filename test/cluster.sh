# A private PostgreSQL cluster for demo/run, test/run and bench/run, which source this file from the top of the tree.
# Works as root (the server then runs as user postgres) or as any other user. Nothing of the machine's own clusters is touched.

set -eu
export LC_ALL=C.UTF-8 PGTZ=UTC
unset PGDATABASE PGHOST PGPORT PGUSER PGPASSWORD PGSERVICE PGOPTIONS 2>/dev/null || true

say() { printf '%s\n' "$*"; }

# the major version to use: PGVERSION, or the one Debian's metapackage names
pg_major() {
	[ -n "${PGVERSION:-}" ] || PGVERSION=$(apt-cache show postgresql 2>/dev/null | sed -n 's/^Depends:.*postgresql-\([0-9][0-9]*\).*/\1/p' | sort -n | tail -n 1)
	say "${PGVERSION:?which PostgreSQL? set PGVERSION}"
}

# bring PACKAGE...: install what is missing; needs root only if something is
bring() {
	missing=
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	say "installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt_log=$(mktemp)
	{ apt-get update && apt-get install -y --no-install-recommends $missing; } >"$apt_log" 2>&1 || { cat "$apt_log"; exit 1; }
	rm -f "$apt_log"
}

# bring_server [PACKAGE...]: server, headers and compiler, then the build's tools; sets PGVERSION, PGBIN, PG_CONFIG
bring_server() {
	[ -n "${PGVERSION:-}" ] || apt-cache show postgresql >/dev/null 2>&1 || apt-get update >/dev/null
	PGVERSION=$(pg_major)
	bring "postgresql-$PGVERSION" "postgresql-server-dev-$PGVERSION" "postgresql-client-$PGVERSION" gcc make libc6-dev "$@"
	PGBIN=/usr/lib/postgresql/$PGVERSION/bin
	PG_CONFIG=$PGBIN/pg_config
	PATH=$PGBIN:$PATH
	export PATH PG_CONFIG PGVERSION PGBIN
}

# build [MAKE ARGUMENT...]: compile and install the extension into the server's directories
build() {
	build_log=$(mktemp)
	make -s PG_CONFIG="$PG_CONFIG" "$@" all >"$build_log" 2>&1 && make -s PG_CONFIG="$PG_CONFIG" "$@" install >>"$build_log" 2>&1 || { cat "$build_log"; exit 1; }
	rm -f "$build_log"
}

# as_server COMMAND...: run as the user who owns the cluster
as_server() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=postgres --regid=postgres --init-groups env HOME=/tmp "$@"
	else
		"$@"
	fi
}

# cluster_start [SETTING=VALUE...]: a fresh cluster in a temporary directory on a Unix socket; sets PGHOST, PGUSER, PGPORT, CLUSTER
cluster_start() {
	CLUSTER=$(mktemp -d "${TMPDIR:-/tmp}/admission-cluster.XXXXXX")
	[ "$(id -u)" != 0 ] || chown postgres "$CLUSTER"
	chmod 755 "$CLUSTER"
	as_server "$PGBIN/initdb" -D "$CLUSTER/data" -U postgres -A trust -E UTF8 --no-locale >"$CLUSTER/initdb.log" 2>&1 || { cat "$CLUSTER/initdb.log"; exit 1; }
	{
		say "listen_addresses = ''"
		say "unix_socket_directories = '$CLUSTER'"
		say "max_connections = 150"
		say "shared_buffers = '256MB'"
		say "max_prepared_transactions = 20"
		for setting in "$@"; do say "$setting"; done
	} | as_server tee -a "$CLUSTER/data/postgresql.conf" >/dev/null
	PGHOST=$CLUSTER PGUSER=postgres PGPORT=5432 PGDATABASE=postgres
	export PGHOST PGUSER PGPORT PGDATABASE CLUSTER
	trap cluster_stop EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	as_server "$PGBIN/pg_ctl" -D "$CLUSTER/data" -l "$CLUSTER/server.log" -w start >/dev/null || { cat "$CLUSTER/server.log"; exit 1; }
}

# cluster_stop: stop the server and remove its directory (kept with KEEP_CLUSTER=1)
cluster_stop() {
	[ -n "${CLUSTER:-}" ] || return 0
	as_server "$PGBIN/pg_ctl" -D "$CLUSTER/data" -m immediate stop >/dev/null 2>&1 || true
	[ -n "${KEEP_CLUSTER:-}" ] || rm -rf "$CLUSTER"
	CLUSTER=
}
