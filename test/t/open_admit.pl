# A caller keeps its transaction open after admit (case 5): everything else goes on. Every other session refuses to wait
# (lock_timeout), so a call that blocks is an error here.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Database qw(tally);

my $db = Database->new('tap_open_admit');
$db->model(100_000);
$db->tenant('a', 500_000_000, 100, 2000);
$db->tenant('b', 50_000_000, 100, 100);
$db->value(q{SELECT admit('a', 'k' || n) FROM generate_series(1, 120) n});
$db->value(q{SELECT count(*) FROM admission.claim_next('w', 40, tenants => ARRAY['a'])});
$db->do('UPDATE admission.policy SET global_outstanding_cap = 5000');

my ($holder, @workers) = $db->sessions(5);
$_->do(q{SET lock_timeout = '2s'; SET statement_timeout = '10s'}) for @workers;
my @running = $db->column(q{SELECT operation_key FROM admission.job WHERE state = 'processing' ORDER BY job_no});
my @waiting = $db->column(q{SELECT operation_key FROM admission.job WHERE state = 'queued' ORDER BY job_no});
my $job = sub { "(SELECT job_id FROM admission.job WHERE tenant = 'a' AND operation_key = '$_[0]')" };

my %open = (
	'admit'              => q{SELECT admit('a', 'open')},
	'admit_many of 1000' => q{SELECT count(*) FILTER (WHERE ok) FROM admission.admit_many('a', (SELECT jsonb_agg(jsonb_build_object('operation_key', 'open ' || n, 'model', 'm', 'request', jsonb_build_object())) FROM generate_series(1, 1000) n))},
	'a refused admit'    => q{SELECT admit('a', '')},
);
for my $open (sort keys %open) {
	$holder->begin_work;
	my $admitted = ($holder->selectrow_array($open{$open}))[0];
	note "$open: $admitted";

	# ten jobs through their whole life, by four workers at a time
	my @answers;
	for my $round (1 .. 10) {
		my ($old, $queued) = (shift @running, shift @waiting);
		my @calls = (
			"SELECT code FROM admission.heartbeat(${\ $job->($old)}, 1)",
			"SELECT code FROM admission.top_up('a', 1000000, 'manual', '$open, round $round')",
			"SELECT code FROM admission.cancel('a', ${\ $job->($queued)})",
			"SELECT admit('b', '$open, round $round')",
			"SELECT code FROM admission.begin_submission(${\ $job->($old)}, 1)",
			"SELECT count(*) FROM admission.claim_next('w', 1, tenants => ARRAY['b'])",
			"SELECT code FROM admission.preview('a', 'unseen', 'm', '{}')",
			"SELECT active_generation_jobs > 0 FROM admission.generation_limits('a')",
			"SELECT code FROM admission.submitted(${\ $job->($old)}, 1, '$open, $old')",
			"SELECT status FROM admission.status('a', ${\ $job->($old)})",
			"SELECT expired FROM admission.expire()",
			"SELECT code FROM admission.settle((SELECT job_id FROM admission.job WHERE tenant = 'b' AND operation_key = '$open, round $round'), 'completed')",
			"SELECT code FROM admission.settle(${\ $job->($old)}, 'completed', 100000)",
			"SELECT code FROM admission.cancel('a', ${\ $job->($old)})",
			"SELECT balance_micro > 0 FROM admission.balance('a')",
			"SELECT code FROM admission.adjust('a', -1, 'adjust $open, round $round')",
		);
		while (my @four = splice @calls, 0, 4) {
			Database::start($workers[$_], $four[$_]) for 0 .. 3;
			push @answers, map { Database::finish($_) } @workers;
		}
	}
	is( tally(@answers),
		'10 0, 30 1, 10 accepted, 10 canceled, 10 job_generation_already_started, 10 lease_extended, 10 preview, 10 processing, '
		  . '20 recorded, 20 settled, 10 submission_started, 10 submitted',
		"$open left open: 160 calls of its own and of another tenant, none waits");

	# and the tenant's own queue moves: one claim per worker at a time
	my $claimed = 0;
	for (1 .. 5) {
		$claimed += ($workers[0]->selectrow_array(q{SELECT count(*) FROM admission.claim_next('w', 1, tenants => ARRAY['a'])}))[0];
	}
	is($claimed, 5, "$open left open: the tenant's queue is served");
	splice @waiting, 0, 5;
	$holder->rollback;
}

$db->verify_is_empty;
done_testing;
