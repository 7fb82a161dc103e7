/**
 * Finds out whether KVM is fast here. On some hosts its device opens, but every guest is slow. So a small
 * guest is booted and timed, first emulated, then with KVM.
 */
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { hostProgram, startProgram } from '../../platform/host/host-programs.ts';
import { withoutOthers } from '../host-process/keeper-shells.ts';
import { hostBootId } from '../host-process/process-identity.ts';
import {
  type Accel,
  type Boot,
  deviceState,
  EXIT_VALUE,
  judgeKvm,
  KVM_DEVICE,
  kvmUser,
  noKvm,
} from './kvm.ts';
import type { QemuProgram } from './program.ts';

export interface ProbeDeps {
  /** Cloudlet's directory for the result and the boot files of the probe. */
  readonly directory: string;
  readonly clock: Clock;
  /** A separate user, as guests have; null: our own. */
  readonly uid: number | null;
  /** Path of the device, `/dev/kvm`. */
  readonly device: string;
}

interface Cached extends Accel {
  /** Derived from the host's boot, QEMU and the device: any change triggers a new check. */
  readonly key: string;
  /** ms since 1970. */
  readonly at: number;
}

/** The result of a probe on this host, and its time (ms since 1970). */
export interface PastProbe extends Accel {
  readonly at: number;
}

const CACHE = 'accel-probe.json';
/** The descriptor under which QEMU inherits the disk. */
const DISK_FD = 3;
/** Prefix for `setpriv`: ends the program with us, however we end. */
const WITH_US = ['--pdeathsig', 'KILL', '--'] as const;
const EXIT_PORT = 0xf4;
/** mov dx, EXIT_PORT; mov al, EXIT_VALUE; out dx, al; hlt; jmp to hlt */
const CODE = [0xba, EXIT_PORT, 0x00, 0xb0, EXIT_VALUE, 0xee, 0xf4, 0xeb, 0xfd];
const MAX_WORDS_BYTES = 4096;
const TCG_LIMIT_MS = 8000;
const KVM_LIMIT_MS = 2000;

/** A disk that boots and powers off at once. A smaller one has no geometry and does not boot. */
function probeDisk(): Buffer {
  const disk = Buffer.alloc(1024 * 1024);
  disk.set(CODE);
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}

/**
 * The last result of the Cloudlet of this directory, if it is from the current boot of the host,
 * with the installed QEMU and the current device; else null. Only reads.
 */
export function readProbe(directory: string, program: QemuProgram, device = KVM_DEVICE): PastProbe | null {
  const cached = readCache(directory);
  if (cached?.key !== keyOf(program, device)) return null;
  const { accel, reason, fix, at } = cached;
  return { accel, reason, fix, at };
}

function keyOf({ version, path }: QemuProgram, device: string): string {
  return `${hostBootId()} ${version} ${path} ${deviceState(device)}`;
}

function readCache(directory: string): Cached | null {
  try {
    return JSON.parse(fs.readFileSync(join(directory, CACHE), 'utf8')) as Cached;
  } catch {
    return null;
  }
}

/** The disk, open for reading. Its name is already removed, so that nothing is left after a crash. */
function openProbeDisk(directory: string): number {
  const folder = fs.mkdtempSync(join(directory, 'probe-'));
  try {
    const path = join(folder, 'disk');
    fs.writeFileSync(path, probeDisk(), { mode: 0o600 });
    return fs.openSync(path, 'r');
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** The first line, which names the cause, without paths. */
function firstWords(text: string): string {
  const [line = ''] = text.trim().split('\n', 1);
  return line
    .replace(/^qemu-\S+: /, '')
    .replace(/\S*\/\S*/g, '…')
    .slice(0, 200);
}

export class AccelProbe {
  readonly #deps: ProbeDeps;
  #key = '';
  #found: Accel = { accel: 'tcg', reason: 'KVM has not been tested yet', fix: '' };
  #running: Promise<void> = Promise.resolve();
  readonly #stop = new AbortController();

  constructor(deps: ProbeDeps) {
    this.#deps = deps;
  }

  /** The current result; starts a probe if none exists. Does not wait. */
  current(program: QemuProgram): Accel {
    const key = keyOf(program, this.#deps.device);
    if (key !== this.#key) {
      this.#key = key;
      this.#running = this.#begin(program, key);
    }
    return this.#found;
  }

  /** Resolves when running probes have ended. */
  async whenIdle(): Promise<void> {
    await this.#running;
  }

  /** Ends the test boots. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #begin(program: QemuProgram, key: string): Promise<void> {
    const past = readProbe(this.#deps.directory, program, this.#deps.device);
    if (past !== null) {
      this.#found = { accel: past.accel, reason: past.reason, fix: past.fix };
      return;
    }
    this.#found = { accel: 'tcg', reason: 'KVM is being tested', fix: '' };
    try {
      this.#found = await this.#find(program);
      if (!this.#stop.signal.aborted) this.#write({ key, ...this.#found, at: this.#deps.clock.now() });
    } catch (error) {
      // A repeated call retries.
      this.#key = '';
      const { code, name } = error as NodeJS.ErrnoException;
      this.#found = { accel: 'tcg', reason: `KVM could not be tested: ${code ?? name}`, fix: '' };
    }
  }

  async #find(program: QemuProgram): Promise<Accel> {
    if (!fs.existsSync(this.#deps.device)) return noKvm();
    const disk = openProbeDisk(this.#deps.directory);
    try {
      const tcg = await this.#boot(program, { accel: 'tcg', disk, limitMs: TCG_LIMIT_MS });
      const kvm = await this.#boot(program, { accel: 'kvm', disk, limitMs: KVM_LIMIT_MS });
      return judgeKvm({ tcg, kvm }, this.#deps.device, this.#deps.uid === null);
    } finally {
      fs.closeSync(disk);
    }
  }

  async #boot(
    program: QemuProgram,
    { accel, disk, limitMs }: { accel: string; disk: number; limitMs: number },
  ): Promise<Boot> {
    const { clock, uid, device } = this.#deps;
    const began = clock.monotonic();
    const args = [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-machine', program.machine, '-m', '32M'],
      ...['-accel', accel, '-cpu', accel === 'kvm' ? 'host' : 'max'],
      ...['-device', `isa-debug-exit,iobase=${EXIT_PORT},iosize=1`],
      // Passed as a descriptor: the file is unnamed, and its user could not open it.
      ...['-add-fd', `fd=${DISK_FD},set=1`, '-drive', 'file=/dev/fdset/1,format=raw,if=virtio,readonly=on'],
    ];
    // User and group are changed first, because that would undo the parent-death signal.
    const [shell, words] = withoutOthers([hostProgram('setpriv'), ...WITH_US, program.path, ...args]);
    const child = await startProgram(shell, words, {
      cwd: '/',
      env: {},
      stdio: ['ignore', 'ignore', 'pipe', disk],
      timeout: patienceMs(limitMs),
      killSignal: 'SIGKILL',
      signal: this.#stop.signal,
      ...(uid === null ? {} : kvmUser(uid, device)),
    });
    let text = '';
    child.stderr?.setEncoding('latin1').on('data', (piece: string) => {
      if (text.length < MAX_WORDS_BYTES) text += piece;
    });
    const [status] = (await once(child, 'close')) as [number | null];
    return { status, ms: clock.monotonic() - began, words: firstWords(text) };
  }

  #write(cached: Cached): void {
    const path = join(this.#deps.directory, CACHE);
    fs.writeFileSync(`${path}.new`, JSON.stringify(cached), { mode: 0o600 });
    fs.renameSync(`${path}.new`, path);
  }
}
