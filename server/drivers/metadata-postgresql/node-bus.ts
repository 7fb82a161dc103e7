/**
 * Reports changes to the other nodes of a database, with NOTIFY: in a separate transaction, because
 * within a commit's transaction it would make all commits queue for one lock (PreCommit_Notify,
 * async.c). A message may be lost; after a detected loss, everything counts as changed.
 */
import type pg from 'pg';
import type { BusLink, Forgotten, Told } from '../../metadata/bus.ts';
import type { ResourceChange } from '../../metadata/metadata.ts';
import { connect, cut } from './connections.ts';

export interface NodeBusDeps {
  readonly url: string;
  /** The writer name of this run, to ignore its own messages. */
  readonly runId: string;
  /** Receives messages of other nodes. */
  readonly receive: (told: Told) => void;
}

/** The text of a message, which has little space: no names. */
interface Message {
  /** The sender. */
  readonly n: string;
  readonly f: readonly (readonly [Forgotten['kind'], Forgotten['id']])[] | null;
  readonly c: readonly (readonly [number | null, ResourceChange['kind'], string])[] | null;
}

const CHANNEL = 'cloudlet_changes';
/** Changes within this time share a message. */
const GATHER_MS = 20;
/** PostgreSQL's limit is below 8000. */
const MAX_BYTES = 7900;
/** Changes beyond one message are not collected. */
const MOST_GATHERED = 500;
const RECONNECT_MS = 200;
const MAX_RECONNECT_MS = 5000;
/** A connection that does not answer for this long is lost. */
const PROBE_MS = 10_000;
const CLOSE_MS = 2000;

const LOST: Told = { forgets: null, changes: null };

/** Distinct entries to send; null: too many. */
class Gathered<T> {
  things: Map<string, T> | null = new Map();

  add(key: string, thing: T): void {
    this.things?.set(key, thing);
    if (this.things !== null && this.things.size > MOST_GATHERED) this.things = null;
  }

  get isEmpty(): boolean {
    return this.things?.size === 0;
  }

  take(): T[] | null {
    const taken = this.things && [...this.things.values()];
    this.things = new Map();
    return taken;
  }
}

export class NodeBus implements BusLink {
  readonly #deps: NodeBusDeps;
  readonly #forgets = new Gathered<Forgotten>();
  readonly #changes = new Gathered<ResourceChange>();
  #client: pg.Client | null = null;
  #gathering: NodeJS.Timeout | undefined;
  #reconnecting: NodeJS.Timeout | undefined;
  readonly #probing: NodeJS.Timeout;
  #isProbed = false;
  #isClosed = false;

  private constructor(deps: NodeBusDeps) {
    this.#deps = deps;
    this.#probing = setInterval(() => this.#probe(), PROBE_MS).unref();
  }

  /** Connects and reconnects in the background. */
  static open(deps: NodeBusDeps): NodeBus {
    const bus = new NodeBus(deps);
    void bus.#connect(RECONNECT_MS);
    return bus;
  }

  /** False: messages of other nodes are not received. */
  get isListening(): boolean {
    return this.#client !== null;
  }

  forgets(thing: Forgotten): void {
    this.#forgets.add(`${thing.kind} ${thing.id}`, thing);
    this.#gather();
  }

  changed(change: ResourceChange): void {
    this.#changes.add(`${change.kind} ${change.id}`, change);
    this.#gather();
  }

  /** Sends pending messages, and ends. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#gathering);
    clearTimeout(this.#reconnecting);
    clearInterval(this.#probing);
    const client = this.#client;
    if (client === null) return;
    const hung = setTimeout(() => cut(client), CLOSE_MS);
    await this.#send(client);
    await client.end().catch(() => {});
    clearTimeout(hung);
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      if (this.#client !== null) void this.#send(this.#client);
    }, GATHER_MS).unref();
  }

  /** Never rejects. Unsent messages are reported as lost after a reconnect. */
  async #send(client: pg.Client): Promise<void> {
    if (this.#forgets.isEmpty && this.#changes.isEmpty) return;
    const told = { forgets: this.#forgets.take(), changes: this.#changes.take() };
    try {
      await client.query('SELECT pg_notify($1, $2)', [CHANNEL, textOf(this.#deps.runId, told)]);
    } catch {
      this.#lose();
      cut(client);
    }
  }

  #lose(): void {
    this.#forgets.things = null;
    this.#changes.things = null;
  }

  async #connect(waitMs: number): Promise<void> {
    const { url, runId, receive } = this.#deps;
    let client: pg.Client | undefined;
    try {
      client = await connect({ url, writer: runId, onEnd: () => this.#ended() });
      client.on('notification', ({ payload = '' }) => this.#heard(payload));
      await client.query('SET synchronous_commit = off');
      await client.query(`LISTEN ${CHANNEL}`);
      if (this.#isClosed) {
        await client.end();
        return;
      }
      this.#client = client;
      this.#isProbed = false;
      // Messages may have been missed before.
      receive(LOST);
      await this.#send(client);
    } catch {
      if (this.#client !== null) return;
      if (client !== undefined) cut(client);
      this.#reconnect(Math.min(2 * waitMs, MAX_RECONNECT_MS));
    }
  }

  #ended(): void {
    const wasListening = this.#client !== null;
    this.#client = null;
    if (wasListening) this.#reconnect(RECONNECT_MS);
  }

  #reconnect(waitMs: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#reconnecting);
    this.#reconnecting = setTimeout(() => void this.#connect(waitMs), waitMs).unref();
  }

  #probe(): void {
    const client = this.#client;
    if (client === null) return;
    if (this.#isProbed) {
      cut(client);
      return;
    }
    this.#isProbed = true;
    client.query('SELECT 1').then(
      () => {
        this.#isProbed = false;
      },
      () => cut(client),
    );
  }

  #heard(payload: string): void {
    const { runId, receive } = this.#deps;
    const message = read(payload);
    if (message?.n === runId) return;
    receive(message === undefined ? LOST : toldOf(message));
  }
}

/** Parses a message; undefined: not one of ours. */
function read(payload: string): Message | undefined {
  try {
    const message = JSON.parse(payload) as Message | null;
    return typeof message?.n === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

function toldOf({ f, c }: Message): Told {
  return {
    forgets: f?.map(([kind, id]) => ({ kind, id }) as Forgotten) ?? null,
    changes: c?.map(([accountId, kind, id]) => ({ accountId, kind, id })) ?? null,
  };
}

/** The changes are dropped first if not everything fits: no decision depends on them. */
function textOf(runId: string, { forgets, changes }: Told): string {
  const f = forgets?.map(({ kind, id }) => [kind, id]) ?? null;
  const c = changes?.map(({ accountId, kind, id }) => [accountId, kind, id]) ?? null;
  const texts = [
    { n: runId, f, c },
    { n: runId, f, c: null },
  ].map((message) => JSON.stringify(message));
  return (
    texts.find((text) => Buffer.byteLength(text) <= MAX_BYTES) ??
    JSON.stringify({ n: runId, f: null, c: null })
  );
}
