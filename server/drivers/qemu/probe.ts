/**
 * Finds out whether KVM is of use here. That its device opens says little: there are hosts where it does and
 * every guest then crawls. So something is booted, emulated first and then with KVM, and timed.
 */
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { withoutOthers } from './own-descriptors.ts';
import { hostBootId } from './processes.ts';
import type { QemuProgram } from './program.ts';

export interface Accel {
  readonly accel: 'kvm' | 'tcg';
  /** Why it is not KVM; empty when it is. */
  readonly reason: string;
}

export interface ProbeDeps {
  /** For what it found. */
  readonly directory: string;
  readonly clock: Clock;
  /** Who guests run as; null: our own user. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  /** Path of the device, `/dev/kvm`. */
  readonly device: string;
}

interface Cached extends Accel {
  /** Of the host's boot and of QEMU: after a change of either it is found out again. */
  readonly key: string;
  /** ms since 1970. */
  readonly at: number;
}

/** What a Cloudlet found out on this host, and when (ms since 1970). */
export interface PastProbe extends Accel {
  readonly at: number;
}

interface Boot {
  readonly status: number | null;
  readonly ms: number;
}

export const KVM_DEVICE = '/dev/kvm';
const CACHE = 'accel-probe.json';
/** The descriptor under which QEMU inherits the disk. */
const DISK_FD = 3;
/** Ends the program together with us, however we end; of util-linux, which every Debian has. */
const WITH_US = ['setpriv', '--pdeathsig', 'KILL', '--'] as const;
const PROGRAMS = '/usr/sbin:/usr/bin:/sbin:/bin';
const EXIT_PORT = 0xf4;
/** mov dx, EXIT_PORT; mov al, 0x10; out dx, al; hlt; jmp to hlt */
const CODE = [0xba, EXIT_PORT, 0x00, 0xb0, 0x10, 0xee, 0xf4, 0xeb, 0xfd];
/** QEMU exits with twice the value plus one. */
const GOOD_STATUS = 0x10 * 2 + 1;
const TCG_LIMIT_MS = 8000;
const KVM_LIMIT_MS = 2000;
const KVM_SLOWER_AT_MOST = 4;

/** A disk that boots, and ends the machine at once. A smaller one has no geometry and is not booted. */
function probeDisk(): Buffer {
  const disk = Buffer.alloc(1024 * 1024);
  disk.set(CODE);
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}

/** What the two boots mean. */
export function judgeKvm(tcg: Boot, kvm: Boot): Accel {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
  const refused = (reason: string): Accel => ({ accel: 'tcg', reason });
  if (tcg.status !== GOOD_STATUS)
    return refused('KVM could not be tested: the test boot fails emulated, too');
  const compared = `emulated it takes ${seconds(tcg.ms)}`;
  if (kvm.status === null) return refused(`KVM opens, but a test boot hangs ${seconds(kvm.ms)}; ${compared}`);
  if (kvm.status !== GOOD_STATUS) return refused('KVM is there, but a test boot with it fails');
  if (kvm.ms < Math.min(KVM_LIMIT_MS, tcg.ms * KVM_SLOWER_AT_MOST)) return { accel: 'kvm', reason: '' };
  return refused(`KVM opens, but a test boot takes ${seconds(kvm.ms)}; ${compared}`);
}

/**
 * What the Cloudlet of this directory last found, if that was since the host was booted and with the QEMU
 * that is installed now; else null. Reads, and begins nothing.
 */
export function readProbe(directory: string, program: QemuProgram): PastProbe | null {
  const cached = readCache(directory);
  if (cached?.key !== keyOf(program)) return null;
  const { accel, reason, at } = cached;
  return { accel, reason, at };
}

function keyOf({ version, path }: QemuProgram): string {
  return `${hostBootId()} ${version} ${path}`;
}

function readCache(directory: string): Cached | null {
  try {
    return JSON.parse(fs.readFileSync(join(directory, CACHE), 'utf8')) as Cached;
  } catch {
    return null;
  }
}

/** The disk, open to be read. It has no name any more: whatever happens to us, nothing of it is left. */
function openProbeDisk(): number {
  const folder = fs.mkdtempSync(join(tmpdir(), 'cloudlet-probe-'));
  try {
    const path = join(folder, 'disk');
    fs.writeFileSync(path, probeDisk(), { mode: 0o600 });
    return fs.openSync(path, 'r');
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

export class AccelProbe {
  readonly #deps: ProbeDeps;
  #key = '';
  #found: Accel = { accel: 'tcg', reason: 'whether KVM works here is not known yet' };
  #running: Promise<void> = Promise.resolve();
  readonly #stop = new AbortController();

  constructor(deps: ProbeDeps) {
    this.#deps = deps;
  }

  /** What is known now; begins to find out when nothing is. Never waits. */
  current(program: QemuProgram): Accel {
    const key = keyOf(program);
    if (key !== this.#key) {
      this.#key = key;
      this.#running = this.#begin(program, key);
    }
    return this.#found;
  }

  /** Resolves when what was begun is known. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** Ends the test boots. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #begin(program: QemuProgram, key: string): Promise<void> {
    const past = readProbe(this.#deps.directory, program);
    if (past !== null) {
      this.#found = { accel: past.accel, reason: past.reason };
      return;
    }
    this.#found = { accel: 'tcg', reason: 'KVM is being tested' };
    try {
      this.#found = await this.#find(program);
      if (!this.#stop.signal.aborted) this.#write({ key, ...this.#found, at: this.#deps.clock.now() });
    } catch (error) {
      this.#found = { accel: 'tcg', reason: `KVM could not be tested: ${(error as Error).name}` };
    }
  }

  async #find(program: QemuProgram): Promise<Accel> {
    if (!fs.existsSync(this.#deps.device)) return { accel: 'tcg', reason: 'this host offers no KVM' };
    const disk = openProbeDisk();
    try {
      const tcg = await this.#boot(program, { accel: 'tcg', disk, limitMs: TCG_LIMIT_MS });
      const kvm = await this.#boot(program, { accel: 'kvm', disk, limitMs: KVM_LIMIT_MS });
      return judgeKvm(tcg, kvm);
    } finally {
      fs.closeSync(disk);
    }
  }

  async #boot(
    program: QemuProgram,
    { accel, disk, limitMs }: { accel: string; disk: number; limitMs: number },
  ): Promise<Boot> {
    const { clock, user } = this.#deps;
    const began = clock.monotonic();
    const { promise, resolve } = Promise.withResolvers<number | null>();
    const args = [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-machine', program.machine, '-m', '32M'],
      ...['-accel', accel, '-cpu', accel === 'kvm' ? 'host' : 'max'],
      ...['-device', `isa-debug-exit,iobase=${EXIT_PORT},iosize=1`],
      // By its descriptor: its file has no name, and would not be its user's to open.
      ...['-add-fd', `fd=${DISK_FD},set=1`, '-drive', 'file=/dev/fdset/1,format=raw,if=virtio,readonly=on'],
    ];
    // User and group are changed first: a change of them would undo the signal at our end.
    const child = spawn(...withoutOthers([...WITH_US, program.path, ...args]), {
      cwd: '/',
      env: { LANG: 'C', PATH: PROGRAMS },
      stdio: ['ignore', 'ignore', 'ignore', disk],
      timeout: limitMs,
      killSignal: 'SIGKILL',
      signal: this.#stop.signal,
      ...(user ?? {}),
    });
    child.once('error', () => resolve(-1));
    child.once('exit', (status) => resolve(status));
    return { status: await promise, ms: clock.monotonic() - began };
  }

  #write(cached: Cached): void {
    const path = join(this.#deps.directory, CACHE);
    fs.writeFileSync(`${path}.new`, JSON.stringify(cached), { mode: 0o600 });
    fs.renameSync(`${path}.new`, path);
  }
}
