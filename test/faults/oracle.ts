/**
 * The memory of a fault test: sent requests and their answers, stored outside the damaged disk. Acknowledged:
 * must exist. Never acknowledged: completely present or absent, and the same from then on. Refused (4xx):
 * absent. Each upload has its number in its metadata, so that its content identifies its writer.
 */
import { createCipheriv, createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Outcome = 'acked' | 'unknown' | 'refused';

/** One write. `began` and `ended` are positions in the single order of all starts and answers. */
export interface Write {
  readonly number: number;
  readonly kind: 'put' | 'delete' | 'delete-version';
  readonly bucket: string;
  readonly name: string;
  readonly size: number;
  readonly md5: string;
  /** For a delete-version: the number of the put whose version it removes. */
  readonly target: number | null;
  readonly began: number;
  ended: number;
  outcome: Outcome;
  versionId: string | null;
}

export type Intent = Pick<Write, 'kind' | 'bucket' | 'name'> & { size?: number; target?: number };

/** An answer in the log: 2xx acknowledges, 4xx refuses, anything else is unknown. */
export interface Reply {
  readonly status: number;
  readonly versionId?: string | null | undefined;
  /** Of a problem. */
  readonly detail?: string | undefined;
}

const ZEROS = Buffer.alloc(65_536);

/** The bytes of put `number`: random, but reproducible. */
export function contentOf(number: number, size: number): Buffer {
  const key = createHash('sha256').update(`content ${number}`).digest();
  const stream = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const parts: Buffer[] = [];
  for (let left = size; left > 0; left -= ZEROS.length) {
    parts.push(stream.update(left < ZEROS.length ? ZEROS.subarray(0, left) : ZEROS));
  }
  return Buffer.concat(parts);
}

export function md5Of(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}

export class Oracle {
  /** All writes, by number. */
  readonly writes: Write[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), 'cloudlet-oracle-'));
  readonly #log: number;
  #clock = 0;
  #isPowered = true;

  constructor() {
    this.#log = openSync(join(this.#directory, 'writes.log'), 'a');
  }

  /** Before the request is sent. */
  begin(intent: Intent): Write {
    const number = this.writes.length;
    const size = intent.size ?? 0;
    const md5 = intent.kind === 'put' ? md5Of(contentOf(number, size)) : '';
    const write: Write = {
      ...intent,
      number,
      size,
      md5,
      target: intent.target ?? null,
      began: this.#clock++,
      ended: Number.POSITIVE_INFINITY,
      outcome: 'unknown',
      versionId: null,
    };
    this.writes.push(write);
    this.#note('start', write);
    return write;
  }

  /** After the answer; not called without one, or for an answer from a machine without power. */
  end(write: Write, { status, versionId, detail = '' }: Reply): void {
    if (!this.#isPowered) {
      this.#note(`${status}, after the power was cut`, write);
      return;
    }
    write.ended = this.#clock++;
    write.versionId = versionId ?? null;
    if (status >= 200 && status < 300) write.outcome = 'acked';
    else if ((status >= 400 && status < 500) || /nothing was stored/.test(detail)) write.outcome = 'refused';
    else write.ended = Number.POSITIVE_INFINITY;
    this.#note(`${status}`, write);
  }

  /** Fixes the outcome of an unknown write after it was observed in the idle cloud. */
  settle(write: Write, outcome: Exclude<Outcome, 'unknown'>, versionId: string | null = null): void {
    if (write.outcome !== 'unknown') return;
    write.outcome = outcome;
    write.ended = this.#clock++;
    if (versionId !== null) write.versionId = versionId;
    this.#note(`settled ${outcome}`, write);
  }

  count(outcome: Outcome): number {
    return this.writes.filter((write) => write.outcome === outcome).length;
  }

  /** A moment after everything so far. */
  now(): number {
    return this.#clock++;
  }

  /**
   * A machine without power sends no answers; one whose file system is shut down does so for a few more
   * milliseconds, and ext4's fsync then returns 0 for lost bytes (docs/decisions/0010).
   */
  setPower(isPowered: boolean): void {
    this.#isPowered = isPowered;
    const what = isPowered ? 'power is back' : 'cutting power';
    writeSync(this.#log, `${JSON.stringify({ at: performance.now(), what })}\n`);
  }

  /** Removes the log; a failed test keeps it for reading. */
  close(): void {
    closeSync(this.#log);
    rmSync(this.#directory, { recursive: true });
  }

  #note(what: string, { number, kind, bucket, name, size, versionId }: Write): void {
    writeSync(
      this.#log,
      `${JSON.stringify({ at: performance.now(), what, number, kind, bucket, name, size, versionId })}\n`,
    );
  }
}
