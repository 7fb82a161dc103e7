/**
 * Runs the programs that dump and load databases. Their input is untrusted, so each has its own
 * user, sees an empty folder and the server's socket, and has no network unless the server is
 * remote.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { AppError } from '../../../platform/errors.ts';
import { removeTree } from '../../host-process/foreign-files.ts';
import type { ForeignProgram } from '../../host-process/foreign-program.ts';
import type { HostProcesses } from '../../host-process/host-processes.ts';
import type { RunningProcess } from '../../host-process/running-process.ts';
import { processName } from '../server-data.ts';

export interface ClientCommand
  extends Required<Pick<ForeignProgram, 'command' | 'args' | 'env' | 'readOnly'>> {
  /** Files in the program's folder, by name. */
  readonly files: Readonly<Record<string, string>>;
}

export interface ClientProgramsDeps {
  readonly processes: HostProcesses;
  /** First of their CLIENT_USERS users (server-users.ts); null: ours. */
  readonly uids: number | null;
  /** Cloudlet's directory for the folders of the programs. */
  readonly folder: string;
  /** The engine's name. */
  readonly name: string;
}

/** A run of a client program, whichever engine's. */
export interface ClientWork {
  /** `copy`: of the whole server, if the engine supports it. */
  readonly program: 'client' | 'dump' | 'copy';
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly user: string;
  readonly password: string;
}

/** The target server of client programs. */
export interface ClientServer {
  /** The account of the server; null: all accounts share it. */
  readonly accountId: number | null;
  /** Folder of the server's socket; null: it is reached over the network. */
  readonly socket: (() => string) | null;
  readonly command: (work: ClientWork) => Promise<ClientCommand>;
}

export interface Clients {
  /** Waits for a slot of that kind. Throws `engine_unavailable` if none becomes free. */
  run(work: ClientWork, kind: SlotKind): Promise<ClientRun>;
}

export interface ClientRun {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves at its exit with code (null: killed), first and last error output. */
  readonly ended: Promise<{ readonly code: number | null; readonly complaint: string }>;
  kill(): void;
}

/**
 * Maximum of each kind at a time; others wait. Dumps and loads count separately, because a copy needs both.
 * Recovery points have their own, so that no user can block them.
 */
const COUNTS = { dump: 5, load: 3, point: 2 };
export type SlotKind = keyof typeof COUNTS;
export const SLOTS = COUNTS.dump + COUNTS.load + COUNTS.point;
/** Slots of each kind per account. */
const SHARE = 2;
const WAIT_MS = 60_000;
/** A link to the folder of the socket, in its working directory: socket paths have at most 107 bytes. */
export const SOCKET_LINK = 's';
const MEMORY_MB = 512;
const MAX_COMPLAINT = 4096;

interface Waiting {
  readonly accountId: number | null;
  readonly take: (slot: number) => void;
}

/** Slots of one kind. The caller with the fewest is served first, then in order of arrival. */
class Slots {
  readonly #free: number[];
  readonly #taken = new Map<number, number>();
  #waiting: Waiting[] = [];

  constructor(first: number, count: number) {
    this.#free = Array.from({ length: count }, (_, at) => first + at);
  }

  async take(accountId: number | null): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const waiting: Waiting = { accountId, take: resolve };
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((one) => one !== waiting);
      reject(tooMany());
    }, WAIT_MS).unref();
    this.#waiting.push(waiting);
    this.#serve();
    return promise.finally(() => clearTimeout(timer));
  }

  give(slot: number, accountId: number | null): void {
    this.#free.push(slot);
    if (accountId !== null) this.#taken.set(accountId, (this.#taken.get(accountId) ?? 1) - 1);
    if (accountId !== null && this.#taken.get(accountId) === 0) this.#taken.delete(accountId);
    this.#serve();
  }

  #takenBy({ accountId }: Waiting): number {
    return accountId === null ? 0 : (this.#taken.get(accountId) ?? 0);
  }

  #next(): Waiting | undefined {
    if (this.#free.length === 0) return undefined;
    // Equal counts keep their order.
    const [first] = this.#waiting.toSorted((one, other) => this.#takenBy(one) - this.#takenBy(other));
    return first && this.#takenBy(first) < SHARE ? first : undefined;
  }

  #serve(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { accountId, take } = next;
      this.#waiting = this.#waiting.filter((one) => one.take !== take);
      if (accountId !== null) this.#taken.set(accountId, (this.#taken.get(accountId) ?? 0) + 1);
      take(this.#free.pop() as number);
    }
  }
}

/** The client programs of one engine, for all its servers. */
export class ClientPrograms {
  readonly #deps: ClientProgramsDeps;
  readonly #slots: Readonly<Record<SlotKind, Slots>> = {
    dump: new Slots(0, COUNTS.dump),
    load: new Slots(COUNTS.dump, COUNTS.load),
    point: new Slots(COUNTS.dump + COUNTS.load, COUNTS.point),
  };

  constructor(deps: ClientProgramsDeps) {
    this.#deps = deps;
  }

  /** The clients of one server. */
  of(server: ClientServer): Clients {
    return { run: (work, kind) => this.#run(server, work, this.#slots[kind]) };
  }

  async #run(server: ClientServer, work: ClientWork, slots: Slots): Promise<ClientRun> {
    const { accountId } = server;
    const slot = await slots.take(accountId);
    try {
      const running = await this.#start(slot, server, work);
      const { stdin, stdout, stderr } = running.child ?? {};
      if (!stdin || !stdout || !stderr) throw new Error('a client without its streams');
      // The program may end before it has read all input.
      stdin.on('error', () => {});
      const complaint = firstOf(stderr);
      const ended = running.ended.then(async ({ code }) => {
        slots.give(slot, accountId);
        return { code, complaint: await complaint };
      });
      return { stdin, stdout, ended, kill: () => void running.end({ graceMs: 0 }).catch(() => {}) };
    } catch (error) {
      slots.give(slot, accountId);
      throw error;
    }
  }

  async #start(slot: number, server: ClientServer, work: ClientWork): Promise<RunningProcess> {
    const { processes, uids, name } = this.#deps;
    const { command, args, env, readOnly, files } = await server.command(work);
    const socket = server.socket?.() ?? null;
    const uid = uids === null ? null : uids + slot;
    const folder = await this.#makeFolder(slot, uid, { socket, files });
    return processes.start(
      {
        name: processName(`${name}-client`, folder),
        command,
        args,
        env: { ...env, TZ: 'UTC', LANG: 'C.UTF-8' },
        uid,
        folder,
        readOnly: socket === null ? readOnly : [...readOnly, socket],
        network: socket === null ? 'host' : 'none',
        memoryMb: MEMORY_MB,
      },
      { stdio: ['pipe', 'pipe', 'pipe'] },
    );
  }

  async #makeFolder(
    slot: number,
    uid: number | null,
    { socket, files }: { readonly socket: string | null; readonly files: ClientCommand['files'] },
  ): Promise<string> {
    const folder = join(this.#deps.folder, String(slot));
    await removeTree(folder);
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (socket !== null) fs.symlinkSync(socket, join(folder, SOCKET_LINK));
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(join(folder, name), text);
    if (uid !== null) fs.chownSync(folder, uid, uid);
    return folder;
  }
}

function tooMany(): AppError {
  return new AppError('engine_unavailable', 'Too many dumps, loads and copies are running', {
    hint: 'try again when some of them have finished; an account can run two of each at a time',
    retryAfterSeconds: 30,
  });
}

async function firstOf(stream: Readable): Promise<string> {
  let text = '';
  let last = '';
  for await (const piece of stream.setEncoding('utf8')) {
    if (text.length < MAX_COMPLAINT) text += piece;
    last = (last + piece).slice(-MAX_COMPLAINT);
  }
  if (text.length <= MAX_COMPLAINT && text.endsWith(last)) return text;
  return `${text.slice(0, MAX_COMPLAINT)}\n…\n${last}`;
}
