# No wake-up is lost: three transactions of one tenant, each one operation, begin and end in every order, each by commit or
# rollback. Afterwards a claim must find what may start, and a worker that goes on must leave no job behind.
#
# All orders of admit, claim and each third operation from every state, by commit; with settle as the third once more with
# pseudo-random ends; of the other triples a pseudo-random sample. In the environment, SAMPLE is its size per triple, SEED its
# beginning, and ENDS=all tries all orders with all ends.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Database qw(tally);

my $sample = $ENV{SAMPLE} || 10;
srand($ENV{SEED} || 1);

my $db = Database->new('tap_wakeup');
$db->do('UPDATE admission.concurrency_tier SET concurrency = 1 WHERE min_top_up_micro = 0');
$db->model(1);
my @sessions = $db->sessions(3);

# k1 runs; limit, jobs queued behind it, and whether a claim has seen that before
my %state = (
	'full, empty'        => [ 1, 0, 1 ],
	'full, empty, fresh' => [ 1, 0, 0 ],
	'room, empty'        => [ 2, 0, 1 ],
	'room, empty, fresh' => [ 2, 0, 0 ],
	'full, one waits'    => [ 1, 1, 1 ],
	'room, one waits'    => [ 2, 1, 0 ],
);

my %operation = (
	admit   => sub { "SELECT admit('$_[0]', 'new $_[1]')" },
	claim   => sub { "SELECT count(*) FROM admission.claim_next('w')" },
	settle  => sub { "SELECT code FROM admission.settle(job('$_[0]', 'k1'), 'completed')" },
	requeue => sub { "SELECT code FROM admission.requeue(job('$_[0]', 'k1'), 1)" },
	cancel  => sub { "SELECT code FROM admission.cancel('$_[0]', job('$_[0]', 'q1'))" },
	raise   => sub { "UPDATE admission.tenant SET concurrency_override = concurrency_override + 1 WHERE tenant = '$_[0]'" },
	top_up  => sub { "SELECT code FROM admission.top_up('$_[0]', 25000000, 'manual', '$_[0] $_[1]')" },
);

# all orders of three pairs 0 0 1 1 2 2: the first of a pair begins, the second ends
sub orders {
	my (@counts) = @_;
	return [] unless grep { $_ } @counts;
	my @all;
	for my $i (grep { $counts[$_] } 0 .. 2) {
		my @rest = @counts;
		$rest[$i]--;
		push @all, map { [ $i, @$_ ] } orders(@rest);
	}
	return @all;
}
my @orders = orders(2, 2, 2);
my @ends = map { my $bits = $_; [ map { $bits >> $_ & 1 ? 'ROLLBACK' : 'COMMIT' } 0 .. 2 ] } 0 .. 7;

my $n = 0;

sub prepare {
	my ($limit, $queued, $seen) = @{ $_[0] };
	my $tenant = 't' . ++$n;
	$db->tenant($tenant, 1_000_000, $limit);
	$db->value('SELECT admit(?, ?)', $tenant, 'k1');
	$db->value(q{SELECT count(*) FROM admission.claim_next('w')}) == 1 or die "$tenant: k1 was not claimed";
	$db->value('SELECT admit(?, ?)', $tenant, "q$_") for 1 .. $queued;
	$db->value(q{SELECT count(*) FROM admission.claim_next('w')}) if $seen;
	return $tenant;
}

# interleave TENANT, OPERATIONS, ORDER, ENDS: a session whose operation still waits when its end is due ends as soon as it can
sub interleave {
	my ($tenant, $operations, $order, $ends) = @_;
	my (@begun, @due, @answers);
	my $end_what_can = sub {
		for my $i (grep { $due[$_] && !Database::running($sessions[$_]) } 0 .. 2) {
			$sessions[$i]->do($ends->[$i]);
			$due[$i] = 0;
		}
		for my $i (grep { Database::running($sessions[$_]) } 0 .. 2) {
			$answers[$i] = Database::finish($sessions[$i]) if $db->settled_or_blocked($sessions[$i]);
		}
	};
	for my $i (@$order) {
		if (!$begun[$i]++) {
			$sessions[$i]->do('BEGIN');
			Database::start($sessions[$i], $operation{ $operations->[$i] }->($tenant, $i));
		} else {
			$due[$i] = 1;
		}
		$end_what_can->();
	}
	$end_what_can->() while grep { $_ } @due;
	return @answers;
}

# stuck TENANT: what is wrong with it now, or undef. A claim must find a job whenever one waits and there is room.
sub stuck {
	my ($tenant) = @_;
	for (1 .. 20) {
		next if $db->value(q{SELECT count(*) FROM admission.claim_next('w')});
		my ($queued, $active, $limit) = @{ $db->rows('SELECT queued_generation_jobs, active_generation_jobs, concurrency_limit FROM admission.generation_limits(?)', $tenant)->[0] };
		return "nothing claimed, $queued queued, $active active, limit $limit" if $queued && $active < $limit;
		return undef unless $queued || $active;
		$db->column(q{SELECT (admission.settle(job_id, 'completed')).code FROM admission.job WHERE tenant = ? AND state = 'processing'}, $tenant);
	}
	return 'never empty';
}

sub try_out {
	my ($operations, @cases) = @_;
	my @wrong;
	for (@cases) {
		my ($state, $order, $ends) = @$_;
		my $tenant = prepare($state{$state});
		my @answers = interleave($tenant, $operations, $order, $ends);
		my $wrong = (grep { defined && /^[0-9A-Z]{5}$/ } @answers) ? 'an error' : stuck($tenant);
		push @wrong, "$tenant ($state), @$operations in order @$order, then @$ends, answered @{[ map { $_ // 'null' } @answers ]}: $wrong" if $wrong;
	}
	is(join("\n", @wrong), '', "@$operations: " . @cases . ' cases');
	return;
}

# every_order OPERATIONS, ENDS_OF: every state and order, with each of the ends that the function gives
sub every_order {
	my ($operations, $ends_of) = @_;
	my @cases;
	for my $state (sort keys %state) {
		for my $order (@orders) { push @cases, map { [ $state, $order, $_ ] } $ends_of->() }
	}
	try_out($operations, @cases);
	return;
}

my @names = sort keys %operation;
for my $third (grep { !/^(admit|claim)$/ } @names) {
	every_order([ 'admit', 'claim', $third ],
		($ENV{ENDS} // '') eq 'all' ? sub { @ends } : $third eq 'settle' ? sub { ($ends[0], $ends[ 1 + rand(@ends - 1) ]) } : sub { $ends[0] });
}

# the rest, by sample
for my $i (0 .. $#names) {
	for my $j ($i .. $#names) {
		for my $k ($j .. $#names) {
			my @operations = @names[ $i, $j, $k ];
			next if $operations[0] eq 'admit' && grep({ $_ eq 'claim' } @operations) == 1 && $operations[1] ne 'admit';
			try_out(\@operations, map { [ (sort keys %state)[ rand keys %state ], $orders[ rand @orders ], $ends[ rand @ends ] ] } 1 .. $sample);
		}
	}
}

$db->verify_is_empty;
done_testing;
