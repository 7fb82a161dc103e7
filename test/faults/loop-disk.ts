/** A separate ext4 in a file, for faults that affect a whole disk. Needs root and loop devices. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { notInstalled } from '../../scripts/installed.ts';

const SHUTDOWN = fileURLToPath(new URL('./shutdown-fs.pl', import.meta.url));

const IDLE_MS = 10_000;

function run(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

/** Why loop disks are not possible here, or false: the value of a test's `skip`. */
export function noLoopDisk(): string | false {
  if (process.getuid?.() !== 0) return 'mounting needs root';
  const missing = notInstalled('losetup', 'mkfs.ext4', 'perl', 'mount');
  if (missing) return missing;
  try {
    new LoopDisk(8 * 2 ** 20).remove();
    return false;
  } catch (error) {
    return `no loop mount here: ${error instanceof Error ? error.message.trim() : error}`;
  }
}

export class LoopDisk {
  readonly mountPoint: string;
  readonly #directory: string;
  readonly #image: string;
  #device = '';
  #mounted = false;

  constructor(sizeBytes: number) {
    this.#directory = mkdtempSync(join(tmpdir(), 'cloudlet-disk-'));
    this.#image = join(this.#directory, 'image');
    this.mountPoint = join(this.#directory, 'mount');
    mkdirSync(this.mountPoint);
    writeFileSync(this.#image, '');
    truncateSync(this.#image, sizeBytes);
    run('mkfs.ext4', '-q', '-m', '0', this.#image);
    try {
      this.mount();
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** Mounts it; after a power cut this replays the journal. */
  mount(): void {
    this.#device = run('losetup', '--find', '--show', this.#image);
    try {
      // An earlier user of this device may have left it read-only.
      run('blockdev', '--setrw', this.#device);
      run('mount', '-t', 'ext4', this.#device, this.mountPoint);
      this.#mounted = true;
    } finally {
      if (!this.#mounted) run('losetup', '--detach', this.#device);
    }
  }

  /**
   * No process may have a file open. The device is removed too: a process in its own mount namespace, of
   * another test, may have a copy of this mount, and a file system that was shut down stays so while a copy
   * is left.
   */
  unmount(): void {
    this.#unmountWhenIdle();
    run('blockdev', '--flushbufs', this.#device);
    run('losetup', '--detach', this.#device);
    this.#mounted = false;
  }

  /** A killed process disappears from the list before the kernel has closed its last file. */
  #unmountWhenIdle(): void {
    const deadline = performance.now() + IDLE_MS;
    for (;;) {
      try {
        run('umount', this.mountPoint);
        return;
      } catch (error) {
        if (performance.now() > deadline) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      }
    }
  }

  /**
   * From now on nothing reaches the disk; 1 still flushes the journal, 2 loses it too. `onCut` is called at
   * most about a millisecond earlier.
   */
  async cutPower(mode: 1 | 2, onCut: () => void): Promise<void> {
    const child = spawn('perl', [SHUTDOWN, this.mountPoint, String(mode)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    // It announces this beforehand.
    await Promise.race([once(child.stdout, 'data'), exited]);
    onCut();
    child.stdin.end('\n');
    const [status] = await exited;
    if (status !== 0) throw new Error(`the file system was not shut down: exit ${status}`);
  }

  /** Idempotent. */
  remove(): void {
    if (this.#mounted) this.unmount();
    rmSync(this.#directory, { recursive: true });
  }
}
