/**
 * Runs each drill in a separate process, in a scratch directory with a mark that names its owner.
 * The kernel kills the process and its children when it or we end, so a killed drill leaves only
 * files and empty control groups, which the next start and the next drill remove.
 */
import type { ChildProcess } from 'node:child_process';
import * as fs from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeDurableFileAsync } from '../../platform/files.ts';
import { readHostMemory } from '../../platform/host/host-facts.ts';
import { findHostProgram, startProgram } from '../../platform/host/host-programs.ts';
import { randomName } from '../../platform/ids.ts';
import {
  type DrillFindings,
  type DrillGround,
  type DrillRequest,
  DrillSkipped,
} from '../../recovery/drill/drill.ts';
import { Cgroups } from '../host-process/cgroups.ts';
import { removeTree } from '../host-process/foreign-files.ts';
import { identify, isAlive, type ProcessIdentity, signalProcess } from '../host-process/process-identity.ts';

export interface DrillProcessesDeps {
  /** The script that the process runs with Node. */
  readonly entry: string;
  /** Its inputs besides the request, as JSON. */
  readonly means: () => unknown;
  /** Where scratch directories are created; may contain other files. */
  readonly directory: string;
  /** Names this cloud in the marks of its scratch directories. */
  readonly owner: () => Promise<string>;
  /** Time limit of a drill, ms. */
  readonly withinMs: number;
}

/** Messages from the process, one JSON text per line. */
export type DrillMessage =
  | { readonly stage: string }
  | { readonly skipped: string }
  | { readonly failed: string }
  | { readonly findings: DrillFindings };

/** The request for the process, as one line at the end of its input. */
export interface DrillOrder {
  readonly request: DrillRequest;
  readonly means: unknown;
  /** The directory for the second cloud. */
  readonly folder: string;
  /** Name of this drill, for its control groups. */
  readonly name: string;
}

/** In a scratch directory. */
interface Mark {
  readonly owner: string;
  /** null: it has not started yet. */
  readonly process: ProcessIdentity | null;
}

const PREFIX = 'drill-';
/** Characters of the owner in a directory's name, which identify one without a mark. */
const OWNER_LENGTH = 8;
const MARK = 'drill.json';
/** Data directory of the second cloud. */
const DATA = 'data';
const NAME_LENGTH = 6;
const HEAP_MB = 768;
/** Memory of the process itself, without engines and machines. */
const NEEDED_BYTES = 512 * 2 ** 20;
const SAID_CHARACTERS = 2000;
const POLL_MS = 10;
const KILL_MS = 10_000;
/** Kinds of the control groups that a drill makes (engines/built-engines.ts, cloud/compute.ts). */
const GROUPS = ['servers', 'databases', 'machines'] as const;
type DrillGroup = (typeof GROUPS)[number];

/** The control group of a drill's processes of that kind. */
export function drillGroup(name: string, kind: DrillGroup): string {
  return `cloudlet-${name}-${kind}`;
}

export class DrillProcesses implements DrillGround {
  readonly #deps: DrillProcessesDeps;
  /** Scratch directory in use. */
  #current: string | null = null;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(deps: DrillProcessesDeps) {
    this.#deps = deps;
  }

  async run(
    request: DrillRequest,
    { signal, onStage }: { readonly signal: AbortSignal; readonly onStage: (stage: string) => void },
  ): Promise<DrillFindings> {
    const { availableBytes } = readHostMemory();
    if (availableBytes < NEEDED_BYTES) {
      const [free, needed] = [availableBytes, NEEDED_BYTES].map((bytes) => Math.floor(bytes / 2 ** 20));
      throw new DrillSkipped(`only ${free} MiB of memory are free, and a drill needs ${needed} MiB`);
    }
    await this.sweep();
    const name = (await this.#prefix()) + randomName(NAME_LENGTH);
    const scratch = join(this.#deps.directory, name);
    this.#current = scratch;
    try {
      await this.#makeScratch(scratch);
      return await this.#drill(request, { name, scratch, signal, onStage });
    } finally {
      onStage('removing');
      await removeDrill(scratch);
      this.#current = null;
    }
  }

  async sweep(): Promise<void> {
    this.#sweeping = this.#sweeping.catch(() => {}).then(() => this.#sweep());
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { directory } = this.#deps;
    const owner = await this.#deps.owner();
    const prefix = await this.#prefix();
    for (const name of await namesIn(directory)) {
      if (!name.startsWith(prefix)) continue;
      const scratch = join(directory, name);
      if (scratch === this.#current) continue;
      const mark = await readMark(scratch);
      if (mark?.owner === owner) await removeDrill(scratch);
      // Killed before it was marked: it contains nothing else.
      else if (mark === null) await removeUnmarked(scratch);
    }
  }

  async #prefix(): Promise<string> {
    return `${PREFIX}${(await this.#deps.owner()).slice(0, OWNER_LENGTH)}-`;
  }

  async #makeScratch(scratch: string): Promise<void> {
    const { directory } = this.#deps;
    try {
      // Engines with their own users pass through these to their folders.
      await fs.mkdir(directory, { recursive: true, mode: 0o711 });
      await fs.mkdir(scratch, { mode: 0o711 });
      await writeMark(scratch, { owner: await this.#deps.owner(), process: null });
      await fs.mkdir(join(scratch, DATA), { mode: 0o700 });
    } catch (error) {
      const { code = String(error) } = error as NodeJS.ErrnoException;
      throw new DrillSkipped(`the drill directory ${directory} cannot be written (${code})`);
    }
  }

  async #drill(request: DrillRequest, how: How): Promise<DrillFindings> {
    const { scratch, name, signal, onStage } = how;
    const late = AbortSignal.timeout(this.#deps.withinMs);
    signal.throwIfAborted();
    const child = await this.#start();
    const about = identify(child.pid ?? 0);
    const kill = () => void child.kill('SIGKILL');
    const both = AbortSignal.any([signal, late]);
    both.addEventListener('abort', kill);
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-SAID_CHARACTERS);
    });
    const exited = new Promise<string>((resolve) => {
      child.once('close', (code, by) => resolve(by ?? `exit ${code}`));
    });
    try {
      if (about !== null) {
        const mark = { owner: await this.#deps.owner(), process: { ...about, uid: null } };
        await writeMark(scratch, mark);
      }
      const order: DrillOrder = { request, means: this.#deps.means(), folder: join(scratch, DATA), name };
      child.stdin?.on('error', () => {});
      child.stdin?.write(`${JSON.stringify(order)}\n`);
      const found = await readMessages(child, onStage);
      if (found !== null) return found;
      const end = await exited;
      signal.throwIfAborted();
      if (late.aborted) {
        const minutes = Math.round(this.#deps.withinMs / 60_000);
        throw new Error(`the drill was stopped after ${minutes} minutes (CLOUDLET_DRILL_MINUTES)`);
      }
      const words = said.trim().split('\n').at(-1) ?? '';
      throw new Error(`the process of the drill ended (${end})${words === '' ? '' : `: ${words}`}`);
    } finally {
      both.removeEventListener('abort', kill);
      kill();
      await exited;
    }
  }

  /** The kernel kills it with us; where that is impossible, it ends when its input ends. */
  #start(): Promise<ChildProcess> {
    const node = [process.execPath, `--max-old-space-size=${HEAP_MB}`, '--no-warnings', this.#deps.entry];
    const setpriv = findHostProgram('setpriv');
    const [program = '', ...words] =
      setpriv === null ? node : [setpriv, '--pdeathsig', 'KILL', '--', ...node];
    return startProgram(program, words, { cwd: '/', stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  }
}

interface How {
  readonly name: string;
  readonly scratch: string;
  readonly signal: AbortSignal;
  readonly onStage: (stage: string) => void;
}

/** null: no result. */
async function readMessages(
  child: ChildProcess,
  onStage: (stage: string) => void,
): Promise<DrillFindings | null> {
  if (child.stdout === null) return null;
  for await (const line of createInterface({ input: child.stdout })) {
    const message = JSON.parse(line) as DrillMessage;
    if ('findings' in message) return message.findings;
    if ('skipped' in message) throw new DrillSkipped(message.skipped);
    if ('failed' in message) throw new Error(message.failed);
    onStage(message.stage);
  }
  return null;
}

/** Ends a drill's process and removes its files and groups, the mark last. */
async function removeDrill(scratch: string): Promise<void> {
  const mark = await readMark(scratch);
  const { process: identity = null } = mark ?? {};
  if (identity !== null) await endProcess(identity);
  for (const name of await namesIn(scratch)) if (name !== MARK) await removeTree(join(scratch, name));
  for (const kind of GROUPS) await new Cgroups(drillGroup(basename(scratch), kind)).removeAll();
  await fs.rm(scratch, { recursive: true, force: true });
}

async function removeUnmarked(scratch: string): Promise<void> {
  await fs.rm(join(scratch, `${MARK}.new`), { force: true });
  // Other files in it are not ours.
  await fs.rmdir(scratch).catch(() => {});
}

async function endProcess(identity: ProcessIdentity): Promise<void> {
  signalProcess(identity, 'SIGKILL');
  for (let waited = 0; isAlive(identity) && waited < KILL_MS; waited += POLL_MS) await sleep(POLL_MS);
  if (isAlive(identity)) throw new Error(`the process ${identity.pid} of a drill does not end`);
}

async function readMark(scratch: string): Promise<Mark | null> {
  try {
    return JSON.parse(await fs.readFile(join(scratch, MARK), 'utf8')) as Mark;
  } catch {
    return null;
  }
}

async function writeMark(scratch: string, mark: Mark): Promise<void> {
  await writeDurableFileAsync(join(scratch, MARK), JSON.stringify(mark), 0o600);
}

function namesIn(path: string): Promise<string[]> {
  return fs.readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}
