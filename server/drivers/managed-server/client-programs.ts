/**
 * Runs the programs that dump and load databases. What they are given is a stranger's, so each has a user of
 * its own, sees an empty folder and the socket of the server, and has no network unless the server is there.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { ForeignProgram, HostProcesses } from '../host-process/host-processes.ts';
import type { RunningProcess } from '../host-process/running-process.ts';
import { removeTree } from '../host-process/tree-removal.ts';
import { processName } from './server-data.ts';

export interface ClientCommand
  extends Required<Pick<ForeignProgram, 'command' | 'args' | 'env' | 'readOnly'>> {
  /** What it finds in its folder, by name. */
  readonly files: Readonly<Record<string, string>>;
}

export interface ClientProgramsDeps<Work> {
  readonly processes: HostProcesses;
  /** First of SLOTS numbers of users, as HostProcesses wants them. */
  readonly uids: number | null;
  /** Ours, for their folders. */
  readonly folder: string;
  /** The engine's name. */
  readonly name: string;
  /** Folder of the server's socket; null: it is reached over the network. */
  readonly socket: (() => string) | null;
  readonly command: (work: Work) => Promise<ClientCommand>;
}

export interface ClientRun {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when it is gone, with its exit code (null: it was killed) and its first words of complaint. */
  readonly ended: Promise<{ readonly code: number | null; readonly complaint: string }>;
  kill(): void;
}

/** So many at a time; others wait. */
export const SLOTS = 8;
/** In its working directory, a link to the folder of the socket: paths of sockets have at most 107 bytes. */
export const SOCKET_LINK = 's';
const MEMORY_MB = 512;
const MAX_COMPLAINT = 4096;

export class ClientPrograms<Work> {
  readonly #deps: ClientProgramsDeps<Work>;
  readonly #free = Array.from({ length: SLOTS }, (_, slot) => slot);
  readonly #waiting: ((slot: number) => void)[] = [];

  constructor(deps: ClientProgramsDeps<Work>) {
    this.#deps = deps;
  }

  async run(work: Work): Promise<ClientRun> {
    const slot = this.#free.pop() ?? (await new Promise<number>((resolve) => this.#waiting.push(resolve)));
    try {
      const running = await this.#start(slot, work);
      const { stdin, stdout, stderr } = running.child ?? {};
      if (!stdin || !stdout || !stderr) throw new Error('a client without its streams');
      // It may leave before it has read all.
      stdin.on('error', () => {});
      const complaint = firstOf(stderr);
      const ended = running.ended.then(async ({ code }) => {
        this.#release(slot);
        return { code, complaint: await complaint };
      });
      return { stdin, stdout, ended, kill: () => void running.end({ graceMs: 0 }).catch(() => {}) };
    } catch (error) {
      this.#release(slot);
      throw error;
    }
  }

  #release(slot: number): void {
    const next = this.#waiting.shift();
    if (next) next(slot);
    else this.#free.push(slot);
  }

  async #start(slot: number, work: Work): Promise<RunningProcess> {
    const { processes, uids, name, socket } = this.#deps;
    const { command, args, env, readOnly, files } = await this.#deps.command(work);
    const uid = uids === null ? null : uids + slot;
    const folder = await this.#makeFolder(slot, uid, files);
    return processes.start(
      {
        name: processName(`${name}-client`, folder),
        command,
        args,
        env: { ...env, TZ: 'UTC', LANG: 'C.UTF-8' },
        uid,
        folder,
        readOnly: socket === null ? readOnly : [...readOnly, socket()],
        network: socket === null ? 'host' : 'none',
        memoryMb: MEMORY_MB,
      },
      { stdio: ['pipe', 'pipe', 'pipe'] },
    );
  }

  async #makeFolder(slot: number, uid: number | null, files: ClientCommand['files']): Promise<string> {
    const folder = join(this.#deps.folder, String(slot));
    await removeTree(folder);
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { socket } = this.#deps;
    if (socket !== null) fs.symlinkSync(socket(), join(folder, SOCKET_LINK));
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(join(folder, name), text);
    if (uid !== null) fs.chownSync(folder, uid, uid);
    return folder;
  }
}

async function firstOf(stream: Readable): Promise<string> {
  let text = '';
  for await (const piece of stream.setEncoding('utf8')) if (text.length < MAX_COMPLAINT) text += piece;
  return text.slice(0, MAX_COMPLAINT);
}
