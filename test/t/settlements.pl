# One job, many reports at one moment (cases 19 and 29): one terminal state, one movement of money, a definite answer for all.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Database qw(tally);

my $db = Database->new('tap_settlements');
$db->model(100);
$db->tenant('a', 10_000_000, 1000);
my $round = 0;

# a fresh job, claimed; its id
sub claimed {
	$round++;
	$db->value(q{SELECT admit('a', ?)}, "k$round");
	return $db->value(q{SELECT job_id FROM admission.claim_next('w')});
}

sub reservation { return join ' ', @{ $db->rows('SELECT state, captured_micro, released_micro FROM admission.reservation WHERE job_id = ?', $_[0])->[0] } }

# rounds N, STATEMENTS, RIGHT: let the statements (a function of the job) meet N times; every round must be right by
# the function of answers and job, which gives a text for what was seen or undef
sub rounds {
	my ($n, $name, $statements, $wrong) = @_;
	my @wrong;
	my %seen;
	for (1 .. $n) {
		my $job = claimed();
		my @answers = $db->together($statements->($job));
		my $complaint = $wrong->($job, @answers);
		push @wrong, $complaint if defined $complaint;
		$seen{ tally(@answers) }++;
	}
	is(join("\n", @wrong), '', $name);
	note "  $seen{$_} x $_" for sort keys %seen;
	return;
}

sub differs { my ($got, $wanted) = @_; return $got eq $wanted ? undef : "$got instead of $wanted" }

# case 19
rounds(10, 'settled 20 times at once under one settlement key: one capture, 19 replays',
	sub { my ($job) = @_; ("SELECT code FROM admission.settle('$job', 'completed', 60, 'key', 1)") x 20 },
	sub { my ($job, @answers) = @_; differs(tally(@answers) . '; ' . reservation($job), '19 already_settled, 1 settled; captured 60 40') });
rounds(10, 'settled 20 times at once under 20 settlement keys: one capture, 19 replays',
	sub { my ($job) = @_; map { "SELECT code FROM admission.settle('$job', 'completed', 60, 'key $_', 1)" } 1 .. 20 },
	sub { my ($job, @answers) = @_; differs(tally(@answers) . '; ' . reservation($job), '19 already_settled, 1 settled; captured 60 40') });
rounds(10, 'failed 20 times at once: one release',
	sub { my ($job) = @_; map { "SELECT code FROM admission.settle('$job', 'failed')" } 1 .. 20 },
	sub { my ($job, @answers) = @_; differs(tally(@answers) . '; ' . reservation($job), '19 already_settled, 1 settled; released 0 100') });
rounds(20, 'completed and failed at once: the first wins, the others are told',
	sub { my ($job) = @_; ("SELECT code FROM admission.settle('$job', 'completed', 60)", "SELECT code FROM admission.settle('$job', 'failed')") x 10 },
	sub {
		my ($job, @answers) = @_;
		my @of = map { my $half = $_; tally(@answers[ grep { $_ % 2 == $half } 0 .. 19 ]) } 0, 1;
		my $completed = $of[0] =~ /\b1 settled/;
		return differs(join('; ', @of, reservation($job)),
			$completed
			? '9 already_settled, 1 settled; 10 settlement_conflict; captured 60 40'
			: '10 settlement_conflict; 9 already_settled, 1 settled; released 0 100');
	});
rounds(20, 'two amounts at once: the first wins, the others are told',
	sub { my ($job) = @_; ("SELECT code FROM admission.settle('$job', 'completed', 60)", "SELECT code FROM admission.settle('$job', 'completed', 70)") x 5 },
	sub {
		my ($job, @answers) = @_;
		my ($amount) = reservation($job) =~ /captured (\d+)/;
		return differs(tally(@answers) . '; ' . reservation($job),
			"4 already_settled, 1 settled, 5 settlement_conflict; captured $amount " . (100 - $amount));
	});

# the replay gives the same numbers
my $job = claimed();
my @numbers = $db->together(("SELECT row(reserved_micro, details - 'repeated')::text FROM admission.settle('$job', 'completed', 60)") x 10);
is(scalar(keys %{ { map { $_ => 1 } @numbers } }), 1, 'replays carry the numbers of the settlement') or diag(join "\n", @numbers);

# case 29: everything that can end or return a job, on one job whose lease and deadline are over
$db->do(q{UPDATE admission.policy SET max_attempts = 1000});
my @calls = (
	sub { "SELECT code FROM admission.settle('$_[0]', 'completed', 60, 'a', 1)" },
	sub { "SELECT code FROM admission.settle('$_[0]', 'failed', NULL, 'b')" },
	sub { "SELECT code FROM admission.requeue('$_[0]', 1)" },
	sub { "SELECT code FROM admission.cancel('a', '$_[0]')" },
	sub { 'SELECT row(e.*)::text FROM admission.expire() e' },
	sub { 'SELECT count(*) FROM admission.claim_next($$w$$)' },
);
for my $case ('with time left', 'after lease and deadline') {
	my @wrong;
	my %seen;
	for (1 .. 100) {
		$round++;
		my $late = $case ne 'with time left';
		$db->do(q{SET admission.test_clock = '2030-01-01 00:00+00'}) if $late;
		$db->value(q{SELECT code FROM admission.admit('a', ?, 'm', '{}', start_within => '1 hour')}, "k$round");
		my $job = $db->value(q{SELECT job_id FROM admission.claim_next('w')});
		$_->do('SET admission.test_clock = ' . ($late ? q{'2030-01-01 02:00+00'} : q{''})) for $db->sessions(scalar @calls);
		my @answers = $db->together(map { $_->($job) } @calls);
		$seen{ join ', ', @answers }++;

		# if it is queued again, or processing, it ends now
		$db->do(q{SET admission.test_clock = '2030-01-01 02:00+00'}) if $late;
		$db->value(q{SELECT code FROM admission.cancel('a', ?)}, $job);
		$db->value(q{SELECT code FROM admission.settle(?, 'failed')}, $job);
		my $ends = $db->value(q{
			SELECT count(*) FROM (SELECT job_id, concluded - lag(concluded, 1, 0::bigint) OVER (ORDER BY dispatch_no) AS ended FROM admission.dispatch) d
			 WHERE job_id = ? AND ended <> 0}, $job);
		push @wrong, "$round: " . tally(@answers) . "; ended $ends times" if $ends != 1;
		push @wrong, "$round: " . tally(@answers) if grep { /^[0-9A-Z]{5}$/ } @answers;
		push @wrong, "$round: " . reservation($job) unless reservation($job) =~ /^(captured 60 40|released 0 100)$/;
	}
	is(join("\n", @wrong), '', "settle, fail, requeue, cancel, expire and claim meet on one job $case: one end, one movement");
	note "  $seen{$_} x $_" for sort keys %seen;
	$db->do('RESET admission.test_clock');
}

$db->verify_is_empty;
done_testing;
