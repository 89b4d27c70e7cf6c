# cancel and claim of one job from two sessions, thousands of rounds (case 28): exactly one wins, the other gets one definite
# answer; cancelling three times releases once. ROUNDS in the environment overrides the number of rounds.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Database qw(tally);

my $rounds = $ENV{ROUNDS} || 3000;
my $db = Database->new('tap_cancel_or_claim');
$db->model(100);
$db->tenant('a', 1_000_000, 2);
my ($canceler, $worker) = $db->sessions(2);

my %seen;
my @wrong;
for my $round (1 .. $rounds) {
	my $job = $db->value(q{SELECT job_id FROM admission.admit('a', ?, 'm', '{}')}, "k$round");
	my @calls = (
		[ $canceler, "SELECT code FROM admission.cancel('a', '$job')" ],
		[ $worker,   q{SELECT job_id FROM admission.claim_next('w')} ]);
	@calls = reverse @calls if $round % 2;
	Database::start(@$_) for @calls;
	my ($canceled, $claimed) = (Database::finish($canceler), Database::finish($worker));
	my $outcome = "cancel: $canceled, claim: " . (defined $claimed ? $claimed eq $job ? 'the job' : "$claimed" : 'nothing');
	$seen{$outcome}++;
	push @wrong, "round $round: $outcome"
	  unless $outcome eq 'cancel: canceled, claim: nothing' || $outcome eq 'cancel: job_generation_already_started, claim: the job';
	$db->value(q{SELECT code FROM admission.settle(?, 'failed')}, $claimed) if defined $claimed;
}
is(join("\n", @wrong), '', "$rounds rounds: exactly one of cancel and claim wins");
note "$seen{$_} x $_" for sort keys %seen;
is($db->value(q{SELECT held_micro FROM admission.balance('a')}), 0, 'nothing stays held');
is($db->value(q{SELECT available_micro FROM admission.balance('a')}), 1_000_000, 'everything was released');

# three times
my @thrice;
for my $round (1 .. 200) {
	my $job = $db->value(q{SELECT job_id FROM admission.admit('a', ?, 'm', '{}')}, "thrice $round");
	push @thrice, tally($db->together(("SELECT code FROM admission.cancel('a', '$job')") x 3));
}
is(tally(@thrice), '200 2 already_canceled, 1 canceled', 'cancelling three times at once: canceled, and twice already_canceled');
is($db->value(q{SELECT sum(released_micro) FROM admission.reservation JOIN admission.job USING (job_id, tenant) WHERE operation_key LIKE 'thrice%'}),
	20_000, 'and one release each');

$db->verify_is_empty;
done_testing;
