# One payment reference delivered many times at once (case 16).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Database qw(tally);

my $db = Database->new('tap_one_reference');
$db->tenant($_) for qw(a b);

sub balance { return $db->value('SELECT balance_micro FROM admission.balance(?)', $_[0]) }
sub entries { return $db->value('SELECT count(*) FROM admission.billing WHERE reference = ?', $_[0]) }

my (@tallies, @entries);
for my $round (1 .. 10) {
	push @tallies, tally($db->together(("SELECT code FROM admission.top_up('a', 1000000, 'manual', 'payment $round')") x 20));
	push @entries, entries("payment $round");
}
is_deeply(\@tallies, [ ('19 already_recorded, 1 recorded') x 10 ], '20 deliveries: one is recorded, 19 are told so');
is_deeply(\@entries, [ (1) x 10 ], 'one entry each');
is(balance('a'), 10_000_000, 'the balance went up once a round');

# another amount under the same reference, at the same moment: whoever is first decides
my (@sorted, @right);
for my $round (1 .. 10) {
	my $before = balance('a');
	my @answers = $db->together((map { "SELECT code FROM admission.top_up('a', ${_}000000, 'manual', 'amounts $round')" } 1, 2) x 10);
	my @of = map { my $half = $_; tally(@answers[ grep { $_ % 2 == $half } 0 .. 19 ]) } 0, 1;
	push @sorted, join ' / ', sort @of;
	push @right, balance('a') - $before == ($of[0] =~ /\b1 recorded/ ? 1_000_000 : 2_000_000) ? 1 : 0;
}
is_deeply(\@sorted, [ ('10 reference_conflict / 9 already_recorded, 1 recorded') x 10 ], 'two amounts: one is recorded, the other conflicts');
is_deeply(\@right, [ (1) x 10 ], 'the balance shows the amount that was recorded');

# references are one namespace over tenants and kinds
@sorted = ();
for my $round (1 .. 10) {
	my @answers = $db->together(
		("SELECT code FROM admission.top_up('a', 1000000, 'auto', 'shared $round')") x 5,
		("SELECT code FROM admission.top_up('b', 1000000, 'auto', 'shared $round')") x 5,
		("SELECT code FROM admission.grant_credit('a', 1000000, 'grant', 'shared $round')") x 5,
		("SELECT code FROM admission.adjust('b', 1000000, 'shared $round')") x 5);
	push @sorted, join ' / ', sort map { tally(@answers[ $_ * 5 .. $_ * 5 + 4 ]) } 0 .. 3;
}
is_deeply(\@sorted, [ ('4 already_recorded, 1 recorded / 5 reference_conflict / 5 reference_conflict / 5 reference_conflict') x 10 ],
	'two tenants and three kinds under one reference: one is recorded');

# a reversal delivered many times, and reversals that together exceed the payment
is(tally($db->together(("SELECT code FROM admission.reverse_top_up('payment 1', 400000, 'reversal 1')") x 20)),
	'19 already_recorded, 1 recorded', 'a reversal delivered 20 times counts once');
is($db->value(q{SELECT amount_micro - reversed_micro FROM admission.counted_top_up JOIN admission.billing b USING (tenant_id, billing_no, amount_micro) WHERE b.reference = 'payment 1'}),
	600_000, 'and takes its part out of the tier once');
my @many = $db->together(map { "SELECT code FROM admission.reverse_top_up('payment 2', 300000, 'part $_')" } 1 .. 20);
is(scalar(grep { $_ eq 'recorded' } @many), 3, 'of 20 reversals of 0.30 only three fit into a payment of 1.00');

$db->verify_is_empty;
done_testing;
