# Callers that put several calls into one transaction meet their mirror image (case 50), for a while, from many sessions:
# nothing worse than 40P01, and who gets it tries the whole transaction again until it has run. Nothing is lost or done twice.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Database qw(tally);

my $rounds = $ENV{ROUNDS} || 60;
my $db = Database->new('tap_mirror_orders');
$db->model(100);
$db->tenant($_, 10_000_000, 1000) for qw(a b);
my @sessions = $db->sessions(4);
$_->do(q{SET deadlock_timeout = '5ms'}) for @sessions;

# a transaction as one statement, so that four can be under way at once; each call's code must be the one expected
$db->do(q{
	CREATE FUNCTION in_order(VARIADIC steps text[]) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		step text;
		code text;
		codes text[] := '{}';
	BEGIN
		FOREACH step IN ARRAY steps LOOP
			EXECUTE step INTO code;
			codes := codes || code;
		END LOOP;
		RETURN array_to_string(codes, ' ');
	END $$});

my (%deadlocks, %wrong);
for my $round (1 .. $rounds) {
	$db->value('SELECT admit(?, ?)', @$_) for [ 'a', "run $round" ], [ 'b', "run $round" ];
	$db->value(q{SELECT count(*) FROM admission.claim_next('w', 2)});
	$db->value('SELECT admit(?, ?)', @$_) for [ 'a', "wait $round" ], [ 'b', "wait $round" ];
	my %job = map { my $tenant = $_; map { ("$tenant $_" => $db->value('SELECT job(?, ?)', $tenant, "$_ $round")) } qw(run wait) } qw(a b);
	my @transactions = (
		[ "SELECT code FROM admission.settle('$job{'a run'}', 'completed')", "SELECT admit('a', 'one $round')", "SELECT admit('b', 'one $round')" ],
		[ "SELECT admit('a', 'two $round')", "SELECT code FROM admission.cancel('a', '$job{'a wait'}')" ],
		[ "SELECT admit('b', 'three $round')", "SELECT admit('a', 'three $round')", "SELECT code FROM admission.settle('$job{'b run'}', 'failed')" ],
		[ "SELECT code FROM admission.top_up('b', 100, 'auto', 'top-up $round')", "SELECT code FROM admission.cancel('b', '$job{'b wait'}')", "SELECT admit('b', 'four $round')" ],
	);
	my @expected = ('settled accepted accepted', 'accepted canceled', 'accepted accepted settled', 'recorded canceled accepted');
	my @statements = map { 'SELECT in_order(' . join(', ', map { $db->{dbh}->quote($_) } @$_) . ')' } @transactions;
	my @answers = $db->together(@statements);
	for my $i (0 .. 3) {
		while ($answers[$i] eq '40P01') {
			$deadlocks{$i}++;
			$answers[$i] = eval { ($sessions[$i]->selectrow_array($statements[$i]))[0] } // $sessions[$i]->state;
		}
		$wrong{"transaction $i answered '$answers[$i]'"}++ if $answers[$i] ne $expected[$i];
	}

	# the field is cleared
	$db->column(q{SELECT code FROM unnest('{a,b}'::text[]) t, admission.cancel_queued(t)});
}
is(join(', ', map { "$_ x $wrong{$_}" } sort keys %wrong), '', "$rounds rounds of four transactions in mirrored orders: all did their work in the end");
note 'deadlocks: ' . (join(', ', map { "transaction $_: $deadlocks{$_}" } sort keys %deadlocks) || 'none');
is($db->value('SELECT count(*) FROM admission.job'), $rounds * 10, 'every admission exactly once');
is($db->value(q{SELECT balance_micro FROM admission.balance('a')}), 10_000_000 - 100 * $rounds, 'every settlement exactly once');
is($db->value(q{SELECT balance_micro FROM admission.balance('b')}), 10_000_000 + 100 * $rounds, 'every top-up exactly once');

$db->verify_is_empty;
done_testing;
