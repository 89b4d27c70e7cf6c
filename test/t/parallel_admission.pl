# Many sessions admit at one moment: the last money (case 1), the last place (case 2), the last token of the global cap, one
# operation key (case 7). At every isolation level the same: who gets 40001 tries again.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Database qw(tally);

my $db = Database->new('tap_parallel_admission');
$db->do('UPDATE admission.concurrency_tier SET concurrency = 1 WHERE min_top_up_micro = 0');
$db->model(75);

# retried LEVEL, STATEMENT...: together, then again those that failed to serialize, until all have an answer
sub retried {
	my ($level, @statements) = @_;
	my @sessions = $db->sessions(scalar @statements);
	$_->do("SET default_transaction_isolation = '$level'") for @sessions;
	my @answers = $db->together(@statements);
	for my $i (0 .. $#answers) {
		while ($answers[$i] eq '40001') {
			$answers[$i] = eval { ($sessions[$i]->selectrow_array($statements[$i]))[0] } // $sessions[$i]->state;
		}
	}
	$_->do('RESET default_transaction_isolation') for @sessions;
	return @answers;
}

# case 1: a balance of 500, 20 admissions of 75
for my $level ('read committed', 'repeatable read', 'serializable') {
	(my $tenant = "money, $level") =~ tr/ /_/;
	$db->tenant($tenant, 500, 30);
	my @answers = retried($level, map { "SELECT admit('$tenant', 'k$_')" } 1 .. 20);
	is(tally(@answers), '6 accepted, 14 insufficient_credits', "$level: six of 20 fit in the balance");
	is_deeply($db->rows('SELECT held_micro, available_micro FROM admission.balance(?)', $tenant), [ [ 450, 50 ] ], "$level: held and available");
	is($db->value('SELECT count(*) FROM admission.job WHERE tenant = ?', $tenant), 6, "$level: six jobs");
}

# case 2: capacity 1, 50 sessions at one barrier, round after round
$db->tenant('narrow', 1_000_000, 1, 0);
my (@tallies, @left);
for my $round (1 .. 10) {
	push @tallies, tally($db->together(map { "SELECT admit('narrow', 'round $round, session $_')" } 1 .. 50));
	push @left, $db->value(q{SELECT count(*) FROM admission.job WHERE tenant = 'narrow' AND operation_key LIKE ?}, "round $round,%") - 1;
	push @left, $db->value(q{SELECT held_micro - 75 FROM admission.balance('narrow')});
	$db->value(q{SELECT (admission.settle(job_id, 'completed', 0)).code FROM admission.claim_next('w', tenants => ARRAY['narrow'])});
}
is_deeply(\@tallies, [ ('1 accepted, 49 queue_full') x 10 ], 'one of 50 gets the only place, in each of ten rounds');
is_deeply(\@left, [ (0) x 20 ], 'nothing is left of the losers');

# the same with 50 tenants and one token
$db->tenant("t$_", 1000) for 1 .. 50;
$db->do('UPDATE admission.policy SET global_outstanding_cap = (SELECT count(*) FROM admission.job WHERE state IN (?, ?)) + 1', 'queued', 'processing');
@tallies = ();
for my $round (1 .. 10) {
	push @tallies, tally($db->together(map { "SELECT admit('t$_', 'round $round')" } 1 .. 50));
	$db->value(q{SELECT (admission.cancel(tenant, job_id)).code FROM admission.job WHERE operation_key = ? AND state = 'queued'}, "round $round");
}
is_deeply(\@tallies, [ ('1 accepted, 49 global_capacity') x 10 ], 'one of 50 tenants gets the only token, in each of ten rounds');
$db->do('UPDATE admission.policy SET global_outstanding_cap = NULL');

# case 7: one key
$db->tenant('key', 1_000_000, 1000);
for my $level ('read committed', 'repeatable read', 'serializable') {
	my (@same, @jobs);
	for my $round (1 .. 5) {
		push @same, tally(retried($level, (qq{SELECT admit('key', '$level, round $round', '{"prompt": "x"}')}) x 20));
		push @jobs, $db->value('SELECT count(*) FROM admission.job WHERE operation_key = ?', "$level, round $round");
	}
	is_deeply(\@same, [ ('1 accepted, 19 already_accepted') x 5 ], "$level: one key, one request: one acceptance, 19 replays");
	is_deeply(\@jobs, [ (1) x 5 ], "$level: one job each");
}
my @mixed;
for my $round (1 .. 10) {
	my @answers = $db->together((qq{SELECT admit('key', 'mixed $round', '{"prompt": "x"}')}, qq{SELECT admit('key', 'mixed $round', '{"prompt": "y"}')}) x 10);
	my ($x, $y) = (tally(@answers[ grep { !($_ % 2) } 0 .. 19 ]), tally(@answers[ grep { $_ % 2 } 0 .. 19 ]));
	push @mixed, join ' / ', sort $x, $y;
}
is_deeply(\@mixed, [ ('1 accepted, 9 already_accepted / 10 idempotency_conflict') x 10 ], 'one key, two requests: the first decides which is the conflict');

my @ids = $db->together((q{SELECT job_id FROM admission.admit('key', 'same id', 'm', '{}')}) x 20);
is(scalar(keys %{ { map { $_ => 1 } @ids } }), 1, 'all replays name the same job');

$db->verify_is_empty;
done_testing;
