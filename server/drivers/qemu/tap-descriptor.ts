/**
 * Hands a program a tap device of this host, open. On many hosts only root may open the device of all of
 * them, and a guest's process needs no more than its own. Attaching to one is an ioctl, which Node does not
 * have; Perl does, and every Debian has Perl.
 */
import { hostProgram } from '../../platform/host-programs.ts';

/** The descriptor under which the program has it. */
export const TAP_FD = 3;

/** TUNSETIFF with IFF_TAP, IFF_NO_PI and IFF_VNET_HDR, as QEMU does it; Perl closes what is above $^F. */
const HAND_OVER = `$^F = ${TAP_FD};
open my $tap, '+<', '/dev/net/tun' or die "the tap device cannot be opened: $!\\n";
fileno $tap == ${TAP_FD} or die "the tap device has another descriptor\\n";
ioctl $tap, 0x400454ca, pack 'Z16 S x22', shift, 0x5002 or die "the tap device cannot be taken: $!\\n";
exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\\n";`;

/**
 * What is put before the words of a program, to be run as root with descriptor TAP_FD closed. Throws
 * `engine_unavailable` where there is no Perl.
 */
export function withTap(device: string): string[] {
  return [hostProgram('perl'), '-e', HAND_OVER, device];
}
