# What the demo's programs share: the database, admission's functions called by name, the line to the provider.
# Every program of the demo ends by itself after three minutes, whatever happens.
package Studio;
use strict;
use warnings;
use DBI;
use Exporter 'import';
use IO::Select;
use IO::Socket::UNIX;
use JSON::PP;

our @EXPORT = qw(database call tally note ask settlement $json);
our $json = JSON::PP->new->ascii->canonical->allow_nonref;

$| = 1;
alarm 180;

# PGHOST and its like say where; each statement is a transaction of its own unless begin_work is called
sub database {
	return DBI->connect('dbi:Pg:', undef, undef, { RaiseError => 1, PrintError => 0, AutoCommit => 1 });
}

# call($db, function, argument => value, ...): admission.FUNCTION with named arguments; each row comes as a hash
sub call {
	my ($db, $function, @arguments) = @_;
	my (@names, @values);
	while (my ($name, $value) = splice @arguments, 0, 2) {
		push @names, "$name => ?";
		push @values, ref $value ? $json->encode($value) : $value;
	}
	my $query = $db->prepare_cached("SELECT to_jsonb(answer) FROM admission.$function(" . join(', ', @names) . ') AS answer');
	return map { $json->decode($_) } @{ $db->selectcol_arrayref($query, undef, @values) };
}

# "60 accepted, 40 queue_full"
sub tally {
	my %count;
	$count{$_}++ for @_;
	return join ', ', map { "$count{$_} $_" } sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
}

sub note {
	my ($who, $what) = @_;
	print "  $who: $what\n";
}

# ask($socket_path, question): the provider's answer, or nothing if none came within a second
sub ask {
	my ($path, $question) = @_;
	my $provider = IO::Socket::UNIX->new(Peer => $path) or return;
	print $provider $json->encode($question), "\n";
	$provider->flush;
	return unless IO::Select->new($provider)->can_read(1);
	my $line = <$provider>;
	return defined $line ? $json->decode($line) : undef;
}

# The arguments of settle that follow from a provider's report, the same for the worker's poll and for a webhook:
# a clip shorter than asked for costs its part of what was reserved, a failed one nothing.
sub settlement {
	my ($report) = @_;
	my $completed = $report->{status} eq 'completed';
	my $paid_part = $completed ? $report->{reserved_micro} * $report->{delivered} / $report->{asked} : 0;
	return (
		outcome        => $report->{status},
		actual_micro   => int $paid_part,
		settlement_key => $report->{provider_job_id},
		result         => $completed
			? { public => { video => "$report->{job_id}.mp4" }, private => { url => $report->{url} } }
			: { public => { error => { code => 'generation_failed', message => $report->{error} } } });
}

1;
