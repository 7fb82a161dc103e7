/**
 * The filter of system calls that each foreign program gets (seccomp): a call that changes the host or looks
 * into other processes answers EPERM, whatever a compromised program tries. It is a list of denied calls:
 * programs of databases need nearly all the rest. Decision 0038 says why.
 */
import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { promisify } from 'node:util';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { findHostProgram, hostPath } from '../../platform/host/host-programs.ts';
import { setprivProgram } from './keeper-shells.ts';

const run = promisify(execFile);
const ASK_MS = 10_000;

interface Architecture {
  /** AUDIT_ARCH_… of the kernel. */
  readonly audit: number;
  readonly prctl: number;
  readonly clone: number;
  readonly denied: readonly number[];
  /** System calls from this number on use another table; null: none. */
  readonly foreignFrom: number | null;
}

/** Calls 425 to 433 are io_uring_* and open_tree to fspick; then pidfd_getfd, mount_setattr, quotactl_fd. */
const DENIED = [425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443];
const CLONE3 = 435;

/**
 * The calls are, in this order: mount, umount2, pivot_root, chroot; swapon, swapoff, reboot, sethostname,
 * setdomainname; init_module, finit_module, delete_module, kexec_load, kexec_file_load; ptrace,
 * process_vm_readv, process_vm_writev, kcmp; bpf, perf_event_open, userfaultfd, fanotify_init; add_key,
 * request_key, keyctl; unshare, setns; name_to_handle_at, open_by_handle_at; syslog, acct, quotactl,
 * vhangup, nfsservctl, lookup_dcookie; settimeofday, clock_settime, clock_adjtime, adjtimex. Only x86 has
 * iopl, ioperm, modify_ldt, uselib.
 */
const X64 = [
  ...[165, 166, 155, 161, 167, 168, 169, 170, 171, 175, 313, 176, 246, 320, 101, 310, 311, 312],
  ...[321, 298, 323, 300, 248, 249, 250, 272, 308, 303, 304, 103, 163, 179, 153, 180, 212],
  ...[164, 227, 305, 159, 172, 173, 154, 134],
];
const ARM64 = [
  ...[40, 39, 41, 51, 224, 225, 142, 161, 162, 105, 273, 106, 104, 294, 117, 270, 271, 272],
  ...[280, 241, 282, 262, 217, 218, 219, 97, 268, 264, 265, 116, 89, 60, 58, 42, 18],
  ...[170, 112, 266, 171],
];

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    prctl: 157,
    clone: 56,
    denied: [...X64, ...DENIED],
    foreignFrom: 0x40000000,
  },
  arm64: {
    audit: 0xc00000b7,
    prctl: 167,
    clone: 220,
    denied: [...ARM64, ...DENIED],
    foreignFrom: null,
  },
};

/** Classic BPF: instruction codes, and offsets in the kernel's seccomp_data. */
const LOAD = 0x20;
const IF_EQUAL = 0x15;
const IF_AT_LEAST = 0x35;
const IF_ANY_BIT = 0x45;
const RETURN = 0x06;
const CALL_AT = 0;
const ARCHITECTURE_AT = 4;
const FIRST_ARGUMENT_AT = 16;
const ALLOW = 0x7fff0000;
const ERROR = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACES = 0x7e020000;

/** The kernel's struct sock_filter. */
function instruction(code: number, k: number, [then, otherwise]: readonly [number, number] = [0, 0]): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(then, 2);
  bytes.writeUInt8(otherwise, 3);
  bytes.writeUInt32LE(k, 4);
  return bytes;
}

/**
 * The filter as the kernel takes it. All calls of another architecture's table are denied. clone3, whose
 * flags a filter cannot see, is reported as missing, so that the C library uses clone.
 */
function filterOf({ audit, clone, denied, foreignFrom }: Architecture): Buffer {
  const refuse = instruction(RETURN, ERROR | EPERM);
  return Buffer.concat([
    instruction(LOAD, ARCHITECTURE_AT),
    instruction(IF_EQUAL, audit, [1, 0]),
    refuse,
    instruction(LOAD, CALL_AT),
    ...(foreignFrom === null ? [] : [instruction(IF_AT_LEAST, foreignFrom, [0, 1]), refuse]),
    instruction(IF_EQUAL, CLONE3, [0, 1]),
    instruction(RETURN, ERROR | ENOSYS),
    ...denied.flatMap((call) => [instruction(IF_EQUAL, call, [0, 1]), refuse]),
    instruction(IF_EQUAL, clone, [0, 3]),
    instruction(LOAD, FIRST_ARGUMENT_AT),
    instruction(IF_ANY_BIT, NEW_NAMESPACES, [0, 1]),
    refuse,
    instruction(RETURN, ALLOW),
  ]);
}

/** Perl is installed on every Debian, and can make any system call. */
const INSTALL = [
  'my ($call, $bytes) = splice @ARGV, 0, 2;',
  'my $filter = pack "H*", $bytes;',
  'my $program = pack "S x![P] P", length($filter) / 8, $filter;',
  'syscall($call + 0, 22, 2, $program) == 0 or die "seccomp: $!\\n";',
  'exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\\n";',
].join(' ');

export interface CallFilter {
  /** Command prefix that applies the filter to the command and its children; empty: no filter. */
  readonly words: readonly string[];
  /** Why there is no filter, for messages; empty: the filter exists. */
  readonly problem: string;
}

let found: Promise<CallFilter> | undefined;

/**
 * The filter that this host allows, tested once. A process must be forbidden to gain rights (no_new_privs) to
 * use it. Never rejects.
 */
export function findFilter(): Promise<CallFilter> {
  found ??= tryFilter();
  return found;
}

/** The command under the filter; where this host allows none, the command itself. */
export async function filtered(command: readonly string[]): Promise<[program: string, words: string[]]> {
  const { words } = await findFilter();
  const [program = '', ...rest] =
    words.length === 0 ? command : [setprivProgram(), '--no-new-privs', '--', ...words, ...command];
  return [program, rest];
}

async function tryFilter(): Promise<CallFilter> {
  const no = (why: string) => ({ words: [], problem: `system calls of programs are not filtered: ${why}` });
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) return no(`Cloudlet has no filter for ${process.arch}`);
  const perl = findHostProgram('perl');
  if (perl === null) return no('perl is not installed');
  const { prctl } = architecture;
  // The real path, which is also valid in a view.
  const words = [
    realpathSync(perl),
    '-e',
    INSTALL,
    '--',
    String(prctl),
    filterOf(architecture).toString('hex'),
  ];
  try {
    const [first = '', ...rest] = [setprivProgram(), '--no-new-privs', '--', ...words, '/bin/sh', '-c', ':'];
    await run(first, rest, { timeout: patienceMs(ASK_MS), env: { PATH: hostPath() } });
    return { words, problem: '' };
  } catch {
    return no('the kernel does not allow it');
  }
}
