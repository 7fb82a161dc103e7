# Cuts the power of one mounted ext4: shutdown-fs.pl MOUNT MODE. Test only; Node cannot call ioctl.
# MODE 1 flushes the journal and loses data not yet written; MODE 2 loses the unwritten journal as well.
use strict;
use warnings;
my ($mount, $mode) = @ARGV;
open(my $directory, '<', $mount) or die "$mount: $!";
my $argument = pack('L', $mode);
# The caller notes the time in between, not that of starting a program.
$| = 1;
print "ready\n";
<STDIN>;
ioctl($directory, 0x8004587d, $argument) or die "shutdown of $mount: $!";
