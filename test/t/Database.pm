# A fresh database with the extension, and sessions in it whose statements run at the same time.
#
# Statements that must meet are sent asynchronously to waiting sessions: each first takes a shared advisory lock that the
# test holds exclusively (together), or the test waits until pg_blocking_pids says that a statement is blocked (settled_or_blocked).
# Whoever waits for something that never comes is stopped by statement_timeout, so a test fails instead of hanging.
package Database;

use strict;
use warnings;
use DBI;
use DBD::Pg qw(:async);
use Test::More ();
use Exporter 'import';

our @EXPORT_OK = qw(tally);

use constant BARRIER => 4711;

# new NAME [EXTENSION]: make the database, replacing one of an earlier run; EXTENSION false: leave it empty
sub new {
	my ($class, $name, $extension) = @_;
	my $self = bless { name => $name, sessions => [] }, $class;
	my $admin = dbh('postgres');
	$admin->do(qq{DROP DATABASE IF EXISTS "$name" WITH (FORCE)});
	$admin->do(qq{CREATE DATABASE "$name"});
	$admin->disconnect;
	return $self if defined $extension && !$extension;

	$self->{dbh} = dbh($name);
	$self->do('CREATE EXTENSION admission');
	$self->do(q{
		CREATE FUNCTION at_barrier(statement text) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			answer text;
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(} . BARRIER . q{);
			EXECUTE statement INTO answer;
			RETURN answer;
		END $$});
	$self->do(q{
		CREATE FUNCTION job(of_tenant text, key text) RETURNS uuid LANGUAGE sql AS
		$$ SELECT job_id FROM admission.job WHERE tenant = of_tenant AND operation_key = key $$});
	$self->do(q{
		CREATE FUNCTION admit(tenant text, key text, request jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS
		$$ SELECT code FROM admission.admit(tenant, key, 'm', request) $$});
	return $self;
}

sub dbh {
	my ($name) = @_;
	my $dbh = DBI->connect("dbi:Pg:dbname=$name", undef, undef,
		{ RaiseError => 1, PrintError => 0, AutoCommit => 1, pg_server_prepare => 0 });
	$dbh->do(q{SET client_min_messages = warning});
	$dbh->do(q{SET statement_timeout = '60s'});
	return $dbh;
}

sub name { return $_[0]{name} }

# connect: the database exists and is filled now; open the test's own session
sub connect { my ($self) = @_; $self->{dbh} = dbh($self->{name}); return $self }

sub disconnect { my ($self) = @_; $_->disconnect for @{ $self->{sessions} }, $self->{dbh}; $self->{sessions} = []; return }

# the test's own session: run, read one value, one column, all rows
sub do { my ($self, $sql, @values) = @_; return $self->{dbh}->do($sql, undef, @values) }
sub value { my ($self, $sql, @values) = @_; return ($self->{dbh}->selectrow_array($sql, undef, @values))[0] }
sub column { my ($self, $sql, @values) = @_; return @{ $self->{dbh}->selectcol_arrayref($sql, undef, @values) } }
sub rows { my ($self, $sql, @values) = @_; return $self->{dbh}->selectall_arrayref($sql, undef, @values) }

# a tenant with money (micro-USD) and, where given, a limit of running and one of waiting jobs
sub tenant {
	my ($self, $name, $money, $running, $waiting) = @_;
	$self->do('INSERT INTO admission.tenant(tenant, concurrency_override, queued_jobs_override) VALUES (?, ?, ?)', $name, $running, $waiting);
	$self->value('SELECT code FROM admission.grant_credit(?, ?, ?, ?)', $name, $money, 'grant', "grant $name") if $money;
	return;
}

# a model m at one price (micro-USD) per generation
sub model {
	my ($self, $price) = @_;
	$self->do(q{INSERT INTO admission.model(model, provider) VALUES ('m', 'p')});
	$self->do(q{INSERT INTO admission.price(model, unit_price_micro) VALUES ('m', ?)}, $price);
	return;
}

# sessions N: that many open sessions, made when first wanted
sub sessions {
	my ($self, $n) = @_;
	push @{ $self->{sessions} }, dbh($self->{name}) while @{ $self->{sessions} } < $n;
	return @{ $self->{sessions} }[ 0 .. $n - 1 ];
}

# start SESSION, SQL: send it and return at once; finish SESSION: its one value, or its SQLSTATE if it failed
sub start {
	my ($session, $sql) = @_;
	my $statement = $session->prepare($sql, { pg_async => PG_ASYNC });
	$statement->execute;
	$session->{private_running} = $statement;
	return;
}

sub finish {
	my ($session) = @_;
	my $statement = delete $session->{private_running};
	my $answer = eval {
		$statement->pg_result;
		$statement->{NUM_OF_FIELDS} ? ($statement->fetchrow_array)[0] : undef;
	};
	$answer = $session->state if $@;
	eval { $statement->finish };
	return $answer;
}

sub running { my ($session) = @_; return defined $session->{private_running} }

# settled_or_blocked SESSION: wait until what runs there is done (true) or waits for a lock of another session (false)
sub settled_or_blocked {
	my ($self, $session) = @_;
	until ($session->pg_ready) {
		return 0 if $self->value('SELECT cardinality(pg_blocking_pids(?)) > 0', $session->{pg_pid}) && !$session->pg_ready;
		select undef, undef, undef, 0.0005;
	}
	return 1;
}

# together STATEMENT...: each in a session of its own, all let go at one moment; their answers in order
sub together {
	my ($self, @statements) = @_;
	my @sessions = $self->sessions(scalar @statements);
	$self->value('SELECT pg_advisory_lock(?)', BARRIER);
	start($sessions[$_], 'SELECT at_barrier(' . $sessions[$_]->quote($statements[$_]) . ')') for 0 .. $#statements;
	select undef, undef, undef, 0.001 until $self->all_wait(scalar @statements);
	$self->value('SELECT pg_advisory_unlock(?)', BARRIER);
	return map { finish($_) } @sessions;
}

# all_wait N: whether N sessions stand at the barrier
sub all_wait {
	my ($self, $n) = @_;
	return $n == $self->value(q{
		SELECT count(*) FROM pg_locks
		 WHERE locktype = 'advisory' AND objid = ? AND NOT granted
		   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())}, BARRIER);
}

# tally ANSWERS: how often each occurs, as text in a fixed order
sub tally {
	my %count;
	$count{ $_ // 'null' }++ for @_;
	return join ', ', map { "$count{$_} $_" } sort keys %count;
}

# how each test ends
sub verify_is_empty {
	my ($self, $name) = @_;
	my $found = $self->rows('SELECT what, tenant, job_id, details FROM admission.verify()');
	Test::More::is(join("\n", map { join ' | ', map { $_ // '' } @$_ } @$found), '', $name // 'verify() finds nothing');
	return;
}

1;
