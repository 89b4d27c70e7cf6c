# pg_dump and restore keep every row and every sequence, in each format (case 38): edited and deleted defaults stay as they
# were, nothing comes back twice, and the restored database goes on working.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use Test::More;
use Database qw(tally);

my $directory = tempdir(CLEANUP => 1);

# fill DATABASE: something in every state, and defaults an operator has changed
sub fill {
	my ($db) = @_;
	$db->do(q{INSERT INTO admission.tenant(tenant, submit_rate) VALUES ('a', NULL), ('b', 100000), ('idle', 1)});
	$db->do(q{INSERT INTO admission.tenant(tenant, concurrency_override, override_reason, labels) VALUES ('c', 4, 'trial; it''s "quoted"', '{"team": ["x", null]}')});
	$db->do(q{INSERT INTO admission.model(model, provider, open_to_all) VALUES ('m', 'p', true), ('private', 'p', false)});
	$db->do(q{INSERT INTO admission.model_access VALUES ('private', 'a')});
	$db->do(q{INSERT INTO admission.price(model, unit_price_micro) VALUES ('m', 100)});
	$db->do(q{INSERT INTO admission.price(model, match, unit, unit_price_micro, quantity_field, default_quantity) VALUES ('private', '{"size": "720P"}', 'second', 7, 'seconds', 8)});
	$db->column(q{SELECT code FROM unnest('{a,b,c}'::text[]) t, admission.top_up(t, 30000000, 'manual', 'top-up ' || t)});
	$db->value(q{SELECT code FROM admission.grant_credit('a', 1000, 'plan', 'plan a')});
	$db->value(q{SELECT code FROM admission.reverse_top_up('top-up b', 10000000, 'charged back', 'stolen card')});
	$db->column(q{SELECT admit(t, 'k' || n) FROM unnest('{a,b,c}'::text[]) t, generate_series(1, 12) n});
	$db->column(q{SELECT code FROM admission.admit('a', 'private 1', 'private', '{"size": "720P"}', '{"customer": "é"}', 3::smallint, '10 days')});
	$db->column(q{SELECT code FROM admission.admit('a', 'refused', 'unknown', '{}')});
	my @claimed = $db->column(q{SELECT job_id FROM admission.claim_next('w', 12)});
	$db->value('SELECT code FROM admission.settle(?, ?, ?)', $claimed[0], 'completed', 40);
	$db->value('SELECT code FROM admission.settle(?, ?, ?)', $claimed[0], 'failed', undef);
	$db->value('SELECT code FROM admission.settle(?, ?)', $claimed[1], 'failed');
	$db->value('SELECT code FROM admission.requeue(?, 1)', $claimed[2]);
	$db->value(q{SELECT code FROM admission.requeue(?, 1, '1 hour', 'busy')}, $claimed[3]);
	$db->value('SELECT code FROM admission.begin_submission(?, 1)', $_) for @claimed[ 4 .. 6 ];
	$db->value('SELECT code FROM admission.submitted(?, 1, ?)', $claimed[5], 'provider 5');
	$db->value('SELECT code FROM admission.report_unknown(?, 1, ?)', $claimed[6], 'no answer');
	$db->value(q{SELECT code FROM admission.settle(?, 'completed', 150, 'key', 1, '{"public": {"url": "x"}}')}, $claimed[7]);
	$db->value('SELECT code FROM admission.refund(?, 10, ?, ?)', $claimed[7], 'refund', 'blurred');
	$db->value(q{SELECT code FROM admission.cancel('c', job('c', 'k12'))});

	# defaults: edited, deleted, deleted and entered anew, moved to another amount
	$db->do('UPDATE admission.policy SET queue_factor = 4, global_outstanding_cap = 500');
	$db->do('UPDATE admission.concurrency_tier SET concurrency = 3 WHERE min_top_up_micro = 0');
	$db->do('DELETE FROM admission.concurrency_tier WHERE min_top_up_micro = 1000000000');
	$db->do('DELETE FROM admission.concurrency_tier WHERE min_top_up_micro = 25000000');
	$db->do('INSERT INTO admission.concurrency_tier VALUES (25000000, 7), (500000000, 30)');
	$db->do('UPDATE admission.concurrency_tier SET min_top_up_micro = 120000000 WHERE min_top_up_micro = 100000000');
	$db->do(q{UPDATE admission.decision_code SET client = 'Wait for a free place.' WHERE code = 'queue_full'});
	$db->do(q{DELETE FROM admission.decision_code WHERE code = 'insufficient_funds'});
	return;
}

# contents DATABASE: rows and checksum of each table, the state of each sequence
sub contents {
	my ($db) = @_;
	my %contents;
	for my $table ($db->column(q{SELECT relname FROM pg_class WHERE relnamespace = 'admission'::regnamespace AND relkind = 'r' AND relname <> 'ring'})) {
		$contents{$table} = join ' ', @{ $db->rows(qq{SELECT count(*), md5(coalesce(string_agg(t::text, E'\\n' ORDER BY t::text COLLATE "C"), '')) FROM admission."$table" t})->[0] };
	}
	for my $sequence ($db->column(q{SELECT relname FROM pg_class WHERE relnamespace = 'admission'::regnamespace AND relkind = 'S'})) {
		$contents{$sequence} = join ' ', @{ $db->rows(qq{SELECT last_value, is_called FROM admission."$sequence"})->[0] };
	}
	return \%contents;
}

sub run {
	my (@command) = @_;
	my $log = "$directory/log";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDOUT, '>', $log;
		open STDERR, '>&', \*STDOUT;
		exec @command or exit 127;
	}
	waitpid $pid, 0;
	open my $file, '<', $log or die "$log: $!";
	my $said = join '', <$file>;
	return is("exit $?; $said", 'exit 0; ', "@command[0 .. $#command - 1]");
}

my $source = Database->new('tap_dump');
fill($source);
my %empty = map { $_ => 1 } grep { $source->value(qq{SELECT NOT EXISTS (SELECT FROM admission."$_")}) }
  $source->column(q{SELECT relname FROM pg_class WHERE relnamespace = 'admission'::regnamespace AND relkind = 'r'});
note 'tables without a row: ' . join ' ', sort keys %empty;
$source->verify_is_empty('verify() finds nothing before the dump');
my $before = contents($source);
my @ring = $source->column('SELECT entry FROM admission.ring');

# check NAME, DATABASE: the restored database is the same, and works
sub check {
	my ($name, $db) = @_;
	my $after = contents($db);
	my @differ = grep { ($before->{$_} // '') ne ($after->{$_} // '') } sort keys %{ { %$before, %$after } };
	is(join("\n", map { "$_: $after->{$_} instead of $before->{$_}" } @differ), '', "$name: every table and sequence as before");
	# tiers that are restored after tenants wake them: the ring may have gained entries, but lost none
	is($db->value('SELECT count(*) FROM admission.ring WHERE entry = ANY (?)', \@ring), scalar @ring, "$name: every entry of the ring");
	is_deeply($db->rows('SELECT min_top_up_micro, concurrency FROM admission.concurrency_tier ORDER BY 1'),
		[ [ 0, 3 ], [ 25000000, 7 ], [ 120000000, 20 ], [ 500000000, 30 ] ], "$name: edited and deleted tiers");
	is_deeply($db->rows(q{SELECT code, client FROM admission.decision_code WHERE code IN ('queue_full', 'insufficient_funds')}),
		[ [ 'queue_full', 'Wait for a free place.' ] ], "$name: edited and deleted codes");
	is($db->value('SELECT count(*) FROM admission.policy WHERE queue_factor = 4'), 1, "$name: the edited policy, once");
	$db->verify_is_empty("$name: verify() finds nothing");
	return;
}

# works NAME, DATABASE: the next day of the restored database
sub works {
	my ($name, $db) = @_;
	is($db->value(q{SELECT code FROM admission.admit('a', 'k1', 'm', '{}')}), 'already_accepted', "$name: an old key is a replay");
	is($db->value(q{SELECT code FROM admission.admit('idle', 'new', 'm', '{}')}), 'insufficient_credits', "$name: a tenant without money");
	is($db->value(q{SELECT code FROM admission.admit('a', 'new', 'm', '{}')}), 'accepted', "$name: a new admission");
	is($db->value(q{SELECT code FROM admission.top_up('a', 30000000, 'manual', 'top-up a')}), 'already_recorded', "$name: an old reference is a replay");
	is($db->value(q{SELECT code FROM admission.create_tenant('after')}), 'recorded', "$name: a new tenant");
	is($db->value('SELECT count(DISTINCT tenant_id) = count(*) FROM admission.tenant'), 1, "$name: with an id of its own");
	$db->do(q{INSERT INTO admission.price(model, match, unit_price_micro) VALUES ('m', '{"x": 1}', 5)});

	# everything that was in the queue or running comes to an end; only the delayed job stays
	for (1 .. 100) {
		my @claimed = $db->column(q{SELECT job_id FROM admission.claim_next('w', 100)});
		my @ended = $db->column(q{SELECT (admission.settle(job_id, 'completed')).code FROM admission.job WHERE state = 'processing'});
		last unless @claimed || @ended;
	}
	is_deeply([ $db->column(q{SELECT DISTINCT state FROM admission.job j WHERE NOT EXISTS (SELECT FROM admission.delayed d WHERE d.job_id = j.job_id) ORDER BY 1}) ],
		[ 'canceled', 'completed', 'failed' ], "$name: the whole queue is served");
	$db->verify_is_empty("$name: verify() finds nothing after that");
	return;
}

# restore NAME, COMMAND...: into an empty database of that name, the last argument
sub restored {
	my ($name, $prepare, @command) = @_;
	my $db = Database->new($name, 0);
	$db->connect->do('CREATE EXTENSION admission') if $prepare;
	run(@command, $name);
	return $db->connect;
}

run('pg_dump', '-Fc', '-f', "$directory/custom", 'tap_dump');
run('pg_dump', '-Fp', '-f', "$directory/plain.sql", 'tap_dump');
run('pg_dump', '-Fd', '-j', 4, '-f', "$directory/parallel", 'tap_dump');
run('pg_dump', '-Fp', '--data-only', '-f', "$directory/data.sql", 'tap_dump');
run('pg_dump', '-Fp', '--inserts', '-f', "$directory/inserts.sql", 'tap_dump');

my $custom = restored('tap_custom', 0, 'pg_restore', '--exit-on-error', "$directory/custom", '-d');
check('custom', $custom);
my $plain = restored('tap_plain', 0, 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$directory/plain.sql", '-d');
check('plain', $plain);
my $parallel = restored('tap_parallel', 0, 'pg_restore', '--exit-on-error', '-j', 4, "$directory/parallel", '-d');
check('parallel directory', $parallel);
my $data = restored('tap_data', 1, 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$directory/data.sql", '-d');
check('data only', $data);
my $inserts = restored('tap_inserts', 0, 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$directory/inserts.sql", '-d');
check('inserts', $inserts);

# a dump of what was restored
run('pg_dump', '-Fc', '-f', "$directory/second", 'tap_custom');
my $second = restored('tap_second', 0, 'pg_restore', '--exit-on-error', "$directory/second", '-d');
check('dump of a restored database', $second);

works('custom', $custom);
works('data only', $data);
works('dump of a restored database', $second);
works('the source itself', $source);
done_testing;
